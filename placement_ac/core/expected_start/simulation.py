"""
One run of the queues into the future, with run times drawn for each job.

Pure and deterministic: a job's run time is drawn from its uid and the number of the run alone, so another job
in the queue changes nothing in it.
"""

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Final
from zlib import crc32

from placement_ac.core.expected_start.model import Order, PoolKey, SimulatedJob, World
from placement_ac.core.expected_start.pool import Pool, Taken

EVENTS_AT_ONCE: Final = 50
"""A simulation can be left after so many: they take one to three milliseconds."""
EVENTS_MOST: Final = 10_000
"""A run ends after so many; who has not started by then starts later than can be said."""
HORIZON_SECONDS: Final = 7 * 86400.0
ARRIVALS_LEAST: Final = 200
"""So many jobs may come in a run, or as many as wait now: who comes after those hardly matters to them, and a
burst says nothing of what comes hours later."""
_MASK: Final = 2**64 - 1


def uniform(name: str, run: int) -> float:
    """Return a number from 0 to 1, the same for the same arguments (splitmix64)."""
    mixed = (crc32(name.encode()) * 0x9E3779B97F4A7C15 + run * 0xD1B54A32D192ED03) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return ((mixed ^ (mixed >> 31)) >> 11) / 2**53


_Event = tuple[float, int, str, SimulatedJob | None, PoolKey | None, Taken]
"""When, its number, the uid of a job and what is known of it (None: another job comes), and if it ends then:
where, and what it holds there; else it is nominated to more clusters."""


