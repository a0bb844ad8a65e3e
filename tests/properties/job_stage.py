"""
Stories of jobs, clusters and crashes, and the stage on which they are played.

The real queue, reconciler and actor play on the virtual clock of `tests.support.virtual`.
"""

import random
from dataclasses import dataclass, field
from typing import Any, Final

from placement_ac.core.api.constants import (
    DRAIN,
    MULTIKUEUE_CONFIG,
    OUR_CONTROLLER,
    RETRY,
    WORKLOAD,
    Kind,
    RemovalPolicy,
)
from placement_ac.core.inputs.state import PlacementPolicy
from placement_lab.standins.multikueue import ALL_AT_ONCE, NEWEST_PACE, KueueSettings, Pace
from placement_lab.standins.multikueue import objects as of
from tests.support.virtual.client import Odds
from tests.support.virtual.controller import VirtualController
from tests.support.virtual.hub import VirtualHub
from tests.support.virtual.kueue import VirtualKueue
from tests.support.virtual.workloads import CHECK, OURS

CLUSTERS: Final = "abcd"
SLOTS: Final = (2, 2, 1, 1)
MOST_JOBS: Final = 6
GATED: Final = (CHECK, OURS)
UNGATED: Final = (CHECK,)
JUST_SECONDS: Final = 0.2
"""From a write that evicts to the eviction."""


@dataclass(frozen=True)
class Step:
    """Something that happens; `one` and `two` say to whom and how. Then `pause` seconds pass."""

    what: str
    one: int
    two: int
    pause: float


@dataclass(frozen=True)
class Story:
    """A run: the same seed always gives the same story."""

    seed: int
    steps: tuple[Step, ...]
    dispatcher: str = ALL_AT_ONCE
    removal: RemovalPolicy = DRAIN
    nominates_admitted: bool = False
    loss_grace: float = 0.0
    unlist_after: float = 0.0
    settle: float = 0.0
    batch: float = 1.0
    """Seconds that Kueue needs to see what happens on a worker."""
    fails: float = 0.0
    late: float = 0.05
    left_behind: float = 1 / 8
    pace: Pace | None = None
    """How fast MultiKueue asks its workers; None: no limit."""
    checks: tuple[str, ...] = GATED
    profile: str = "ranked"
    """How our dispatcher scores clusters."""
    probe: bool = False
    """Whether clusters are probed before they are listed."""
    wishes: bool = False
    """Whether jobs say where they want to run; only our dispatcher reads that."""

    @property
    def policy(self) -> PlacementPolicy:
        return PlacementPolicy(
            removal=self.removal,
            waiting_grace=60.0,
            settle=self.settle,
            retention=60.0,
            loss_grace=self.loss_grace,
            dispatcher=self.dispatcher == OUR_CONTROLLER,
            unlist_after=self.unlist_after if self.dispatcher == OUR_CONTROLLER else 0.0,
            dispatch_profile=self.profile,
            step_size=1 if self.profile == "spread" else 3,
            probe=self.probe,
        )

    @property
    def odds(self) -> Odds:
        return Odds(random.Random(self.seed), self.fails, self.late)

    @property
    def kueue(self) -> KueueSettings:
        return KueueSettings(
            dispatcher=self.dispatcher,
            nominates_admitted=self.nominates_admitted,
            events_batch_seconds=self.batch,
            pace=self.pace or NEWEST_PACE,
        )


@dataclass
class Stage:
    """Where a story is played, and what is witnessed of it."""

    story: Story
    kueue: VirtualKueue
    hub: VirtualHub
    controller: VirtualController
    jobs: list[str] = field(default_factory=list)
    evicted: list[str] = field(default_factory=list)
    """Of each job that was placed and evicted: why."""
    excused: set[str] = field(default_factory=set)
    """Jobs that were evicted while Kueue lost sight of where they run: then it starts them twice itself."""
    unlisted: list[tuple[float, str]] = field(default_factory=list)
    """When which cluster was unlisted."""
    nominated: set[tuple[str, str]] = field(default_factory=set)
    """Each job and the clusters to which it was nominated at some time."""
    list_changes: int = 0
    _listed: tuple[str, ...] = ()
    _before: dict[str, Any] = field(default_factory=dict)
    _sent_back: dict[str, str] = field(default_factory=dict)
    """Of each job that we have just sent back: where it was placed then."""

    def witness(self, what: str, kind: Kind, raw: Any) -> None:
        if kind == MULTIKUEUE_CONFIG:
            listed = tuple(raw["spec"]["clusters"] if what == "put" else ())
            self.list_changes += listed != self._listed
            gone = [name for name in self._listed if name not in listed]
            self.unlisted += [(self.kueue.now, name) for name in gone]
            self._listed = listed
        elif kind == WORKLOAD:
            self._witness_job(raw)

    def _witness_job(self, raw: Any) -> None:
        name = raw["metadata"]["name"].removeprefix("job-")
        before = self._before.get(name, raw)
        if _is_sent_back(raw) and not _is_sent_back(before):
            self._sent_back[name] = of.cluster_of(raw)
        if of.is_condition_true(raw, of.EVICTED) and not of.is_condition_true(before, of.EVICTED):
            # Kueue may yet record the placement of one that was sent back while it waited: that is none.
            where = self._sent_back.pop(name, of.cluster_of(before))
            if where:
                self._excuse(name, where)
                self.evicted.append(f"{name} from {where}: {of.condition_field(raw, of.EVICTED)}")
        names = raw.get("status", {}).get("nominatedClusterNames") or ()
        self.nominated.update((name, one.removeprefix("p-")) for one in names)
        self._before[name] = raw

    def _excuse(self, name: str, worker: str) -> None:
        """Let pass what nobody can know in time: the cluster was lost just before, or is just after."""
        lost = self.kueue.workers[worker].lost_since
        if lost is not None and self.kueue.now - lost < JUST_SECONDS + self.story.late:
            self.excused.add(name)

    def job(self, number: int) -> str | None:
        """Return one of the jobs that are neither finished nor evicted just now."""
        alive = [name for name in self.jobs if not self.finished(name)]
        return alive[number % len(alive)] if alive else None

    def finished(self, name: str) -> bool:
        return self.kueue.holds(name, of.FINISHED)

    def runs_on(self) -> set[str]:
        """Return the clusters on which any job runs, or that the hub names for one that has not finished.

        If two clusters admit in the same second and one of them is lost, Kueue may name the wrong one.
        """
        named = {self.kueue.first_name(self.kueue.placed(n)) for n in self.jobs if not self.finished(n)}
        running = {where for name in self.jobs for where in self.kueue.running(name)}
        return {where.removeprefix("p-") for where in running | named}

    @property
    def all_reachable(self) -> bool:
        return all(worker.reachable for worker in self.kueue.workers.values())

    def is_calm(self, worker: str) -> bool:
        """Whether the hub knows all that goes on there: Kueue itself doubles what it loses sight of."""
        found = self.kueue.workers[worker]
        busy = {*found.jobs, *self.kueue.squatters(worker)}
        return all(self.kueue.first_name(self.kueue.placed(name)) == worker for name in busy)


def _is_sent_back(raw: Any) -> bool:
    return (of.check_of(raw, OURS) or {}).get("state") == RETRY
