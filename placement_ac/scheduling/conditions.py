"""
The two conditions OCM writes on a Placement.

Pure. Order of the cases, reasons and messages are OCM's; like OCM's, these
conditions carry no observedGeneration.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from placement_ac.scheduling.errors import MisconfiguredError
from placement_ac.scheduling.objects import Obj, text
from placement_ac.scheduling.sets import Pool


def misconfigured(objection: MisconfiguredError | None) -> Obj:
    """Return the condition PlacementMisconfigured without its time."""
    if objection is None:
        return _condition(
            "PlacementMisconfigured", False, "Succeedconfigured", "Placement configurations check pass"
        )
    return _condition("PlacementMisconfigured", True, "Misconfigured", f"{objection.plugin}:{objection}")


def satisfied(asked: Sequence[str], pool: Pool, selected: int, unscheduled: int) -> Obj:
    """Return the condition PlacementSatisfied without its time.

    `asked`: spec.clusterSets; `selected`: clusters decided; `unscheduled`:
    how many of spec.numberOfClusters were not found.
    """
    if selected and not unscheduled:
        return _condition(
            "PlacementSatisfied", True, "AllDecisionsScheduled", "All cluster decisions scheduled"
        )
    reason, message = _why_not(asked, pool, selected, unscheduled)
    return _condition("PlacementSatisfied", False, reason, message)


def _why_not(asked: Sequence[str], pool: Pool, selected: int, unscheduled: int) -> tuple[str, str]:
    if not pool.bound:
        return (
            "NoManagedClusterSetBindings",
            "No valid ManagedClusterSetBindings found in placement namespace",
        )
    if not pool.eligible:
        return (
            "NoIntersection",
            f"None of ManagedClusterSets [{','.join(asked)}] is bound to placement namespace",
        )
    if not pool.members:
        return (
            "AllManagedClusterSetsEmpty",
            f"All ManagedClusterSets [{','.join(pool.eligible)}] have no member ManagedCluster",
        )
    if not selected:
        return "NoManagedClusterMatched", "No ManagedCluster matches any of the cluster predicate"
    return "NotAllDecisionsScheduled", f"{unscheduled} cluster decisions unscheduled"


def merged(existing: Sequence[Obj], wanted: Sequence[Obj], now: datetime) -> list[Obj]:
    """Put `wanted` into `existing`; the time of a condition changes with its status only."""
    result = {text(condition, "type"): condition for condition in existing}
    for condition in wanted:
        kind = text(condition, "type")
        before = result.get(kind, {})
        same = text(before, "status") == text(condition, "status")
        since = text(before, "lastTransitionTime") if same else stamp(now)
        result[kind] = {**before, **condition, "lastTransitionTime": since or stamp(now)}
    return list(result.values())


def stamp(now: datetime) -> str:
    """Return `now` as Kubernetes writes a metav1.Time: UTC, whole seconds."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _condition(kind: str, holds: bool, reason: str, message: str) -> Obj:
    return {"type": kind, "status": "True" if holds else "False", "reason": reason, "message": message}
