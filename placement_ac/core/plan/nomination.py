"""
Choose the clusters on which each Workload may wait: Kueue's external dispatcher (a setting).

Pure. Those that fit the Workload, best first, a few a round, as Kueue's own Incremental
dispatcher does; never one that leaves, has no credentials or is not connected. The writer
knows how to write a nomination. Source: measured on Kueue main.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, NamedTuple

from placement_ac.core.api.constants import NOMINATED_TO, PENDING, READY, WAITS_FOR, WORKLOAD_WRITES_AT_ONCE
from placement_ac.core.api.objects import AdmissionCheckState, Workload
from placement_ac.core.api.text import joined
from placement_ac.core.dispatch.cycle import Refusals
from placement_ac.core.dispatch.room import Room
from placement_ac.core.draining.state import DrainState
from placement_ac.core.draining.withdrawals import Withdrawals
from placement_ac.core.inputs.state import Since, Snapshot
from placement_ac.core.plan.fact_questions import (
    FACTS_BESIDE_ROOM_SECONDS,
    FACTS_WAIT_SECONDS,
    FactQuestions,
    fact_questions,
)
from placement_ac.core.plan.job_fit import JobFit, round_left, round_since
from placement_ac.core.plan.targets import TargetClusters
from placement_ac.core.plan.withdrawing import withdrawals
from placement_ac.core.selection.selection import soonest

NOMINATED_MAX: Final = 20
"""Kueue: at most so many names in `status.nominatedClusterNames`."""
ADMITTED_THERE_SECONDS: Final = 0.1
"""After how long a worker with room has given a copy quota, most likely; from when its nomination is seen."""
PROMPT_SECONDS: Final = 5.0
"""So long after a nomination, Kueue has looked by itself."""
PROMPT_MAX: Final = 5
"""With more Workloads nominated and not placed than these, our entries do not say where to."""


@dataclass(frozen=True, slots=True)
class Nominations:
    """The nominations to write, and the seconds until the next round begins."""

    nominations: tuple[tuple[Workload, tuple[str, ...]], ...] = ()
    unfit: tuple[tuple[Workload, str], ...] = ()
    """Workloads with quota that no cluster fits, or none ever gives quota, and why."""
    refusals: Mapping[str, int] = field(default_factory=dict)
    """Filter → how often it has refused a cluster to a Workload with quota that is not nominated yet."""
    questions: FactQuestions = field(default_factory=FactQuestions)
    """The workers that are to be asked about their queues."""
    awaiting: frozenset[str] = frozenset()
    """Uids of new Workloads that wait for a worker's answer (FACTS_WAIT_SECONDS), or a later plan."""
    messages: Mapping[str, str] = field(default_factory=dict)
    """Uid of a nominated Workload → the message of our entry: where to, or why it waits there."""
    ask_for_copies: tuple[str, ...] = ()
    """MultiKueueClusters from which jobs are withdrawn, and that are to be asked for the copies they hold."""
    lasting: frozenset[Since] = frozenset()
    requeue_after: float | None = None


