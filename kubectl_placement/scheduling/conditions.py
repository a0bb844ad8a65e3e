"""
The two conditions OCM writes on a Placement, and the error that one of them reports.

Pure. Order of the cases, reasons and messages are OCM's; like OCM's, these
conditions carry no observedGeneration.
"""

from collections.abc import Sequence
from datetime import datetime

from kubectl_placement.scheduling.sets import Pool
from placement_ac.core.api.fields import Obj, format_time, get_str


class MisconfiguredError(ValueError):
    """The Placement cannot be followed; OCM's status code `Misconfigured`.

    `plugin` is the step that objects, empty where OCM leaves it empty. `engine.schedule` does not raise it.
    """

    def __init__(self, plugin: str, message: str) -> None:
        super().__init__(message)
        self.plugin = plugin


def misconfigured(objection: MisconfiguredError | None) -> Obj:
    """Return the condition PlacementMisconfigured without its time."""
    reason, message = "Succeedconfigured", "Placement configurations check pass"
    if objection is not None:
        reason, message = "Misconfigured", f"{objection.plugin}:{objection}"
    return _condition("PlacementMisconfigured", objection is not None, reason, message)


def satisfied(asked: Sequence[str], pool: Pool, selected: int, unscheduled: int) -> Obj:
    """Return the condition PlacementSatisfied without its time.

    `asked`: spec.clusterSets; `selected`: clusters decided; `unscheduled`:
    how many of spec.numberOfClusters were not found.
    """
    if selected and not unscheduled:
        return _condition(
            "PlacementSatisfied", True, "AllDecisionsScheduled", "All cluster decisions scheduled"
        )
    if not pool.bound:
        reason = "NoManagedClusterSetBindings"
        message = "No valid ManagedClusterSetBindings found in placement namespace"
    elif not pool.eligible:
        reason = "NoIntersection"
        message = f"None of ManagedClusterSets [{','.join(asked)}] is bound to placement namespace"
    elif not pool.members:
        reason = "AllManagedClusterSetsEmpty"
        message = f"All ManagedClusterSets [{','.join(pool.eligible)}] have no member ManagedCluster"
    elif not selected:
        reason, message = "NoManagedClusterMatched", "No ManagedCluster matches any of the cluster predicate"
    else:
        reason, message = "NotAllDecisionsScheduled", f"{unscheduled} cluster decisions unscheduled"
    return _condition("PlacementSatisfied", False, reason, message)


def merged(existing: Sequence[Obj], wanted: Sequence[Obj], now: datetime) -> list[Obj]:
    """Put `wanted` into `existing`; the time of a condition changes with its status only."""
    result = {get_str(condition, "type"): condition for condition in existing}
    for condition in wanted:
        kind = get_str(condition, "type")
        before = result.get(kind, {})
        same = get_str(before, "status") == get_str(condition, "status")
        since = get_str(before, "lastTransitionTime") if same else format_time(now)
        result[kind] = {**before, **condition, "lastTransitionTime": since or format_time(now)}
    return list(result.values())


def _condition(kind: str, holds: bool, reason: str, message: str) -> Obj:
    return {"type": kind, "status": "True" if holds else "False", "reason": reason, "message": message}
