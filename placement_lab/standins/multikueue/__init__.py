"""
Kueue's MultiKueue for one Workload, as pure functions.

This package does no I/O, reads no clock and does not log. The input is the state that Kueue's manager sees
(`WorkloadInputs`); the output is its next step (`ReconcileResult`: ordered operations, and when to
reconcile again).

- `decide(inputs)`: the next step of Kueue's controllers on the hub. Call it after every change of the inputs,
  and after `requeue_after` seconds.
- `CONTROLLERS`: the same controllers separately, to test races between them.
- `reconcile_copy(copy, job, ...)`: the next step of a worker's Kueue.
- `orphans(copies, workloads)`: the copies that Kueue's garbage collection deletes.
- `hub_job`, `workload_of`, `copy_of`, `worker_job`: the objects that Kueue creates.
- `PACES`, `WorkerRateLimiter`: how fast each release of Kueue asks its workers.
- `refusal`, `keep_what_others_own`: the effect of a write to the status.

Source: shared/kueue and shared/DESIGN.md, and where they are silent the code of Kueue at the commit of
the recordings (ff69552e79: pkg/controller/admissionchecks/multikueue, workloaddispatcher, core).

Not modelled: several podSets, elastic Jobs, preemption gates, the Active condition of clusters and checks
(see `kueue_rules`), PodsReady, and the backoff of rejected writes.
"""

from placement_lab.standins.multikueue.builders import copy_of, hub_job, worker_job, workload_of
from placement_lab.standins.multikueue.engine import CONTROLLERS, decide, orphans
from placement_lab.standins.multikueue.inputs import (
    ALL_AT_ONCE,
    INCREMENTAL,
    KueueSettings,
    QueueState,
    RemoteWorker,
    WorkloadInputs,
)
from placement_lab.standins.multikueue.operations import (
    CreateCopy,
    CreateJob,
    DeactivateCopy,
    DeleteCopy,
    DeleteJob,
    ForgetRound,
    Operation,
    ReconcileResult,
    RemoveFinalizer,
    SetActive,
    StartRound,
    SuspendJob,
    WriteJobStatus,
    WriteStatus,
)
from placement_lab.standins.multikueue.pace import NEWEST_PACE, PACES, Pace, WorkerRateLimiter
from placement_lab.standins.multikueue.webhook import keep_what_others_own, refusal
from placement_lab.standins.multikueue.worker_kueue import (
    has_quota,
    preempted_status,
    reconcile_copy,
    runs,
    timed_out_status,
)

__all__ = [
    "ALL_AT_ONCE",
    "CONTROLLERS",
    "INCREMENTAL",
    "NEWEST_PACE",
    "PACES",
    "CreateCopy",
    "CreateJob",
    "DeactivateCopy",
    "DeleteCopy",
    "DeleteJob",
    "ForgetRound",
    "KueueSettings",
    "Operation",
    "Pace",
    "QueueState",
    "ReconcileResult",
    "RemoteWorker",
    "RemoveFinalizer",
    "SetActive",
    "StartRound",
    "SuspendJob",
    "WorkerRateLimiter",
    "WorkloadInputs",
    "WriteJobStatus",
    "WriteStatus",
    "copy_of",
    "decide",
    "has_quota",
    "hub_job",
    "keep_what_others_own",
    "orphans",
    "preempted_status",
    "reconcile_copy",
    "refusal",
    "runs",
    "timed_out_status",
    "worker_job",
    "workload_of",
]
