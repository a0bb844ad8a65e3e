"""
Measure the controller's speed beside the minimum (the floor). `make bench`; `make bench QUICK=1`.

Controller and floor each use their own hub with the same scene, in separate processes, and take turns; the
hubs have a processor of their own if the machine has two (not with `--together`). Writes `bench/latest.json`
after each size and a table to standard output; progress goes to standard error. With `--kubeconfig` both are
measured on that hub, one after the other; with two kubeconfigs, each on its own hub, in turns. Such a hub
must serve the CRDs and be otherwise unused.
"""

import asyncio
import json
import signal
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import click

from bench.comparison import VARIANTS, Length, Report, Variant, at, drawn, memory_at
from bench.driver import SIDES, Where
from bench.measure import Figures, growth
from bench.report import REFERENCE, machine, markdown, reference, show
from bench.scene import PER_CHECK, Scene

LATEST: Final = Path(__file__).with_name("latest.json")
CLUSTERS: Final = 40
QUICK: Final = Length(changes=100, bursts=1, outage=4.0, idle=4.0)
WHOLE: Final = Length(changes=200, bursts=3, outage=20.0, idle=20.0, rounds=3, starts=3)
"""At 200 checks; the other sizes measure growth. Processes differ in speed for their whole life, so each side
is started several times."""
DRAWN: Final = Length(bursts=6, starts=3)
"""The first bursts are slower: connections are opened, and more events are posted."""
LENGTHS: Final = {Scene(REFERENCE, CLUSTERS): WHOLE, Scene(1000, CLUSTERS): Length(bursts=1)}
SIZES: Final = (
    *(Scene(checks, CLUSTERS) for checks in (1, 10, 50, 200, 1000)),
    Scene(200, 100),
    Scene(200, 5000),
)
MEMORY: Final = (Scene(0, 0), Scene(0, 1000), Scene(1000, 5000))


@dataclass
class Results:
    """The results so far; every addition is written to the file."""

    path: Path
    machine: dict[str, Any]
    sizes: list[Figures] = field(default_factory=list)
    memory: list[Figures] = field(default_factory=list)
    draws: list[Figures] = field(default_factory=list)

    @property
    def whole(self) -> Figures:
        kinds = {"memory": self.memory, "draws": self.draws, "machine": self.machine, "sizes": self.sizes}
        return {**reference(self.sizes), "growth": growth(self.sizes), **kinds}

    def add(self, to: list[Figures], work: Coroutine[Any, Any, Figures]) -> None:
        to.append(asyncio.run(work))
        self.path.write_text(json.dumps(self.whole, indent=2) + "\n")


@dataclass(frozen=True, slots=True)
class Plan:
    """The sizes to measure, and the variants of changes that draw clusters anew."""

    sizes: Sequence[tuple[Scene, Length]]
    memory: Sequence[Scene] = ()
    draws: Sequence[tuple[Variant, Scene, Length]] = ()

    @classmethod
    def chosen(
        cls,
        quick: bool,
        sizes: Sequence[Scene],
        changes: int | None,
        rounds: int | None = None,
        draws: Sequence[Variant] = (),
    ) -> "Plan":
        def of(length: Length) -> Length:
            return replace(length, changes=changes or length.changes, rounds=rounds or length.rounds)

        variants = draws or ([] if quick or sizes else VARIANTS.values())
        scenes = sizes or [Scene(REFERENCE, CLUSTERS)]
        anew = [
            (one, one.scene(scene.checks, scene.clusters), of(DRAWN)) for scene in scenes for one in variants
        ]
        if draws:
            return cls([], draws=anew)
        if quick or sizes:
            length = of(QUICK if quick else WHOLE)
            return cls([(scene, length) for scene in sizes or (Scene(50, CLUSTERS),)])
        return cls([(scene, of(LENGTHS.get(scene, Length()))) for scene in SIZES], MEMORY, anew)


def measured(plan: Plan, where: Where, results: Results) -> None:
    """Measure the planned sizes one by one, and write the results after each."""
    began = time.monotonic()

    def reporter(scene: Scene | str) -> Report:
        return lambda what: click.echo(f"{time.monotonic() - began:5.0f} s  {scene}: {what}", err=True)

    for scene, length in plan.sizes:
        results.add(results.sizes, at(scene, where, length, reporter(scene)))
    for variant, scene, length in plan.draws:
        report = reporter(f"{scene}, {variant.title}")
        results.add(results.draws, drawn(variant, scene, where, length, report))
    for scene in plan.memory if not where.kubeconfigs else ():
        results.add(results.memory, memory_at(scene, reporter(scene)))


FILE: Final = click.Path(dir_okay=False, path_type=Path)


@click.command(context_settings={"show_default": True})
@click.option("--quick", is_flag=True, help="Measure only 50 checks, in less than a minute.")
@click.option("--checks", multiple=True, type=click.IntRange(1), help="Measure only this number of checks.")
@click.option(
    "--clusters",
    type=click.IntRange(PER_CHECK + 1),
    default=CLUSTERS,
    help="Clusters on the hub, with --checks.",
)
@click.option(
    "--draw",
    "draws",
    multiple=True,
    type=click.Choice(list(VARIANTS)),
    help="Measure only changes that draw the clusters of 200 checks anew, with default or shared names of "
    "MultiKueueClusters.",
)
@click.option("--changes", type=click.IntRange(4), help="Number of single changes, at each size.")
@click.option(
    "--rounds",
    type=click.IntRange(1),
    help="Rounds of each size (default: 3 at 200 checks, else 1); changes and bursts are pooled, starts are "
    "represented by their median.",
)
@click.option(
    "--kubeconfig",
    "kubeconfigs",
    multiple=True,
    type=FILE,
    help="Measure on this hub; given twice: the floor on the first, the controller on the second, in turns.",
)
@click.option("--apart/--together", default=True, help="Whether embedded hubs get a processor of their own.")
@click.option("--output", type=FILE, default=LATEST, help="The JSON file to write.")
def main(
    quick: bool,
    checks: tuple[int, ...],
    clusters: int,
    draws: tuple[str, ...],
    changes: int | None,
    rounds: int | None,
    kubeconfigs: tuple[Path, ...],
    apart: bool,
    output: Path,
) -> None:
    """Measure the controller beside the floor."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that SIGTERM, too, ends all processes
    if len(kubeconfigs) > len(SIDES):
        raise click.BadParameter("at most two hubs, one for each side", param_hint="--kubeconfig")
    if draws and 1 in checks:
        raise click.BadParameter("--draw takes two checks or more", param_hint="--checks")
    variants = [VARIANTS[name] for name in draws]
    plan = Plan.chosen(quick, [Scene(size, clusters) for size in checks], changes, rounds, variants)
    where = Where(kubeconfigs, apart)
    results = Results(output, machine() | {"hubsHaveOwnProcessor": where.hubs_have_own_processor})
    measured(plan, where, results)
    show(markdown(results.whole, every_size=True))
    click.echo(f"written to {output}")


if __name__ == "__main__":
    main()
