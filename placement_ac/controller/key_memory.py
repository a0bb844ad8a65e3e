"""
What the controller remembers of each key: since when something lasts, and what workers answered.

All of it may be lost at any time: what must survive a restart is on the hub.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from placement_ac.core.inputs.state import Key, ProbeResult, Timer, WorkerCopies


@dataclass(slots=True)
class KeyMemory:
    """What is remembered of one key; times are seconds of a clock that only goes forward."""

    timers: dict[Timer, float] = field(default_factory=dict)
    copies: dict[str, tuple[float, WorkerCopies]] = field(default_factory=dict)
    """MultiKueueCluster → when its cluster was asked for copies, and what it answered."""
    probes: dict[str, tuple[float, ProbeResult]] = field(default_factory=dict)
    """Cluster → when it was probed, and what that found."""

    def timer_ages(self, now: float) -> dict[Timer, float]:
        return {mark: now - since for mark, since in self.timers.items()}

    def worker_copies(self, now: float) -> dict[str, WorkerCopies]:
        return {name: replace(said, age=now - when) for name, (when, said) in self.copies.items()}

    def probe_results(self, now: float) -> dict[str, ProbeResult]:
        return {cluster: replace(fit, age=now - when) for cluster, (when, fit) in self.probes.items()}

    def keep(self, marks: Collection[Timer], now: float) -> None:
        """Forget every timer but `marks`; those that are new start now."""
        self.timers = {mark: self.timers.get(mark, now) for mark in marks}

    def keep_answers(self, listed: Collection[str], selected: Collection[str]) -> None:
        """Forget the answers of clusters that are no longer listed, or no longer selected."""
        self.copies = {name: said for name, said in self.copies.items() if name in listed}
        self.probes = {cluster: said for cluster, said in self.probes.items() if cluster in selected}

    @property
    def is_empty(self) -> bool:
        return not self.timers and not self.copies and not self.probes


class KeyMemories:
    """The memory of every key that has one. `ticks` gives seconds that only go forward."""

    def __init__(self, ticks: Callable[[], float]) -> None:
        self._ticks = ticks
        self._known: dict[Key, KeyMemory] = {}

    def now(self) -> float:
        return self._ticks()

    def of(self, key: Key) -> KeyMemory:
        """Return what is remembered of `key`; nothing is written to it."""
        return self._known.get(key) or KeyMemory()

    def for_answers(self, key: Key) -> KeyMemory:
        """Return the memory of `key` to put an answer into."""
        return self._known.setdefault(key, KeyMemory())

    def keep(self, key: Key, marks: Collection[Timer]) -> None:
        """Keep the timers that `marks` names, and no others."""
        memory = self._known.setdefault(key, KeyMemory())
        memory.keep(marks, self._ticks())
        if memory.is_empty:
            del self._known[key]

    def forget(self) -> None:
        """Remember nothing, as after a restart."""
        self._known.clear()
