"""
What Kueue's manager, or a worker's Kueue, does next: plain data, to be carried out in order.

Whoever carries them out stops at the first one that is refused (a conflict, or `writes.refusal`), and
looks again.
"""

from dataclasses import dataclass

from placement_ac.lab.standins.multikueue.objects import Obj


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """Make the Workload's status this one (whole), with the resourceVersion that was seen.

    Kueue applies it as `kueue-admission`, with force: what it leaves out and another manager owns, stays.
    A refused write is tried again: look with `decide(…, busy=True)` meanwhile, so that the others go on.
    """

    status: Obj


@dataclass(frozen=True, slots=True)
class SetActive:
    """Set the Workload's `spec.active`."""

    active: bool


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Take Kueue's finalizer off a Workload that is deleted."""


@dataclass(frozen=True, slots=True)
class SuspendJob:
    """Set `spec.suspend` of the Job that is beside the Workload (on the hub, or on that worker)."""

    suspend: bool


@dataclass(frozen=True, slots=True)
class WriteJobStatus:
    """Make the hub's Job's status this one: the worker's, copied."""

    status: Obj


@dataclass(frozen=True, slots=True)
class CreateCopy:
    cluster: str
    workload: Obj


@dataclass(frozen=True, slots=True)
class DeactivateCopy:
    """Set condition DeactivationTarget on the copy: the worker's Kueue then evicts it for good."""

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
    """Remember `Seen.now` as the Workload's `round_started`."""


@dataclass(frozen=True, slots=True)
class ForgetRound:
    """Forget the Workload's `round_started`."""


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
    """What one look comes to: operations in order, and after how many seconds to look again, if at all."""

    operations: tuple[Operation, ...] = ()
    requeue_after: float | None = None


NO_OPERATIONS = ReconcileResult()
