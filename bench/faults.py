"""
Measure the recovery after each fault between controller and hub, at full size.

`make bench-faults`: the plays of `tests/placement_ac/controller/faults`, with `placement-ac run` in its own
process (the fault of the clock runs in a thread, because a process cannot have its own clock), and kill -9
before and after each write of a scene. Prints one JSON object; times are seconds, `lost` is the total cost
of a kill.
"""

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import click

from placement_ac.controller import session
from placement_ac.observability import logs
from placement_lab.hub import Hub
from tests.placement_ac.controller.faults import plays
from tests.placement_ac.controller.faults.kills import END, Process, send_a_job_back
from tests.support import jobs
from tests.support.driver import Controllers, Driver

PATIENCE_SECONDS: Final = 200.0
QUIET_SECONDS: Final = 2.0


@contextmanager
def scene_of(*clusters: str) -> Iterator[plays.Scene]:
    """The stage of the tests, on its own hub."""
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        admin = opened.enter_context(Driver(opened.enter_context(Hub())))
        admin.namespace("kueue-system")
        controllers = opened.enter_context(Controllers(folder / "kubeconfig"))
        yield plays.prepare(opened.enter_context(jobs.stage(admin, controllers, clusters)), folder)


@contextmanager
def running(scene: plays.Scene, fault: plays.Fault) -> Iterator[None]:
    if fault.play is plays.clock_that_jumps:
        before, session.utc_now = session.utc_now, scene.clock
        with scene.there.controllers(leader_elect=True):
            yield
        session.utc_now = before
    else:
        with Process(scene.there.controllers.kubeconfig, removal_policy="drain", leader_elect="true"):
            yield


def seconds_until(reached: Callable[[], bool], began: float) -> float:
    while not reached():
        if time.monotonic() - began > PATIENCE_SECONDS:
            raise click.ClickException("the hub does not become correct again")
        time.sleep(0.01)
    return round(time.monotonic() - began, 2)


def after(fault: plays.Fault) -> dict[str, float]:
    """Play a fault at full size; fail unless the hub becomes correct and nothing is lost."""
    with scene_of(*plays.CLUSTERS) as scene, running(scene, fault):
        plays.begin(scene)
        fault.before(scene)
        since = len(scene.hub.journal)
        began = fault.play(scene, fault.full)
        seconds = seconds_until(lambda: scene.world() == fault.right, began)
        asked = scene.asked(since)
        scene.hub.faults.clear()
        plays.nothing_is_lost(scene)
        plays.end_well(scene)
        rests = plays.comes_to_rest(scene, QUIET_SECONDS)
    if not rests:
        raise click.ClickException(f"the controller is not idle after {fault.name}")
    return {"lasts": fault.full, "rightAgain": seconds, "requests": asked}


def killed(number: int, *, after: bool) -> float | None:
    """Play the scene with a kill at that write; return the seconds it took, None without such a write."""
    with scene_of("a", "b") as scene, Process(scene.there.controllers.kubeconfig) as process:
        began = time.monotonic()
        process.kill_at(scene, number, after=after)
        right = send_a_job_back(scene) == END
        took = time.monotonic() - began
        rests = right and plays.comes_to_rest(scene, QUIET_SECONDS)
        ended = scene.there.account("j") == (1, 2, True)
    if not rests or not ended:
        raise click.ClickException(f"the hub is not correct after a kill at write {number}")
    return took if process.kills else None


def kills() -> dict[str, Any]:
    """Kill before and after each write; return how much longer the scene took than undisturbed."""
    calm = statistics.median(_undisturbed() for _ in range(3))
    lost: list[float] = []
    for number in count():
        took = [killed(number, after=after) for after in (False, True)]
        if None in took:
            break
        lost += [seconds - calm for seconds in took if seconds is not None]
        click.echo(f"write {number}: right", err=True)
    figures = {"p50": round(statistics.median(lost), 1), "max": round(max(lost), 1)}
    return {"writes": number, "kills": len(lost), "lost": figures}


def _undisturbed() -> float:
    with scene_of("a", "b") as scene, Process(scene.there.controllers.kubeconfig):
        began = time.monotonic()
        send_a_job_back(scene)
        return time.monotonic() - began


@click.command(context_settings={"show_default": True})
@click.option("--only", multiple=True, help="Play only this fault; repeatable.")
@click.option("--kill/--no-kill", default=True, help="Also kill -9 at each write.")
def main(only: tuple[str, ...], kill: bool) -> None:
    """Measure, and print the results as JSON."""
    logs.configure("text", "error")
    jobs.LIMIT = PATIENCE_SECONDS
    found: dict[str, Any] = {"cpus": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "faults": {}}
    for fault in plays.FAULTS:
        if not only or fault.name in only:
            found["faults"][fault.name] = after(fault)
            click.echo(f"{fault.name}: {found['faults'][fault.name]}", err=True)
    if kill:
        found["kill9"] = kills()
    click.echo(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
