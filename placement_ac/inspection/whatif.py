"""
What manifests would change, before they are applied: decisions, Kueue's list, the objects, the jobs.

Pure. OCM's engine decides on the hub as it would be, and the controller's own rules do the rest: both sides,
the hub as it is and as it would be, are judged alike, so that a controller that lags behind is no change.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from placement_ac.core.api.constants import (
    CLUSTER_PROFILE,
    NO_CLUSTER_SELECTED,
    NO_CLUSTER_USABLE,
    PLACEMENT,
    PLACEMENT_DECISION,
    PLACEMENT_SCORE,
    SECRET,
    WORKLOAD,
    Kind,
)
from placement_ac.core.api.decode import decision, placement, scores
from placement_ac.core.api.objects import Decision
from placement_ac.core.inputs.ranking import RankedCluster, rank
from placement_ac.core.inputs.state import Plan, Snapshot
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.core.plan.conditions import is_taken
from placement_ac.core.plan.plan import plan
from placement_ac.core.plan.targets import TargetClusters, select_targets
from placement_ac.core.selection.selection import cluster_of, listed_clusters
from placement_ac.inspection.applying import Applied, Change, apply
from placement_ac.inspection.dump import Key, Object
from placement_ac.inspection.foreseen import Foreseen, answered, foresee
from placement_ac.inspection.hub import PASSED, Changes, HubView
from placement_ac.inspection.jobs import jobs_in
from placement_ac.inspection.prospect import (
    Affected,
    CheckChange,
    Condition,
    Entry,
    ObjectChange,
    PlacementPlan,
    Told,
    WhatIf,
)
from placement_ac.inspection.redeciding import Decided, as_changes, reached, redecided
from placement_ac.scheduling.objects import listed, own_decisions, section, text

ASSUMED: Final = "it is not known which clusters have credentials: all are taken to have some"
OCMS: Final = "OCM makes the PlacementDecisions itself, and will overwrite {}"
JOBS_UNKNOWN: Final = "it is not known which jobs are on the clusters that leave: {}"
BY_HAND: Final = "{} is the controller's to write: it will put it back, or tell that the name is taken"


def what_if(view: HubView, manifests: Iterable[Object]) -> WhatIf:
    """Return what these manifests would change on a hub. Raises BadManifest.

    Told is every Placement that is in the manifests, and every other of which something changes.
    """
    applied = apply(view.dump, manifests, view.settings.placement_namespace[0])
    changes = _that_count(view, applied)
    after, touched = view.turned(_objects_of(changes))
    found = redecided(view, after, reached(view, after, changes) | _named(applied))
    before, _ = view.turned(as_changes(view, {key: one.before for key, one in found.items() if one.before}))
    after, more = after.turned(as_changes(after, {key: one.after for key, one in found.items() if one.after}))
    keys = _named(applied) | {key for key, one in found.items() if one.changed}
    keys |= {_home(after, key.name) for key in touched | more if key.kind == "placement"}
    pairs = ((_Side(before, key), _Side(after, key), found.get(key, Decided())) for key in sorted(keys))
    named = _named(applied)
    every = (_entry(*pair) for pair in pairs)
    entries = tuple(one for one in every if one.changed or (one.plan.namespace, one.plan.name) in named)
    return WhatIf(
        entries=entries,
        objects=tuple(ObjectChange(one.verb, one.kind.kind, *one.key) for one in applied.changes),
        passed_over=applied.passed_over,
        warnings=tuple(_warnings(view, applied, entries)),
        after=after,
    )


def _that_count(view: HubView, applied: Applied) -> list[Change]:
    """Leave out what stays, and credentials where those of other clusters are not known."""
    unknown = () if view.credentials_known else (SECRET, CLUSTER_PROFILE)
    return [one for one in applied.changes if one.verb != "none" and one.kind not in unknown]


def _objects_of(changes: Iterable[Change]) -> Changes:
    found: dict[Kind, dict[Key, Object | None]] = {}
    for one in changes:
        found.setdefault(one.kind, {})[one.key] = one.after
    return found


def _named(applied: Applied) -> set[Key]:
    return {one.key for one in applied.changes if one.kind == PLACEMENT}


def _home(view: HubView, name: str) -> Key:
    """Return the Placement of that name that counts, or where it would be looked for."""
    there = view.placement(name)
    return (text(there, "metadata", "namespace") if there else view.settings.placement_namespace[0]), name


def _warnings(view: HubView, applied: Applied, entries: Iterable[Entry]) -> Iterator[str]:
    if not view.credentials_known:
        yield ASSUMED
    if any(one.listed and one.plan.removed and not one.jobs_known for one in entries):
        yield JOBS_UNKNOWN.format(view.dump.why_unknown(WORKLOAD))
    for one in applied.changes:
        if one.kind == PLACEMENT_DECISION:
            yield OCMS.format(one)
        if one.kind.kind in ("MultiKueueConfig", "MultiKueueCluster"):
            yield BY_HAND.format(one)


# -- one side


@dataclass(frozen=True)
class _Side:
    """One Placement on the hub as it is, or as it would be."""

    view: HubView
    key: Key

    @cached_property
    def raw(self) -> Object:
        return self.view.dump.find(PLACEMENT, self.key[1], self.key[0]) or {}

    @property
    def spec(self) -> object:
        return self.raw.get("spec")

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        found = own_decisions(self.raw, self.view.fleet) if self.raw else []
        return tuple(sorted(map(decision, found), key=lambda one: (one.group, _number(one))))

    @cached_property
    def decided(self) -> tuple[str, ...]:
        entries = (entry for one in self.decisions for entry in one.decided or ())
        return tuple(dict.fromkeys(entry.cluster_name for entry in entries))

    @cached_property
    def ranked(self) -> tuple[RankedCluster, ...]:
        """The decided clusters, as the controller ranks them."""
        prioritizers = placement(self.raw).prioritizers if self.raw else ()
        ids = [(cluster, one.resource_name) for cluster in self.decided for one in prioritizers]
        found = {id_: self.view.dump.find(PLACEMENT_SCORE, id_[1], id_[0]) for id_ in ids}
        table = {id_: scores(raw) for id_, raw in found.items() if raw}
        return rank(self.decisions, prioritizers, table, self.view.now)

    @cached_property
    def seen(self) -> Snapshot | None:
        """What the controller goes by; None: no check of ours names this Placement."""
        if _home(self.view, self.key[1]) != self.key:
            return None
        seen = self.view.snapshot(self.key[1])
        known = seen.checks.ours or (seen.objects.config and not self.theirs)
        return answered(replace(seen, timer_ages=PASSED)) if known else None

    @cached_property
    def theirs(self) -> tuple[str, ...]:
        """Kueue's list, if the MultiKueueConfig of this name is somebody else's; () if not."""
        seen = self.view.snapshot(self.key[1])
        if seen.objects.config is None or not is_taken(seen.objects.config, seen.name, ""):
            return ()
        objects = ((name, self.view.cluster_objects.get(name)) for name in seen.objects.config.listed)
        return tuple(
            cluster_of(seen, one) if one else seen.hub.cluster_of(seen.name, name) for name, one in objects
        )

    @cached_property
    def course(self) -> TargetClusters | None:
        return select_targets(self.seen) if self.seen and self.seen.checks.ours else None

    @cached_property
    def plan(self) -> Plan:
        return plan(self.seen, self.course) if self.seen else Plan()

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Kueue's list as it will be in the end; without a check of ours the decided clusters, best first."""
        if self.seen is None:
            return tuple(one.cluster for one in self.ranked)
        if self.theirs:
            return self.theirs
        wanted = {name: cluster for cluster, name in listed_clusters(self.seen).items()}
        if self.course is None or self._refused:
            names = self.plan.config.clusters if self.plan.config else ()
            return tuple(wanted.get(name, name) for name in names)
        stay = {entry.cluster for entry in self.course.usable} | set(self.course.waiting_for_slot)
        ranked = tuple(one for one in self.course.selection.ranked if one in stay)
        if stay != set(wanted.values()) or not self.plan.config:
            return ranked
        return tuple(wanted.get(name, name) for name in self.plan.config.clusters)

    @property
    def _refused(self) -> bool:
        """Whether nothing is changed of what is there."""
        said = next(iter(self.plan.verdicts.values()), None)
        reasons = (NO_CLUSTER_SELECTED, NO_CLUSTER_USABLE)
        return said is not None and said.status == "False" and said.reason not in reasons

    @cached_property
    def told(self) -> dict[str, Told]:
        """What each check would be told."""
        return {name: Told(one.status, one.reason, one.message) for name, one in self.plan.verdicts.items()}

    def matters(self) -> tuple[object, ...]:
        """Return what makes a difference to anybody."""
        course = self.course
        leaving = course.drain.staying if course else ()
        return self.order, self.told, self.plan.config, self.plan.clusters, [one.cluster for one in leaving]