def nominate(snapshot: Snapshot, targets: TargetClusters, fit: JobFit) -> Nominations:
    """Return the nominations of every Workload of this config that no cluster runs."""
    eligible = eligible_clusters(snapshot, targets)
    nominations, unfit, lasting, waits = [], [], set(), []
    refused: list[Refusals] = []
    asked_about = set(fit.asked_early)
    awaiting: set[str] = set()
    messages: dict[str, str] = {}
    prompt = _prompt(snapshot, targets)
    taken_back = withdrawals(snapshot, targets, fit)
    for case in _cases(snapshot, targets, eligible, taken_back):
        workload, more, deferred = case.workload, case.more, fit.defers(case.workload)
        asked = frozenset[str]() if deferred else _asked_about(snapshot, fit, case, eligible)
        asked_about |= asked
        awaits = _awaits(fit, case, asked) if case.is_new and not deferred else 0.0
        is_awaiting = deferred or awaits > 0
        if is_awaiting:
            awaiting.add(workload.meta.uid)
            waits += [awaits] if awaits > 0 else []
        elif case.is_new:
            refusals, problem = fit.refusals(workload)
            refused.append(refusals)
            if problem := problem or fit.never_given(workload, refusals):
                unfit.append((workload, problem))
        new = _new(fit, case, snapshot.policy.step_size) if more and not is_awaiting else []
        wanted = (*case.kept, *new)[:NOMINATED_MAX]
        if wanted != workload.nominated:
            nominations.append((workload, wanted))
            fit.nominated(workload, wanted[len(case.kept) :])
        elif len(messages) < WORKLOAD_WRITES_AT_ONCE and (text := _waits_for(fit, case, snapshot)):
            messages[workload.meta.uid] = text
        elif workload.meta.uid in prompt and (text := _nominated_to(workload, snapshot)):
            left = ADMITTED_THERE_SECONDS - snapshot.age(case.since)
            waits += [left] if left > 0 else []
            messages |= {} if left > 0 else {workload.meta.uid: text}
        if workload.nominated:
            lasting.add(case.since)  # its subject has their count: a write begins anew
        if more and workload.nominated:
            waits += [left for left in (case.left - FACTS_WAIT_SECONDS, case.left) if left > 0]
    questions = fact_questions(snapshot, asked_about, fit.asked_again, fit.ask_about_newcomers)
    return Nominations(
        tuple(nominations),
        tuple(unfit),
        _by_filter(refused),
        questions,
        frozenset(awaiting),
        messages,
        taken_back.ask_for_copies,
        fit.turn.lasting(awaiting).union(lasting, taken_back.lasting),
        soonest((*waits, fit.turn.requeue_after, taken_back.requeue_after)),
    )


def _prompt(snapshot: Snapshot, targets: TargetClusters) -> frozenset[str]:
    """Return the uids of the Workloads of which Kueue is to record at once that a worker gave them quota.

    Kueue looks at what its workers answer once a second, but at once when a Workload of the hub changes: so
    our entry says where a Workload was nominated when a worker with room has had the time to answer. Not
    when many are under way: each change costs Kueue a question to every worker. Source: seen on Kueue main.
    """
    nominated = [workload for workload in targets.workloads.undecided if workload.nominated]
    if len(nominated) > PROMPT_MAX:
        return frozenset()
    now, prompt = snapshot.now, timedelta(seconds=PROMPT_SECONDS)
    return frozenset(
        workload.meta.uid
        for workload in nominated
        if workload.nominated_since and now - workload.nominated_since <= prompt
    )


def _nominated_to(workload: Workload, snapshot: Snapshot) -> str:
    """Return what our entry says, and where the Workload was nominated; "": it says that, or more."""
    to = NOMINATED_TO + joined(workload.nominated)
    messages = [entry.message for entry in _our_ready_entries(snapshot, workload)]
    if all(message.endswith(to) or message.startswith(WAITS_FOR) for message in messages):
        return ""
    before, _, _ = messages[0].partition(f"; {NOMINATED_TO}")
    return f"{before}; {to}"


def _waits_for(fit: JobFit, case: "_Case", snapshot: Snapshot) -> str:
    """Return where a nominated Workload waits, what is short there, and when the next round comes.

    "": there may be room, or our entry says it already for these nominations.
    """
    workload = case.workload
    cluster, what = fit.shortage(workload) if workload.nominated else ("", "")
    others = f" and {len(workload.nominated) - 1} more" if len(workload.nominated) > 1 else ""
    where = f"{WAITS_FOR}{cluster}{others}: "
    entries = _our_ready_entries(snapshot, workload) if what else ()
    if all(entry.message.startswith(where) for entry in entries):
        return ""
    next_round = snapshot.now + timedelta(seconds=max(case.left, 0.0))
    goes_on = bool(case.more) and bool(_fitting(fit, case))
    then = f"next round at {next_round:%H:%M:%SZ}" if goes_on else "no other cluster fits"
    return f"{where}at {snapshot.now:%H:%M:%SZ}, {what}; {then}"


