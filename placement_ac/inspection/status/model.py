"""
The data that `status` and `graph` show: AdmissionCheck → Placement → clusters, queues and Workloads.

Plain data; `check_status` builds it from a HubView. Texts are for an admin and contain no secret.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

ClusterState = Literal["listed", "draining", "selected", "unusable", "beyond", "waiting"]
"""The state of a cluster for a check.

listed: it is on Kueue's list and stays. draining: it is on Kueue's list and leaves. selected: it is usable
and will be listed. unusable: OCM selects it, but Kueue cannot use it. beyond: usable, but beyond the last
slot. waiting: usable; it gets the slot of a cluster that is draining.
"""


ConditionStatus = Literal["True", "False", "Unknown"]
"""The status of a condition; Unknown if there is no condition."""


@dataclass(frozen=True, slots=True)
class Credential:
    """The credentials of a cluster. `kind` "": there are none, or they are unknown (`problem` says which)."""

    kind: Literal["Secret", "ClusterProfile", ""] = ""
    name: str = ""
    expires: datetime | None = None
    problem: str = ""


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


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """A cluster of a check."""

    name: str
    state: ClusterState
    why: str = ""
    """The reason for the state; of `listed`, why the list stays unchanged or why the state is uncertain."""
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
