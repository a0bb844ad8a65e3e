"""
What becomes of a cluster that is listed and not wanted: it drains, passes the gate, or is lost.

Pure. The reason why it leaves counts, and so does the admin's policy; that no job is killed
or doubled counts more. Nothing goes at once but what no unfinished Workload can be on.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from placement_ac.core.api.constants import (
    ASK_AGAIN_SECONDS,
    CLUSTER_LOST,
    GATE_MOST_SECONDS,
    HEAL_SECONDS,
    IMMEDIATE,
    OPEN_SECONDS,
    QUIET_SECONDS,
    WORKLOAD_SENT_BACK,
    WORKLOADS_SENT_BACK,
)
from placement_ac.core.api.objects import Workload
from placement_ac.core.api.text import some
from placement_ac.core.draining.gate import (
    AIRING,
    SOON,
    THEIRS,
    close,
    grace_of,
    pass_the_gate,
    take_out,
    trouble,
)
from placement_ac.core.draining.state import Case, Jobs, Leaving
from placement_ac.core.inputs.state import NOTHING, Mark, Notice, Snapshot
from placement_ac.core.selection.selection import names_now, soonest

RUN: Final = "Workloads run there"
SHUT: Final = Mark("shut")
AIRED: Final = Mark("aired")


class Removal(NamedTuple):
    """What becomes of all of them."""

    leaving: tuple[Leaving, ...] = ()
    marks: frozenset[Mark] = frozenset()
    recheck_after: float | None = None
    held_back: Mapping[str, str] = NOTHING
    """Uid of a Workload that was sent back → the cluster that has not let go of it for sure."""
    ask: tuple[str, ...] = ()
    """MultiKueueClusters whose clusters are to be asked."""
    staying: tuple[Leaving, ...] = ()
    """Those of `leaving` that have a reason to stay for now."""

    @property
    def closed(self) -> str:
        """Why no Workload becomes Ready; "" when the gate is open."""
        names = {one.cluster for one in self.leaving if one.closed or not one.why}
        names |= {mark.of for mark in self.marks if mark.what == "left"}
        return f"{some(sorted(names))} is leaving: it takes a moment" if names else ""


def remove(seen: Snapshot, wanted: Collection[str], jobs: Jobs, listed: Mapping[str, str]) -> Removal:
    """Return what becomes of every listed MultiKueueCluster that is not `wanted`; `listed` by `listed_now`.

    Somebody else may have put it there: jobs may run on it all the same.
    """
    names = names_now(seen)
    going = [name for name in names if name not in wanted]
    went = [mark.of for mark in seen.ages if mark.what == "going"]
    clusters = {name: cluster for cluster, name in listed.items()} if going or went else {}
    case = Case(seen, jobs, _airs(seen))
    leaving = tuple([_stranded(case, _leave(case, clusters.get(name, name), name)) for name in going])
    held, asking = _held_back(case, leaving) if seen.workloads else ({}, [])
    left = _left(seen, went, {clusters.get(name, name) for name in names} if went else ())
    marks = {Mark("going", one.cluster) for one in leaving if not one.why} | left
    marks |= _gate_marks(case, leaving)
    if seen.workloads:
        marks |= _healed(case, leaving)
    waits = (*_waits(case, leaving, left), QUIET_SECONDS if held else None)
    return Removal(
        leaving,
        frozenset(marks).union(*[one.marks for one in leaving]),
        soonest((*waits, *[one.recheck_after for one in leaving])),
        held,
        tuple(dict.fromkeys((*[one.name for one in leaving if one.ask], *asking))),
        tuple([one for one in leaving if one.why]),
    )


def _leave(case: Case, cluster: str, name: str) -> Leaving:
    seen, here = case.seen, Leaving(cluster, name)
    running = case.jobs.running.get(name, [])
    if cluster in seen.gone and name == seen.hub.cluster_object(seen.name, cluster):
        return _lost(here, [*running, *case.jobs.waiting.get(name, [])])
    if cluster in seen.unreachable:
        return here._replace(why="OCM cannot reach it")
    if not seen.workloads:
        return _once_cleared(case, here)
    if running:
        return _drain(case, here, running)
    return take_out(case, here) if seen.policy.dispatcher else pass_the_gate(case, here)


def _once_cleared(case: Case, here: Leaving) -> Leaving:
    """Give Kueue a moment to clear up where jobs have just ended: it does so while the cluster is listed."""
    mark = Mark("quiet", here.cluster)
    left = QUIET_SECONDS - case.age(mark)
    config = case.seen.config
    if config is None or here.name not in config.draining or left <= 0:
        return here
    return here._replace(why=SOON, marks=frozenset({mark}), recheck_after=left)


def _lost(here: Leaving, workloads: Collection[Workload]) -> Leaving:
    if not workloads:
        return here
    told = f"ManagedCluster {here.cluster} is gone, and with it"
    to_each = (
        f"cluster {here.cluster}, where it was, is lost with its ManagedCluster; it starts anew elsewhere"
    )
    notice = Notice(CLUSTER_LOST, told, "list", tuple(workloads), (CLUSTER_LOST, to_each))
    return here._replace(notices=(notice,))


# -- while jobs run there


def _drain(case: Case, here: Leaving, running: list[Workload]) -> Leaving:
    """Wait for what runs there; send it back if the policy or a deadline says so, while it is listed."""
    left = _deadline_left(case, here.name)
    if left is None or left > 0:
        return here._replace(why=RUN, recheck_after=left)
    if not all(map(case.jobs.gated, running)):
        return here._replace(why=THEIRS)
    if case.airing:
        return here._replace(why=AIRING)
    here = close(case, here)
    if not here.closed:
        return here._replace(why=f"{RUN}; {here.why}" if trouble(case, here.name) else RUN)
    if Mark("closed", here.cluster) not in case.seen.ages:
        return here._replace(why=RUN, closed=not case.seen.policy.dispatcher)
    send_back = tuple(w for w in running if not case.jobs.is_sent_back(w))
    return here._replace(
        why="its Workloads are sent back",
        closed=not case.seen.policy.dispatcher,
        send_back=send_back,
        notices=_told(case, here.cluster, send_back),
    )


def _told(case: Case, cluster: str, send_back: tuple[Workload, ...]) -> tuple[Notice, ...]:
    if not send_back:
        return ()
    cause = "at once" if case.seen.policy.removal == IMMEDIATE else "as the deadline has passed"
    told = f"cluster {cluster} leaves {cause}; sent back"
    to_each = f"sent back from cluster {cluster}, which leaves {cause}; it starts anew elsewhere"
    return (Notice(WORKLOADS_SENT_BACK, told, "answers", send_back, (WORKLOAD_SENT_BACK, to_each)),)


def _deadline_left(case: Case, name: str) -> float | None:
    """Return the seconds for which what runs there is still waited for; None: for ever."""
    policy, config = case.seen.policy, case.seen.config
    if policy.removal == IMMEDIATE:
        return 0.0
    if policy.drain_deadline is None:
        return None
    since = config.draining.get(name) if config else None
    drained_for = (case.seen.now - since).total_seconds() if since else 0.0
    return max(0.0, policy.drain_deadline - drained_for)


# -- what was sent back


def _stranded(case: Case, one: Leaving) -> Leaving:
    """Heal what was sent back from here though its copy was left, whatever else keeps the cluster."""
    if not one.why or not case.jobs.undecided:
        return one
    sent = [w for w in case.jobs.undecided if w.sent_from == one.cluster and w not in one.heal]
    if not sent or trouble(case, one.name):
        return one
    heal = tuple(w for w in sent if case.jobs.is_back(w) and _still_holds(case, one, w))
    late = tuple(
        w
        for w in sent
        if case.jobs.is_ready(w) and case.age(Mark("healed", w.meta.uid)) >= HEAL_SECONDS
        if w not in one.send_back
    )
    return one._replace(heal=(*one.heal, *heal), send_back=(*one.send_back, *late))


def _held_back(case: Case, leaving: Iterable[Leaving]) -> tuple[dict[str, str], list[str]]:
    """Return the Workloads sent back from a cluster that may still run them, and whom to ask about it."""
    staying = {one.cluster: one for one in leaving if one.why}
    held, asking = {}, []
    for workload in filter(case.jobs.is_back, case.jobs.undecided):
        one = staying.get(workload.sent_from)
        if one is None or workload in one.heal or _has_let_go(case, one, workload):
            continue
        held[workload.meta.uid] = one.cluster
        if _word_is_old(case, one, workload):
            asking.append(one.name)
    return held, asking


def _has_let_go(case: Case, one: Leaving, workload: Workload) -> bool:
    """Whether the cluster, asked well after Kueue took the Workload back, holds no copy of it."""
    return _asked_since(case, one, workload) and workload.meta.id not in case.seen.asked[one.name].copies


def _still_holds(case: Case, one: Leaving, workload: Workload) -> bool:
    return _asked_since(case, one, workload) and workload.meta.id in case.seen.asked[one.name].copies


def _asked_since(case: Case, one: Leaving, workload: Workload) -> bool:
    asked = case.seen.asked.get(one.name)
    if asked is None or asked.problem or workload.evicted is None:
        return False
    since = (case.seen.now - workload.evicted).total_seconds() - asked.age
    return since >= QUIET_SECONDS + 1.0  # the API tells whole seconds


def _word_is_old(case: Case, one: Leaving, workload: Workload) -> bool:
    asked = case.seen.asked.get(one.name)
    if asked is None:
        return True
    early = not asked.problem and not _asked_since(case, one, workload)
    return asked.age > (QUIET_SECONDS if early else ASK_AGAIN_SECONDS)


# -- marks


def _airs(seen: Snapshot) -> bool:
    """Whether the gate opens for a while: it has been closed for long, whoever closed it, and others wait."""
    aired = seen.ages.get(AIRED)
    if aired is not None:
        return aired < GATE_MOST_SECONDS
    return seen.ages.get(SHUT, 0.0) >= grace_of(seen) + GATE_MOST_SECONDS


def _gate_marks(case: Case, leaving: Iterable[Leaving]) -> set[Mark]:
    if case.airing:
        return {AIRED}
    return {SHUT} if any(one.closed for one in leaving) else set()


def _healed(case: Case, leaving: Iterable[Leaving]) -> set[Mark]:
    ready = {w.meta.uid for w in case.jobs.undecided if case.jobs.is_ready(w)}
    known = {mark for mark in case.seen.ages if mark.what == "healed" and mark.of in ready}
    return known | {Mark("healed", w.meta.uid) for one in leaving for w in one.heal}


def _left(seen: Snapshot, went: Iterable[str], listed: Collection[str]) -> set[Mark]:
    """Return the clusters that were unlisted just now, from when the list was first seen without them.

    `went`: those that were to go when it was looked last.
    """
    gone = {Mark("left", cluster) for cluster in went if cluster not in listed}
    return gone | {m for m, age in seen.ages.items() if m.what == "left" and age < OPEN_SECONDS}


def _waits(case: Case, leaving: Collection[Leaving], left: Iterable[Mark]) -> Iterable[float]:
    """Yield when the gate is to be looked at again, though nothing happens."""
    for mark in left if case.seen.workloads else ():  # one that comes later is looked at then
        yield OPEN_SECONDS - case.age(mark)
    if case.airing:
        yield GATE_MOST_SECONDS - case.age(AIRED)
    elif any(one.closed for one in leaving):
        yield max(grace_of(case.seen) + GATE_MOST_SECONDS - case.age(SHUT), 0.0)
