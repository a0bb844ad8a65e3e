"""
Measure the time until another replica writes when the leader ends, and check that never two of them write.

`make bench-takeover`: a hub, and replicas in separate processes with separate users; a decision changes all
the time, so that there is always something to write. Prints one JSON object. `takeover` has the seconds from
the signal to the first write of another replica, with the default times: after an orderly stop (SIGTERM), and
after a crash (SIGKILL). `forced` reports takeovers with short times, by SIGTERM, SIGKILL, and SIGSTOP with a
SIGCONT when another replica writes, in random order: `strays` are writes of a replica that did not lead when
they arrived at the hub.
"""

import json
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
from pathlib import Path
from typing import IO, Any, Final

import click

from placement_lab.hub import Hub
from tests.support.driver import Driver
from tests.support.replicas import LEASE, QUICK, Audit, Replica

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


@click.command(context_settings={"show_default": True})
@click.option("--stops", default=20)
@click.option("--crashes", default=10)
@click.option("--forced", "count", default=100)
def main(stops: int, crashes: int, count: int) -> None:
    """Measure, and print what came out."""
    signals = (("stop", signal.SIGTERM, stops), ("crash", signal.SIGKILL, crashes))
    result: dict[str, Any] = {"takeover": {name: measured(one, n) for name, one, n in signals if n}}
    if count:
        result["forced"] = forced(count)
    click.echo(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
