"""
In-memory state of each key: since when things have been so, and what workers answered.

It may be lost at any time: what must survive a restart is on the hub.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from placement_ac.core.inputs.queue_facts import WorkerFacts
from placement_ac.core.inputs.state import Key, ProbeResult, Since, Snapshot, WorkerCopies
from placement_ac.core.plan.waiting import placed_since_ready

R = TypeVar("R", WorkerCopies, WorkerFacts, ProbeResult)


@dataclass(slots=True)
class KeyState:
    """The state of one key; times are seconds of a monotonic clock."""

    lasting: dict[Since, float] = field(default_factory=dict)
    """Each → when it began."""
    copies: dict[str, tuple[float, WorkerCopies]] = field(default_factory=dict)
    """MultiKueueCluster → when its cluster was queried for copies, and the result."""
    queues: dict[str, tuple[float, WorkerFacts]] = field(default_factory=dict)
    """MultiKueueCluster → when its cluster was queried for its queues, and the result."""
    probes: dict[str, tuple[float, ProbeResult]] = field(default_factory=dict)
    """Cluster → when it was probed, and the result."""
    ready: dict[str, float] = field(default_factory=dict)
    """Uid of a Workload that no cluster has yet → when a write of ours made it Ready."""

    def ages(self, now: float) -> dict[Since, float]:
        return {since: now - start for since, start in self.lasting.items()}

    def take_placed(self, snapshot: Snapshot, now: float) -> list[float]:
        """Return how long after its Ready each Workload was placed, and forget all that wait no longer."""
        placed = placed_since_ready(self.ready, snapshot)
        times = [now - self.ready[uid] for uid in placed.placed]
        self.ready = {uid: self.ready[uid] for uid in placed.waiting}
        return times

    def forget_stale_results(self, listed: Collection[str], selected: Collection[str]) -> None:
        """Forget clusters that are no longer listed, and probes of those no longer selected."""
        self.copies = {name: result for name, result in self.copies.items() if name in listed}
        self.queues = {name: result for name, result in self.queues.items() if name in listed}
        self.probes = {cluster: result for cluster, result in self.probes.items() if cluster in selected}


def with_ages(results: Mapping[str, tuple[float, R]], now: float) -> dict[str, R]:
    """Return the results, each with its age."""
    return {name: replace(result, age=now - when) for name, (when, result) in results.items()}


class KeyStates:
    """The state of every key. `now` returns seconds of a monotonic clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self._states: defaultdict[Key, KeyState] = defaultdict(KeyState)

    def of(self, key: Key) -> KeyState:
        """Return the state of `key`, a new one if it has none."""
        return self._states[key]

    def keep(self, key: Key, lasting: Collection[Since]) -> None:
        """Forget all others of `key`; those that are new begin now."""
        state, now = self._states[key], self.now()
        state.lasting = {since: state.lasting.get(since, now) for since in lasting}
        if state == KeyState():
            del self._states[key]

    def made_ready(self, key: Key, uids: Collection[str]) -> None:
        """Note that these Workloads became Ready just now."""
        if uids:
            self._states[key].ready |= dict.fromkeys(uids, self.now())

    def clear(self) -> None:
        """Forget everything, as after a restart."""
        self._states.clear()
