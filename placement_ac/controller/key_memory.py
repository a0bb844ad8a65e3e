"""
In-memory state of each key: timers, and what workers answered.

It may be lost at any time: what must survive a restart is on the hub.
"""

from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from placement_ac.core.inputs.state import Key, ProbeResult, Timer, WorkerCopies


@dataclass(slots=True)
class KeyMemory:
    """The state of one key; times are seconds of a monotonic clock."""

    timers: dict[Timer, float] = field(default_factory=dict)
    """Timer → when it started."""
    copies: dict[str, tuple[float, WorkerCopies]] = field(default_factory=dict)
    """MultiKueueCluster → when its cluster was queried for copies, and the result."""
    probes: dict[str, tuple[float, ProbeResult]] = field(default_factory=dict)
    """Cluster → when it was probed, and the result."""

    def timer_ages(self, now: float) -> dict[Timer, float]:
        return {timer: now - start for timer, start in self.timers.items()}

    def worker_copies(self, now: float) -> dict[str, WorkerCopies]:
        return {name: replace(copies, age=now - when) for name, (when, copies) in self.copies.items()}

    def probe_results(self, now: float) -> dict[str, ProbeResult]:
        return {cluster: replace(result, age=now - when) for cluster, (when, result) in self.probes.items()}

    def keep_answers(self, listed: Collection[str], selected: Collection[str]) -> None:
        """Forget the copies of clusters that are no longer listed, and probes of those no longer selected."""
        self.copies = {name: answer for name, answer in self.copies.items() if name in listed}
        self.probes = {cluster: answer for cluster, answer in self.probes.items() if cluster in selected}


class KeyMemories:
    """The memory of every key. `now` returns seconds of a monotonic clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self._memories: defaultdict[Key, KeyMemory] = defaultdict(KeyMemory)

    def of(self, key: Key) -> KeyMemory:
        """Return the memory of `key`, a new one if it has none."""
        return self._memories[key]

    def keep(self, key: Key, timers: Collection[Timer]) -> None:
        """Forget every other timer of `key`, and start those that are new."""
        memory, now = self._memories[key], self.now()
        memory.timers = {timer: memory.timers.get(timer, now) for timer in timers}
        if memory == KeyMemory():
            del self._memories[key]

    def clear(self) -> None:
        """Forget everything, as after a restart."""
        self._memories.clear()
