"""
Compute OCM's decisions after a change: which Placements it schedules again, and which decisions differ.

Pure. A decision counts as different only if it differs from the present decision and from what the scheduler
decides without the change: a difference that scores have caused is not an effect of the change.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubectl_placement.hub.dump import Object
from kubectl_placement.hub.hub_view import OCM_DECIDES, Changes, HubView
from kubectl_placement.scheduling import SchedulingResult
from kubectl_placement.scheduling.affected import AffectedPlacements
from kubectl_placement.scheduling.fleet import Fleet, own_decisions
from placement_ac.core.api.constants import (
    CLUSTER_SET,
    MANAGED_CLUSTER,
    PLACEMENT,
    PLACEMENT_DECISION,
    PLACEMENT_SCORE,
    SET_BINDING,
)
from placement_ac.core.api.fields import Key, Obj, get_dict, get_list, key_of, name_of
from placement_ac.core.decisions import SOURCE

ALREADY_DIFFERENT: Final = (
    "without these manifests, OCM would already decide differently for this Placement: scores have changed,"
    " or a decision is pending"
)
NOT_COMPUTED: Final = (
    f"{SOURCE.name}'s present decisions count: what it would decide after the change is unknown"
)
_TIME_FIELDS: Final = ("lastTransitionTime", "lastScoreUpdateTime", "observedGeneration")


@dataclass(frozen=True, slots=True)
class RescheduleResult:
    """The effect on a Placement's decisions."""

    changed: bool = False
    """Whether the change makes OCM decide differently."""
    before: SchedulingResult | None = None
    """The scheduler's result before the change, if OCM has not decided; None: OCM's present decision."""
    after: SchedulingResult | None = None
    """The scheduler's result after the change; None: OCM's present decision."""
    warnings: tuple[str, ...] = ()
    unknown: str = ""
    """Why OCM's decision after the change is unknown; "": it is known."""


def affected_placements(view: HubView, after: HubView, changes: Changes) -> set[Key]:
    """Return the Placements that OCM schedules again: namespace and name."""
    reach = AffectedPlacements()
    found = set(changes.get(PLACEMENT, ()))
    for side in (view, after):  # in this order: the state before the change matters too
        fleet, placements = side.fleet, side.dump.by_key(PLACEMENT)
        for key in changes.get(PLACEMENT_DECISION, ()):
            found |= reach.of_decision(key, fleet)
        for _, name in changes.get(MANAGED_CLUSTER, ()):
            found |= reach.of_cluster(name, fleet, placements)
        for cluster, name in changes.get(PLACEMENT_SCORE, ()):
            found |= reach.of_score(cluster, name, fleet, placements)
        for _, name in changes.get(CLUSTER_SET, ()):
            found |= reach.of_set(name, fleet, placements)
        for namespace, name in changes.get(SET_BINDING, ()):
            found |= reach.of_set(name, fleet, placements, namespace)
    return found & after.dump.by_key(PLACEMENT).keys()


def reschedule(
    view: HubView, after: HubView, affected: Collection[Key], named: Collection[Key]
) -> dict[Key, RescheduleResult]:
    """Return the effect on the decisions of the affected Placements, and of those that are named as well.

    Existing Placements are scheduled with the present decisions, so that only the change makes a difference.
    For a new Placement, Balance also counts the decisions of the new ones before it. The decisions of another
    source than OCM stay as they are.
    """
    if not OCM_DECIDES:
        return dict.fromkeys(named, RescheduleResult(warnings=(NOT_COMPUTED,)))
    fleet, existing = after.fleet, view.dump.by_key(PLACEMENT)
    found = {}
    for key in sorted({*affected, *named}, key=lambda key: (key not in existing, key)):
        placement = after.dump.by_key(PLACEMENT)[key]
        one = _reschedule_one(view, after, placement, fleet)
        if one.unknown and key not in affected and _is_decided(view, placement):
            one = RescheduleResult()  # nothing lets OCM decide again
        found[key] = one
        if one.after and key not in existing:
            fleet = fleet.with_decisions(key, _decision_objects(placement, after.fleet, one.after))
    return found


