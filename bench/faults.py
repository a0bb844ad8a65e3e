"""
Measure the recovery after each fault between controller and hub, and that of a leader that ends.

`make bench-faults`: the plays of `tests/placement_ac/controller/faults`, with `placement-ac run` in its own
process (the fault of the clock runs in a thread, because a process cannot have its own clock), and kill -9
before and after each write of a scene. Prints one JSON object; times are seconds, `lost` is the total cost
of a kill.

`make bench-takeover`: a hub, and replicas in separate processes with separate users; a decision changes all
the time, so that there is always something to write. Prints one JSON object. `takeover` has the seconds from
the signal to the first write of another replica, with the default times: after an orderly stop (SIGTERM), and
after a crash (SIGKILL). `forced` reports takeovers with short times, by SIGTERM, SIGKILL, and SIGSTOP with a
SIGCONT when another replica writes, in random order: `strays` are writes of a replica that did not lead when
they arrived at the hub.
"""

import json
import os
import random
import signal
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import IO, Any, Final

import click

from placement_ac.controller import session
from placement_ac.observability import logs
from placement_lab.hub import Hub
from tests.placement_ac.controller.faults import plays
from tests.placement_ac.controller.faults.kills import END, Process, send_a_job_back
from tests.support import jobs
from tests.support.driver import Controllers, Driver
from tests.support.replicas import LEASE, QUICK, Audit, Replica

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
        yield plays.prepare(opened.enter_context(jobs.open_stage(admin, controllers, clusters)), folder)


@contextmanager
def running(scene: plays.Scene, fault: plays.Fault) -> Iterator[None]:
    if fault.play is plays.clock_that_jumps:
        before, session.utc_now = session.utc_now, scene.clock
        with scene.stage.controllers(leader_elect=True):
            yield
        session.utc_now = before
    else:
        with Process(scene.stage.controllers.kubeconfig, removal_policy="drain", leader_elect="true"):
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
    with scene_of("a", "b") as scene, Process(scene.stage.controllers.kubeconfig) as process:
        began = time.monotonic()
        process.kill_at(scene, number, after=after)
        right = send_a_job_back(scene) == END
        took = time.monotonic() - began
        rests = right and plays.comes_to_rest(scene, QUIET_SECONDS)
        ended = scene.stage.account("j") == (1, 2, True)
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
    with scene_of("a", "b") as scene, Process(scene.stage.controllers.kubeconfig):
        began = time.monotonic()
        send_a_job_back(scene)
        return time.monotonic() - began


# -- another replica takes over

SEED: Final = 1
DEADLINE_SECONDS: Final = 120.0
DECIDES_SECONDS: Final = 0.15
CLUSTERS: Final = ("a", "b", "c", "d")


class Play:
    """Replicas on a hub, and the audit of its journal."""

    def __init__(self, hub: Hub, replicas: Sequence[Replica]) -> None:
        self._hub = hub
        self.replicas = {replica.name: replica for replica in replicas}
        self.audit = Audit(self.replicas)
        self._looked: dict[str, float] = {}

    def until(self, reached: Callable[[], bool]) -> None:
        """Wait until the condition holds; meanwhile read the journal."""
        end = time.monotonic() + DEADLINE_SECONDS
        self._read()
        while not reached():
            if time.monotonic() > end:
                raise click.ClickException("the awaited state was not reached in time")
            time.sleep(0.01)
            self._read()

    def _read(self) -> None:
        new = self._hub.journal[:]
        del self._hub.journal[: len(new)]
        self.audit.read(new)
        self._looked |= {request.user: request.at for request in new if request.path == LEASE}

    def ready(self) -> bool:
        """Whether one replica leads and another one could."""
        others = [name for name in self.replicas if name != self.audit.leader]
        return bool(self.audit.leader) and any(map(self.audit.is_warm, others))

    def has_looked(self, name: str, since: float) -> bool:
        return self._looked.get(name, 0.0) > since

    def force(self, number: signal.Signals) -> float:
        """End the leader's term; return the seconds until another replica wrote."""
        self.until(self.ready)
        name = self.audit.leader
        replica, began, before = self.replicas[name], time.time(), len(self.audit.writes)
        replica.send(number)
        self.until(lambda: any(user != name for _, user in self.audit.writes[before:]))
        wrote = next(at for at, user in self.audit.writes[before:] if user != name)
        if number is signal.SIGSTOP:
            woken = time.time()
            replica.send(signal.SIGCONT)
            self.until(lambda: self.has_looked(name, woken))
        else:
            replica.wait()
            self.audit.listed.pop(name, None)
            replica.start()
        return wrote - began


