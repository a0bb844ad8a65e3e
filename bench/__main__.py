"""
Measure a change and a burst beside the minimum (the floor). `make bench`; `make bench QUICK=1`.

Controller and floor each use their own hub with the same scene, in separate processes, and take turns; the
hubs have a processor of their own if the machine has two. A change swaps one cluster of ten, or draws all ten
anew (7.5 of them are others), with default or shared names of MultiKueueClusters. With default names, such a
change also creates the MultiKueueClusters that never existed; the floor writes the list alone.

Prints a table for each. With `--kubeconfig` both are measured on that hub, one after the other; with two
kubeconfigs, each on its own hub, in turns. Such a hub must serve the CRDs and be otherwise unused.
"""

import asyncio
import json
import signal
from pathlib import Path
from typing import Final

import click

from bench.driver import SIDES, Length, at
from bench.report import HEAD, machine, markdown_table, progress, rows, show
from bench.scene import CHANGES, PER_CHECK, scene_of

CHECKS: Final = 200
CLUSTERS: Final = 40
QUICK_CHECKS: Final = 50
QUICK: Final = Length(changes=50, bursts=1)
WHOLE: Final = Length(idle=20.0)
FILE: Final = click.Path(dir_okay=False, path_type=Path)


@click.command(context_settings={"show_default": True})
@click.option("--quick", is_flag=True, help=f"{QUICK_CHECKS} checks and one kind of change, in a minute.")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(list(CHANGES)), help="Only such changes.")
@click.option("--checks", type=click.IntRange(1), help=f"Checks.  [default: {CHECKS}]")
@click.option("--clusters", type=click.IntRange(PER_CHECK + 1), default=CLUSTERS, help="Clusters on the hub.")
@click.option("--changes", type=click.IntRange(4), help="Single changes of each kind.")
@click.option(
    "--kubeconfig",
    "kubeconfigs",
    multiple=True,
    type=FILE,
    help="Measure on this hub; given twice: the floor on the first, the controller on the second, in turns.",
)
@click.option("--output", type=FILE, help="Write all figures as JSON.")
def main(
    quick: bool,
    kinds: tuple[str, ...],
    checks: int | None,
    clusters: int,
    changes: int | None,
    kubeconfigs: tuple[Path, ...],
    output: Path | None,
) -> None:
    """Measure the controller beside the floor."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that SIGTERM, too, ends all processes
    if len(kubeconfigs) > len(SIDES):
        raise click.BadParameter("at most two hubs, one for each side", param_hint="--kubeconfig")
    length = QUICK if quick else WHOLE
    if changes:
        length = Length(changes, length.bursts, length.idle)
    found = {"machine": machine()}
    lines = [found["machine"]]
    for kind in kinds or (["swap"] if quick else CHANGES):
        scene = scene_of(kind, checks or (QUICK_CHECKS if quick else CHECKS), clusters)
        found[kind] = asyncio.run(at(scene, length, progress(f"{scene}, {CHANGES[kind]}"), *kubeconfigs))
        lines += ["", f"{scene}, {CHANGES[kind]}:", "", *markdown_table(HEAD, rows(found[kind]))]
    show(lines)
    if output:
        output.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
