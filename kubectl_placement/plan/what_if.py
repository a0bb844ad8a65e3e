"""
Compute the effect of manifests before they are applied: on decisions, Kueue's list, objects and jobs.

Pure. OCM's scheduler and the controller's own rules decide for the hub before and after the change. Both
sides are computed alike, so a controller that lags behind is not reported as a change.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from kubectl_placement.hub.dump import Dump, Object, kind_of
from kubectl_placement.hub.hub_view import PASSED, Changes, HubView
from kubectl_placement.jobs.new_job import NewJob, is_job, new_job
from kubectl_placement.plan import plan_report
from kubectl_placement.plan.manifest_changes import ManifestChange, apply_manifests, kept_fields
from kubectl_placement.plan.preview import CONDITION_FIELDS, PlannedWrite, preview_writes
from kubectl_placement.plan.reschedule import (
    RescheduleResult,
    affected_placements,
    decisions_as_changes,
    reschedule,
)
from kubectl_placement.plan.unknown_fields import spec_defaults, unknown_fields
from kubectl_placement.status.queues import workload_rows
from placement_ac.core.api.constants import (
    CLUSTER_PROFILE,
    LABEL_MANAGED_BY,
    MANAGED_BY,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PLACEMENT,
    PLACEMENT_DECISION,
    PLACEMENT_SCORE,
    SECRET,
    WORKLOAD,
    Kind,
)
from placement_ac.core.api.decode import placement, scores
from placement_ac.core.api.fields import Key, get_dict, get_list, get_str, key_of
from placement_ac.core.api.schemas import Condition
from placement_ac.core.api.text import enumeration
from placement_ac.core.decisions import SOURCE
from placement_ac.core.decisions.source import Decision, RankedCluster
from placement_ac.core.inputs.state import Plan, Snapshot, Verdict, WorkerCopies
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.core.plan.conditions import is_taken
from placement_ac.core.plan.plan import keeps_objects, plan
from placement_ac.core.plan.targets import TargetClusters, select_targets
from placement_ac.core.selection.selection import listed_clusters

CREDENTIALS_ASSUMED: Final = "the credentials of clusters are unknown: every cluster counts as having some"
OVERWRITTEN_BY_OCM: Final = "do not apply {}: OCM writes PlacementDecisions and will overwrite it"
UNCHECKED: Final = "whether the API server takes {} is unknown: {}"
WRITTEN_BY_CONTROLLER: Final = (
    "do not apply {}: the controller writes it, and will restore it or report NameTaken"
)


def what_if(view: HubView, manifests: Iterable[Object]) -> plan_report.PlanReport:
    """Return what these manifests would change on a hub. Raises InvalidManifest.

    The report has every Placement in the manifests, and every other Placement that changes.
    """
    given = tuple(manifests)
    manifests = tuple(one for one in given if not is_job(one))
    applied, passed_over = apply_manifests(view.dump, manifests, view.settings.placement_namespace[0])
    changes = _relevant(view, applied)
    named = {one.key for one in applied if one.kind == PLACEMENT}
    after, touched = view.with_changes(changes)
    found = reschedule(view, after, affected_placements(view, after, changes), named)
    unknown = {key: one.unknown for key, one in found.items() if one.unknown}
    before, _ = view.with_changes(decisions_as_changes(view, {key: one.before for key, one in found.items()}))
    after, more = after.with_changes(
        decisions_as_changes(after, {key: one.after for key, one in found.items()})
    )
    keys = named | {key for key, one in found.items() if one.changed}
    keys |= {_placement_key(after, key.name) for key in touched | more if key.kind == "placement"}
    entries = []
    for key in sorted(keys - unknown.keys()):
        sides = _PlacementSide(before, key), _PlacementSide(after, key)
        planned = _planned_placement(*sides, found.get(key, RescheduleResult()))
        if planned.changed or key in named:
            entries.append(planned)
    return plan_report.PlanReport(
        entries=tuple(entries),
        unknown=tuple(plan_report.UnknownPlacement(*key, why) for key, why in sorted(unknown.items())),
        objects=tuple(plan_report.ObjectChange(one.verb, one.kind.kind, *one.key) for one in applied),
        passed_over=passed_over,
        warnings=(
            *_unknown_fields(view.dump, manifests),
            *_kept_fields(view.dump, applied),
            *_warnings(view, after, applied, entries),
        ),
        jobs=new_jobs(after, given),
        after=after,
    )


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


def _placement_key(view: HubView, name: str) -> Key:
    """Return the key of the Placement of that name that the controller uses, or would use."""
    there = view.placement(name)
    return (get_str(there, "metadata", "namespace") if there else view.settings.placement_namespace[0]), name


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
        yield from (UNCHECKED.format(one, why) for why in one.unchecked)
        if one.kind == PLACEMENT_DECISION:
            yield OVERWRITTEN_BY_OCM.format(one)
        if one.kind in (MULTIKUEUE_CONFIG, MULTIKUEUE_CLUSTER) and _is_ours(after, one):
            yield WRITTEN_BY_CONTROLLER.format(one)


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


# -- one side


@dataclass(frozen=True)
class _PlacementSide:
    """One Placement on the hub before or after the change."""

    view: HubView
    key: Key

    @cached_property
    def placement(self) -> Object:
        return self.view.dump.find(PLACEMENT, self.key[1], self.key[0]) or {}

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        found = self.view.decisions.get(self.key, ()) if self.placement else ()
        return tuple(sorted(found, key=lambda one: (one.group, _number(one))))

    @cached_property
    def decided_clusters(self) -> tuple[str, ...]:
        entries = (entry for decision in self.decisions for entry in decision.decided or ())
        return tuple(dict.fromkeys(entry.cluster_name for entry in entries))

    @cached_property
    def ranked(self) -> tuple[RankedCluster, ...]:
        """The selected clusters, in the controller's order."""
        if not self.placement:
            return ()
        read = placement(self.placement)
        ids = [
            (cluster, prioritizer.resource_name)
            for cluster in self.decided_clusters
            for prioritizer in read.prioritizers
        ]
        found = {id_: self.view.dump.find(PLACEMENT_SCORE, id_[1], id_[0]) for id_ in ids}
        table = {id_: scores(raw) for id_, raw in found.items() if raw}
        return SOURCE.decide(read, self.decisions, table, self.view.now, lambda _: 0.0).clusters

    @cached_property
    def snapshot(self) -> Snapshot | None:
        """The controller's inputs; None: no check of ours names this Placement."""
        if _placement_key(self.view, self.key[1]) != self.key:
            return None
        seen = self.view.snapshot(self.key[1])
        if not seen.checks.ours and (seen.objects.config is None or self.foreign_list):
            return None
        no_copies = dict.fromkeys(seen.objects.clusters, WorkerCopies())  # that the hub does not know of
        return replace(seen, all_ages=PASSED, fleet=replace(seen.fleet, worker_copies=no_copies))

    @cached_property
    def foreign_list(self) -> tuple[str, ...]:
        """Kueue's list, if the MultiKueueConfig of this name is owned by someone else; () if not."""
        seen = self.view.snapshot(self.key[1])
        if seen.objects.config is None or not is_taken(seen.objects.config, seen.name, ""):
            return ()
        objects = self.view.cluster_objects
        return tuple(
            seen.hub.cluster_of(seen.name, name, objects.get(name)) for name in seen.objects.config.listed
        )

    @cached_property
    def targets(self) -> TargetClusters | None:
        return select_targets(self.snapshot) if self.snapshot and self.snapshot.checks.ours else None

    @cached_property
    def plan(self) -> Plan:
        return plan(self.snapshot, self.targets) if self.snapshot else Plan()

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Kueue's final list; without a check of ours, the selected clusters, best first."""
        if self.snapshot is None:
            return tuple(one.cluster for one in self.ranked)
        if self.foreign_list:
            return self.foreign_list
        names = self.plan.config.clusters if self.plan.config else ()
        as_written = tuple(self.listed.get(name, name) for name in names)
        verdict = next(iter(self.plan.verdicts.values()), None)
        if self.targets is None or (verdict and keeps_objects(verdict)):
            return as_written
        stay = {entry.cluster for entry in self.targets.to_list} | set(self.targets.waiting_for_slot)
        if stay == set(self.listed.values()) and self.plan.config:
            return as_written
        return tuple(one for one in self.targets.selection.ranked if one in stay)

    @cached_property
    def listed(self) -> dict[str, str]:
        """MultiKueueCluster on Kueue's list → its cluster."""
        found = listed_clusters(self.snapshot) if self.snapshot else {}
        return {name: cluster for cluster, name in found.items()}

    def comparable(self) -> tuple[object, ...]:
        """Return everything whose change is reported."""
        leaving = self.targets.drain.staying if self.targets else ()
        return (
            self.order,
            {name: _condition(one) for name, one in self.plan.verdicts.items()},
            self.plan.config,
            self.plan.clusters,
            [one.cluster for one in leaving],
        )


