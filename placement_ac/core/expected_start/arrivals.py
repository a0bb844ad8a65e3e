"""
The jobs that will come, by those that have come lately.

Pure. They matter: one that comes later goes first if its priority is higher or if, with BestEffortFIFO, it
fits where an earlier one does not.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from placement_ac.core.api.objects import Workload
from placement_ac.core.expected_start.history import RUNS_KEPT, Run
from placement_ac.core.expected_start.model import NO_ARRIVALS, Arrivals, SimulatedJob

WINDOW_SECONDS: Final = 3600.0
"""Those of the last hour say how many come."""
WINDOW_LEAST: Final = 600.0
"""A burst says little of what follows it."""
TEMPLATES_MOST: Final = 200


Like = Callable[[Run], SimulatedJob]


def arrivals(
    runs: Sequence[Run],
    workloads: Iterable[Workload],
    jobs: Iterable[SimulatedJob],
    like: Like,
    now: datetime,
) -> Arrivals:
    """Return how many jobs come in a second, and what they are like.

    `runs`: those that have run, and run; `jobs`: those that are simulated; `like`: a new job like a run.
    """
    came: dict[str, datetime] = {run.uid: run.created for run in runs}
    came |= {w.meta.uid: w.created for w in workloads if w.created and not w.cluster}
    window = _window(runs, came.values(), now)
    lately = sorted((when, uid) for uid, when in came.items() if (now - when).total_seconds() <= window)
    if not lately:
        return NO_ARRIVALS
    known = {job.uid: job for job in jobs if job.runs_in is None}
    ran = {run.uid: run for run in runs}
    found = [_template(uid, known, ran, like) for _, uid in lately[-TEMPLATES_MOST:]]
    templates = tuple(job for job in found if job is not None and job.candidates)
    rate = len(lately) / max(window, WINDOW_LEAST)
    return Arrivals(rate * len(templates) / len(found), templates)


def _template(
    uid: str, waiting: Mapping[str, SimulatedJob], ran: Mapping[str, Run], like: Like
) -> SimulatedJob | None:
    """Return a job like one that came, as it was when it came; None: nobody knows where it may go."""
    if uid not in waiting:
        return like(ran[uid]) if uid in ran else None
    job = waiting[uid]
    keys = (*job.waits_in, *job.candidates)
    return replace(job, waits_in={}, candidates=keys, next_round=0.0, has_quota=False)


def _window(runs: Iterable[Run], created: Iterable[datetime], now: datetime) -> float:
    """Return for how many seconds back all jobs are known that have come."""
    oldest: dict[tuple[str, str], list[datetime]] = {}
    for run in runs:
        if run.seconds is not None:
            oldest.setdefault(run.queue, []).append(run.created)
    first = min(created, default=now)
    first = max([first, *(min(times) for times in oldest.values() if len(times) >= RUNS_KEPT)])
    return min((now - first).total_seconds(), WINDOW_SECONDS)