def _number(one: Decision) -> int:
    number = one.meta.name.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


# -- both sides


def _entry(before: _Side, after: _Side, decided: Decided) -> Entry:
    was, order = (_list_of(side, before.seen or after.seen) for side in (before, after))
    added = tuple(one for one in order if one not in was)
    removed = tuple(one for one in was if one not in order)
    changed = decided.changed or before.matters() != after.matters()
    foreseen = _foreseen(after, changed)
    course = after.course
    status = section(after.raw, "status")
    return Entry(
        plan=PlacementPlan(
            *after.key,
            decisions=after.decided,
            groups=tuple(dict(group) for group in listed(status, "decisionGroups")),
            conditions=tuple(
                Condition(*(text(one, key) for key in Condition.__dataclass_fields__))
                for one in listed(status, "conditions")
            ),
            added=added,
            removed=removed,
            order=order,
            writes=foreseen.writes,
            affected=tuple(_affected(after, removed)),
            checks=tuple(_checks(after, foreseen.at_once)),
            beyond=course.over_limit if course else (),
            unusable=dict(course.selection.left_out) if course else {},
            draining=tuple(_draining(after)),
            warnings=(*decided.warnings, *(_held(after, removed) if before.spec == after.spec else ())),
        ),
        changed=changed,
        listed=course is not None,
        seats=after.view.facts.clusters_max,
        jobs_known=after.view.dump.knows(WORKLOAD),
        ways=dict(_ways(after)),
    )


