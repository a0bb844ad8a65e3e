"""
The events of a day: the jobs of users, and the faults of the fleet. The same seed gives the same day.

The jobs have the shape of recorded traces of GPU clusters (Jeon et al., USENIX ATC 2019, "Philly"; Hu et al.,
SC 2021, "Helios"): sizes in powers of two and run times over several orders of magnitude, both log-normal
here, and a daily rhythm with its low at night. The constants are ours: with them this fleet is full in the
afternoon and not at night.
"""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

HOUR: Final = 3600.0
DAY: Final = 24 * HOUR

GPUS: Final[Mapping[str, int]] = {
    f"{kind}-{region}-{number}": gpus
    for kind, gpus in (("a100", 16), ("h100", 8))
    for region in ("eu", "us")
    for number in (1, 2, 3)
}
"""The clusters, and the quota of each."""
CLUSTERS: Final = tuple(GPUS)
CANDIDATES: Final[Mapping[str, tuple[str, ...]]] = {
    name: tuple(CLUSTERS[(start + at) % len(CLUSTERS)] for at in range(7))
    for name, start in (("research", 0), ("training", 3), ("batch-a", 6), ("batch-h", 9))
}
"""Placement → the clusters that it may select."""
SELECTED: Final = 5
"""How many of them it selects: two rounds of the dispatcher reach them all."""
PLACEMENTS: Final = tuple(CANDIDATES)
QUEUES: Final[Mapping[str, tuple[str, ...]]] = {
    "research": ("research",),
    "training": ("training",),
    "batch": ("batch-a", "batch-h"),
}
"""LocalQueue → the Placements of its checks: the queue `batch` has one for each of two flavors."""
POOLS: Final = ("blue", "green")
"""The values of the label `pool`: some jobs go to one of them only."""

