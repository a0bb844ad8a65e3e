"""
The inputs of the scores of one cluster.

Plain data; no I/O, no clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from placement_ac.core.api.constants import SCORE_HOLD_SECONDS, SCORE_INTERVAL_SECONDS
from placement_ac.core.api.objects import Scores, Workload
from placement_ac.core.inputs.queue_facts import Queue, WorkerFacts
from placement_ac.core.inputs.state import HubFacts
from placement_ac.core.kubeconfig.source import CredentialSource

VALID_PERIODS: Final = 3
"""How many intervals a score is valid."""
READINGS: Final = 4
"""How often a worker is read while a difference must last."""
READ_SECONDS: Final = (0.25, 15.0)
"""How often at most, and at least."""


@dataclass(frozen=True, slots=True)
class ScorePolicy:
    """The admin's choices about the scores that are reported. Times are in seconds."""

    enabled: bool = False
    step: int = 10
    """The smallest change that is written."""
    hold: float = SCORE_HOLD_SECONDS
    """How long it must last."""
    interval: float = SCORE_INTERVAL_SECONDS
    """The shortest time between two writes for a cluster."""
    gpus: tuple[str, ...] = ()
    """The resources that are GPUs."""
    nodes: bool = False
    """Whether the nodes of workers are read, too."""

    @property
    def valid(self) -> float:
        """How long a score counts after it was written."""
        return VALID_PERIODS * self.interval

    @property
    def reading(self) -> float:
        """How often a worker is read."""
        least, most = READ_SECONDS
        return min(max(min(self.hold or self.interval, self.interval) / READINGS, least), most)


@dataclass(frozen=True, slots=True)
class WorkerReading:
    """The state of a worker; a problem with its queues is in `facts`."""

    facts: WorkerFacts
    gpu_health: float | None = None
    """The share of its nodes' GPUs that can be allocated; None: it has none, or they are not known."""
    node_problem: str = ""
    """Why its nodes are not known."""


class ScoreChoice(NamedTuple):
    """A score by which a Placement chooses: the clusters that it has selected, and all others."""

    score: str
    selected: Mapping[str, int]
    """Cluster → the value that counts now."""
    others: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ScoreInputs:
    """All that the scores of one cluster depend on, but for its history and other clusters."""

    cluster: str
    now: datetime
    hub: HubFacts = field(default_factory=HubFacts)
    policy: ScorePolicy = ScorePolicy()
    owners: Mapping[str, str] = field(default_factory=dict)
    """The AdmissionChecks of Placements that may use a score of the cluster: uid → name."""
    credentials: CredentialSource | None = None
    """None: its worker cannot be read."""
    queues: frozenset[Queue] = frozenset()
    """The LocalQueues of the hub that send jobs through these checks."""
    workloads: tuple[Workload, ...] = ()
    """The unfinished Workloads that it runs."""
    reliability: float | None = None
    """The share of its jobs that did not end because of it; None: too few have ended."""
    observed: Scores | None = None
    """The AddOnPlacementScore there, ours or not."""

    @property
    def needed(self) -> bool:
        """Whether a score of the cluster is wanted, and can be had."""
        return bool(self.owners) and self.credentials is not None