def _number(decision: Decision) -> int:
    number = decision.meta.name.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


# -- both sides


def _planned_placement(
    before: _PlacementSide, after: _PlacementSide, decided: RescheduleResult
) -> plan_report.PlannedPlacement:
    known = before.snapshot or after.snapshot
    was, order = (side.order if side.snapshot or not known else side.foreign_list for side in (before, after))
    added = tuple(one for one in order if one not in was)
    removed = tuple(one for one in was if one not in order)
    changed = decided.changed or before.comparable() != after.comparable()
    draining = tuple(_draining(after))
    wanted = after.plan
    writes: tuple[PlannedWrite, ...] = ()
    if after.snapshot and changed:
        wanted, writes = preview_writes(after.snapshot, after.view.dump, waits=bool(draining))
    affected = sorted(
        _workloads_on(after, removed),
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
            warnings=(*decided.warnings, *(() if is_edited else _delays(after, removed))),
        ),
        changed=changed,
        listed=targets is not None,
        clusters_max=after.view.facts.clusters_max,
        jobs_known=after.view.dump.knows(WORKLOAD),
        other_jobs={one: len(after.view.running_for_others(after.key[1], one)) for one in removed},
        cluster_details=dict(_cluster_details(after)),
    )


def _leaving_clusters(side: _PlacementSide) -> dict[str, str]:
    """Return the MultiKueueClusters that leave → their clusters."""
    if side.targets is None:
        return side.listed
    return {step.name: step.cluster for step in side.targets.drain.steps}


