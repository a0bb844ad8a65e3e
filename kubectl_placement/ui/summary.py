"""A line for each check: counts of its status. Pure."""

from collections import Counter
from dataclasses import dataclass, field

from kubectl_placement.status.model import LISTED_STATES, CheckStatus, ConditionStatus


@dataclass(frozen=True, slots=True)
class CheckSummary:
    """The counts of a check's status, as the list of checks shows them."""

    name: str
    active: ConditionStatus
    reason: str
    stale: bool
    placement: str
    states: dict[str, int] = field(default_factory=dict)
    """State → how many clusters."""
    disconnected: int = 0
    """Clusters to which Kueue is not connected."""
    running: int = 0
    waiting: int = 0
    pending: int = 0
    gpus: int = 0
    """Of the running Workloads."""
    held: int = 0
    """Workloads that the gate holds."""


@dataclass(frozen=True, slots=True)
class Slots:
    """How many clusters are on Kueue's list, of how many that it takes."""

    used: int
    most: int


def summarize(check_status: CheckStatus) -> CheckSummary:
    """Return the line of a check."""
    jobs = Counter(job.state for job in check_status.jobs)
    return CheckSummary(
        name=check_status.name,
        active=check_status.active,
        reason=check_status.reason,
        stale=check_status.stale,
        placement=check_status.placement,
        states=dict(Counter(row.state for row in check_status.clusters)),
        disconnected=sum(row.connected == "False" for row in check_status.clusters),
        running=jobs["running"],
        waiting=jobs["waiting"],
        pending=jobs["pending"],
        gpus=sum(job.gpus for job in check_status.jobs if job.state == "running"),
        held=sum(held.workloads for held in check_status.held),
    )


def slots(check_status: CheckStatus, most: int) -> Slots:
    """Return the slots of a check, of the `most` that Kueue takes."""
    return Slots(sum(row.state in LISTED_STATES for row in check_status.clusters), most)
