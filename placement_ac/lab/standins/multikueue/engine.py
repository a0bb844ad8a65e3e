"""
Kueue's controllers on the hub, together: which of them moves next.

Pure.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from placement_ac.lab.standins.multikueue.admission import reconcile_job, reconcile_workload, schedule
from placement_ac.lab.standins.multikueue.dispatcher import reconcile_incremental
from placement_ac.lab.standins.multikueue.inputs import WorkloadInputs
from placement_ac.lab.standins.multikueue.objects import ORIGIN_LABEL
from placement_ac.lab.standins.multikueue.operations import ReconcileResult
from placement_ac.lab.standins.multikueue.reconcile_group import reconcile_group

MULTIKUEUE: Final = "multikueue"
CONTROLLERS: Final[Mapping[str, Callable[[WorkloadInputs], ReconcileResult]]] = {
    "workload": reconcile_workload,
    MULTIKUEUE: reconcile_group,
    "dispatcher": reconcile_incremental,
    "job": reconcile_job,
    "scheduler": schedule,
}
"""Each controller's next step by itself. The order is that of `decide`."""


def decide(seen: WorkloadInputs, *, busy: bool = False) -> ReconcileResult:
    """Return the next step on the hub: that of the first controller that has one.

    `busy`: MultiKueue does not look now, the others go on. When that is so from a Retry until quota is
    reserved again (30 ms on a real hub), the copies of before are left where they are: gate.txt, 1 of 8.
    """
    waits = []
    for name, look in CONTROLLERS.items():
        if busy and name == MULTIKUEUE:
            continue
        decision = look(seen)
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
    """Return (namespace, name) of the copies that no Workload of the hub answers to any more.

    `copies`: all Workloads of one connected worker, listed or not; `workloads`: (namespace, name) of the
    hub's that are not deleted. Their Jobs go with them (cluster-unlisted-while-running.log, 99.38).
    """
    found = []
    for copy in copies:
        metadata = copy["metadata"]
        key = (metadata["namespace"], metadata["name"])
        ours = (metadata.get("labels") or {}).get(ORIGIN_LABEL) == origin
        if ours and key not in workloads:
            found.append(key)
    return found
