"""
Kueue's controllers on the hub, combined: the first one with operations acts next.

Pure.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from placement_ac.core.api.copy_owner import copy_owner
from placement_lab.standins.multikueue.admission import reconcile_job, reconcile_workload, schedule
from placement_lab.standins.multikueue.dispatcher import reconcile_incremental
from placement_lab.standins.multikueue.inputs import WorkloadInputs
from placement_lab.standins.multikueue.operations import ReconcileResult
from placement_lab.standins.multikueue.reconcile_group import reconcile_group

MULTIKUEUE: Final = "multikueue"
CONTROLLERS: Final[Mapping[str, Callable[[WorkloadInputs], ReconcileResult]]] = {
    "workload": reconcile_workload,
    MULTIKUEUE: reconcile_group,
    "dispatcher": reconcile_incremental,
    "job": reconcile_job,
    "scheduler": schedule,
}
"""The next step of each controller, in the order of `decide`."""


def decide(inputs: WorkloadInputs, *, busy: bool = False) -> ReconcileResult:
    """Return the next step on the hub: that of the first controller with operations.

    `busy`: skip MultiKueue. If it is busy between a Retry and the next quota reservation (30 ms on a real
    hub), old copies stay on the workers: gate.txt, 1 of 8.
    """
    waits = []
    for name, look in CONTROLLERS.items():
        if busy and name == MULTIKUEUE:
            continue
        decision = look(inputs)
        if decision.operations:
            return decision
        if decision.requeue_after is not None:
            waits.append(decision.requeue_after)
    return ReconcileResult(requeue_after=min(waits, default=None))


def orphans(
    copies: Iterable[Mapping[str, Any]],
    workloads: Collection[tuple[str, str]],
    origin: str,
) -> list[tuple[str, str]]:
    """Return (namespace, name) of the copies whose Workload on the hub no longer exists.

    `copies`: all Workloads of a connected worker, listed or not; `workloads`: (namespace, name) of the hub's
    Workloads that are not deleted. Their Jobs are deleted too (cluster-unlisted-while-running.log, 99.38).
    """
    keys = []
    for copy in copies:
        metadata = copy["metadata"]
        key = (metadata["namespace"], metadata["name"])
        if copy_owner(copy).origin == origin and key not in workloads:
            keys.append(key)
    return keys
