"""
The inputs of the engine: the state of one Workload that Kueue's manager on the hub sees.

Plain data. All times are POSIX seconds on the clock of `WorkloadInputs.now`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from placement_lab.standins.multikueue.objects import Obj, check_of
from placement_lab.standins.multikueue.pace import NEWEST_PACE, Pace

ALL_AT_ONCE: Final = "kueue.x-k8s.io/multikueue-dispatcher-all-at-once"
NO_STOP: Final = "None"
INCREMENTAL: Final = "kueue.x-k8s.io/multikueue-dispatcher-incremental"


@dataclass(frozen=True, slots=True)
class KueueSettings:
    """Kueue's configuration, with the defaults of the newest supported release.

    `dispatcher`: ALL_AT_ONCE, INCREMENTAL, or the name of an external dispatcher, with which Kueue
    nominates nothing. `nominates_admitted`: AllAtOnce nominates the cluster of a running copy that is not
    recorded, once all other checks are Ready. DESIGN.md (the gate, 3.) expects it "by analogy"; Kueue's
    code does not: it records the cluster first, which is rejected because the cluster is not nominated.
    """

    dispatcher: str = ALL_AT_ONCE
    step_size: int = 3
    round_seconds: float = 300.0
    worker_lost_seconds: float = 900.0
    events_batch_seconds: float = 1.0
    """The delay of an event from a worker (dispatch.log: none if the Workload changes on the hub)."""
    gc_seconds: float = 60.0
    origin: str = "multikueue"
    nominates_admitted: bool = False
    pace: Pace = NEWEST_PACE
    clears_ttl: bool = False
    """Kueue's gate MultiKueueBatchJobClearingTTLSecondsAfterFinishedOnWorkerCluster (0.20: off)."""
    sync_failures: frozenset[str] = frozenset({"OutOfSync", "OwnerNotFound"})
    """The reasons with which a copy ends that has not run its Job: Retry. Up to 0.19.2 OutOfSync alone."""


@dataclass(frozen=True, slots=True)
class RemoteWorker:
    """One MultiKueueCluster, with the worker's copy and Job of this Workload.

    `copy` and `job` are valid only while `connected`. `lost_since`: when the connection was lost.
    `has_foreign_job`: whether the worker has a Job of that name which no MultiKueue of this origin created.
    """

    connected: bool = True
    lost_since: float | None = None
    copy: Obj | None = None
    job: Obj | None = None
    has_foreign_job: bool = False


@dataclass(frozen=True, slots=True)
class QueueState:
    """A Workload's ClusterQueue and LocalQueue on one cluster. `name`: of the ClusterQueue.

    `active`: whether the ClusterQueue is, by its condition. `has_room`: whether it has quota for this
    Workload. `flavors`: podSet → the quota that it would get, see `transitions.reserve`; `lacks`: Kueue's
    message if it gets none. `stop`, `local_stop`: the `stopPolicy` of the ClusterQueue and the LocalQueue.
    """

    name: str = "cluster-queue"
    checks: tuple[str, ...] = ()
    active: bool = True
    has_room: bool = True
    flavors: Mapping[str, Obj] = field(default_factory=dict)
    lacks: str = ""
    exists: bool = True
    local_exists: bool = True
    stop: str = NO_STOP
    local_stop: str = NO_STOP


@dataclass(frozen=True)
class WorkloadInputs:
    """All inputs for one Workload of the hub.

    `workload`: the cached v1beta2 object; a deleted one is its last state with a deletionTimestamp. `job`:
    the hub's Job. `check`: the name of the multikueue check. `clusters`: spec.clusters of the
    MultiKueueConfig, None if there is no config. `workers`: the MultiKueueClusters with a client, by name;
    if two admitted in the same second, the first one wins. `round_started`: when the Incremental dispatcher
    last nominated for this Workload.
    """

    workload: Obj
    job: Obj | None
    check: str
    clusters: tuple[str, ...] | None
    now: float
    workers: Mapping[str, RemoteWorker] = field(default_factory=dict)
    queue: QueueState = QueueState()
    settings: KueueSettings = KueueSettings()
    round_started: float | None = None

    @property
    def state(self) -> Obj | None:
        """The multikueue check's entry in the Workload's status."""
        return check_of(self.workload, self.check)

    @cached_property
    def remotes(self) -> dict[str, RemoteWorker]:
        """The listed and connected workers; the manager ignores all others."""
        listed = self.clusters or ()
        return {name: worker for name, worker in self.workers.items() if name in listed and worker.connected}

    @property
    def unavailable(self) -> list[str]:
        """The listed clusters that are not connected."""
        return [name for name in self.clusters or () if name not in self.remotes]
