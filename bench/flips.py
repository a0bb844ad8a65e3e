"""
Measure how long jobs wait to start while the best cluster changes, with each of Kueue's dispatchers.

`make bench-flips`: a hub with the stand-ins for OCM and Kueue, three workers, and the controller in a process
of its own. `--kueue`: the release whose pace Kueue has, such as 0.19 or 0.20. A Placement takes the best
cluster by score; jobs come at random (the same ones in every row); further Workloads run all the time, on all
workers. Prints a table; `--output` writes JSON.
"""

import json
import multiprocessing
import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click

from bench.jobs_scene import DISPATCHERS, OURS, kueue_option, scene, ticks, until
from bench.report import markdown_table
from placement_ac.observability import logs
from placement_lab.standins.multikueue import NEWEST_PACE, PACES, KueueSettings
from tests.support.scored_jobs import MOST_FLIPS, WORKERS, Ledger, Scene, arrivals

Object = dict[str, Any]

FLAPPING: Final = "flapping"
KINDS: Final = (*DISPATCHERS, FLAPPING)
RUNNING: Final = (10, 200)
SLOW_PLACEMENT_SECONDS: Final = 4.0
FLAPPING_GAP: Final = 2.0
QUIET_SECONDS: Final = 6.0
"""The list is at rest if it was not written for so long: longer than each wait of a removal."""
COUNTS: Final = {
    "listChanges": "list changes",
    "listWrites": "MultiKueueConfig writes",
    "workloadWrites": "Workload writes",
    "copiesRead": "copies read",
    "ranTwice": "ran twice",
    "startedAgain": "started again",
    "interrupted": "interrupted",
    "unfinished": "unfinished",
}
"""Figure → its column; the first four are writes, and GETs by Kueue, while the clock runs."""
LAST: Final = "s from the last flip to the last start"
LONGEST: Final = "longest wait while the selected cluster had quota, s"
HEAD: Final = ("row", "jobs", "s to start p50 / p90 / max", *COUNTS.values(), LAST, LONGEST)