def _workloads_on(side: _PlacementSide, removed: Sequence[str]) -> Iterator[plan_report.AffectedWorkload]:
    """Yield the jobs on the clusters that leave, once per cluster."""
    seen = side.snapshot
    if seen is None:
        return
    leaving = {name: cluster for name, cluster in _leaving_clusters(side).items() if cluster in removed}
    for job in workload_rows(side.view.dump, seen.workloads, lambda name: leaving.get(name, "")):
        running = (job.cluster,) if job.cluster else ()
        for cluster in running or job.nominated:
            if cluster and job.state != "pending":
                yield plan_report.AffectedWorkload(
                    job.namespace, job.name, job.queue, cluster, job.state, job.gpus
                )


def _draining(side: _PlacementSide) -> list[str]:
    """Return the clusters that leave but stay listed for now."""
    if side.snapshot is None or side.targets is None:
        return []
    busy = {one.cluster for one in _workloads_on(side, tuple(_leaving_clusters(side).values()))}
    stuck = {
        one.cluster for one in side.targets.drain.staying if one.cluster in side.snapshot.fleet.unreachable
    }
    return [step.cluster for step in side.targets.drain.steps if step.cluster in busy | stuck]


def _checks(side: _PlacementSide, wanted: Plan) -> Iterator[plan_report.CheckChange]:
    for check in side.snapshot.checks.ours if side.snapshot else ():
        before = _condition(check.active) if check.active else None
        yield plan_report.CheckChange(check.meta.name, before, _condition(wanted.verdicts[check.meta.name]))


def _condition(one: Condition | Verdict) -> plan_report.CheckCondition:
    return plan_report.CheckCondition(one.status, one.reason, one.message)


def _delays(side: _PlacementSide, removed: Sequence[str]) -> Iterator[str]:
    """Yield why the removal is delayed: the controller holds a mass loss."""
    if removed and side.snapshot and side.targets:
        why = select_targets(replace(side.snapshot, all_ages={})).mass_loss.why
        if why:
            yield why


def _cluster_details(side: _PlacementSide) -> Iterator[tuple[str, str]]:
    credentials = side.snapshot.credentials.selected if side.snapshot and side.targets else {}
    known = side.view.credentials_known
    for one in side.ranked:
        source, message = credentials.get(one.cluster), f"score {one.score}"
        if isinstance(source, CredentialSource) and known:
            message += f", credentials {source.kind} {source.name}"
        yield one.cluster, message
