"""
What Kueue's manager on the hub has before it when it looks at one Workload.

Plain data. All times are POSIX seconds on one clock, that of `Seen.now`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from placement_ac.lab.standins.multikueue.objects import Obj, check_of

ALL_AT_ONCE: Final = "kueue.x-k8s.io/multikueue-dispatcher-all-at-once"
INCREMENTAL: Final = "kueue.x-k8s.io/multikueue-dispatcher-incremental"


@dataclass(frozen=True, slots=True)
class KueueSettings:
    """Kueue's own configuration; the defaults are Kueue's.

    `dispatcher`: ALL_AT_ONCE, INCREMENTAL, or any other name: then it is external, Kueue nominates nothing.
    `nominates_admitted`: a copy that runs unrecorded is nominated under AllAtOnce when all other checks are
    Ready. DESIGN.md (the gate, 3.) expects it "by analogy"; by its code Kueue does not: it tries to record
    first, is refused (the cluster is not nominated), and never comes to nominate.
    """

    dispatcher: str = ALL_AT_ONCE
    step_size: int = 3
    round_seconds: float = 300.0
    worker_lost_seconds: float = 900.0
    events_batch_seconds: float = 1.0
    """An event of a worker is looked at this much later (dispatch.log: at once when the hub moves anyway)."""
    gc_seconds: float = 60.0
    origin: str = "multikueue"
    nominates_admitted: bool = False


@dataclass(frozen=True, slots=True)
class RemoteWorker:
    """One MultiKueueCluster, and what the manager finds on the worker for this Workload.

    `copy` and `job` count only while `connected`. `lost_since`: when the connection was lost.
    """

    connected: bool = True
    lost_since: float | None = None
    copy: Obj | None = None
    job: Obj | None = None


@dataclass(frozen=True, slots=True)
class HubQueue:
    """The ClusterQueue on the hub: its checks, whether it is active, whether there is quota for this one."""

    name: str = "cluster-queue"
    checks: tuple[str, ...] = ()
    active: bool = True
    has_room: bool = True


@dataclass(frozen=True, slots=True)
class WorkloadInputs:
    """Everything that decides about one Workload of the hub.

    `workload`: as cached, v1beta2; one that has gone is given as it was last, with a deletionTimestamp.
    `job`: the hub's Job. `check`: the name of the multikueue check. `clusters`: spec.clusters of the
    MultiKueueConfig as cached, None when there is no config. `workers`: the MultiKueueClusters that the
    manager has a client for, by name; where two admitted in the same second, the first of them wins.
    `round_started`: when the Incremental dispatcher last nominated for this Workload.
    """

    workload: Obj
    job: Obj | None
    check: str
    clusters: tuple[str, ...] | None
    now: float
    workers: Mapping[str, RemoteWorker] = field(default_factory=dict)
    queue: HubQueue = HubQueue()
    settings: KueueSettings = KueueSettings()
    round_started: float | None = None

    @property
    def state(self) -> Obj | None:
        """The multikueue check's entry in the Workload's status."""
        return check_of(self.workload, self.check)

    @property
    def remotes(self) -> dict[str, RemoteWorker]:
        """The workers that are listed and connected: the only ones the manager touches."""
        listed = self.clusters or ()
        return {name: one for name, one in self.workers.items() if name in listed and one.connected}

    @property
    def unavailable(self) -> list[str]:
        """The clusters that are listed, but cannot be spoken to."""
        return [name for name in self.clusters or () if name not in self.remotes]