class Simulation:
    """`run`: its number, from which the run times are drawn; it ends when all `wanted` have started."""

    def __init__(self, world: World, run: int, wanted: Iterable[str]) -> None:
        self.starts: dict[str, float] = {}
        """Uid → when it starts, of those that are wanted; in seconds."""
        self._world, self._run = world, run
        self._pools = {spec.key: Pool(spec) for spec in world.pools}
        self._numbers = count()
        self._events: list[_Event] = []
        self._with_quota: set[str] = set()
        """Who has quota on the hub, or needs none."""
        self._on_hub: dict[str, Taken] = {}
        self._started: set[str] = set()
        self._nominated: set[str] = set()
        self._left: dict[str, Sequence[PoolKey]] = {}
        """Uid → where it may be nominated in later rounds."""
        self._to_start = set(wanted)
        self._arrived = 0
        self._arrivals_most = max(sum(job.runs_in is None for job in world.jobs), ARRIVALS_LEAST)
        for job in world.jobs:
            self._begin(job)
        self._plan_arrival(0.0)

    def steps(self) -> Iterator[None]:
        """Run it; yield after each EVENTS_AT_ONCE."""
        for key in self._pools:
            self._fill(key, 0.0)
        for number in range(EVENTS_MOST):
            if not self._to_start or not self._events or self._events[0][0] > HORIZON_SECONDS:
                return
            now, _, uid, job, where, taken = heapq.heappop(self._events)
            if job is None:
                self._arrive(now)
            elif where is None:
                self._nominate(uid, job, now)
            else:
                self._end(uid, job, where, taken, now)
            if number % EVENTS_AT_ONCE == EVENTS_AT_ONCE - 1:
                yield

    # -- now

    def _begin(self, job: SimulatedJob) -> None:
        """Put a job where it is now."""
        if job.runs_in is not None:
            self._started.add(job.uid)
        if job.hub is None or job.has_quota:
            self._with_quota.add(job.uid)
            if job.hub is not None:
                self._on_hub[job.uid] = self._pools[job.hub].take(job.asked)
        else:
            self._pools[job.hub].join(job.uid, job, job.order)
        if job.runs_in is not None:
            taken = self._pools[job.runs_in].take(job.asked)
            self._later(self._seconds(job.uid, job, job.age), job.uid, job, job.runs_in, taken)
            return
        self._left[job.uid] = job.candidates
        for key, order in job.waits_in.items():
            self._pools[key].join(job.uid, job, order)
        if job.uid in self._with_quota and job.candidates:
            self._later(max(job.next_round, 0.0), job.uid, job)

    def _later(
        self, when: float, uid: str, job: SimulatedJob | None, key: PoolKey | None = None, taken: Taken = ()
    ) -> None:
        heapq.heappush(self._events, (when, next(self._numbers), uid, job, key, taken))

    def _seconds(self, uid: str, job: SimulatedJob, age: float) -> float:
        """Return how long a job of that age goes on."""
        if job.run_times is None:
            return math.inf
        seconds = job.run_times.remaining(uniform(uid, self._run), age)
        return seconds if job.most_seconds is None else min(seconds, max(job.most_seconds - age, 0.0))

    # -- events

    def _end(self, uid: str, job: SimulatedJob, key: PoolKey, taken: Taken, now: float) -> None:
        self._pools[key].release(taken)
        if job.hub is not None:
            self._pools[job.hub].release(self._on_hub.pop(uid, ()))
            self._fill(job.hub, now)
        self._fill(key, now)

    def _fill(self, key: PoolKey, now: float) -> None:
        """Give quota to those that wait for it, in their order."""
        is_hub = not key[0]
        for uid, job, taken in self._pools[key].admit(self._with_quota if is_hub else self._started):
            if is_hub:
                self._with_quota.add(uid)
                self._on_hub[uid] = taken
                self._nominate(uid, job, now)
            else:
                self._start(uid, job, key, taken, now)

    def _start(self, uid: str, job: SimulatedJob, key: PoolKey, taken: Taken, now: float) -> None:
        self._started.add(uid)
        self._left.pop(uid, None)
        if uid in self._to_start:
            self._to_start.remove(uid)
            self.starts[uid] = now
        self._later(now + self._seconds(uid, job, 0.0), uid, job, key, taken)

    def _nominate(self, uid: str, job: SimulatedJob, now: float) -> None:
        """Let a job wait on the next clusters, or start on one that has room."""
        left, number = self._left.get(uid, ()), self._world.step_size
        if uid in self._started or not left:
            return
        order = self._in_order(left, job, is_first=uid not in self._nominated and not job.waits_in)
        chosen, self._left[uid] = order[:number], order[number:]
        self._nominated.add(uid)
        for key in chosen:
            pool = self._pools[key]
            if pool.admits(job.asked, self._started):
                taken = pool.room(job.asked) or ()
                pool.reserve(taken)
                self._start(uid, job, key, taken, now)
                return
        place: Order = (job.order[0], now, uid)
        for key in chosen:
            self._pools[key].join(uid, job, place)
        if self._left[uid]:
            self._later(now + self._world.round_seconds, uid, job)

    def _in_order(self, keys: Sequence[PoolKey], job: SimulatedJob, *, is_first: bool) -> list[PoolKey]:
        """Return the clusters as the dispatcher orders them: after the first round, those with room first."""
        pools, asked = self._pools, job.asked
        if self._world.by_headroom and is_first:
            return sorted(keys, key=lambda key: pools[key].rank(asked)[1])
        if self._world.by_headroom:
            return sorted(keys, key=lambda key: pools[key].rank(asked))
        return list(keys) if is_first else sorted(keys, key=lambda key: pools[key].rank(asked)[0])

    # -- those that come

    def _plan_arrival(self, now: float) -> None:
        arrivals = self._world.arrivals
        if arrivals.per_second > 0 and arrivals.templates and self._arrived < self._arrivals_most:
            share = uniform(f"gap {self._arrived}", self._run)
            self._later(now - math.log(1.0 - share) / arrivals.per_second, "", None)

    def _arrive(self, now: float) -> None:
        """Let a job come that is like one of the last ones."""
        templates = self._world.arrivals.templates
        share = uniform(f"template {self._arrived}", self._run)
        job, uid = templates[int(share * len(templates))], f"arrival {self._arrived}"
        self._arrived += 1
        self._plan_arrival(now)
        self._left[uid] = job.candidates
        if job.hub is None:
            self._with_quota.add(uid)
            self._nominate(uid, job, now)
        else:
            self._pools[job.hub].join(uid, job, (job.order[0], now, uid))
            self._fill(job.hub, now)
