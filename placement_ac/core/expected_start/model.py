"""
The queues of a hub and its workers as the simulation has them: jobs, and the quota for which they wait.

Pure. Times are seconds from now, negative for those that are past; amounts are in thousandths.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from placement_ac.core.api.pod_requests import Requests
from placement_ac.core.expected_start.run_times import RunTimes

Order = tuple[int, float, str]
"""The place in a queue, as Kueue's: the priority, the highest first (negative), then when it was created."""
Asked = tuple[Requests, ...]
"""For each podSet that asks for resources: how much of each."""
PoolKey = tuple[str, str]
"""A managed cluster ("": the hub), and a ClusterQueue there."""


class Interval(NamedTuple):
    """When a job will start, in seconds from now: in half and in nine tenths of the cases, it has until then.

    In one of ten cases it starts before `p10_seconds`.
    """

    p50_seconds: float
    p90_seconds: float
    p10_seconds: float = 0.0


class Unknown(NamedTuple):
    """Nothing honest can be said of when a job will start."""

    why: str


ExpectedStart = Interval | Unknown


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """The quota of a ClusterQueue that this hub's jobs share."""

    key: PoolKey
    quotas: Mapping[str, tuple[int, ...]]
    """Resource → how much of it each flavor has, in the ClusterQueue's order, without what others hold."""
    strict: bool = False
    """Whether a job that finds no room holds back those behind it."""


@dataclass(frozen=True, slots=True)
class SimulatedJob:
    """A job that waits, or runs."""

    uid: str
    order: Order
    asked: Asked
    run_times: RunTimes | None = None
    """None: too few have finished; it is taken to run for ever."""
    most_seconds: float | None = None
    """The longest time for which it may run, as it says itself."""
    hub: PoolKey | None = None
    """The quota of the hub that it needs; None: the hub has no such limit."""
    has_quota: bool = True
    """Whether it holds that."""
    runs_in: PoolKey | None = None
    """None: it waits."""
    age: float = 0.0
    """For how long it has run."""
    waits_in: Mapping[PoolKey, Order] = field(default_factory=dict)
    """Where a copy of it waits → its place in the queue there."""
    candidates: Sequence[PoolKey] = ()
    """Where it may be nominated as well, best first."""
    next_round: float = 0.0
    """When it may be nominated to more clusters."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The jobs that will come: like `templates`, `per_second` of them on average."""

    per_second: float = 0.0
    templates: tuple[SimulatedJob, ...] = ()


NO_ARRIVALS: Final = Arrivals()


@dataclass(frozen=True, slots=True)
class World:
    """All that is simulated."""

    pools: tuple[PoolSpec, ...]
    """Of the workers and of the hub."""
    jobs: tuple[SimulatedJob, ...]
    arrivals: Arrivals = NO_ARRIVALS
    step_size: int = 3
    """To how many clusters a job is nominated in a round."""
    round_seconds: float = 300.0
    by_headroom: bool = False
    """Whether the dispatcher prefers the clusters where most is free."""
