"""
The tree AdmissionCheck → Placement → clusters, with all that hangs on it: what `status` and `graph` show.

Plain data; `branches` makes it of a HubView. Texts are for an admin, and hold no secret.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

ClusterState = Literal["listed", "draining", "selected", "unusable", "beyond", "waiting"]
"""What a cluster is for a check.

listed: Kueue's list has it, and it stays. draining: Kueue's list has it, and it leaves. selected: it is
usable, and will be listed. unusable: OCM selects it, and it is left out for what it is. beyond: usable, but
after the last seat. waiting: usable, and next when a cluster that leaves has given up its seat.
"""


ConditionStatus = Literal["True", "False", "Unknown"]
"""The status of a condition; Unknown as well where there is none."""


@dataclass(frozen=True, slots=True)
class Credential:
    """The way into a cluster. `kind` "": there is none, or it is not known (`problem` says which)."""

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
    """What it asks for of resources whose name ends in `/gpu`, all Pods together."""


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """A cluster of a check."""

    name: str
    state: ClusterState
    why: str = ""
    """Of every state but listed; of that one, why the whole list stays as it is, or why no more is known."""
    rank: int | None = None
    """From 1; None: OCM does not select it (any more)."""
    score: int | None = None
    """None: OCM does not select it, or its AddOnPlacementScores are not known."""
    group: int | None = None
    """Index of its decision group."""
    cluster_object: str = ""
    """Its MultiKueueCluster."""
    credential: Credential = Credential()
    connected: ConditionStatus | Literal[""] = ""
    """Kueue's condition `Active` of the MultiKueueCluster; "": there is none yet."""
    connected_why: str = ""
    """Its reason and message, where it is not True; or that the MultiKueueCluster is not there."""
    draining_since: datetime | None = None
    """By the controller's annotation."""
    running: int | None = 0
    """Workloads; None: not known."""
    waiting: int | None = 0


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A ClusterQueue that lists our check, or a multikueue check that goes by the same config."""

    name: str
    active: ConditionStatus
    why: str = ""
    """Reason and message, where it is not active."""
    lists: tuple[str, ...] = ()
    """Those AdmissionChecks."""
    local_queues: tuple[str, ...] | None = ()
    """As namespace/name; None: not known."""
    pending: int = 0
    admitted: int = 0
    """What Kueue counts of its Workloads."""


@dataclass(frozen=True, slots=True)
class CheckStatus:
    """An AdmissionCheck of ours, and all that depends on it."""

    name: str
    active: ConditionStatus
    """Its condition as it stands there; Unknown: it has none."""
    reason: str
    message: str
    stale: bool
    """Whether the condition is of an older generation: the controller has not looked since."""
    placement: str
    """As namespace/name; without a namespace where it is not there; "" where the check names none."""
    placement_says: str
    """Reason and message of the Placement's conditions that tell of trouble; or why it is not known."""
    config: str | None
    """The MultiKueueConfig, "" if it is not there; None: not known."""
    clusters: tuple[ClusterRow, ...]
    """Best first; after them those that OCM does not select any more."""
    queues: tuple[QueueRow, ...]
    users: tuple[str, ...]
    """Kueue's own multikueue checks that name the config."""
    jobs: tuple[WorkloadRow, ...]
