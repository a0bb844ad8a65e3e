"""
Measure how long 300 jobs of mixed size take on five workers, when they start, and how many copies are made.

`make bench-jobs`: with AllAtOnce, then with our dispatcher, as `bench.flips`, but each worker has a quota of
GPUs, and all jobs, the same ones for each dispatcher, are created at once. `--room`: each worker has quota
for all jobs, so that a start waits for nothing but the dispatcher and Kueue. `--kueue`: the release whose
pace Kueue has, such as 0.19 or 0.20. FLAGS of `placement-ac run`, after `--`, replace those of `FLAGS`.
Prints one JSON object; times are in seconds. `bench.real_jobs` does it on real servers.
"""

import json
import random
from collections.abc import Sequence
from typing import Any, Final

import click

from bench.jobs_scene import DISPATCHERS, GPU, OURS, kueue_option, scene, ticks, until
from placement_ac.observability import logs
from placement_lab.standins.multikueue import PACES, KueueSettings
from tests.support.scored_jobs import Arrival, Ledger

Object = dict[str, Any]

ALL_AT_ONCE: Final = "AllAtOnce"
QUOTAS: Final = {"worker1": 8, "worker2": 8, "worker3": 16, "worker4": 16, "worker5": 32}
"""GPUs of each worker."""
ROOM: Final = 10_000
SIZES: Final = {1: 50, 2: 25, 4: 15, 8: 10}
"""GPUs of a job → how many jobs in a hundred have that size."""
SHORTEST_SECONDS: Final = 5.0
LONGEST_SECONDS: Final = 60.0
FLAGS: Final = ("--dispatch-profile=headroom", "--step-size=1")
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


def play(
    dispatcher: str, jobs: list[Arrival], kueue: str, flags: Sequence[str] = FLAGS, room: int = 0
) -> Object:
    """Play the jobs with that dispatcher and that pace of Kueue, and return the figures.

    `flags`: of our dispatcher; `room`: GPUs of each worker, in place of `QUOTAS`.
    """
    logs.configure("text", "error")
    settings = KueueSettings(DISPATCHERS[dispatcher], events_batch_seconds=1.0, pace=PACES[kueue])
    quotas = {name: {"default": {GPU: str(room or gpus)}} for name, gpus in QUOTAS.items()}
    ours = ("--dispatcher=true", *flags) if dispatcher == OURS else ()
    with scene(settings, ours, quotas=quotas) as there:
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
            "flags": list(ours),
            "seconds": round(seconds, 1),
            "copiesPerJob": round(copies / len(jobs), 2),
            "copiesRead": there.requests()["copiesRead"],
            **ledger.figures(),
        }


def compare(jobs: list[Arrival], kueue: str, flags: Sequence[str] = FLAGS, room: int = 0) -> Object:
    """Play the jobs with AllAtOnce and with our dispatcher; `ratio`: our seconds by those of AllAtOnce."""
    theirs, ours = (play(one, jobs, kueue, flags, room) for one in (ALL_AT_ONCE, OURS))
    return {"allAtOnce": theirs, "ours": ours, "ratio": round(ours["seconds"] / theirs["seconds"], 2)}


@click.command(context_settings={"show_default": True})
@kueue_option
@click.option("--jobs", "number", default=300)
@click.option("--seed", default=1)
@click.option("--room", is_flag=True, help="Each worker has room for all jobs.")
@click.option("--only", type=click.Choice([ALL_AT_ONCE, OURS]), help="Play only this dispatcher.")
@click.argument("flags", nargs=-1)
def main(number: int, seed: int, room: bool, only: str | None, kueue: str, flags: tuple[str, ...]) -> None:
    """Measure how long jobs of mixed size take with AllAtOnce and with our dispatcher."""
    rest = (arrivals(number, seed), kueue, flags or FLAGS, ROOM if room else 0)
    click.echo(json.dumps(play(only, *rest) if only else compare(*rest), indent=2))


if __name__ == "__main__":
    main()