def _list_of(side: _Side, known: Snapshot | None) -> tuple[str, ...]:
    """Return Kueue's list; `known`: whether there is one on either side."""
    return side.order if side.seen or not known else side.theirs


def _leaving(side: _Side) -> dict[str, str]:
    """Return the MultiKueueClusters that leave, with their clusters."""
    if side.seen is None:
        return {}
    names = {name: cluster for cluster, name in listed_clusters(side.seen).items()}
    if side.course is None:
        return names
    return {one.name: one.cluster for one in side.course.drain.steps}


def _jobs(side: _Side, removed: Sequence[str]) -> Iterator[Affected]:
    """Yield the jobs on the clusters that leave, on each once."""
    seen = side.seen
    if seen is None:
        return
    leaving = {name: cluster for name, cluster in _leaving(side).items() if cluster in removed}
    for job in jobs_in(side.view.dump, seen.workloads, lambda name: leaving.get(name, "")):
        running = (job.cluster,) if job.cluster else ()
        for cluster in running or job.nominated:
            if cluster and job.state != "pending":
                yield Affected(job.namespace, job.name, job.queue, cluster, job.state, job.gpus)


def _affected(side: _Side, removed: Sequence[str]) -> list[Affected]:
    place = {cluster: at for at, cluster in enumerate(removed)}
    found = _jobs(side, removed)
    return sorted(found, key=lambda one: (place[one.cluster], one.namespace, one.name))


def _draining(side: _Side) -> list[str]:
    """Return the clusters that stay listed for now."""
    if side.seen is None or side.course is None:
        return []
    busy = {one.cluster for one in _jobs(side, tuple(_leaving(side).values()))}
    stuck = {one.cluster for one in side.course.drain.staying if one.cluster in side.seen.fleet.unreachable}
    return [one.cluster for one in side.course.drain.steps if one.cluster in busy | stuck]


def _foreseen(side: _Side, changed: bool) -> Foreseen:
    if side.seen is None or not changed:
        return Foreseen(side.plan, ())
    return foresee(side.seen, side.plan, side.view.dump, waits=bool(_draining(side)))


def _checks(side: _Side, wanted: Plan) -> Iterator[CheckChange]:
    for check in side.seen.checks.ours if side.seen else ():
        said, told = check.active, wanted.verdicts[check.meta.name]
        before = Told(said.status, said.reason, said.message) if said else None
        yield CheckChange(check.meta.name, before, Told(told.status, told.reason, told.message))


def _held(side: _Side, removed: Sequence[str]) -> Iterator[str]:
    """Yield what delays the removal: the controller holds what looks like a mishap."""
    if removed and side.seen and side.course:
        why = select_targets(replace(side.seen, timer_ages={})).mass_loss.why
        if why:
            yield why


def _ways(side: _Side) -> Iterator[tuple[str, str]]:
    credentials = side.seen.credentials.selected if side.seen and side.course else {}
    known = side.view.credentials_known
    for one in side.ranked:
        source = credentials.get(one.cluster)
        way = (
            f"credentials {source.kind} {source.name}"
            if isinstance(source, CredentialSource) and known
            else ""
        )
        yield one.cluster, ", ".join(filter(None, (f"score {one.score}", way)))
