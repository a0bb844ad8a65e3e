"""
The operations of Kueue's manager and of a worker's Kueue, as plain data.

Execute them in order; after the first error (a conflict, or `webhook.refusal`), decide again.
"""

from dataclasses import dataclass

from placement_lab.standins.multikueue.objects import Obj


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """Replace the Workload's status, with the resourceVersion that was read.

    Kueue applies it as `kueue-admission`, with force: fields that it omits and another manager owns stay. A
    rejected write is retried; call `decide(…, busy=True)` meanwhile, so that other controllers continue.
    """

    status: Obj


@dataclass(frozen=True, slots=True)
class SetActive:
    """Set the Workload's `spec.active`."""

    active: bool


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Remove Kueue's finalizer from a deleted Workload."""


@dataclass(frozen=True, slots=True)
class SuspendJob:
    """Set `spec.suspend` of the Workload's Job on the same cluster."""

    suspend: bool


@dataclass(frozen=True, slots=True)
class WriteJobStatus:
    """Replace the status of the hub's Job by that of the worker's."""

    status: Obj


@dataclass(frozen=True, slots=True)
class CreateCopy:
    cluster: str
    workload: Obj


@dataclass(frozen=True, slots=True)
class DeactivateCopy:
    """Set condition DeactivationTarget on the copy: the worker's Kueue then evicts and deactivates it."""

    cluster: str
    status: Obj


@dataclass(frozen=True, slots=True)
class DeleteCopy:
    cluster: str


@dataclass(frozen=True, slots=True)
class CreateJob:
    cluster: str
    job: Obj


@dataclass(frozen=True, slots=True)
class DeleteJob:
    cluster: str


@dataclass(frozen=True, slots=True)
class StartRound:
    """Set the Workload's `round_started` to `WorkloadInputs.now`."""


@dataclass(frozen=True, slots=True)
class ForgetRound:
    """Reset the Workload's `round_started`."""


Operation = (
    WriteStatus
    | SetActive
    | RemoveFinalizer
    | SuspendJob
    | WriteJobStatus
    | CreateCopy
    | DeactivateCopy
    | DeleteCopy
    | CreateJob
    | DeleteJob
    | StartRound
    | ForgetRound
)


@dataclass(frozen=True, slots=True)
class ReconcileResult:
    """Operations in order, and the seconds until the next reconcile (None: only after a change).

    `failed`: it ends with an error; Kueue doubles the time with each failure in a row.
    """

    operations: tuple[Operation, ...] = ()
    requeue_after: float | None = None
    failed: bool = False


NO_OPERATIONS = ReconcileResult()