def _says_where(fit: JobFit, workload: Workload, message: str) -> bool:
    """Whether a message says where a Workload waits, and it is still nominated there."""
    named = message.removeprefix(WAITS_FOR).partition(":")[0].partition(" ")[0]
    return message.startswith(WAITS_FOR) and named in fit.clusters_of(workload.nominated)


def _our_ready_entries(snapshot: Snapshot, workload: Workload) -> list[AdmissionCheckState]:
    ours = {check.meta.name for check in snapshot.checks.ours}
    return [state for state in workload.check_states if state.check in ours and state.state == READY]


def _asked_about(snapshot: Snapshot, fit: JobFit, case: "_Case", eligible: frozenset[str]) -> frozenset[str]:
    """Return the workers whose quota matters: for the next round, and to say why the Workload waits."""
    others = eligible.difference(case.kept)
    about = fit.asks_about(case.workload) & others if case.asks and others else frozenset[str]()
    entries = _our_ready_entries(snapshot, case.workload) if case.kept else ()
    if not about and all(_says_where(fit, case.workload, entry.message) for entry in entries):
        return about
    facts = snapshot.fleet.queue_facts
    there = (name for name in case.kept if name not in facts or not facts[name].problem)
    return about | fit.askable(case.workload, there)


def _fitting(fit: JobFit, case: "_Case") -> list[str]:
    """Return the clusters that fit it, best first; those where it failed, or that it dislikes, are last."""
    workload = case.workload
    order = [name for name in fit.ranking(workload).order if name in case.more]
    return sorted(order, key=lambda name: bool(fit.avoids(workload, name)))


def _awaits(fit: JobFit, case: "_Case", asked: frozenset[str]) -> float:
    """Return for how many seconds a new Workload waits for the answers of workers that are asked.

    Not for long beside a cluster that is known to have room.
    """
    left = fit.awaits(asked, case.workload)
    if left > 0 and any(fit.room(case.workload, name) is Room.NOMINAL for name in _fitting(fit, case)):
        return fit.awaits(asked, case.workload, FACTS_BESIDE_ROOM_SECONDS)
    return left


def _new(fit: JobFit, case: "_Case", step_size: int) -> list[str]:
    """Return the clusters to which a Workload is nominated anew.

    Where one is known to have room: the best of these, nominal quota first, as borrowed quota may be
    reclaimed. Where none is, and of some it is not known: a step's worth of those. Where all are full: the
    first in order, so that Kueue's queue, preemption and borrowing work there. A silent worker gets no job
    beside others; where all are silent, nothing is known. One that waits in vain goes on at once to where
    there is room, and stays nominated where it is: Kueue may be recording it there.
    """
    workload = case.workload
    if not (case.due or case.withdrawn or fit.waits_in_vain(workload)):
        return []
    rooms = [(fit.room(workload, name), name) for name in _fitting(fit, case)]
    others = [room for room, name in rooms if not fit.avoids(workload, name)]
    if min(others, default=Room.FULL) < Room.FULL:
        rooms = rooms[: len(others)]  # where it failed, it goes only if all others are full
    best = min((room for room, _ in rooms), default=Room.FULL)
    number = step_size if best in {Room.UNKNOWN, Room.SILENT} else 1
    if best >= Room.UNKNOWN and not case.due:
        number = min(number, case.withdrawn)
    return [name for room, name in rooms if room is best][:number]


