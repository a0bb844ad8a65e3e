"""
One row of `bench.flips`: jobs come at random while the best cluster changes, and a ledger follows them.

The ledger reads the workers' own Jobs: a start is a Job that a worker unsuspends.
"""

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import click

from bench.flips_scene import SLOTS, WORKERS, Scene, scene
from placement_ac.core.api.constants import OUR_CONTROLLER
from placement_ac.observability import logs
from placement_lab.standins.fleet import JobCounter
from placement_lab.standins.multikueue import ALL_AT_ONCE, INCREMENTAL, KueueSettings

Object = dict[str, Any]

OURS: Final = "placement-ac"
DISPATCHERS: Final = {"AllAtOnce": ALL_AT_ONCE, "Incremental": INCREMENTAL, OURS: OUR_CONTROLLER}
"""The dispatchers by the names in the table, with their names in Kueue's configuration."""
TICK_SECONDS: Final = 0.05
SET_UP_SECONDS: Final = 240.0
QUIET_SECONDS: Final = 6.0
"""The list is at rest if it was not written for so long: longer than each wait of a removal."""
LONG_SHARE: Final = 0.1
LONG_FACTOR: Final = 6


@dataclass(frozen=True, slots=True)
class Row:
    """The play. `gap`: seconds between flips; `running`: Workloads that run all the time.

    `placement_seconds`: from a nomination until Kueue records the placement (Kueue: about 1 s). `flags`: of
    `placement-ac run`.
    """

    dispatcher: str
    running: int
    flips: int = 0
    gap: float = 10.0
    seconds: float = 120.0
    placement_seconds: float = 1.0
    rate: float = 0.3
    seed: int = 1
    patience: float = 120.0
    flags: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        if not self.flips:
            return f"{self.dispatcher}, {self.running} running"
        return f"{self.dispatcher}, {self.running} running, {self.flips} flips, one every {self.gap:g} s"


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job: when it is created (seconds from the start of the clock), and how long it runs."""

    name: str
    at: float
    lasts: float


def arrivals(row: Row) -> list[Arrival]:
    """Return the jobs of a row, the same for the same seed: 0.5 to 4 s long, one in ten 6 times as long."""
    dice = random.Random(row.seed)  # noqa: S311  # no secret depends on it
    found, at = list[Arrival](), dice.expovariate(row.rate)
    while at < row.seconds:
        lasts = dice.uniform(0.5, 4.0) * (LONG_FACTOR if dice.random() < LONG_SHARE else 1)
        found.append(Arrival(f"job-{len(found)}", at, lasts))
        at += dice.expovariate(row.rate)
    return found


@dataclass
class Ledger:
    """The history of the jobs; times are POSIX seconds."""

    counter: JobCounter
    running: Sequence[str] = ()
    """The jobs that run all the time."""
    created: dict[str, float] = field(default_factory=dict)
    lasts: dict[str, float] = field(default_factory=dict)
    with_quota: dict[str, float] = field(default_factory=dict)
    """The seconds that each job waited while the selected cluster had quota."""

    def to_start(self) -> list[float]:
        """Return the seconds from the creation on the hub to the start on a worker, sorted."""
        starts = {name: self.counter.first_start_of(name) for name in self.created}
        return sorted(at - self.created[name] for name, at in starts.items() if at is not None)

    def waiting(self) -> list[str]:
        return [name for name in self.created if self.counter.first_start_of(name) is None]

    def unfinished(self) -> list[str]:
        return [name for name in self.created if not self.counter.counts_of(name)["finished"]]

    def ran_twice(self) -> list[str]:
        """Return the jobs that ran on two workers at one time."""
        return [one for one in self._all() if self.counter.counts_of(one)["maxCopies"] > 1]

    def started_again(self) -> list[str]:
        return [one for one in self._all() if self.counter.counts_of(one)["starts"] > 1]

    def interrupted(self) -> list[str]:
        """Return the jobs that should run all the time, and do not run now."""
        return [name for name in self.running if not self.counter.running(name)]

    def _all(self) -> list[str]:
        return [*self.running, *self.created]

    def due(self, now: float) -> list[str]:
        """Return the jobs that have run for long enough."""
        return [
            name
            for name in self.unfinished()
            if self.counter.running(name) and now - self._start(name) > self.lasts[name]
        ]

    def _start(self, name: str) -> float:
        return self.counter.first_start_of(name) or math.inf

    def last_start(self) -> float | None:
        """Return when the last job started, None if one has not."""
        last = max(map(self._start, self.created), default=math.inf)
        return None if last == math.inf else last

    def running_on(self, worker: str) -> int:
        return sum(worker in self.counter.running(name) for name in self.unfinished())

    def wait(self, best: str, seconds: float) -> None:
        """Count `seconds` for each waiting job if the best cluster has quota."""
        if self.running_on(best) < SLOTS:
            for name in self.waiting():
                self.with_quota[name] = self.with_quota.get(name, 0.0) + seconds


def play(row: Row) -> Object:
    """Play a row and return its figures; see `figures`."""
    logs.configure("text", "error")
    settings = KueueSettings(
        dispatcher=DISPATCHERS[row.dispatcher], events_batch_seconds=row.placement_seconds
    )
    dispatcher = ("--dispatcher=true",) if row.dispatcher == OURS else ()
    with scene(settings, (*dispatcher, *row.flags), row.running) as there:
        best = set_up(there, row.running)
        before = writes_of(there)
        there.kueue.throttled = True
        ledger = Ledger(there.counter, [running_job(number) for number in range(row.running)])
        last_flip = run_clock(there, row, ledger, best)
        after = writes_of(there)
        return figures(row, ledger, {name: after[name] - before[name] for name in after}, last_flip)


def writes_of(there: Scene) -> dict[str, int]:
    """Return how often the list changed, the controller wrote, and Kueue read a copy, since the start."""
    return {
        "listChanges": there.list_changes(),
        "listWrites": there.list_writes(),
        "workloadWrites": there.workload_writes(),
        "copiesRead": there.copies_read(),
    }


def set_up(there: Scene, running: int) -> str:
    """Start the Workloads that run all the time, on all workers; then select the best cluster alone."""
    until(lambda: sorted(there.listed()) == list(WORKERS))
    placed = 0
    for number, worker in enumerate(WORKERS):
        there.only(worker)
        share = range(number, running, len(WORKERS))
        for one in share:
            there.submit(running_job(one))
        placed += len(share)
        until(lambda: there.placed() == placed)  # noqa: B023  # called in this turn
    there.only(*WORKERS)
    there.prefer(WORKERS[0])
    there.select(1)
    until(lambda: there.selected() == [WORKERS[0]])
    until_at_rest(there)
    return WORKERS[0]


def running_job(number: int) -> str:
    return f"running-{number}"


def until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + SET_UP_SECONDS
    while not reached():
        if time.monotonic() > end:
            raise click.ClickException("the scene was not set up in time")
        time.sleep(0.1)  # the set-up is played by other processes; it is asked now and then


def until_at_rest(there: Scene) -> None:
    writes, since = there.list_writes(), time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS:
        time.sleep(0.2)  # as above
        if there.list_writes() != writes:
            writes, since = there.list_writes(), time.monotonic()


def run_clock(there: Scene, row: Row, ledger: Ledger, best: str) -> float | None:
    """Create and complete jobs and flip, until all jobs have ended; return when the last flip was."""
    dice = random.Random(row.seed + 1)  # noqa: S311  # no secret depends on it
    jobs, flips = iter(arrivals(row)), iter(flip_times(row))
    job, flip = next(jobs, None), next(flips, None)
    began = looked = time.time()
    last_flip = None
    while True:
        now = time.time()
        while job and now - began >= job.at:
            ledger.created[job.name], ledger.lasts[job.name] = time.time(), job.lasts
            there.submit(job.name)
            job = next(jobs, None)
        if flip is not None and now - began >= flip:
            best = dice.choice([worker for worker in WORKERS if worker != best])
            there.prefer(best)
            last_flip, flip = time.time(), next(flips, None)
        for name in ledger.due(now):
            there.finish(name)
        ledger.wait(best, now - looked)
        looked = now
        over = now - began - row.seconds
        if over > row.patience or (over > 0 and flip is None and not ledger.unfinished()):
            return last_flip
        time.sleep(TICK_SECONDS)  # the clock of the bench: jobs and flips come at their times


def flip_times(row: Row) -> Iterator[float]:
    return (row.gap * (number + 1) for number in range(row.flips))


def figures(row: Row, ledger: Ledger, requests: dict[str, int], last_flip: float | None) -> Object:
    """Return the figures of a row; times are seconds."""
    last = ledger.last_start()
    after = None if last is None or last_flip is None else round(max(0.0, last - last_flip), 2)
    return {
        "row": row.name,
        "dispatcher": row.dispatcher,
        "running": row.running,
        "flips": row.flips,
        "gap": row.gap,
        "placementSeconds": row.placement_seconds,
        "flags": list(row.flags),
        "jobs": len(ledger.created),
        "notStarted": len(ledger.waiting()),
        "unfinished": len(ledger.unfinished()),
        "interrupted": len(ledger.interrupted()),
        "ranTwice": len(ledger.ran_twice()),
        "startedAgain": len(ledger.started_again()),
        **requests,
        "toStart": percentiles(ledger.to_start()),
        "lastStartAfterLastFlip": after,
        "longestWaitWithQuota": round(max(ledger.with_quota.values(), default=0.0), 2),
    }


def percentiles(seconds: Sequence[float]) -> Object | None:
    """Return p50, p90 and max of sorted seconds."""
    if not seconds:
        return None
    at = {"p50": seconds[len(seconds) // 2], "p90": seconds[int(len(seconds) * 0.9)], "max": seconds[-1]}
    return {name: round(value, 2) for name, value in at.items()}