JOBS_PER_HOUR: Final = 17.0
RHYTHM: Final = 0.6
"""By how much the busiest hour (15:00) is above the mean, and the quietest below."""
RUN_SECONDS: Final = (1800.0, 1.6)
"""Median and sigma of the log-normal run time."""
SHORTEST: Final = 120.0
LONGEST: Final = 10 * HOUR
JOB_GPUS: Final = (2.0, 1.1)
"""Median and sigma of the log-normal number of GPUs, which is rounded to a power of two, 8 at most."""
CHOOSY: Final = 0.15
"""The share of jobs that ask for a pool."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job, and how long it runs. `pool`: the label that its cluster must have; "": any."""

    at: float
    name: str
    queue: str
    placement: str
    gpus: int
    seconds: float
    pool: str = ""

    @property
    def number(self) -> int:
        """Its number in the day: its owner submits a job that failed again, under another name.

        Of a job of an extra LocalQueue: its last digit.
        """
        stem = self.name[1:].partition("-")[0]
        return int(stem if stem.isdecimal() else self.name[-1])

    @property
    def limit(self) -> int | None:
        """How long it says that it may run, in seconds; every other job does."""
        return int(self.seconds * 1.25) + 60 if self.number % 2 else None

    @property
    def fails(self) -> bool:
        """Whether it fails on every cluster, in the mode with scores."""
        return self.number % 40 == 39

    def __str__(self) -> str:
        pool = f", pool {self.pool}" if self.pool else ""
        what = f"{self.gpus} GPUs for {minutes(self.seconds)}, by Placement {self.placement}{pool}"
        return f"{clock(self.at)}  job {self.name}: {what}"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that befalls a cluster or a Placement (`whom`) for some seconds.

    flip: its score changes. taint: OCM selects it no more. maintenance: that, and its queue is on hold. away:
    its API server is down, and OCM notices after 5 minutes. expired: its credentials are. crash: the leader
    is killed, after 0 to 3 more writes. rename: its label `pool` changes. edit: the Placement selects one
    cluster less. window: an admin announces its maintenance, by force if `value` is not 0, which begins after
    NOTICE_SECONDS. Those of SETUP_TROUBLES: see `tests.day.bare`; of SCORES_TROUBLES: `tests.day.scores`.
    """

    at: float
    what: str
    whom: str
    seconds: float = 0.0
    value: int = 0

    def __str__(self) -> str:
        how_long = f" for {minutes(self.seconds)}" if self.seconds else ""
        value = f" to {self.value}" if self.what == "flip" else ""
        return f"{clock(self.at)}  {self.what} {self.whom}{value}{how_long}"


Item = Job | Trouble


@dataclass(frozen=True, slots=True)
class Kind:
    """How often a trouble comes a day, and its shortest and longest duration in seconds."""

    per_day: float
    shortest: float
    longest: float
    least: int = 0
    """So many come at least, early in the time that is played."""


TROUBLES: Final[Mapping[str, Kind]] = {
    "flip": Kind(48, 0, 0),
    "taint": Kind(12, 120, 2 * HOUR),
    "maintenance": Kind(4, 0.5 * HOUR, 3 * HOUR),
    "away": Kind(10, 30, 0.75 * HOUR),
    "expired": Kind(4, 300, HOUR),
    "crash": Kind(6, 1, 40),
    "rename": Kind(4, 600, 2 * HOUR),
    "edit": Kind(3, 600, 3 * HOUR),
}
NOTICE_SECONDS: Final = HOUR
"""From the announcement of a maintenance window to its begin."""
WINDOW_SECONDS: Final = (1.25 * HOUR, 3 * HOUR)
"""The shortest and longest time from the announcement to the end."""
EXTRA_QUEUES: Final[Mapping[str, str]] = {
    "extra-0": "default",
    "extra-1": "default",
    "extra-2": "team",
    "extra-3": "team",
}
"""LocalQueues that come and go on the hub → their namespace."""
SETUP_TROUBLES: Final[Mapping[str, Kind]] = {
    "shrink": Kind(40, 20, 2 * HOUR),
    "template": Kind(4, 900, 2 * HOUR),
    "agent": Kind(10, 30, 2 * HOUR),
    "queue": Kind(12, 600, 2 * HOUR),
    "own": Kind(30, 120, HOUR),
    "by_hand": Kind(12, 600, 2 * HOUR),
    "detach": Kind(6, 600, HOUR),
}
"""Troubles of a fleet whose workers begin bare."""
SCORES_TROUBLES: Final[Mapping[str, Kind]] = {
    "broken": Kind(3, HOUR, 4 * HOUR, least=1),
    "smaller": Kind(10, 900, 3 * HOUR),
    "outage": Kind(2, 600, HOUR),
}
"""Troubles in the mode with scores."""
WHOM: Final[Mapping[str, tuple[str, ...]]] = {
    "crash": ("leader",),
    "edit": PLACEMENTS,
    "outage": PLACEMENTS,
    "template": ("all",),
    "queue": tuple(EXTRA_QUEUES),
}
"""Whom a trouble befalls, if no cluster."""


def a_day(
    seed: int,
    hours: float = 24.0,
    begins: float = 0.0,
    *,
    more: Mapping[str, Kind] = MappingProxyType({}),
) -> tuple[Item, ...]:
    """Return all that happens in so many hours, in order.

    `begins`: the hour of the day at the start. `more`: the troubles that a mode has besides.
    """
    chance = random.Random(f"day {seed}")  # an int would give similar days for similar seeds
    items = (*_jobs(chance, hours * HOUR, begins * HOUR), *_troubles(chance, hours * HOUR, TROUBLES))
    items = (*items, *_troubles(chance, hours * HOUR, more))
    items = (*items, *_windows(random.Random(f"windows {seed}"), hours * HOUR))
    return tuple(sorted(items, key=lambda item: item.at))


def _jobs(chance: random.Random, until: float, begins: float) -> Iterator[Job]:
    queues = tuple(QUEUES)
    peak = JOBS_PER_HOUR * (1 + RHYTHM) / HOUR
    at, number = 0.0, 0
    while (at := at + chance.expovariate(peak)) < until:
        if chance.random() > _share_of_peak(begins + at):
            continue
        queue = chance.choice(queues)
        yield Job(
            at,
            f"j{number}",
            queue,
            chance.choice(QUEUES[queue]),
            _gpus(chance),
            min(max(_log_normal(chance, *RUN_SECONDS), SHORTEST), LONGEST),
            chance.choice(POOLS) if chance.random() < CHOOSY else "",
        )
        number += 1


def _share_of_peak(at: float) -> float:
    """Return how many jobs come at a time of day, as a share of the busiest hour."""
    return (1 + RHYTHM * math.cos(2 * math.pi * (at - 15 * HOUR) / DAY)) / (1 + RHYTHM)


def _gpus(chance: random.Random) -> int:
    return int(2 ** min(max(round(math.log2(_log_normal(chance, *JOB_GPUS))), 0), 3))


def _log_normal(chance: random.Random, median: float, sigma: float) -> float:
    return chance.lognormvariate(math.log(median), sigma)


def _troubles(chance: random.Random, until: float, kinds: Mapping[str, Kind]) -> Iterator[Trouble]:
    """Yield the troubles of some kinds; all of them are over when the time is."""
    for what, kind in kinds.items():
        at, number = 0.0, 0
        while (at := at + chance.expovariate(kind.per_day / DAY)) < until:
            yield _trouble(chance, what, kind, at, until)
            number += 1
        for _ in range(number, kind.least):
            yield _trouble(chance, what, kind, chance.uniform(0.05, 0.3) * until, until)


def _trouble(chance: random.Random, what: str, kind: Kind, at: float, until: float) -> Trouble:
    whom = WHOM.get(what, CLUSTERS)
    # Short ones are more frequent than long ones.
    lasts = kind.shortest * (kind.longest / kind.shortest) ** chance.random() if kind.shortest else 0.0
    lasts = min(round(lasts, 1), max(until - at, 1.0)) if lasts else 0.0
    return Trouble(at, what, chance.choice(whom), lasts, chance.randrange(0, 100, 5))


def _windows(chance: random.Random, until: float) -> Iterator[Trouble]:
    """Yield two maintenance windows, of which one sends jobs back."""
    for force, cluster in enumerate(chance.sample(CLUSTERS, 2)):
        at, lasts = chance.uniform(0.05, 0.5) * until, chance.uniform(*WINDOW_SECONDS)
        yield Trouble(at, "window", cluster, round(lasts, 1), force)


def moved(items: Sequence[Item], seconds: float) -> tuple[Item, ...]:
    """Return the items, each so many seconds earlier."""
    return tuple(replace(item, at=item.at - seconds) for item in items)


def clock(seconds: float) -> str:
    """Return a time of the day as hours, minutes and seconds."""
    whole = int(seconds)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"


def minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.0f} s"
