"""
What OCM would decide after a change: which Placements it would look at again, and what of its answers is new.

Pure. An answer counts as new only if it is neither what is decided there now nor the engine's answer to the
hub as it is: where OCM has decided otherwise meanwhile, as scores have moved, the change is not to blame.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from placement_ac.core.api.constants import MANAGED_CLUSTER, PLACEMENT, PLACEMENT_DECISION, PLACEMENT_SCORE
from placement_ac.inspection.hub.dump import Key, Object
from placement_ac.inspection.hub.hub_view import Changes, HubView
from placement_ac.inspection.hub.kinds import CLUSTER_SET, SET_BINDING
from placement_ac.inspection.plan.manifest_changes import ManifestChange
from placement_ac.scheduling import SchedulingResult
from placement_ac.scheduling.affected import AffectedPlacements
from placement_ac.scheduling.objects import Fleet, Obj, key_of, listed, name_of, own_decisions, section

ALREADY_DIFFERENT: Final = (
    "OCM would decide this Placement otherwise already now, without these manifests: scores have moved, or a"
    " decision is under way"
)
_TIME_FIELDS: Final = ("lastTransitionTime", "lastScoreUpdateTime", "observedGeneration")


@dataclass(frozen=True, slots=True)
class RescheduleResult:
    """What becomes of a Placement's decisions."""

    changed: bool = False
    """Whether the change makes OCM decide otherwise."""
    before: SchedulingResult | None = None
    """The engine's answer before the change, where OCM has none yet; None: as it is there."""
    after: SchedulingResult | None = None
    """Its answer after it; None: as it is there."""
    warnings: tuple[str, ...] = ()


def affected_placements(view: HubView, after: HubView, changes: Iterable[ManifestChange]) -> set[Key]:
    """Return the Placements that OCM looks at again: namespace and name."""
    reach = AffectedPlacements()
    found: set[Key] = set()
    for change in changes:
        for side in (view, after):  # in that order: who a cluster was counts as well
            found |= _affected_by(reach, change, side)
    return {key for key in found if after.dump.find(PLACEMENT, key[1], key[0])}


def _affected_by(reach: AffectedPlacements, change: ManifestChange, side: HubView) -> set[Key]:
    fleet, placements, (namespace, name) = side.fleet, side.dump.by_key(PLACEMENT), change.key
    if change.kind == PLACEMENT:
        return {change.key}
    if change.kind == PLACEMENT_DECISION:
        return reach.of_decision(change.key, fleet)
    if change.kind == MANAGED_CLUSTER:
        return reach.of_cluster(name, fleet, placements)
    if change.kind == PLACEMENT_SCORE:
        return reach.of_score(namespace, name, fleet, placements)
    if change.kind == CLUSTER_SET:
        return reach.of_set(name, fleet, placements)
    if change.kind == SET_BINDING:
        return reach.of_set(name, fleet, placements, namespace)
    return set()


def reschedule(view: HubView, after: HubView, keys: Iterable[Key]) -> dict[Key, RescheduleResult]:
    """Return what becomes of the decisions of these Placements.

    What is there is decided by the decisions that are there, so that nothing but the change makes a
    difference; Balance of one that is new counts those of the new ones before it as well.
    """
    fleet = after.fleet
    found = {}
    for key in sorted(keys, key=lambda key: (_is_new(view, key), key)):
        placement = after.dump.find(PLACEMENT, key[1], key[0])
        if placement is None:
            continue
        one = _reschedule_one(view, after, placement, fleet)
        found[key] = one
        if one.after and _is_new(view, key):
            made = dict(_decision_objects(placement, after.fleet, one.after))
            fleet = fleet.with_decisions(key, list(made.values()))
    return found


def _is_new(view: HubView, key: Key) -> bool:
    return view.dump.find(PLACEMENT, key[1], key[0]) is None


def _reschedule_one(view: HubView, after: HubView, placement: Object, fleet: Fleet) -> RescheduleResult:
    namespace, name = key_of(placement)
    there = own_decisions(placement, view.fleet)
    outcome = after.schedule(placement, fleet)
    if outcome.hold:
        return RescheduleResult(warnings=(f"OCM leaves its decisions as they are: {outcome.hold}",))
    warnings = outcome.warnings
    if _matches(outcome, placement, there):
        return RescheduleResult(warnings=warnings)
    was = view.dump.find(PLACEMENT, name, namespace)
    before = view.schedule(was) if was else None
    if before is None or before.hold:
        return RescheduleResult(True, None, outcome, warnings)
    same = _comparable(before) == _comparable(outcome)
    if not _is_decided(was or {}, there):
        return RescheduleResult(not same, before, outcome, warnings)
    if not _matches(before, was or {}, there):
        warnings += (ALREADY_DIFFERENT,)
    return RescheduleResult(warnings=warnings) if same else RescheduleResult(True, None, outcome, warnings)


def _is_decided(placement: Obj, there: list[Obj]) -> bool:
    return "numberOfSelectedClusters" in section(placement, "status") or any("status" in one for one in there)


def _matches(outcome: SchedulingResult, placement: Obj, there: Iterable[Obj]) -> bool:
    """Whether that is what OCM has decided."""
    status = {key: value for key, value in outcome.status.items() if key != "conditions"}
    kept = section(placement, "status")
    wanted, found = _entries(outcome.decisions), _entries(there)
    return (
        {name: entries for name, (entries, _) in wanted.items()}
        == {name: entries for name, (entries, _) in found.items()}
        # Somebody else may have labelled them as well.
        and all(labels.items() <= found[name][1].items() for name, (_, labels) in wanted.items())
        and all(kept.get(key, 0) == value for key, value in status.items() if key not in _TIME_FIELDS)
        and _without_times(outcome.status.get("conditions")) == _without_times(kept.get("conditions"))
    )


def _entries(decisions: Iterable[Obj]) -> dict[str, tuple[Any, ...]]:
    return {
        name_of(one): (listed(one, "status", "decisions"), dict(section(one, "metadata", "labels")))
        for one in decisions
    }


def _comparable(outcome: SchedulingResult) -> Any:
    return _entries(outcome.decisions), _without_times(outcome.status)


def _without_times(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_times(one) for key, one in value.items() if key not in _TIME_FIELDS}
    return [_without_times(one) for one in value] if isinstance(value, list) else value


# -- as objects


def decisions_as_changes(view: HubView, found: Mapping[Key, SchedulingResult]) -> Changes:
    """Return these answers as OCM would write them: decisions, and the status of each Placement."""
    decisions: dict[Key, Object | None] = {}
    placements: dict[Key, Object | None] = {}
    for key, outcome in found.items():
        placement = view.dump.find(PLACEMENT, key[1], key[0])
        if placement is not None:
            there = own_decisions(placement, view.fleet)
            decisions |= dict.fromkeys((key_of(one) for one in there), None)
            decisions |= dict(_decision_objects(placement, view.fleet, outcome))
            placements[key] = placement | {"status": dict(outcome.status)}
    return {PLACEMENT: placements, PLACEMENT_DECISION: decisions}


def _decision_objects(
    placement: Obj, fleet: Fleet, outcome: SchedulingResult
) -> Iterator[tuple[Key, Object]]:
    there = {key_of(one): one for one in own_decisions(placement, fleet)}
    for wanted in outcome.decisions:
        key = key_of(wanted)
        known = section(there.get(key), "metadata")
        metadata = {"uid": f"uid of the new PlacementDecision {'/'.join(key)}"} | dict(known)
        yield key, dict(wanted) | {"metadata": metadata | dict(wanted["metadata"])}
