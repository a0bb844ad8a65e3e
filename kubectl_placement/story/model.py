"""
The story of one job, and the line of each in a list. Plain data.

Times are aware, in UTC; None: unknown. "" means none, or unknown.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from kubectl_placement.explain.workload import WorkloadExplanation
from kubectl_placement.jobs.queue_position import QueuePosition
from kubectl_placement.story.pods import PodsThere


class JobState(StrEnum):
    """Where a job is in its life."""

    WAITING = "waiting"
    """It has no quota yet, or no cluster."""
    RUNNING = "running"
    """It is placed on a cluster; its Pods may still start."""
    STOPPED = "stopped"
    """Its `spec.active` is false."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"


FINISHED: Final = (JobState.SUCCEEDED, JobState.FAILED)


@dataclass(frozen=True, slots=True)
class Wait:
    """The thing that a job waits for now, and the one that its owner can do about it."""

    waits_for: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class JobLine:
    """One job: its place and its state."""

    namespace: str
    kind: str
    """Of its owner, as `Job`; "Workload" if it has none."""
    name: str
    workload: str
    queue: str
    """The LocalQueue."""
    cluster_queue: str
    state: JobState
    cluster: str
    """The managed cluster that it runs on, or ran on when it finished."""
    cluster_object: str
    """Its MultiKueueCluster."""
    since: datetime | None
    """Since when it is in this state."""
    waits_for: str
    fix: str
    """The thing that its owner can do, as a command or an imperative."""
    elsewhere: tuple[str, ...] = ()
    """The managed cluster where it runs other than on `cluster`; several: one of them."""
    elsewhere_why: str = ""
    """Where it runs, and the facts that show it, as `probably runs on …`."""

    @property
    def label(self) -> str:
        """`Kind namespace/name`."""
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class StoryStep:
    """One thing that happened."""

    time: datetime | None
    what: str
    """A condition of the Workload, the reason of an event, or `Queued`, `Nominated`, `Placed`, `Check …`."""
    by: str
    detail: str
    after: float | None = None
    """Seconds since the step before."""


@dataclass(frozen=True, slots=True)
class JobStory:
    """A job, what happened to it in order, its Pods, and where else it could go."""

    job: JobLine
    position: QueuePosition | None
    """In its LocalQueue; None: it does not wait there."""
    steps: tuple[StoryStep, ...]
    pods: PodsThere | None
    """None: it is on no cluster."""
    explanation: WorkloadExplanation | None
    """None: the caller may not read what it needs, or the job has finished."""
    notes: tuple[str, ...]
    """The parts that cannot be seen, with what opens them."""
