"""
What is known while a cluster leaves: the Workloads by where they are, and what becomes of the cluster.

Pure data, and no rule but what can be read off it.
"""

from collections.abc import Mapping
from typing import NamedTuple

from placement_ac.core.api.constants import PENDING, READY, RETRY
from placement_ac.core.api.objects import Workload
from placement_ac.core.inputs.state import NOTHING, EventIntent, Snapshot, Timer


class DrainStep(NamedTuple):
    """What becomes of one cluster that is listed and not wanted."""

    cluster: str
    name: str
    """Its MultiKueueCluster."""
    why: str = ""
    """Why it stays for now; "": it goes."""
    gate_closed: bool = False
    """Whether the gate is closed for it."""
    ask_for_copies: bool = False
    send_back: tuple[Workload, ...] = ()
    make_ready: tuple[Workload, ...] = ()
    """Workloads of which it holds a copy that the hub does not know of: Kueue records one that is Ready."""
    denominate: tuple[Workload, ...] = ()
    """Workloads that wait there and are to wait there no more (our dispatcher)."""
    timers: frozenset[Timer] = frozenset()
    events: tuple[EventIntent, ...] = ()
    recheck_after: float | None = None


class ConfigWorkloads(NamedTuple):
    """The Workloads of a config, by where they are."""

    checks: frozenset[str]
    """Our checks: the Workloads that carry one of them pass the gate."""
    running: Mapping[str, list[Workload]] = NOTHING
    waiting: Mapping[str, list[Workload]] = NOTHING
    """By MultiKueueCluster, as the nominations have it."""
    undecided: tuple[Workload, ...] = ()

    def gated(self, workload: Workload) -> bool:
        return any(answer.check in self.checks for answer in workload.check_states)

    def is_ready(self, workload: Workload) -> bool:
        return READY in self._states(workload)

    def is_back(self, workload: Workload) -> bool:
        """Whether nothing of ours lets it pass: Kueue has taken it back, or it never was let through."""
        return self._states(workload) == {PENDING}

    def is_sent_back(self, workload: Workload) -> bool:
        return RETRY in self._states(workload)

    def _states(self, workload: Workload) -> set[str]:
        return {answer.state for answer in workload.check_states if answer.check in self.checks}


class DrainContext(NamedTuple):
    """What the fate of every cluster that leaves is decided on."""

    seen: Snapshot
    workloads: ConfigWorkloads
    reopened: bool = False
    """Whether the gate has been closed for too long, and is open for a while."""

    def age(self, mark: Timer) -> float:
        return self.seen.timer_ages.get(mark, 0.0)


def group_workloads(seen: Snapshot) -> ConfigWorkloads:
    """Return the Workloads of this config, by where they are."""
    running: dict[str, list[Workload]] = {}
    waiting: dict[str, list[Workload]] = {}
    for workload in seen.workloads:
        if workload.cluster:
            running.setdefault(workload.cluster, []).append(workload)
        for name in workload.nominated:
            waiting.setdefault(name, []).append(workload)
    undecided = tuple(workload for workload in seen.workloads if not workload.cluster)
    return ConfigWorkloads(
        frozenset(check.meta.name for check in seen.checks.ours), running, waiting, undecided
    )
