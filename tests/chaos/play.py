"""One play: random load and faults on two replicas, and what must never be."""

import contextlib
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click

from bench.processes import memory
from placement_ac.core.api.constants import OUR_CONTROLLER
from placement_ac.core.api.errors import Conflict, Unavailable
from placement_ac.observability import logs
from placement_lab.standins.multikueue import ALL_AT_ONCE, KueueSettings
from tests.chaos.faults import FAULTS, Fault, Target
from tests.support.driver import Object, free_port
from tests.support.replicas import QUICK, Replica
from tests.support.scored_jobs import WORKERS, Arrival, Ledger, arrivals, stage

TICK_SECONDS: Final = 0.05
MEMORY_MAX_MB: Final = 256
"""The limit in config/manager/deployment.yaml."""
BLOCKED_SECONDS: Final = 1.0
MOST_FAULTS: Final = 2
"""So many faults last at one time."""
FAULT_PAUSES: Final = (1.0, 5.0)
FLIP_PAUSES: Final = (1.0, 8.0)
SETTINGS: Final = QUICK | {
    "settle": "5s",
    "waiting_grace": "15s",
    "mass_loss_grace": "10s",
    "log_level": "debug",
}


@dataclass
class Watcher:
    """Looks for what must never be; `violations` are sentences, each once."""

    target: Target
    ledger: Ledger
    violations: dict[str, float] = field(default_factory=dict)
    """Sentence → seconds from the beginning."""
    restarted_by_kueue: set[str] = field(default_factory=set)
    """Jobs that were started again after Kueue had lost a worker: see `Target.may_restart`."""
    most_memory: float = 0.0
    slowest_answer: float = 0.0
    lines: int = 0
    _began: float = field(default_factory=time.monotonic)
    _read: dict[Path, int] = field(default_factory=dict)

    def look(self) -> None:
        for name in self.ledger.ran_twice():
            self._wrong(f"{name} ran twice at one time", job=name)
        for name in self.ledger.started_again():
            if self.target.may_restart(self.ledger.created[name]):
                self.restarted_by_kueue.add(name)
            else:
                self._wrong(f"{name} was started again", job=name)
        for replica in self.target.running():
            self._look_at(replica)
        for log in (Path(file.name) for file in self.target.files.values()):
            self._read_log(log)

    def _look_at(self, replica: Replica) -> None:
        with contextlib.suppress(OSError, KeyError):  # it has ended
            self.most_memory = max(self.most_memory, taken := memory(replica.pid)[0])
            if taken > MEMORY_MAX_MB:
                self._wrong(f"{replica.name} takes more than {MEMORY_MAX_MB} MB")
        waited = seconds_without_cpu(replica.pid)
        seconds = self.target.seconds_to_answer(replica.name)
        if seconds is None:
            return  # it starts
        seconds = max(seconds - (seconds_without_cpu(replica.pid) - waited), 0.0)
        self.slowest_answer = max(self.slowest_answer, seconds)
        if seconds > BLOCKED_SECONDS:
            self._wrong(f"{replica.name} did not answer for a second")

    def _read_log(self, log: Path) -> None:
        with log.open("rb") as file:
            file.seek(self._read.get(log, 0))
            text = file.read()
            self._read[log] = file.tell()
        self.lines += text.count(b"\n")
        for token in self.target.secrets:
            if token.encode() in text:
                self._wrong(f"a token is in {log.name}")
        for mark in (b"Traceback", b"failed unexpectedly"):
            if mark in text:
                self._wrong(f"{mark.decode()} in {log.name}")

    def _wrong(self, what: str, job: str | None = None) -> None:
        if what not in self.violations:
            self.violations[what] = round(time.monotonic() - self._began, 1)
            click.echo(f"WRONG after {self.violations[what]} s: {what}", err=True)
            if job is not None:
                self.target.write_requests(job)


def seconds_without_cpu(pid: int) -> float:
    """Return how long a process and this thread have waited for a CPU: others keep the machine busy."""
    waits = 0
    for path in (f"/proc/{pid}/schedstat", "/proc/thread-self/schedstat"):
        with contextlib.suppress(OSError, IndexError):
            waits += int(Path(path).read_text().split()[1])
    return waits / 1e9