class _Case(NamedTuple):
    """A Workload that no cluster runs, and where its nominations are."""

    workload: Workload
    kept: tuple[str, ...]
    """Its nominations that stay."""
    more: frozenset[str]
    """The clusters to which it may be nominated as well."""
    since: Since
    """Of its round."""
    left: float
    """Seconds until its next round."""

    @property
    def due(self) -> bool:
        return not self.kept or self.left <= 0

    @property
    def withdrawn(self) -> int:
        """How many of its nominations end now: others take their places, and the round goes on."""
        return max(len(self.workload.nominated) - len(self.kept), 0)

    @property
    def is_new(self) -> bool:
        """Whether it has quota, and no nomination that stays."""
        return not self.kept and self.workload.has_quota and self.workload.active

    @property
    def asks(self) -> bool:
        """Whether the quota of workers matters now: it is new, or another cluster may have room for it."""
        return self.is_new or bool(self.more)


def _cases(
    snapshot: Snapshot, targets: TargetClusters, eligible: frozenset[str], taken_back: Withdrawals
) -> Iterator[_Case]:
    steps = (*targets.drain.steps, *taken_back.steps)
    denominated = _by_workload((step.name, step.denominate) for step in steps)
    made_ready = _by_workload((step.name, step.make_ready) for step in steps)
    for workload in targets.workloads.undecided:
        uid = workload.meta.uid
        is_pending = targets.workloads.is_pending(workload)  # it becomes Ready first: that is another write
        again = () if is_pending else made_ready.get(uid, ())
        kept = _kept(snapshot, workload, denominated.get(uid, ()), again)
        may_go = uid not in targets.drain.held_back and _may_be_dispatched(snapshot, workload)
        more = eligible.difference(kept) if may_go else frozenset[str]()
        left = round_left(snapshot, workload)
        yield _Case(workload, tuple(kept), more, round_since(workload), left)


def _by_filter(refused: Sequence[Refusals]) -> Mapping[str, int]:
    """Return how often each filter has refused a cluster. Equal Workloads share one answer."""
    distinct = {id(refusals): refusals for refusals in refused if refusals}
    numbers = Counter(id(refusals) for refusals in refused if refusals)
    by_filter = Counter[str]()
    for key, number in numbers.items():
        for refusal in distinct[key].values():
            by_filter[refusal.filter] += number
    return by_filter


def _kept(
    snapshot: Snapshot, workload: Workload, denominated: Collection[str], made_ready: Iterable[str]
) -> list[str]:
    """Return its nominations without clusters that leave or are no longer listed."""
    kept = [
        name for name in workload.nominated if name in snapshot.objects.listed and name not in denominated
    ]
    return kept + [name for name in made_ready if name not in kept]


def eligible_clusters(snapshot: Snapshot, targets: TargetClusters) -> frozenset[str]:
    """Return the usable clusters that Kueue sees and is connected to.

    One that gets another name is not among them while its old one leaves.
    """
    leaving = {step.name for step in targets.drain.staying if step.state is not DrainState.NOT_ANSWERING}
    names = [entry.name for entry in targets.to_list if entry.name not in leaving]
    clusters, listed = snapshot.objects.clusters, set(snapshot.objects.listed)
    return frozenset(
        [name for name in names if name in listed and name in clusters and clusters[name].active]
    )


def _may_be_dispatched(snapshot: Snapshot, workload: Workload) -> bool:
    """Whether Kueue's own check is the only one that is not Ready yet."""
    multikueue = {check.meta.name for check in snapshot.checks.multikueue}
    states = {entry.check: entry.state for entry in workload.check_states}
    return (
        workload.has_quota
        and workload.active
        and not workload.cluster
        and any(states[check] == PENDING for check in multikueue & states.keys())
        and all(state == READY for check, state in states.items() if check not in multikueue)
    )


def _by_workload(pairs: Iterable[tuple[str, Iterable[Workload]]]) -> Mapping[str, list[str]]:
    """Turn clusters with their Workloads into Workloads (by uid) with their clusters."""
    names: dict[str, list[str]] = {}
    for name, workloads in pairs:
        for workload in workloads:
            names.setdefault(workload.meta.uid, []).append(name)
    return names
