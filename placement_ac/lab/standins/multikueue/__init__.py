"""
Kueue's MultiKueue for one Workload, as pure functions.

Nothing in this package does I/O, reads a clock, logs or awaits: what Kueue's manager sees (`Seen`) goes
in, what it does next (`Decision`: operations in order, and when to look again) comes out. The face of it:

- `decide(seen)`: the next step of all of Kueue's controllers on the hub, one at a time. Called after every
  change of what is seen, and `again_after` seconds later, until it has no more operations.
- `CONTROLLERS`: the same controllers one by one, for whoever wants them to race as the real ones do.
- `look_at_copy(copy, job, ...)`: the next step of a worker's Kueue.
- `orphans(copies, workloads)`: what Kueue's garbage collection takes off a worker, once a minute.
- `hub_job`, `workload_of`, `copy_of`, `worker_job`: the objects as Kueue makes them.
- `refusal`, `keep_what_others_own`: what becomes of a write of the status.

Source: shared/kueue and shared/DESIGN.md, and where they are silent the code of Kueue at the commit of
the recordings (ff69552e79: pkg/controller/admissionchecks/multikueue, workloaddispatcher, core).

Not modelled: several podSets, elastic Jobs, preemption gates, the Active condition of clusters and checks
(`sim.kueue_rules` has them), PodsReady, and the backoff of what is refused.
"""

from placement_ac.lab.standins.multikueue.builders import copy_of, hub_job, worker_job, workload_of
from placement_ac.lab.standins.multikueue.engine import CONTROLLERS, decide, orphans
from placement_ac.lab.standins.multikueue.inputs import (
    ALL_AT_ONCE,
    INCREMENTAL,
    HubQueue,
    KueueSettings,
    RemoteWorker,
    WorkloadInputs,
)
from placement_ac.lab.standins.multikueue.operations import (
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
from placement_ac.lab.standins.multikueue.webhook import KUEUE_MANAGER, keep_what_others_own, refusal
from placement_ac.lab.standins.multikueue.worker_kueue import (
    has_quota,
    preempted_status,
    reconcile_copy,
    runs,
)

__all__ = [
    "ALL_AT_ONCE",
    "CONTROLLERS",
    "INCREMENTAL",
    "KUEUE_MANAGER",
    "CreateCopy",
    "CreateJob",
    "DeactivateCopy",
    "DeleteCopy",
    "DeleteJob",
    "ForgetRound",
    "HubQueue",
    "KueueSettings",
    "Operation",
    "ReconcileResult",
    "RemoteWorker",
    "RemoveFinalizer",
    "SetActive",
    "StartRound",
    "SuspendJob",
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
    "worker_job",
    "workload_of",
]
