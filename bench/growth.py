"""
Measure how the cost of a change, a burst and a start grows with checks, clusters and Workloads.

`make bench-growth`; `make bench-growth QUICK=1`: each size is measured as by `make bench`, with changes of
one cluster of ten. Prints a table of the sizes, and one of the largest as a multiple of the smallest, with
the floor's growth beside it.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from bench.driver import Length, at
from bench.processes import CONTROLLER, FLOOR, Side
from bench.report import Figures, machine, markdown_table, progress, show
from bench.scene import Scene

GROWN: Final[Mapping[str, Sequence[Scene]]] = {
    "checks": (Scene(10, 40), Scene(200, 40), Scene(1000, 40)),
    "clusters": (Scene(200, 100), Scene(200, 5000)),
    "workloads": (Scene(200, 40), Scene(200, 40, workloads=100_000)),
}
QUICK: Final[Mapping[str, Sequence[Scene]]] = {
    "checks": (Scene(10, 40), Scene(30, 40)),
    "clusters": (Scene(10, 40), Scene(10, 200)),
    "workloads": (Scene(10, 40), Scene(10, 40, workloads=2000)),
}
"""The number that grows → the scenes, in order. Below 10 checks the constant part dominates."""
TITLES: Final = ("one change, p50, ms", "CPU of a change, ms", "burst, s", "cold start, s", "RSS, MB")


def figures(one: Figures, side: Side) -> tuple[float, ...]:
    """Return the figures of the titles, of one side at one size."""
    latency, burst, start, cost = (one["latency"], one["burst"], one["coldStart"], one[side.name])
    seconds = (burst[side.name]["median"], start[side.name]["median"])
    return latency[side.name]["p50Ms"], cost["cpuMs"], *seconds, cost["rssMb"]


def growth(small: Figures, big: Figures, side: Side) -> list[float]:
    """Return the figures of the big scene as multiples of those of the small one; 0: of nothing."""
    pairs = zip(figures(small, side), figures(big, side), strict=True)
    return [round(after / before, 2) if before else 0.0 for before, after in pairs]


def sizes(found: Mapping[Scene, Figures]) -> Iterator[Sequence[str]]:
    for scene, one in found.items():
        yield str(scene), *(f"{value:g}" for value in figures(one, CONTROLLER))


def multiples(
    found: Mapping[Scene, Figures], grown: Mapping[str, Sequence[Scene]]
) -> Iterator[Sequence[str]]:
    for what, scenes in grown.items():
        small, big = scenes[0], scenes[-1]
        mine, floor = (growth(found[small], found[big], side) for side in (CONTROLLER, FLOOR))
        cells = (f"{one:g} ({other:g})" for one, other in zip(mine, floor, strict=True))
        yield f"{getattr(small, what)} to {getattr(big, what)} {what}", *cells


@click.command()
@click.option("--quick", is_flag=True, help="Small sizes, in some minutes.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures as JSON.")
def main(quick: bool, output: Path | None) -> None:
    """Measure each size once."""
    grown, length = (QUICK, Length(changes=20, bursts=1)) if quick else (GROWN, Length())
    found: dict[Scene, Figures] = {}
    where = machine()
    for scene in dict.fromkeys(scene for scenes in grown.values() for scene in scenes):
        found[scene] = asyncio.run(at(scene, length, progress(str(scene))))
    head, multiple = ("", *TITLES), ("times as much (the floor)", *TITLES)
    show([where, "", *markdown_table(head, sizes(found))])
    show(["", *markdown_table(multiple, multiples(found, grown))])
    if output:
        output.write_text(json.dumps([*found.values()], indent=2) + "\n")


if __name__ == "__main__":
    main()
