"""
Compute the effect of manifests before they are applied: on decisions, Kueue's list, objects and jobs.

Pure. OCM's scheduler and the controller's own rules decide for the hub before and after the change. Both
sides are computed alike, so a controller that lags behind is not reported as a change.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Final

from kubectl_placement.hub.dump import Dump, Object
from kubectl_placement.hub.dump_files import kind_of
from kubectl_placement.hub.hub_view import Changes, HubView
from kubectl_placement.jobs.new_job import NewJob, is_job, new_job
from kubectl_placement.plan import plan_report
from kubectl_placement.plan.manifest_changes import (
    PLANNED_KINDS,
    SETUP_KINDS,
    ManifestChange,
    apply_manifests,
    kept_fields,
)
from kubectl_placement.plan.moved_checks import MovedCheck, moved_checks
from kubectl_placement.plan.placement_side import PlacementSide, condition_in_report, placement_key
from kubectl_placement.plan.preview import CONDITION_FIELDS, PlannedWrite, preview_writes
from kubectl_placement.plan.reschedule import (
    RescheduleResult,
    affected_placements,
    decisions_as_changes,
    reschedule,
)
from kubectl_placement.plan.unknown_fields import spec_defaults, unknown_fields
from kubectl_placement.plan.worker_setups import as_reported, setup_report
from kubectl_placement.status.queues import workload_rows
from placement_ac.core.api import decode
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    CLUSTER_PROFILE,
    CLUSTER_QUEUE,
    LABEL_MANAGED_BY,
    MANAGED_BY,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    OUR_CONTROLLER,
    PLACEMENT,
    PLACEMENT_DECISION,
    SECRET,
    WORKLOAD,
    Kind,
)
from placement_ac.core.api.fields import Key, get_dict, get_list, get_str, get_value, key_of
from placement_ac.core.api.objects import Workload
from placement_ac.core.api.text import enumeration
from placement_ac.core.inputs.state import Plan
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.core.plan.targets import select_targets

CREDENTIALS_ASSUMED: Final = "the credentials of clusters are unknown: every cluster counts as having some"
OVERWRITTEN_BY_OCM: Final = "do not apply {}: OCM writes PlacementDecisions and will overwrite it"
WRITTEN_BY_CONTROLLER: Final = (
    "do not apply {}: the controller writes it, and will restore it or report NameTaken"
)
NOT_OURS: Final = f"set spec.controllerName of {{}} to {OUR_CONTROLLER}: placement-ac answers no other one"
SELECTS_NONE: Final = (
    "set spec.namespaceSelector of {}: without it, it selects no namespace and admits no job"
)


def what_if(view: HubView, manifests: Iterable[Object]) -> plan_report.PlanReport:
    """Return what these manifests would change on a hub. Raises InvalidManifest.

    The report has every Placement in the manifests, and every other Placement that changes.
    """
    given = tuple(manifests)
    manifests = tuple(one for one in given if not is_job(one))
    namespace, considers = view.settings.placement_namespace[0], partial(_is_considered, view)
    applied, passed_over = apply_manifests(view.dump, manifests, namespace, considers)
    changes = _relevant(view, applied)
    named = {one.key for one in applied if one.kind == PLACEMENT}
    after, touched = view.with_changes(changes)
    found = reschedule(view, after, affected_placements(view, after, changes), named)
    unknown = {key: one.unknown for key, one in found.items() if one.unknown}
    before, _ = view.with_changes(decisions_as_changes(view, {key: one.before for key, one in found.items()}))
    after, more = after.with_changes(
        decisions_as_changes(after, {key: one.after for key, one in found.items()})
    )
    clusters = {key.name for key in touched | more if key.kind == "cluster"}
    clusters |= {cluster for key in named for cluster in PlacementSide(after, key).decided_clusters}
    (before, _), (after, ready) = (side.with_changes(as_reported(side, clusters)) for side in (before, after))
    keys = named | {key for key, one in found.items() if one.changed}
    keys |= {placement_key(after, key.name) for key in touched | more | ready if key.kind == "placement"}
    moved = tuple(moved_checks(before, after))
    entries = []
    for key in sorted(keys - unknown.keys()):
        sides = PlacementSide(before, key), PlacementSide(after, key)
        of_it = [one for one in moved if one.before == key[1] and one.lost <= sides[0].listed.keys()]
        planned = _planned_placement(*sides, found.get(key, RescheduleResult()), of_it)
        if planned.changed or key in named:
            entries.append(planned)
    removed = {cluster for entry in entries if entry.listed for cluster in entry.plan.removed}
    setups = setup_report(view.dump, before, after, clusters, removed)
    return plan_report.PlanReport(
        entries=tuple(entries),
        unknown=tuple(plan_report.UnknownPlacement(*key, why) for key, why in sorted(unknown.items())),
        objects=tuple(plan_report.ObjectChange(one.verb, one.kind.kind, *one.key) for one in applied),
        passed_over=passed_over,
        warnings=(
            *_unknown_fields(view.dump, manifests),
            *_kept_fields(view.dump, applied),
            *_warnings(view, after, applied, entries),
            *(one.warning for one in moved if one.warning and not _is_in(entries, one.warning)),
            *setups.warnings,
        ),
        jobs=new_jobs(after, given),
        after=after,
        setups=setups.changes,
        quota=setups.quota,
    )


def _is_considered(view: HubView, kind: Kind, manifest: Object) -> bool:
    """Whether a plan considers a manifest: flavors and templates only where workers are set up from them."""
    in_kueues = get_str(manifest, "metadata", "namespace") == view.settings.kueue_namespace
    from_it = kind in SETUP_KINDS and (in_kueues or not kind.namespaced)
    return kind in PLANNED_KINDS or (view.sets_up and from_it)


def new_jobs(after: HubView, manifests: Iterable[Object]) -> tuple[NewJob, ...]:
    """Return where the jobs among these manifests would go."""
    return tuple(new_job(after, manifest) for manifest in manifests if is_job(manifest))


def _unknown_fields(dump: Dump, manifests: Iterable[Object]) -> Iterator[str]:
    for manifest in manifests:
        kind, version = kind_of(manifest)
        if kind and "name" in manifest["metadata"]:
            where = f"{kind.kind} {'/'.join(filter(None, key_of(manifest)))}"
            for field in unknown_fields(manifest, kind.at(version), dump):
                yield f"correct {where}: there is no field {field}"


def _kept_fields(dump: Dump, applied: Iterable[ManifestChange]) -> Iterator[str]:
    for change in applied:
        defaults = spec_defaults(change.kind.at(kind_of(change.manifest)[1]), dump)
        if kept := sorted(kept_fields(change, defaults)):
            names, them = enumeration(kept, "and"), "them" if kept[1:] else "it"
            yield (
                f"write {names} into {change}, or remove {them} there with `kubectl edit`: `kubectl apply` "
                "removes only what it has applied"
            )


def _relevant(view: HubView, applied: Iterable[ManifestChange]) -> Changes:
    """Leave out unchanged objects, and credentials if those of other clusters are unknown."""
    unknown = () if view.credentials_known else (SECRET, CLUSTER_PROFILE)
    found: dict[Kind, dict[Key, Object | None]] = {}
    for one in applied:
        if one.verb != "none" and one.kind not in unknown:
            found.setdefault(one.kind, {})[one.key] = one.after
    return found


def _warnings(
    view: HubView,
    after: HubView,
    applied: Iterable[ManifestChange],
    entries: Iterable[plan_report.PlannedPlacement],
) -> Iterator[str]:
    if not view.credentials_known:
        yield CREDENTIALS_ASSUMED
    if any(entry.listed and entry.plan.removed and not entry.jobs_known for entry in entries):
        yield f"the jobs on the clusters that leave are unknown: {view.dump.why_unknown(WORKLOAD)}"
    for one in applied:
        if one.kind == PLACEMENT_DECISION:
            yield OVERWRITTEN_BY_OCM.format(one)
        if one.kind in (MULTIKUEUE_CONFIG, MULTIKUEUE_CLUSTER) and _is_ours(after, one):
            yield WRITTEN_BY_CONTROLLER.format(one)
        if one.verb != "none" and one.after:
            yield from _useless(one, one.after)


def _useless(change: ManifestChange, obj: Object) -> Iterator[str]:
    """Yield why an object that the API server takes has no effect."""
    if change.kind == ADMISSION_CHECK and (new := decode.check(obj)).names(PLACEMENT) and not new.ours:
        yield NOT_OURS.format(change)
    if change.kind == CLUSTER_QUEUE and get_value(obj, "spec", "namespaceSelector") is None:
        yield SELECTS_NONE.format(change)


def _is_ours(view: HubView, change: ManifestChange) -> bool:
    """Whether the controller writes this object of Kueue, or will: others may write their own by hand."""
    label = get_str(change.after, "metadata", "labels", LABEL_MANAGED_BY)
    names = {check.placement for check in view.our_checks}
    if label == MANAGED_BY or (change.kind == MULTIKUEUE_CONFIG and change.key[1] in names):
        return True
    if change.kind == MULTIKUEUE_CONFIG:
        return False
    clusters = ((name, one) for name in names if name for one in view.targets(name).selection.ranked)
    return any(view.facts.multikueue_cluster_name(*cluster) == change.key[1] for cluster in clusters)


def _is_in(entries: Iterable[plan_report.PlannedPlacement], warning: str) -> bool:
    return any(warning in entry.plan.warnings for entry in entries)


# -- both sides


def _planned_placement(
    before: PlacementSide, after: PlacementSide, decided: RescheduleResult, moved: Sequence[MovedCheck]
) -> plan_report.PlannedPlacement:
    known = before.snapshot or after.snapshot
    was, order = (side.order if side.snapshot or not known else side.foreign_list for side in (before, after))
    added = tuple(one for one in order if one not in was)
    lost = {name: before.listed[name] for check in moved for name in check.lost}
    removed = tuple(one for one in was if one not in order or one in lost.values())
    changed = decided.changed or before.comparable() != after.comparable()
    draining = tuple(_draining(after))
    wanted = after.plan
    writes: tuple[PlannedWrite, ...] = ()
    if after.snapshot and changed:
        wanted, writes = preview_writes(after.snapshot, after.view.dump, waits=bool(draining))
    affected = sorted(
        dict.fromkeys(chain(_workloads_on(after, removed), _sent_again(before, moved, lost))),
        key=lambda one: (removed.index(one.cluster), one.namespace, one.name),
    )
    is_edited = before.placement.get("spec") != after.placement.get("spec")
    targets = after.targets
    status = get_dict(after.placement, "status")
    return plan_report.PlannedPlacement(
        plan=plan_report.PlacementPlan(
            *after.key,
            decisions=after.decided_clusters,
            groups=tuple(dict(group) for group in get_list(status, "decisionGroups")),
            conditions=tuple(
                plan_report.PlacementCondition(*(get_str(condition, key) for key in CONDITION_FIELDS))
                for condition in get_list(status, "conditions")
            ),
            added=added,
            removed=removed,
            order=order,
            writes=writes,
            affected=tuple(affected),
            checks=tuple(_checks(after, wanted)),
            beyond=targets.over_limit if targets else (),
            unusable=dict(targets.selection.problems) if targets else {},
            draining=draining,
            warnings=(
                *decided.warnings,
                *(() if is_edited else _delays(after, removed)),
                *filter(None, (check.warning for check in moved)),
            ),
        ),
        changed=changed,
        listed=targets is not None,
        clusters_max=after.view.facts.clusters_max,
        jobs_known=after.view.dump.knows(WORKLOAD),
        other_jobs={one: len(after.view.running_for_others(after.key[1], one)) for one in removed},
        cluster_details=dict(_cluster_details(after)),
    )


def _leaving_clusters(side: PlacementSide) -> dict[str, str]:
    """Return the MultiKueueClusters that leave → their clusters."""
    if side.targets is None:
        return side.listed
    return {step.name: step.cluster for step in side.targets.drain.steps}


def _workloads_on(side: PlacementSide, removed: Sequence[str]) -> Iterator[plan_report.AffectedWorkload]:
    """Yield the jobs on the clusters that leave, once per cluster."""
    seen = side.snapshot
    if seen is None:
        return
    leaving = {name: cluster for name, cluster in _leaving_clusters(side).items() if cluster in removed}
    yield from _affected(side, seen.workloads, leaving)


def _sent_again(
    side: PlacementSide, moved: Iterable[MovedCheck], lost: Mapping[str, str]
) -> Iterator[plan_report.AffectedWorkload]:
    """Yield the jobs on the clusters that a check of Kueue will list no more, once per cluster."""
    for check in moved:
        yield from _affected(side, check.jobs, {name: lost[name] for name in check.lost})


def _affected(
    side: PlacementSide, workloads: Iterable[Workload], leaving: Mapping[str, str]
) -> Iterator[plan_report.AffectedWorkload]:
    for job in workload_rows(side.view, workloads, lambda name: leaving.get(name, "")):
        running = (job.cluster,) if job.cluster else ()
        for cluster in running or job.nominated:
            if cluster and job.state != "pending":
                yield plan_report.AffectedWorkload(
                    job.namespace, job.name, job.queue, cluster, job.state, job.gpus
                )


def _draining(side: PlacementSide) -> list[str]:
    """Return the clusters that leave but stay listed for now."""
    if side.snapshot is None or (side.targets is None and not side.snapshot.checks.moved):
        return []
    busy = {one.cluster for one in _workloads_on(side, tuple(_leaving_clusters(side).values()))}
    if side.targets is None:
        return sorted(busy)
    stuck = {
        one.cluster for one in side.targets.drain.staying if one.cluster in side.snapshot.fleet.unreachable
    }
    return [step.cluster for step in side.targets.drain.steps if step.cluster in busy | stuck]


def _checks(side: PlacementSide, wanted: Plan) -> Iterator[plan_report.CheckChange]:
    for check in side.snapshot.checks.ours if side.snapshot else ():
        before = condition_in_report(check.active) if check.active else None
        yield plan_report.CheckChange(
            check.meta.name, before, condition_in_report(wanted.verdicts[check.meta.name])
        )


def _delays(side: PlacementSide, removed: Sequence[str]) -> Iterator[str]:
    """Yield why the removal is delayed: the controller holds a mass loss."""
    if removed and side.snapshot and side.targets:
        why = select_targets(replace(side.snapshot, all_ages={})).mass_loss.why
        if why:
            yield why


def _cluster_details(side: PlacementSide) -> Iterator[tuple[str, str]]:
    credentials = side.snapshot.credentials.selected if side.snapshot and side.targets else {}
    known = side.view.credentials_known
    for one in side.ranked:
        source, message = credentials.get(one.cluster), f"score {one.score}"
        if isinstance(source, CredentialSource) and known:
            message += f", credentials {source.kind} {source.name}"
        yield one.cluster, message
