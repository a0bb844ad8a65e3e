"""
Jobs that come and go on a hub with stand-ins for OCM and Kueue, with workers and a controller.

The hub, the jobs and their ledger are those of `tests.support.scored_jobs`.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Final

import click

from bench.processes import controller
from placement_ac.core.api.constants import OUR_CONTROLLER
from placement_lab.standins.multikueue import ALL_AT_ONCE, INCREMENTAL, NEWEST_PACE, PACES, KueueSettings
from tests.support.scored_jobs import Arrival, Ledger, Quotas, Scene, stage

OURS: Final = "placement-ac"
DISPATCHERS: Final = {"AllAtOnce": ALL_AT_ONCE, "Incremental": INCREMENTAL, OURS: OUR_CONTROLLER}
"""The dispatchers by the names in the table, with their names in Kueue's configuration."""
GPU: Final = "nvidia.com/gpu"
TICK_SECONDS: Final = 0.05
SET_UP_SECONDS: Final = 240.0
kueue_option: Final = click.option(
    "--kueue",
    default=NEWEST_PACE.name,
    type=click.Choice(list(PACES)),
    help="The release whose pace Kueue has.",
)


@contextmanager
def scene(
    kueue: KueueSettings, flags: Sequence[str], running: int = 0, quotas: Quotas = MappingProxyType({})
) -> Iterator[Scene]:
    """Set up the scene with a controller: all clusters are selected, and the list is not throttled.

    `flags`: of `placement-ac run`; `running`: the number of Workloads that run all the time.
    """
    with stage(kueue, running, quotas) as there, TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        there.hub.write_kubeconfig(kubeconfig)
        with controller(kubeconfig, "--log-level", "warning", *flags):
            yield there


def until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + SET_UP_SECONDS
    while not reached():
        if time.monotonic() > end:
            raise click.ClickException("the scene was not set up in time")
        time.sleep(0.1)  # the set-up is played by other processes; it is asked now and then


def ticks(there: Scene, ledger: Ledger, jobs: Sequence[Arrival]) -> Iterator[float]:
    """Create each job at its time and complete it at its end; yield the seconds since the start."""
    began, waiting = time.time(), list(jobs)
    while True:
        now = time.time() - began
        while waiting and now >= waiting[0].at:
            job = waiting.pop(0)
            ledger.create(job)
            there.submit(job.name, {GPU: str(job.gpus)} if job.gpus else None)
            _finish(there, ledger)
        _finish(there, ledger)
        yield now
        time.sleep(TICK_SECONDS)  # the clock of the bench: jobs and flips come at their times


def _finish(there: Scene, ledger: Ledger) -> None:
    for name in ledger.due():
        there.fleet.finish(name)
