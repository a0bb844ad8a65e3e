"""
The states of a cluster that drains, and the data that decide between them.

Pure data. `rules.RULES` says when a cluster is in which state.
"""

from collections.abc import Mapping
from enum import Enum, unique
from typing import Final, NamedTuple, Self

from placement_ac.core.api.constants import PENDING, READY, RETRY
from placement_ac.core.api.objects import Workload
from placement_ac.core.inputs.state import NOTHING, EventIntent, Since, Snapshot

_NOTHING_RUNS: Final = "nothing runs there any more"
_JOBS_RUN: Final = "Workloads run there"


@unique
class DrainState(Enum):
    """The state of a cluster that is listed and no longer wanted; any of them may follow any other."""

    message: str
    """The reason in the condition `Active`; `{}` takes the detail of the step."""
    closes_gate: bool
    """Whether no Workload of the config becomes Ready. Not with our own dispatcher."""
    waits_for_jobs: bool
    """Whether the reason is that Workloads run there: an event says how many."""

    def __new__(cls, message: str, closes_gate: bool, waits_for_jobs: bool = False) -> Self:
        state = object.__new__(cls)
        state._value_ = len(cls.__members__)  # states may share a message
        state.message, state.closes_gate, state.waits_for_jobs = message, closes_gate, waits_for_jobs
        return state

    RUNNING = (_JOBS_RUN, False, True)
    SEND_BACK_DUE = (_JOBS_RUN, True, True)
    CANNOT_SEND_BACK = (f"{_JOBS_RUN}; {{}}", False, True)
    SENDING_BACK = ("its Workloads are sent back", True)
    WAITING = ("Workloads wait there", True)
    ASKING = (_NOTHING_RUNS, False)
    CLOSING = (_NOTHING_RUNS, True)
    TAKING_BACK = (_NOTHING_RUNS, True)
    QUIET = (_NOTHING_RUNS, True)
    COPY_FOUND = (_NOTHING_RUNS, True)
    SETTLING = ("decisions flap", False)
    CLEANING_UP = (_NOTHING_RUNS, False)
    WITHOUT_OUR_CHECK = ("Workloads without our check are there: they must finish first", False)
    PLACED_ELSEWHERE = ("it holds copies of Workloads that are placed elsewhere", False)
    GATE_REOPENED = ("the gate was closed for too long: it is open for a minute, and is closed again", False)
    DISCONNECTED = ("Kueue is not connected to it", False)
    NOT_ANSWERING = ("it cannot be asked for copies: {}", False)
    UNREACHABLE = ("OCM cannot reach it", False)
    STANDING_BY = ("no job is sent there", False)
    UNLISTED = ("", True)


class DrainStep(NamedTuple):
    """The state of one cluster that is listed and not wanted, and what to do about it."""

    cluster: str
    name: str
    """Its MultiKueueCluster."""
    state: DrainState
    detail: str = ""
    """The part of the message that differs from cluster to cluster."""
    settles_in: float = 0.0
    """Seconds for which its removal waits because decisions flap, whatever runs there."""
    ask_for_copies: bool = False
    send_back: tuple[Workload, ...] = ()
    make_ready: tuple[Workload, ...] = ()
    """Workloads of which it holds a copy that the hub does not know of: Kueue records one that is Ready."""
    denominate: tuple[Workload, ...] = ()
    """Workloads to take out of its nominations (our dispatcher)."""
    lasting: frozenset[Since] = frozenset()
    events: tuple[EventIntent, ...] = ()
    requeue_after: float | None = None
    unconfirmed: bool = False
    """Whether it has been draining, and has not yet reported that it holds no copy: jobs may run there."""

    @property
    def stays(self) -> bool:
        """Whether the cluster stays listed for now."""
        return self.state is not DrainState.UNLISTED

    @property
    def drains(self) -> bool:
        """Whether it stays because of jobs: it does not wait for decisions to settle, nor stand by."""
        stands_by = self.state is DrainState.STANDING_BY and not self.unconfirmed
        return self.stays and not self.settles_in and not stands_by

    @property
    def message(self) -> str:
        """Why it stays for now; "" when it is unlisted."""
        return self.state.message.format(self.detail)


class ConfigWorkloads(NamedTuple):
    """The Workloads of a MultiKueueConfig, by where they are."""

    checks: frozenset[str]
    """Our checks: a Workload that carries one of them is gated."""
    running: Mapping[str, list[Workload]] = NOTHING
    """MultiKueueCluster → the Workloads that it runs."""
    waiting: Mapping[str, list[Workload]] = NOTHING
    """MultiKueueCluster → the Workloads that are nominated there."""
    undecided: tuple[Workload, ...] = ()
    """Those that no cluster runs."""

    def waiting_only(self, name: str) -> list[Workload]:
        """Return the Workloads that are nominated to a MultiKueueCluster, and that no cluster runs."""
        return [workload for workload in self.waiting.get(name, ()) if not workload.cluster]

    def gated(self, workload: Workload) -> bool:
        """Whether it carries a check of ours, so that Kueue waits for our Ready."""
        return any(entry.check in self.checks for entry in workload.check_states)

    def is_ready(self, workload: Workload) -> bool:
        return READY in self._states(workload)

    def is_pending(self, workload: Workload) -> bool:
        """Whether all our entries are Pending: it was never Ready, or Kueue has taken it back."""
        return self._states(workload) == {PENDING}

    def is_sent_back(self, workload: Workload) -> bool:
        return RETRY in self._states(workload)

    def _states(self, workload: Workload) -> set[str]:
        return {entry.state for entry in workload.check_states if entry.check in self.checks}


def group_workloads(snapshot: Snapshot) -> ConfigWorkloads:
    """Return the Workloads of this config, by where they are."""
    running: dict[str, list[Workload]] = {}
    waiting: dict[str, list[Workload]] = {}
    for workload in snapshot.workloads:
        if workload.cluster:
            running.setdefault(workload.cluster, []).append(workload)
        for name in workload.nominated:
            waiting.setdefault(name, []).append(workload)
    undecided = tuple([workload for workload in snapshot.workloads if not workload.cluster])
    checks = frozenset([check.meta.name for check in snapshot.checks.ours])
    return ConfigWorkloads(checks, running, waiting, undecided)