@dataclass
class Play:
    """The dice, and what happens when."""

    target: Target
    ledger: Ledger
    dice: random.Random
    happened: Counter[str] = field(default_factory=Counter)
    flips: int = 0
    lasting: list[tuple[float, Fault, float]] = field(default_factory=list)
    """When each fault that lasts ends (seconds of a monotonic clock), and what it hits."""
    _next_fault: float = 0.0
    _next_flip: float = 0.0

    def step(self, now: float) -> None:
        """Begin and end what is due."""
        for entry in [entry for entry in self.lasting if entry[0] <= now]:
            self._end(entry)
        if now >= self._next_fault and len(self.lasting) < MOST_FAULTS:
            self._begin(now)
            self._next_fault = now + self.dice.uniform(*FAULT_PAUSES)
        if now >= self._next_flip:
            best = self.dice.choice(WORKERS)
            self._next_flip = now + self.dice.uniform(*FLIP_PAUSES)
            if self.target.can_write_scores:
                with contextlib.suppress(Unavailable):
                    self.target.scene.prefer(best)
                    self.flips += 1

    def end_all(self) -> None:
        """End every fault, first those that keep the hub away."""
        while self.lasting:
            for entry in list(self.lasting):
                self._end(entry)

    def _begin(self, now: float) -> None:
        named = {fault.name for _, fault, _ in self.lasting}
        fault = self.dice.choice([one for one in FAULTS if one.name not in named])
        which, seconds = self.dice.random(), self.dice.uniform(*fault.seconds)
        if not fault.can_begin(self.target):
            return
        try:
            fault.act(self.target, which, True)
        except Unavailable:  # the hub has just come back
            return
        self.target.note(f"begins, {which:.2f}: {fault.name}")
        self.happened[fault.name] += 1
        self.lasting.append((now + seconds, fault, which))

    def _end(self, entry: tuple[float, Fault, float]) -> None:
        """End a fault; one that needs the hub is ended when it is back."""
        _, fault, which = entry
        if fault.needs_hub and not self.target.hub_is_up:
            return
        try:
            fault.act(self.target, which, False)
        except Unavailable:  # it is ended in the next step
            return
        self.target.note(f"ends: {fault.name}")
        self.lasting.remove(entry)


def run_jobs(
    play: Play, watcher: Watcher, waiting: list[Arrival], seconds: float, most: float
) -> float | None:
    """Play for so many seconds; then return the seconds until all jobs had finished (None: not in `most`)."""
    began, looked, calm = time.monotonic(), 0.0, 0.0
    while not calm or waiting or play.ledger.unfinished():
        now = time.monotonic() - began
        if now < seconds:
            play.step(now)
        elif not calm:
            play.end_all()
            calm = now
        elif now - calm > most:
            return None
        play.target.step()
        _submit_and_finish(play, waiting, now)
        if now - looked >= 1.0:
            watcher.look()
            looked = now
        time.sleep(TICK_SECONDS)  # the clock of the play
    return round(time.monotonic() - began - calm, 1)


def _submit_and_finish(play: Play, waiting: list[Arrival], now: float) -> None:
    """Create the jobs that have come, and complete those that have run for long enough."""
    target = play.target
    while target.hub_is_up and waiting and waiting[0].at <= now:
        try:
            target.scene.submit(waiting[0].name)
        except Unavailable:
            break
        except Conflict:
            pass  # it was created, and the answer was lost
        play.ledger.create(waiting.pop(0))
    for name in play.ledger.due():
        target.finish(name)


@contextmanager
def opened(seed: int, folder: Path) -> Iterator[Target]:
    """Set up hub, workers and two replicas.

    With an odd seed Kueue's own dispatcher nominates, with an even one the controller.
    """
    ours = seed % 2 == 0
    settings = SETTINGS | ({"dispatcher": "true"} if ours else {})
    with (
        stage(KueueSettings(dispatcher=OUR_CONTROLLER if ours else ALL_AT_ONCE)) as scene,
        ExitStack() as stack,
    ):
        target = Target(scene, folder, settings, {name: free_port() for name in ("one", "other")})
        stack.callback(target.close)
        target.start()
        yield target


def played(seed: int, seconds: float, right_again: float, rate: float, folder: Path) -> Object:
    """Play once and return the summary; `folder` gets the logs, and the times of the faults."""
    logs.configure("text", "error")
    with opened(seed, folder) as target:
        target.until_ready()
        target.scene.select(1)
        ledger = Ledger(target.scene.counter)
        play = Play(target, ledger, random.Random(seed))
        watcher = Watcher(target, ledger)
        after = run_jobs(play, watcher, arrivals(seconds, rate, seed), seconds, right_again)
        right = target.seconds_until_right(right_again)
        watcher.look()
        wrong = dict(watcher.violations)
        if after is None:
            wrong["not all jobs have finished: " + ", ".join(ledger.unfinished())] = seconds
        if right is None:
            wrong[f"not right again: {target.state()}"] = seconds
        return {
            "seed": seed,
            "seconds": seconds,
            "jobs": len(ledger.created),
            "restartedByKueue": len(watcher.restarted_by_kueue),
            "flips": play.flips,
            "faults": dict(sorted(play.happened.items())),
            "jobsFinishedAfter": after,
            "rightAgainAfter": right,
            "mostMemoryMB": round(watcher.most_memory, 1),
            "slowestAnswer": round(watcher.slowest_answer, 3),
            "logLines": watcher.lines,
            "wrong": wrong,
        }