@dataclass(frozen=True, slots=True)
class Row:
    """The play. `gap`: seconds between flips; `running`: Workloads that run all the time.

    `placement_seconds`: from a nomination until Kueue records the placement (Kueue: about 1 s). `flags`: of
    `placement-ac run`. `kueue`: the profile of Kueue's pace.
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
    kueue: str = NEWEST_PACE.name

    @property
    def name(self) -> str:
        flips = f", {self.flips} flips, one every {self.gap:g} s" if self.flips else ""
        return f"Kueue {self.kueue}, {self.dispatcher}, {self.running} running{flips}"

    def flip_times(self) -> Iterator[float]:
        return (self.gap * (number + 1) for number in range(self.flips))


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


# -- one row


def play(row: Row) -> Object:
    """Play a row and return its figures; see `figures`."""
    logs.configure("text", "error")
    settings = KueueSettings(
        DISPATCHERS[row.dispatcher], events_batch_seconds=row.placement_seconds, pace=PACES[row.kueue]
    )
    dispatcher = ("--dispatcher=true",) if row.dispatcher == OURS else ()
    with scene(settings, (*dispatcher, *row.flags), row.running) as there:
        best = set_up(there, row.running)
        before = there.requests()
        there.kueue.throttled = True
        ledger = Ledger(there.counter, [f"running-{number}" for number in range(row.running)])
        last_flip = run_clock(there, row, ledger, best)
        after = there.requests()
        return figures(row, ledger, {name: after[name] - before[name] for name in after}, last_flip)


def set_up(there: Scene, running: int) -> str:
    """Start the Workloads that run all the time, on all workers; then select the best cluster alone."""
    until(lambda: sorted(there.listed()) == list(WORKERS))
    placed = 0
    for number, worker in enumerate(WORKERS):
        there.only(worker)
        for one in range(number, running, len(WORKERS)):
            there.submit(f"running-{one}")
            placed += 1
        until(lambda: there.placed() == placed)  # noqa: B023  # called in this turn
    there.only(*WORKERS)
    there.prefer(WORKERS[0])
    there.select(1)
    until(lambda: there.selected() == [WORKERS[0]])
    writes, since = there.list_writes(), time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS:
        time.sleep(0.2)  # the set-up is played by other processes
        if there.list_writes() != writes:
            writes, since = there.list_writes(), time.monotonic()
    return WORKERS[0]


def run_clock(there: Scene, row: Row, ledger: Ledger, best: str) -> float | None:
    """Create and complete jobs and flip, until all jobs have ended; return when the last flip was."""
    dice = random.Random(row.seed + 1)  # noqa: S311  # no secret depends on it
    jobs, flips = arrivals(row.seconds, row.rate, row.seed), row.flip_times()
    flip, looked, last_flip = next(flips, None), 0.0, None
    for now in ticks(there, ledger, jobs):
        if flip is not None and now >= flip:
            best = dice.choice([worker for worker in WORKERS if worker != best])
            there.prefer(best)
            last_flip, flip = time.time(), next(flips, None)
        ledger.wait(best, now - looked)
        looked, over = now, now - row.seconds
        if over > row.patience or (over > 0 and flip is None and not ledger.unfinished()):
            break
    return last_flip


def figures(row: Row, ledger: Ledger, requests: dict[str, int], last_flip: float | None) -> Object:
    """Return the figures of a row; times are seconds."""
    last = ledger.last_start()
    after = None if last is None or last_flip is None else round(max(0.0, last - last_flip), 2)
    return {
        "row": row.name,
        "kueue": row.kueue,
        "dispatcher": row.dispatcher,
        "running": row.running,
        "flips": row.flips,
        "gap": row.gap,
        "placementSeconds": row.placement_seconds,
        "flags": list(row.flags),
        "notStarted": len(ledger.waiting()),
        "interrupted": len(ledger.interrupted()),
        **ledger.figures(),
        **requests,
        "lastStartAfterLastFlip": after,
        "longestWaitWithQuota": round(max(ledger.with_quota.values(), default=0.0), 2),
    }


# -- all rows


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
    return "\n".join(markdown_table(HEAD, map(_cells, found)))


def _cells(one: Object) -> tuple[str, ...]:
    seconds, last = one["toStart"] or {}, one["lastStartAfterLastFlip"]
    to_start = " / ".join(f"{seconds.get(name, float('nan')):.1f}" for name in ("p50", "p90", "max"))
    counts = [str(one[name]) for name in COUNTS]
    after, longest = "" if last is None else f"{last:.1f}", f"{one['longestWaitWithQuota']:.1f}"
    return one["row"], str(one["jobs"]), to_start, *counts, after, longest


@click.command(context_settings={"show_default": True})
@click.option("--rows", "kinds", multiple=True, type=click.Choice(KINDS), help="Play only these rows.")
@click.option(
    "--running",
    multiple=True,
    type=click.IntRange(0),
    default=RUNNING,
    help="Workloads that run all the time.",
)
@kueue_option
@click.option("--flips", type=click.IntRange(0, MOST_FLIPS), help="Number of flips in rows with flips.")
@click.option("--gap", type=click.FloatRange(0, min_open=True), help="Seconds between two flips.")
@click.option("--seconds", default=120.0, type=click.FloatRange(1), help="How long jobs are created.")
@click.option("--rate", default=0.3, help="Jobs a second.")
@click.option("--seed", default=1)
@click.option("--parallel", default=1, type=click.IntRange(1), help="Rows at one time.")
@click.option("--flag", "flags", multiple=True, help="A flag of `placement-ac run`, such as --settle=0.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures as JSON.")
def main(
    kinds: tuple[str, ...],
    running: tuple[int, ...],
    flips: int | None,
    gap: float | None,
    seconds: float,
    parallel: int,
    output: Path | None,
    **rest: Any,
) -> None:
    """Play the rows, and print what came out."""
    chosen = []
    for row in rows(kinds or KINDS, running, seconds):
        count = row.flips if flips is None else min(row.flips, 1) * flips
        chosen.append(replace(row, flips=count, gap=gap or row.gap, **rest))
    found = played(chosen, parallel)
    click.echo(table(found))
    if output:
        output.write_text(json.dumps({"rows": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