def _reschedule_one(view: HubView, after: HubView, placement: Object, fleet: Fleet) -> RescheduleResult:
    there = own_decisions(placement, view.fleet)
    outcome = after.schedule(placement, fleet)
    if outcome.hold:
        return RescheduleResult(warnings=(f"OCM leaves its decisions as they are: {outcome.hold}",))
    if outcome.unsupported:
        return RescheduleResult(unknown=outcome.unsupported)
    warnings = outcome.warnings
    if _matches(outcome, placement, there):
        return RescheduleResult(warnings=warnings)
    was = view.dump.by_key(PLACEMENT).get(key_of(placement))
    before = view.schedule(was) if was else None
    if before is None or before.hold or before.unsupported:
        return RescheduleResult(True, None, outcome, warnings)
    same = _comparable(before) == _comparable(outcome)
    if not _is_decided(view, was or {}):
        return RescheduleResult(not same, before, outcome, warnings)
    if not _matches(before, was or {}, there):
        warnings += (ALREADY_DIFFERENT,)
    return RescheduleResult(warnings=warnings) if same else RescheduleResult(True, None, outcome, warnings)


def _is_decided(view: HubView, placement: Obj) -> bool:
    """Whether OCM has decided for a Placement."""
    has_status = any("status" in decision for decision in own_decisions(placement, view.fleet))
    return has_status or "numberOfSelectedClusters" in get_dict(placement, "status")


def _matches(outcome: SchedulingResult, placement: Obj, there: Iterable[Obj]) -> bool:
    """Whether it equals OCM's present decision."""
    status = {key: value for key, value in outcome.status.items() if key != "conditions"}
    kept = get_dict(placement, "status")
    wanted, found = _entries(outcome.decisions), _entries(there)
    return (
        wanted.keys() == found.keys()
        and all(entries == found[name][0] for name, (entries, _) in wanted.items())
        # Others may have added labels.
        and all(labels.items() <= found[name][1].items() for name, (_, labels) in wanted.items())
        and all(kept.get(key, 0) == value for key, value in status.items() if key not in _TIME_FIELDS)
        and _without_times(outcome.status.get("conditions")) == _without_times(kept.get("conditions"))
    )


def _entries(decisions: Iterable[Obj]) -> dict[str, tuple[Any, ...]]:
    return {
        name_of(decision): (
            get_list(decision, "status", "decisions"),
            dict(get_dict(decision, "metadata", "labels")),
        )
        for decision in decisions
    }


def _comparable(outcome: SchedulingResult) -> Any:
    return _entries(outcome.decisions), _without_times(outcome.status)


def _without_times(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_times(one) for key, one in value.items() if key not in _TIME_FIELDS}
    return [_without_times(one) for one in value] if isinstance(value, list) else value


# -- as objects


def decisions_as_changes(view: HubView, found: Mapping[Key, SchedulingResult | None]) -> Changes:
    """Return these results as OCM would write them: decisions, and the status of each Placement.

    None: nothing is written.
    """
    decisions: dict[Key, Object | None] = {}
    placements: dict[Key, Object | None] = {}
    for key, outcome in found.items():
        if outcome:
            placement = view.dump.by_key(PLACEMENT)[key]
            decisions |= dict.fromkeys(map(key_of, own_decisions(placement, view.fleet)), None)
            decisions |= {
                key_of(decision_object): decision_object
                for decision_object in _decision_objects(placement, view.fleet, outcome)
            }
            placements[key] = placement | {"status": dict(outcome.status)}
    return {PLACEMENT: placements, PLACEMENT_DECISION: decisions}


def _decision_objects(placement: Obj, fleet: Fleet, outcome: SchedulingResult) -> list[Object]:
    there = {key_of(decision): get_dict(decision, "metadata") for decision in own_decisions(placement, fleet)}
    return [
        {
            **wanted,
            "metadata": {
                "uid": f"uid of the new PlacementDecision {'/'.join(key_of(wanted))}",
                **there.get(key_of(wanted), {}),
                **wanted["metadata"],
            },
        }
        for wanted in outcome.decisions
    ]
