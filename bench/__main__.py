"""
How fast is the controller, beside the least that can be done? `make bench`; `make bench QUICK=1`.

Controller and floor each have a hub of their own with the same scene, in processes of their own, and take
turns; the hubs have one processor to themselves, where there are two (not with `--together`). Writes
`bench/latest.json` after each size, and a table to standard output; standard error tells what it is doing.
With `--kubeconfig` both are measured on that hub, one after the other; with two of them, each on one of its
own, in turns. Such a hub must serve the CRDs and be of no use to anybody, and nobody else may act on it.
"""

import asyncio
import json
import signal
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console

from bench.figures import Figures, growth
from bench.measure import SIDES, Length, Report, Where, at, memory_at
from bench.report import REFERENCE, machine, reference, table
from bench.scene import PER_CHECK, Scene

LATEST: Final = Path(__file__).with_name("latest.json")
CLUSTERS: Final = 40
QUICK: Final = Length(changes=100, bursts=1, outage=4.0, idle=4.0)
WHOLE: Final = Length(changes=200, bursts=3, outage=20.0, idle=20.0, rounds=3, starts=3)
"""At 200 checks; other sizes are there to see what grows. A process is a little faster or slower than another
for as long as it lives: so there are several of each side."""
LENGTHS: Final = {Scene(REFERENCE, CLUSTERS): WHOLE, Scene(1000, CLUSTERS): Length(bursts=1)}
SIZES: Final = (
    Scene(1, CLUSTERS),
    Scene(10, CLUSTERS),
    Scene(50, CLUSTERS),
    Scene(200, CLUSTERS),
    Scene(1000, CLUSTERS),
    Scene(200, 100),
    Scene(200, 5000),
)
MEMORY: Final = (Scene(0, 0), Scene(0, 1000), Scene(1000, 5000))


@dataclass
class Results:
    """What has been measured so far; it is written whenever there is more."""

    path: Path
    machine: dict[str, Any]
    sizes: list[Figures]
    memory: list[Figures]

    @property
    def whole(self) -> Figures:
        return {
            **reference(self.sizes),
            "growth": growth(self.sizes),
            "memory": self.memory,
            "machine": self.machine,
            "sizes": self.sizes,
        }

    def write(self) -> None:
        self.path.write_text(json.dumps(self.whole, indent=2) + "\n")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be measured."""

    sizes: Sequence[tuple[Scene, Length]]
    memory: Sequence[Scene] = ()

    @classmethod
    def chosen(
        cls, quick: bool, sizes: Sequence[Scene], changes: int | None, rounds: int | None = None
    ) -> "Plan":
        def of(length: Length) -> Length:
            return replace(length, changes=changes or length.changes, rounds=rounds or length.rounds)

        if quick or sizes:
            length = of(QUICK if quick else WHOLE)
            return cls([(scene, length) for scene in sizes or (Scene(50, CLUSTERS),)])
        return cls([(scene, of(LENGTHS.get(scene, Length()))) for scene in SIZES], MEMORY)


def _reporter(scene: Scene, began: float) -> Report:
    def report(what: str) -> None:
        click.echo(f"{time.monotonic() - began:5.0f} s  {scene}: {what}", err=True)

    return report


def measured(plan: Plan, where: Where, results: Results) -> None:
    """Measure what is planned, one after the other, and write the results after each."""
    began = time.monotonic()

    def run(into: list[Figures], work: Coroutine[Any, Any, Figures]) -> None:
        into.append(asyncio.run(work))
        results.write()

    for scene, length in plan.sizes:
        run(results.sizes, at(scene, where, length, _reporter(scene, began)))
    for scene in plan.memory if not where.kubeconfigs else ():
        run(results.memory, memory_at(scene, _reporter(scene, began)))


@click.command()
@click.option("--quick", is_flag=True, help="50 checks alone, in under a minute.")
@click.option("--checks", multiple=True, type=click.IntRange(1), help="Only a size with so many checks.")
@click.option(
    "--clusters",
    type=click.IntRange(PER_CHECK + 1),
    default=CLUSTERS,
    show_default=True,
    help="Clusters on the hub, with --checks.",
)
@click.option("--changes", type=click.IntRange(4), help="Decisions that change one at a time, at each size.")
@click.option(
    "--rounds",
    type=click.IntRange(1),
    help="Play each size so often (if not told: thrice where it counts, else once): changes and bursts count "
    "together, starts by their median.",
)
@click.option(
    "--kubeconfig",
    "kubeconfigs",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Measure on that hub; given twice: the floor on the first, the controller on the second, in turns.",
)
@click.option(
    "--apart/--together",
    default=True,
    show_default=True,
    help="Whether embedded hubs get one of the processors to themselves.",
)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), default=LATEST, help="Where the JSON goes."
)
def main(
    quick: bool,
    checks: tuple[int, ...],
    clusters: int,
    changes: int | None,
    rounds: int | None,
    kubeconfigs: tuple[Path, ...],
    apart: bool,
    output: Path,
) -> None:
    """Measure the controller beside the floor."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that then, too, what was started ends
    if len(kubeconfigs) > len(SIDES):
        raise click.BadParameter("there are two sides, and so two hubs at most", param_hint="--kubeconfig")
    plan = Plan.chosen(quick, [Scene(size, clusters) for size in checks], changes, rounds)
    where = Where(kubeconfigs, apart)
    results = Results(output, machine() | {"hubsHaveOwnProcessor": where.hubs_have_own_processor}, [], [])
    measured(plan, where, results)
    Console(width=120).print(table(results.whole))
    click.echo(f"written to {output}")


if __name__ == "__main__":
    main()