@contextmanager
def played(count: int, log: IO[bytes], **settings: str) -> Iterator[Play]:
    """Run replicas for the duration of the `with`."""
    with tempfile.TemporaryDirectory() as folder, Hub() as hub, Driver(hub) as admin, ExitStack() as opened:
        admin.namespace("kueue-system")
        admin.check("p")
        admin.select("p", *CLUSTERS)
        names = [f"replica{number}" for number in range(count)]
        replicas = [Replica(hub, Path(folder), name, log=log, **settings) for name in names]
        play = Play(hub, replicas)
        for replica in replicas:
            opened.enter_context(replica)
        play.until(lambda: all(map(play.audit.is_warm, names)))
        opened.enter_context(deciding(admin))
        yield play


@contextmanager
def deciding(admin: Driver) -> Iterator[None]:
    """Change the decision all the time."""
    stop = threading.Event()

    def decide() -> None:
        turn = 0
        while not stop.wait(DECIDES_SECONDS):
            turn += 1
            admin.decide("p", CLUSTERS[turn % 4], CLUSTERS[(turn + 1) % 4])

    with ThreadPoolExecutor(1) as pool:
        pool.submit(decide)
        try:
            yield
        finally:
            stop.set()


def measured(number: signal.Signals, times: int) -> dict[str, Any]:
    with tempfile.TemporaryFile() as log, played(2, log) as play:
        found = [play.force(number) for _ in range(times)]
        strays = len(play.audit.strays)
    middle, most = round(statistics.median(found), 2), round(max(found), 2)
    return {"n": times, "p50": middle, "max": most, "strays": strays}


def forced(times: int) -> dict[str, Any]:
    dice = random.Random(SEED)  # noqa: S311  # no secret depends on it
    signals = [dice.choice((signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP)) for _ in range(times)]
    took: dict[str, list[float]] = {}
    with tempfile.TemporaryFile() as log, played(3, log, **QUICK) as play:
        for number in signals:
            took.setdefault(number.name, []).append(play.force(number))
        play.until(play.ready)
        audit = play.audit
    strays = [
        {key: getattr(stray, key) for key in ("user", "method", "path", "status")} for stray in audit.strays
    ]
    return {
        "n": dict(Counter(number.name for number in signals)),
        "terms": len(audit.terms),
        "writes": len(audit.writes),
        "strays": strays,
        "max": {name: round(max(seconds), 2) for name, seconds in took.items()},
    }


# -- the commands


@click.group()
def main() -> None:
    """Measure how soon all is right again."""


@main.command("faults", context_settings={"show_default": True})
@click.option("--only", multiple=True, help="Play only this fault; repeatable.")
@click.option("--kill/--no-kill", default=True, help="Also kill -9 at each write.")
def faults(only: tuple[str, ...], kill: bool) -> None:
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


@main.command("takeover", context_settings={"show_default": True})
@click.option("--stops", default=20)
@click.option("--crashes", default=10)
@click.option("--forced", "count", default=100)
def takeover(stops: int, crashes: int, count: int) -> None:
    """Measure, and print what came out."""
    signals = (("stop", signal.SIGTERM, stops), ("crash", signal.SIGKILL, crashes))
    result: dict[str, Any] = {"takeover": {name: measured(one, n) for name, one, n in signals if n}}
    if count:
        result["forced"] = forced(count)
    click.echo(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
