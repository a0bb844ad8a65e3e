"""
How a cluster leaves a MultiKueueConfig without a job being killed or doubled: the gate, step by step.

Pure. A cluster stays listed as long as a Workload runs there. When none does, the gate is
closed (no Workload of this config becomes Ready), what only waits is sent back, and the
cluster itself is asked for copies; then it goes. Every step is told by what the API says
and by the ages of marks, so that whoever comes next can go on from anywhere.
Source: shared/kueue/gate.txt.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from placement_ac.model import Workload
from placement_ac.names import (
    ASK_AGAIN_SECONDS,
    ASK_FRESH_SECONDS,
    GATE_MOST_SECONDS,
    HEAL_SECONDS,
    IMMEDIATE,
    OPEN_SECONDS,
    PENDING,
    QUIET_SECONDS,
    READY,
    RETRY,
)
from placement_ac.selection import listed_now, soonest
from placement_ac.snapshot import Asked, Mark, Notice, Snapshot
from placement_ac.words import some

RUN: Final = "Workloads run there"
WAIT: Final = "Workloads wait there"
SOON: Final = "nothing runs there any more"
"""Told through all the short steps at the end: a condition is not written for each of them."""


@dataclass(frozen=True, slots=True)
class Leaving:
    """What becomes of one cluster that is listed and not wanted."""

    cluster: str
    name: str
    why: str = ""
    """Why it stays for now; "": it goes."""
    closed: bool = False
    """Whether the gate is closed for it."""
    ask: bool = False
    send_back: tuple[Workload, ...] = ()
    heal: tuple[Workload, ...] = ()
    """Workloads of which it holds a copy that the hub does not know of: Kueue records one that is Ready."""
    denominate: tuple[Workload, ...] = ()
    """Workloads that wait there and are to wait there no more (our dispatcher)."""
    marks: frozenset[Mark] = frozenset()
    notices: tuple[Notice, ...] = ()
    recheck_after: float | None = None


@dataclass(frozen=True, slots=True)
class Removal:
    """What becomes of all of them."""

    leaving: tuple[Leaving, ...] = ()
    marks: frozenset[Mark] = frozenset()
    recheck_after: float | None = None
    held_back: Mapping[str, str] = field(default_factory=dict)
    """Uid of a Workload that was sent back → the cluster that has not let go of it for sure."""

    @property
    def staying(self) -> tuple[Leaving, ...]:
        return tuple(one for one in self.leaving if one.why)

    @property
    def closed(self) -> str:
        """Why no Workload becomes Ready; "" when the gate is open."""
        names = [one.cluster for one in self.leaving if one.closed]
        names += [mark.of for mark in self.marks if mark.what == "left" and mark.of not in names]
        return f"{some(sorted(names))} is leaving: it takes a moment" if names else ""


@dataclass(frozen=True, slots=True)
class Jobs:
    """The Workloads of a config, by where they are."""

    checks: frozenset[str]
    """Our checks: the Workloads that carry one of them pass the gate."""
    running: Mapping[str, list[Workload]] = field(default_factory=dict)
    waiting: Mapping[str, list[Workload]] = field(default_factory=dict)
    undecided: tuple[Workload, ...] = ()

    def gated(self, workload: Workload) -> bool:
        return any(answer.check in self.checks for answer in workload.answers)

    def is_ready(self, workload: Workload) -> bool:
        return READY in self._states(workload)

    def is_back(self, workload: Workload) -> bool:
        """Whether nothing of ours lets it pass: Kueue has taken it back, or it never was let through."""
        return self._states(workload) == {PENDING}

    def is_sent_back(self, workload: Workload) -> bool:
        return RETRY in self._states(workload)

    def _states(self, workload: Workload) -> set[str]:
        return {answer.state for answer in workload.answers if answer.check in self.checks}


def jobs_of(seen: Snapshot) -> Jobs:
    """Return the Workloads of this config, by where they are."""
    running: dict[str, list[Workload]] = {}
    waiting: dict[str, list[Workload]] = {}
    for workload in seen.workloads:
        if workload.cluster:
            running.setdefault(workload.cluster, []).append(workload)
        for name in workload.nominated:
            waiting.setdefault(name, []).append(workload)
    undecided = tuple(workload for workload in seen.workloads if not workload.cluster)
    return Jobs(frozenset(check.meta.name for check in seen.checks), running, waiting, undecided)


def remove(seen: Snapshot, wanted: Collection[str], jobs: Jobs) -> Removal:
    """Return what becomes of every listed MultiKueueCluster that is not `wanted`.

    Somebody else may have put it there: jobs may run on it all the same.
    """
    names = seen.config.listed if seen.config and seen.config.ours else ()
    clusters = {name: cluster for cluster, name in listed_now(seen).items()}
    leaving = tuple(
        _leave(seen, clusters.get(name, name), name, jobs) for name in names if name not in wanted
    )
    left = {Mark("left", one.cluster) for one in leaving if not one.why}
    left |= {mark for mark, age in seen.ages.items() if mark.what == "left" and age < OPEN_SECONDS}
    waits = (OPEN_SECONDS - seen.ages.get(mark, 0.0) for mark in left)
    held_back = _held_back(seen, leaving, jobs)
    healed = {Mark("healed", w.meta.uid) for one in leaving for w in one.heal}
    ready = {w.meta.uid for w in jobs.undecided if jobs.is_ready(w)}
    healed |= {mark for mark in seen.ages if mark.what == "healed" and mark.of in ready}
    sent = {Mark("sent", f"{uid}/{cluster}") for uid, cluster in held_back.items()}
    return Removal(
        leaving,
        frozenset(left | sent | healed).union(*(one.marks for one in leaving)),
        soonest((*waits, *(one.recheck_after for one in leaving))),
        held_back,
    )


def _held_back(seen: Snapshot, leaving: Iterable[Leaving], jobs: Jobs) -> dict[str, str]:
    """Return the Workloads that were sent back from a cluster which may still hold a copy of them."""
    staying = {one.cluster: {w.meta.uid for w in one.heal} for one in leaving if one.why}
    sent = [mark.of.rpartition("/") for mark in seen.ages if mark.what == "sent"]
    before = {uid: cluster for uid, _, cluster in sent if cluster in staying}
    now = {w.meta.uid: one.cluster for one in leaving for w in one.send_back}
    undecided = {w.meta.uid for w in jobs.undecided}
    known = {uid: c for uid, c in before.items() if uid in undecided and uid not in staying[c]}
    return known | now


def _leave(seen: Snapshot, cluster: str, name: str, jobs: Jobs) -> Leaving:
    here = Leaving(cluster, name)
    running, waiting = jobs.running.get(name, []), jobs.waiting.get(name, [])
    if cluster in seen.gone and name == seen.hub.cluster_object(seen.name, cluster):
        return _lost(here, [*running, *waiting])
    if not running and not jobs.undecided:
        return here
    here = replace(here, marks=frozenset({Mark("leaving", cluster)}))
    if cluster in seen.unreachable:
        return replace(here, why="OCM cannot reach it")
    if running:
        return _drain(seen, here, running, jobs)
    if seen.policy.dispatcher:
        return _clear(seen, here, waiting, jobs)
    return _gate(seen, here, waiting, jobs)


def _lost(here: Leaving, workloads: Collection[Workload]) -> Leaving:
    if not workloads:
        return here
    told = f"ManagedCluster {here.cluster} is gone, and with it: {_names(workloads)}"
    return replace(here, notices=(Notice("ClusterLost", told, warning=True),))


def _drain(seen: Snapshot, here: Leaving, running: list[Workload], jobs: Jobs) -> Leaving:
    """Wait for what runs there; send it back if the policy or a deadline says so, while it is listed."""
    left = _deadline_left(seen, here.cluster)
    if left is None or left > 0:
        return replace(here, why=RUN, recheck_after=left)
    if not all(map(jobs.gated, running)):
        return replace(here, why="Workloads run there that do not carry our check: they are waited for")
    if aired := _aired(seen, here):
        return aired
    closed = Mark("closed", here.cluster)
    if closed not in seen.ages:
        here = _before_closing(seen, here)
        return here if here.closed else replace(here, why=RUN if here.ask else f"{RUN}; {here.why}")
    send_back = tuple(w for w in running if not jobs.is_sent_back(w))
    return replace(
        here,
        why="its Workloads are sent back",
        closed=not seen.policy.dispatcher,
        marks=here.marks | {closed},
        send_back=send_back,
        notices=_told(seen, here.cluster, send_back),
    )


def _told(seen: Snapshot, cluster: str, send_back: Collection[Workload]) -> tuple[Notice, ...]:
    if not send_back:
        return ()
    cause = "at once" if seen.policy.removal == IMMEDIATE else "as the deadline has passed"
    text = f"cluster {cluster} leaves {cause}; sent back: {_names(send_back)}"
    return (Notice("WorkloadsSentBack", text, warning=True),)


def _deadline_left(seen: Snapshot, cluster: str) -> float | None:
    """Return the seconds for which what runs there is still waited for; None: for ever."""
    if seen.policy.removal == IMMEDIATE:
        return 0.0
    if seen.policy.drain_deadline is None:
        return None
    return max(0.0, seen.policy.drain_deadline - seen.ages.get(Mark("leaving", cluster), 0.0))


# -- the gate


def _gate(seen: Snapshot, here: Leaving, waiting: list[Workload], jobs: Jobs) -> Leaving:
    """Go through the steps of DESIGN.md, “The gate”, 1 to 3; 4 is that no cluster closes it any more."""
    if not all(map(jobs.gated, waiting)):
        return replace(here, why="Workloads wait there that do not carry our check: they are waited for")
    if aired := _aired(seen, here):
        return aired
    if Mark("closed", here.cluster) not in seen.ages:
        return _before_closing(seen, here)
    if problem := _problem(seen, here.name):
        return _not_asked(seen, here, problem)
    closed = replace(here, closed=True, marks=here.marks | {Mark("closed", here.cluster)})
    ready = tuple(w for w in jobs.undecided if jobs.is_ready(w))
    if ready:
        return _send_back(seen, closed, ready)
    if not all(jobs.is_back(w) for w in jobs.undecided if jobs.gated(w)):
        return replace(closed, why=SOON)  # Kueue takes back what was sent back
    return _ask(seen, closed, jobs)


def _before_closing(seen: Snapshot, here: Leaving) -> Leaving:
    """Close the gate only for a cluster that answers: it would be closed in vain."""
    asked = seen.asked.get(here.name)
    if asked is None or (not asked.problem and asked.age > ASK_FRESH_SECONDS):
        return replace(here, why=SOON, ask=True)
    if asked.problem:
        return _not_asked(seen, here, asked.problem)
    mark = Mark("closed", here.cluster)
    return replace(here, why=SOON, closed=True, marks=here.marks | {mark}, recheck_after=0.0)


def _not_asked(seen: Snapshot, here: Leaving, problem: str) -> Leaving:
    """Open the gate: who knows how long it takes."""
    asked = seen.asked.get(here.name, Asked({}))
    again = ASK_AGAIN_SECONDS - asked.age
    why = f"it cannot be asked for copies: {problem}"
    return replace(here, why=why, closed=False, ask=again <= 0, recheck_after=max(again, 0.1))


def _problem(seen: Snapshot, name: str) -> str:
    asked = seen.asked.get(name)
    return asked.problem if asked else ""


def _aired(seen: Snapshot, here: Leaving) -> Leaving | None:
    """Open the gate for a while when it has been closed for long: others wait behind it."""
    mark = Mark("aired", here.cluster)
    most = _grace(seen) + GATE_MOST_SECONDS
    overdue = seen.ages.get(Mark("closed", here.cluster), 0.0) - most
    age = seen.ages.get(mark)
    if overdue < 0 and (age is None or age >= GATE_MOST_SECONDS):
        return None
    left = GATE_MOST_SECONDS - (age or 0.0) if overdue < 0 else GATE_MOST_SECONDS
    why = "it could not be cleared in time, and others waited: tried again in a minute"
    return replace(here, why=why, marks=here.marks | {mark}, recheck_after=left)


def _grace(seen: Snapshot) -> float:
    return 0.0 if seen.policy.removal == IMMEDIATE else seen.policy.waiting_grace


def _send_back(seen: Snapshot, here: Leaving, ready: Collection[Workload]) -> Leaving:
    """Send back what has had its grace; what has just been placed there is seen in time, or conflicts."""
    closed_for = seen.ages.get(Mark("closed", here.cluster), 0.0)
    left = [_grace_left(seen, w, closed_for) for w in ready]
    due = tuple(w for w, seconds in zip(ready, left, strict=True) if seconds <= 0)
    later = soonest(seconds for seconds in left if seconds > 0)
    return replace(here, why=WAIT, send_back=due, recheck_after=later)


def _grace_left(seen: Snapshot, workload: Workload, closed_for: float) -> float:
    healed = seen.ages.get(Mark("healed", workload.meta.uid))
    if healed is not None:
        return HEAL_SECONDS - healed
    grace = _grace(seen)
    return max(grace - closed_for, max(grace, HEAL_SECONDS) - _ready_for(seen, workload))


def _ready_for(seen: Snapshot, workload: Workload) -> float:
    since = [a.since for a in workload.answers if a.state == READY and a.check in _ours(seen) and a.since]
    return (seen.now - max(since)).total_seconds() if since else float("inf")


def _ours(seen: Snapshot) -> Collection[str]:
    return {check.meta.name for check in seen.checks}


def _ask(seen: Snapshot, here: Leaving, jobs: Jobs) -> Leaving:
    """Ask the cluster itself once nothing has been there for a while; then let it go."""
    here, ready = _once_quiet(seen, here)
    if not ready:
        return here
    held = _held(seen, here.name, jobs.undecided)
    if not held:
        return replace(here, why="", closed=False, marks=frozenset())
    return replace(here, heal=tuple(held))


def _once_quiet(seen: Snapshot, here: Leaving) -> tuple[Leaving, bool]:
    """Return whether nothing has been there for a while and the cluster was asked since then."""
    mark = Mark("quiet", here.cluster)
    quiet = seen.ages.get(mark, 0.0)
    here = replace(here, marks=here.marks | {mark}, why=SOON)
    if quiet < QUIET_SECONDS:
        return replace(here, recheck_after=QUIET_SECONDS - quiet), False
    asked = seen.asked.get(here.name)
    if asked is None or asked.age > quiet - QUIET_SECONDS:
        return replace(here, ask=True), False
    return here, True


def _held(seen: Snapshot, name: str, workloads: Iterable[Workload]) -> list[Workload]:
    copies = seen.asked[name].copies
    return [workload for workload in workloads if workload.meta.id in copies]


# -- with our own dispatcher


def _clear(seen: Snapshot, here: Leaving, waiting: list[Workload], jobs: Jobs) -> Leaving:
    """Take the cluster out of the nominations, ask it before and after; then let it go."""
    asked = seen.asked.get(here.name)
    if asked and asked.problem:
        return _not_asked(seen, here, asked.problem)
    if waiting:
        if asked is None or asked.age > QUIET_SECONDS:
            return replace(here, why=WAIT, ask=True)
        free = tuple(w for w in waiting if not asked.copies.get(w.meta.id))
        return replace(here, why=WAIT, denominate=free, recheck_after=QUIET_SECONDS)
    here, ready = _once_quiet(seen, here)
    if not ready:
        return here
    held = _held(seen, here.name, jobs.undecided)
    if not held:
        return replace(here, why="", marks=frozenset())
    return replace(here, heal=tuple(held))


def _names(workloads: Iterable[Workload]) -> str:
    return some([workload.label for workload in workloads])
