"""
The states of a cluster that drains, and the data that decide between them.

Pure data. docs/draining.md shows `DrainState` as a table, and a test compares the two.
"""

from collections.abc import Mapping
from enum import Enum, unique
from typing import Final, NamedTuple

from placement_ac.core.api.constants import PENDING, READY, RETRY
from placement_ac.core.api.objects import Workload
from placement_ac.core.inputs.state import NOTHING, EventIntent, Snapshot, Timer

_NOTHING_RUNS: Final = "nothing runs there any more"


@unique
class DrainState(Enum):
    """The state of a cluster that is listed and no longer wanted.

    Each snapshot alone decides the state, so any of them may follow any other.
    """

    message: str
    """The reason in the condition `Active`; `{}` takes the detail of the step."""
    closes_gate: bool
    """Whether no Workload of the config becomes Ready. Not with our own dispatcher."""
    ends_when: str

    def __init__(self, message: str, closes_gate: bool, ends_when: str) -> None:
        self.message = message
        self.closes_gate = closes_gate
        self.ends_when = ends_when

    RUNNING = (
        "Workloads run there",
        False,
        "the last of them ends, the deadline passes, or the policy is `Immediate`",
    )
    SEND_BACK_DUE = ("Workloads run there", True, "the gate has been closed; then they are sent back")
    CANNOT_SEND_BACK = ("Workloads run there; {}", False, "the cluster answers, and Kueue is connected to it")
    SENDING_BACK = ("its Workloads are sent back", True, "Kueue has taken them back")
    WAITING = ("Workloads wait there", True, "they are placed, or sent back after `--waiting-grace`")
    ASKING = (_NOTHING_RUNS, False, "the cluster has reported its copies; then the gate is closed")
    CLOSING = (_NOTHING_RUNS, True, "the gate has been closed")
    TAKING_BACK = (_NOTHING_RUNS, True, "Kueue has set every Workload that was sent back to `Pending`")
    QUIET = (_NOTHING_RUNS, True, "after 2 s the cluster is asked again, and reports no copy")
    COPY_FOUND = (
        _NOTHING_RUNS,
        True,
        "Kueue records the Workload, which is `Ready` for 3 s, or it is sent back once more",
    )
    SETTLING = (
        "decisions flap",
        False,
        "the selection has been the same for `--settle`; then the gate is closed",
    )
    CLEANING_UP = (_NOTHING_RUNS, False, "2 s have passed since the last Workload of the config ended")
    WITHOUT_OUR_CHECK = (
        "Workloads without our check are there: they must finish first",
        False,
        "they have finished",
    )
    PLACED_ELSEWHERE = (
        "it holds copies of Workloads that are placed elsewhere",
        False,
        "Kueue has removed these copies",
    )
    GATE_REOPENED = (
        "the gate was closed for too long: it is open for a minute, and is closed again",
        False,
        "a minute has passed",
    )
    DISCONNECTED = ("Kueue is not connected to it", False, "Kueue is connected to it")
    NOT_ANSWERING = (
        "it cannot be asked for copies: {}",
        False,
        "it reports its copies; it is asked every 15 s",
    )
    UNREACHABLE = (
        "OCM cannot reach it",
        False,
        "OCM takes the taint `unreachable` away, or the ManagedCluster is deleted",
    )
    STANDING_BY = (
        "no job is sent there",
        False,
        "it is selected again, `--unlist-after` has passed, its slot is needed, or its credentials are gone",
    )
    UNLISTED = ("", True, "the list is written without it; a second later the gate opens")


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
    timers: frozenset[Timer] = frozenset()
    events: tuple[EventIntent, ...] = ()
    requeue_after: float | None = None

    @property
    def stays(self) -> bool:
        """Whether the cluster stays listed for now."""
        return self.state is not DrainState.UNLISTED

    @property
    def drains(self) -> bool:
        """Whether it stays because of jobs: it does not wait for decisions to settle, nor stand by."""
        return self.stays and not self.settles_in and self.state is not DrainState.STANDING_BY

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


class DrainContext(NamedTuple):
    """The data that all steps of a drain share."""

    seen: Snapshot
    workloads: ConfigWorkloads
    reopened: bool = False
    """Whether the gate has been closed for too long, and is open for a while."""
    must_leave: frozenset[str] = frozenset()
    """Clusters that do not stand by: others need their slots, or they get another name."""


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
