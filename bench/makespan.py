"""
Measure how long 300 jobs of mixed size take on five workers: AllAtOnce, and our dispatcher with Headroom.

`make bench-makespan`: as `bench.flips`, but each worker has a quota of GPUs, and all jobs, the same ones for
each dispatcher, are created at once. `--kueue`: the release whose pace Kueue has, such as 0.19 or 0.20.
Prints one JSON object; times are in seconds.
"""

import json
import random
from typing import Any, Final

import click

from bench.jobs import DISPATCHERS, GPU, OURS, kueue_option, scene, ticks, until
from placement_ac.observability import logs
from placement_lab.standins.multikueue import PACES, KueueSettings
from tests.support.scored_jobs import Arrival, Ledger

Object = dict[str, Any]

ALL_AT_ONCE: Final = "AllAtOnce"
QUOTAS: Final = {"worker1": 8, "worker2": 8, "worker3": 16, "worker4": 16, "worker5": 32}
"""GPUs of each worker."""
SIZES: Final = {1: 50, 2: 25, 4: 15, 8: 10}
"""GPUs of a job → how many jobs in a hundred have that size."""
SHORTEST_SECONDS: Final = 5.0
LONGEST_SECONDS: Final = 60.0
FLAGS: Final = ("--dispatcher=true", "--dispatch-profile=headroom", "--step-size=1")
PATIENCE_SECONDS: Final = 3600.0
CREATED: Final = 201


def arrivals(number: int, seed: int) -> list[Arrival]:
    """Return the jobs, the same for the same seed; all come at once."""
    dice = random.Random(seed)  # noqa: S311  # no secret depends on it
    sizes = dice.choices([*SIZES], [*SIZES.values()], k=number)
    return [
        Arrival(f"job-{count}", 0.0, dice.uniform(SHORTEST_SECONDS, LONGEST_SECONDS), size)
        for count, size in enumerate(sizes)
    ]


def play(dispatcher: str, jobs: list[Arrival], kueue: str) -> Object:
    """Play the jobs with that dispatcher and that pace of Kueue, and return the figures."""
    logs.configure("text", "error")
    settings = KueueSettings(DISPATCHERS[dispatcher], events_batch_seconds=1.0, pace=PACES[kueue])
    quotas = {name: {"default": {GPU: str(gpus)}} for name, gpus in QUOTAS.items()}
    with scene(settings, FLAGS if dispatcher == OURS else (), quotas=quotas) as there:
        until(lambda: sorted(there.listed()) == sorted(QUOTAS))
        there.kueue.throttled = True
        ledger = Ledger(there.counter)
        for seconds in ticks(there, ledger, jobs):
            if seconds > PATIENCE_SECONDS or not ledger.unfinished():
                break
        posts = [one for one in there.to_workers() if one.method == "POST" and one.status == CREATED]
        copies = sum(one.path.endswith("/workloads") for one in posts)
        return {
            "kueue": kueue,
            "dispatcher": dispatcher,
            "seconds": round(seconds, 1),
            "copiesPerJob": round(copies / len(jobs), 2),
            "copiesRead": there.requests()["copiesRead"],
            **ledger.figures(),
        }


def compare(jobs: list[Arrival], kueue: str) -> Object:
    """Play the jobs with AllAtOnce and with our dispatcher; `ratio`: our seconds by those of AllAtOnce."""
    theirs, ours = play(ALL_AT_ONCE, jobs, kueue), play(OURS, jobs, kueue)
    return {"allAtOnce": theirs, "ours": ours, "ratio": round(ours["seconds"] / theirs["seconds"], 2)}


@click.command(context_settings={"show_default": True})
@kueue_option
@click.option("--jobs", "number", default=300)
@click.option("--seed", default=1)
@click.option("--only", type=click.Choice([ALL_AT_ONCE, OURS]), help="Play only this dispatcher.")
def main(number: int, seed: int, only: str | None, kueue: str) -> None:
    """Measure how long jobs of mixed size take with AllAtOnce and with our dispatcher."""
    jobs = arrivals(number, seed)
    click.echo(json.dumps(play(only, jobs, kueue) if only else compare(jobs, kueue), indent=2))


if __name__ == "__main__":
    main()
