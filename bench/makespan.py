"""
Measure how long 300 jobs of mixed size take on five workers: AllAtOnce, and our dispatcher with Headroom.

`make bench-makespan`: as `bench.flips`, but each worker has a quota of GPUs, and all jobs, the same ones for
each dispatcher, are created at once. Kueue reconciles one Workload after the other and sends 5 requests a
second to each worker. Prints one JSON object; times are in seconds.
"""

import json
import random
import time
from typing import Any, Final, NamedTuple

import click

from bench.flips_play import DISPATCHERS, OURS, TICK_SECONDS, Ledger, percentiles, until
from bench.flips_scene import Scene, scene
from placement_ac.observability import logs
from placement_lab.standins.multikueue import KueueSettings

Object = dict[str, Any]

ALL_AT_ONCE: Final = "AllAtOnce"
GPU: Final = "nvidia.com/gpu"
QUOTAS: Final = {"worker1": 8, "worker2": 8, "worker3": 16, "worker4": 16, "worker5": 32}
"""GPUs of each worker."""
SIZES: Final = {1: 50, 2: 25, 4: 15, 8: 10}
"""GPUs of a job → how many jobs in a hundred have that size."""
SHORTEST_SECONDS: Final = 5.0
LONGEST_SECONDS: Final = 60.0
FLAGS: Final = ("--dispatcher=true", "--dispatch-profile=headroom", "--step-size=1")
PATIENCE_SECONDS: Final = 3600.0


class Arrival(NamedTuple):
    """A job of that many GPUs that runs for that many seconds."""

    name: str
    gpus: int
    lasts: float


def arrivals(number: int, seed: int) -> list[Arrival]:
    """Return the jobs, the same for the same seed."""
    dice = random.Random(seed)  # noqa: S311  # no secret depends on it
    sizes = dice.choices([*SIZES], [*SIZES.values()], k=number)
    return [
        Arrival(f"job-{count}", size, dice.uniform(SHORTEST_SECONDS, LONGEST_SECONDS))
        for count, size in enumerate(sizes)
    ]


def play(dispatcher: str, jobs: list[Arrival]) -> Object:
    """Play the jobs with that dispatcher, and return the figures."""
    logs.configure("text", "error")
    settings = KueueSettings(dispatcher=DISPATCHERS[dispatcher], events_batch_seconds=1.0)
    quotas = {name: {"default": {GPU: str(gpus)}} for name, gpus in QUOTAS.items()}
    with scene(settings, FLAGS if dispatcher == OURS else (), quotas=quotas) as there:
        until(lambda: sorted(there.listed()) == sorted(QUOTAS))
        there.kueue.throttled = True
        ledger = Ledger(there.counter)
        began = time.monotonic()
        _run_clock(there, jobs, ledger, began + PATIENCE_SECONDS)
        return _figures(dispatcher, there, ledger, time.monotonic() - began)


def _run_clock(there: Scene, jobs: list[Arrival], ledger: Ledger, end: float) -> None:
    """Create all jobs, and complete each when it has run for long enough."""
    for job in jobs:
        ledger.created[job.name], ledger.lasts[job.name] = time.time(), job.lasts
        there.submit(job.name, {GPU: str(job.gpus)})
        _finish(there, ledger)
    while ledger.unfinished() and time.monotonic() < end:
        _finish(there, ledger)
        time.sleep(TICK_SECONDS)  # the clock of the bench: jobs end at their times


def _finish(there: Scene, ledger: Ledger) -> None:
    for name in ledger.due(time.time()):
        there.finish(name)


def _figures(dispatcher: str, there: Scene, ledger: Ledger, seconds: float) -> Object:
    return {
        "dispatcher": dispatcher,
        "jobs": len(ledger.created),
        "seconds": round(seconds, 1),
        "copiesPerJob": round(there.copies_made() / len(ledger.created), 2),
        "copiesRead": there.copies_read(),
        "toStart": percentiles(ledger.to_start()),
        "unfinished": len(ledger.unfinished()),
        "ranTwice": len(ledger.ran_twice()),
        "startedAgain": len(ledger.started_again()),
    }


def compare(jobs: list[Arrival]) -> Object:
    """Play the jobs with AllAtOnce and with our dispatcher; `ratio`: our seconds by those of AllAtOnce."""
    theirs, ours = play(ALL_AT_ONCE, jobs), play(OURS, jobs)
    return {"allAtOnce": theirs, "ours": ours, "ratio": round(ours["seconds"] / theirs["seconds"], 2)}


@click.command()
@click.option("--jobs", "number", default=300, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--only", type=click.Choice([ALL_AT_ONCE, OURS]), help="Play only this dispatcher.")
def main(number: int, seed: int, only: str | None) -> None:
    """Measure how long jobs of mixed size take with AllAtOnce and with our dispatcher."""
    jobs = arrivals(number, seed)
    click.echo(json.dumps(play(only, jobs) if only else compare(jobs), indent=2))


if __name__ == "__main__":
    main()
