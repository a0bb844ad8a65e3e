"""
The data that `status` and `graph` show: AdmissionCheck → Placement → clusters, queues and Workloads.

Plain data; `check_status` builds it from a HubView. Texts are for an admin and contain no secret.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

ClusterState = Literal["listed", "standby", "draining", "selected", "unusable", "beyond", "waiting"]
"""The state of a cluster for a check.

listed: it is on Kueue's list and stays. standby: it is on Kueue's list and not selected, and no job is sent
there (only with our dispatcher). draining: it is on Kueue's list and leaves. selected: it is usable
and will be listed. unusable: OCM selects it, but Kueue cannot use it. beyond: usable, but beyond the last
slot. waiting: usable; it gets the slot of a cluster that is draining.
"""

LISTED_STATES: Final = ("listed", "standby", "draining")
"""The states of clusters on Kueue's list."""

ConditionStatus = Literal["True", "False", "Unknown"]
"""The status of a condition; Unknown if there is no condition."""


@dataclass(frozen=True, slots=True)
class Credential:
    """The credentials of a cluster. `kind` "": there are none, or they are unknown."""

    kind: Literal["Secret", "ClusterProfile", ""] = ""
    name: str = ""
    expires: datetime | None = None
    problem: str = ""
    """Why there are none, or why they are unknown."""
    known: bool = True


@dataclass(frozen=True, slots=True)
class WorkloadRow:
    """An unfinished Workload of the check."""

    namespace: str
    name: str
    queue: str
    """The LocalQueue's name."""
    state: Literal["running", "waiting", "pending"]
    """running: placed on `cluster`. waiting: nominated. pending: neither."""
    cluster: str = ""
    """The managed cluster that it runs on."""
    nominated: tuple[str, ...] = ()
    """The managed clusters on which it waits."""
    gpus: int = 0
    """The sum of its requests for resources whose name ends in `/gpu`, over all Pods."""
    why: str = ""
    """Of one that does not run: the message of our entry, as `waits for cluster3: …`."""
    failure: str = ""
    """Why Kueue sends it again although it was placed, with the fix; "" if it does not."""
    elsewhere: str = ""
    """Where it runs other than on `cluster`, and the facts that show it; "": nothing shows that."""


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """A cluster of a check."""

    name: str
    state: ClusterState
    why: str = ""
    """The reason for the state; of `listed`, why the list stays unchanged or the state is uncertain, or when
    its maintenance begins."""
    rank: int | None = None
    """From 1; None: OCM does not select it."""
    score: int | None = None
    """None: OCM does not select it, or its AddOnPlacementScores are unknown."""
    group: int | None = None
    """Index of its decision group."""
    cluster_object: str = ""
    """Its MultiKueueCluster."""
    credential: Credential = Credential()
    connected: ConditionStatus | Literal[""] = ""
    """Kueue's condition `Active` on the MultiKueueCluster; "": there is none yet."""
    connected_why: str = ""
    """Its reason and message if it is not True; or that the MultiKueueCluster does not exist."""
    draining_since: datetime | None = None
    """From the controller's annotation."""
    running: int | None = 0
    """Workloads; None: unknown."""
    waiting: int | None = 0


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A ClusterQueue that lists our check, or a multikueue check that uses the same config."""

    name: str
    active: ConditionStatus
    why: str = ""
    """Reason and message if it is not active."""
    lists: tuple[str, ...] = ()
    """Those AdmissionChecks."""
    local_queues: tuple[str, ...] | None = ()
    """As namespace/name; None: unknown."""
    pending: int = 0
    admitted: int = 0
    """Workloads, as Kueue counts them."""


@dataclass(frozen=True, slots=True)
class HeldRow:
    """Workloads with quota that the gate holds because the same clusters leave."""

    clusters: tuple[str, ...]
    """The managed clusters that leave, by name; at most 10."""
    why: str
    """Why they are still listed: the states of their drains."""
    workloads: int
    since: datetime | None
    """When the first of these Workloads had both quota and a Pending entry; None: unknown."""


@dataclass(frozen=True, slots=True)
class UnfitRow:
    """Workloads with quota that no cluster fits for the same reason (only with our dispatcher)."""

    why: str
    """As `0/3 clusters fit: …`, the most common reason first."""
    workloads: int


@dataclass(frozen=True, slots=True)
class ListWrites:
    """How often the list changed, and what a change costs in Kueue."""

    last_hour: int | None
    """At least so often, by events; None: they could not be read."""
    total: int | None
    """How often since the MultiKueueConfig was created: its generation tells; None: unknown."""
    since: datetime | None
    """When the MultiKueueConfig was created."""
    workloads: int | None
    """Unfinished Workloads that Kueue reconciles at each change, now; None: unknown."""
    clusters: int
    """Clusters on the list, now: Kueue gets each Workload from each of them."""
    requests: int | None
    """Requests to workers that a change causes now: Workloads times clusters."""


@dataclass(frozen=True, slots=True)
class QuotaWarning:
    """The hub has more quota of a resource than its listed workers together, or less than half of it."""

    queues: tuple[str, ...]
    """The ClusterQueues of the hub whose jobs share the workers' queues."""
    resource: str
    message: str
    """With the numbers."""
    fix: str
    """The command that sets the quota of the hub, or that shows why `lacking` have no quota for its jobs."""
    lacking: tuple[str, ...] = ()
    """The listed clusters without a queue for its jobs, if the hub has more quota for that alone, maybe."""


@dataclass(frozen=True, slots=True)
class CheckStatus:
    """An AdmissionCheck of ours and everything that depends on it."""

    name: str
    active: ConditionStatus
    """Its condition; Unknown: it has none."""
    reason: str
    message: str
    stale: bool
    """Whether the condition is of an older generation: the controller has not reconciled it since."""
    placement: str
    """As namespace/name; without namespace if it does not exist; "" if the check names none."""
    placement_exists: bool
    placement_says: str
    """Reason and message of the Placement's conditions that report a problem; or why it is unknown."""
    config: str | None
    """The MultiKueueConfig; "": it does not exist; None: unknown."""
    clusters: tuple[ClusterRow, ...]
    """The selected clusters, best first; then those that OCM no longer selects."""
    queues: tuple[QueueRow, ...]
    users: tuple[str, ...]
    """Kueue's own multikueue checks that name the config."""
    jobs: tuple[WorkloadRow, ...]
    held: tuple[HeldRow, ...] = ()
    """Workloads that the gate holds, by the clusters that leave."""
    unfit: tuple[UnfitRow, ...] = ()
    """Workloads that no cluster fits, the most common reason first."""
    list_writes: ListWrites | None = None
    """None: there is no MultiKueueConfig, or it is unknown."""
