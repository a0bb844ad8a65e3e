"""
Measure how long jobs wait to start while the best cluster changes, with each of Kueue's dispatchers.

`make bench-flips`: a hub with the stand-ins for OCM and Kueue, three workers, and the controller in a process
of its own. Kueue reconciles one Workload after the other and sends 5 requests a second to each worker. A
Placement takes the best cluster by score; jobs come at random (the same ones in every row); further Workloads
run all the time, on all workers. Prints a table; `--output` writes JSON.
"""

import json
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from bench.flips_play import DISPATCHERS, OURS, Row, play
from bench.flips_scene import MOST_FLIPS

Object = dict[str, Any]

FLAPPING: Final = "flapping"
KINDS: Final = (*DISPATCHERS, FLAPPING)
RUNNING: Final = (10, 200)
SLOW_PLACEMENT_SECONDS: Final = 4.0
FLAPPING_GAP: Final = 2.0
REQUESTS: Final = ("listChanges", "listWrites", "workloadWrites", "copiesRead")
"""Writes by the controller, and GETs by Kueue, while the clock runs."""
HEAD: Final = (
    "row",
    "jobs",
    "s to start p50 / p90 / max",
    "list changes",
    "MultiKueueConfig writes",
    "Workload writes",
    "copies read",
    "ran twice",
    "started again",
    "interrupted",
    "unfinished",
    "s from the last flip to the last start",
    "longest wait while the selected cluster had quota, s",
)


def rows(kinds: Sequence[str], running: Sequence[int], seconds: float) -> Iterator[Row]:
    """Yield the rows: each dispatcher without and with flips, by number of running Workloads; flapping.

    Our dispatcher gets 100 flips, the others one every 10 s; `seconds`: how long jobs are created.
    """
    for kind in kinds:
        if kind == FLAPPING:
            flips = int(seconds / FLAPPING_GAP)
            slow = SLOW_PLACEMENT_SECONDS
            yield Row("AllAtOnce", 0, flips, FLAPPING_GAP, seconds, placement_seconds=slow)
            continue
        flips = 100 if kind == OURS else max(1, int(seconds / 10))
        for number in running:
            yield Row(kind, number, seconds=seconds)
            yield Row(kind, number, flips, seconds / flips, seconds)


def played(chosen: Sequence[Row], parallel: int) -> list[Object]:
    """Play the rows in processes of their own; return their figures in the order of the rows."""
    processes = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(parallel, mp_context=processes, max_tasks_per_child=1) as pool:
        waiting = [pool.submit(play, row) for row in chosen]
        for done in as_completed(waiting):
            click.echo(json.dumps(done.result()), err=True)
        return [one.result() for one in waiting]


def table(found: Sequence[Object]) -> str:
    """Return the figures as a table in Markdown."""
    lines = [HEAD, tuple("---" for _ in HEAD), *(_cells(one) for one in found)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _cells(one: Object) -> tuple[str, ...]:
    seconds = one["toStart"] or {}
    to_start = " / ".join(f"{seconds.get(name, float('nan')):.1f}" for name in ("p50", "p90", "max"))
    last = one["lastStartAfterLastFlip"]
    counts = [str(one[name]) for name in (*REQUESTS, "ranTwice", "startedAgain", "interrupted", "unfinished")]
    after = "" if last is None else f"{last:.1f}"
    return (one["row"], str(one["jobs"]), to_start, *counts, after, f"{one['longestWaitWithQuota']:.1f}")


@click.command()
@click.option("--rows", "kinds", multiple=True, type=click.Choice(KINDS), help="Play only these rows.")
@click.option(
    "--running",
    multiple=True,
    type=click.IntRange(0),
    help="Workloads that run all the time. [default: 10 and 200]",
)
@click.option("--flips", type=click.IntRange(0, MOST_FLIPS), help="Number of flips in rows with flips.")
@click.option("--gap", type=click.FloatRange(0, min_open=True), help="Seconds between two flips.")
@click.option(
    "--seconds", default=120.0, show_default=True, type=click.FloatRange(1), help="How long jobs are created."
)
@click.option("--rate", default=0.3, show_default=True, help="Jobs a second.")
@click.option("--seed", default=1, show_default=True)
@click.option("--parallel", default=1, show_default=True, type=click.IntRange(1), help="Rows at one time.")
@click.option("--flag", "flags", multiple=True, help="A flag of `placement-ac run`, such as --settle=0.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures as JSON.")
def main(
    kinds: tuple[str, ...],
    running: tuple[int, ...],
    flips: int | None,
    gap: float | None,
    seconds: float,
    rate: float,
    seed: int,
    parallel: int,
    flags: tuple[str, ...],
    output: Path | None,
) -> None:
    """Play the rows, and print what came out."""
    chosen = []
    for row in rows(kinds or KINDS, running or RUNNING, seconds):
        count = row.flips if flips is None else min(row.flips, 1) * flips
        chosen.append(replace(row, flips=count, gap=gap or row.gap, rate=rate, seed=seed, flags=flags))
    found = played(chosen, parallel)
    click.echo(table(found))
    if output:
        output.write_text(json.dumps({"rows": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
