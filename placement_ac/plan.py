"""
Decide what Kueue should see for one Placement.

Pure functions of a `Snapshot`: no clock, no I/O, no logging. Refusing is an
answer like any other; it reaches the user as a condition, not an exception.
A refusal leaves the objects as they are, save the two that say "there is no
cluster": then each cluster leaves as soon as no job is hurt by it, and with the
last one the config, as Kueue takes none that is empty.
"""

from collections.abc import Container
from dataclasses import replace
from typing import Final

from placement_ac.ageing import age
from placement_ac.answers import Outlook, next_retry, replies, stuck, stuck_for
from placement_ac.course import Course, chart
from placement_ac.dispatch import Dispatched, dispatch
from placement_ac.model import KueueObject
from placement_ac.names import (
    LOST_SECONDS,
    NO_CLUSTER_SELECTED,
    NO_CLUSTER_USABLE,
    REPLIES_AT_ONCE,
    RIVAL_SECONDS,
    STRANDED_SECONDS,
)
from placement_ac.notices import changes, complain
from placement_ac.probing import questions
from placement_ac.removal import Removal
from placement_ac.seats import order
from placement_ac.selection import cluster_of, removable, soonest
from placement_ac.snapshot import Mark, Plan, Reply, Snapshot, Verdict, WantedCluster, WantedConfig
from placement_ac.verdict import claimed_elsewhere, judge, taken
from placement_ac.ways import Source
from placement_ac.words import some

UNDER_WAY: Final = ("going", "left")
"""Marks of clusters that leave: kept while nothing can be decided."""


def plan(seen: Snapshot, course: Course | None = None) -> Plan:
    """Return the objects, the verdict on each check and the answers that `seen` calls for.

    `course`: what `chart` says of it, where that is known already.
    """
    if seen.checks:
        return _kept(seen, _planned(seen, course or chart(seen)))
    return _held(seen, Plan()) if owners_of(seen) else _kept(seen, _none(seen, Plan()))


def _planned(seen: Snapshot, course: Course) -> Plan:
    verdict = judge(seen, course)
    asked, ask_again = questions(seen)
    selection = course.selection
    complaint = complain(seen, course)
    answer = Plan(
        selected=selection.ranked,
        unusable=tuple(cluster for cluster in selection.ranked if cluster in selection.left_out),
        verdicts={check.meta.name: verdict for check in seen.checks},
        marks=selection.marks | course.guarded.marks | complaint.marks,
        notices=(*course.guarded.notices, *complaint.notices),
        questions=asked,
        recheck_after=soonest((_recheck_after(seen, course), ask_again, complaint.recheck_after)),
    )
    if leaves_all(verdict):
        # What is under way goes on when the reason has gone.
        answer = replace(answer, marks=answer.marks | {mark for mark in seen.ages if mark.what in UNDER_WAY})
        return _answered(seen, _held(seen, answer), Outlook(verdict, ""))
    answer = _aged(seen, _listed(seen, course, _with_removal(answer, course.removal)))
    answer = replace(answer, notices=(*answer.notices, *changes(seen, course, answer.config)))
    answer = _answered(seen, answer, Outlook(verdict, _ready(course), course.removal))
    return _dispatched(answer, dispatch(seen, course))


def leaves_all(verdict: Verdict) -> bool:
    """Whether the objects stay as they are: a refusal, and not for want of clusters."""
    return verdict.status == "False" and verdict.reason not in (NO_CLUSTER_SELECTED, NO_CLUSTER_USABLE)


def _aged(seen: Snapshot, answer: Plan) -> Plan:
    """Add the warnings of credentials that expire soon."""
    ageing = age(seen, answer.clusters)
    return replace(
        answer,
        notices=(*answer.notices, *ageing.notices),
        recheck_after=soonest((answer.recheck_after, ageing.recheck_after)),
    )


def _recheck_after(seen: Snapshot, course: Course) -> float | None:
    blocked = any(claimed_elsewhere(seen, entry) for entry in course.usable)
    waits = (course.selection.recheck_after, course.guarded.recheck_after)
    return soonest((*waits, RIVAL_SECONDS if blocked else None))


def _with_removal(answer: Plan, removal: Removal) -> Plan:
    return replace(
        answer,
        marks=answer.marks | removal.marks,
        ask=removal.ask,
        notices=(*answer.notices, *(notice for one in removal.leaving for notice in one.notices)),
        recheck_after=soonest((answer.recheck_after, removal.recheck_after)),
    )


def _answered(seen: Snapshot, answer: Plan, outlook: Outlook) -> Plan:
    """Add what the Workloads are told; what is too much for one go follows at once."""
    told = _by_turns(tuple(replies(seen, outlook)), seen)
    waiting = stuck(seen, outlook)
    more = 0.0 if len(told) > REPLIES_AT_ONCE else None
    stranded = [STRANDED_SECONDS - seconds for seconds in stuck_for(seen) if seconds < STRANDED_SECONDS]
    return replace(
        answer,
        replies=told[:REPLIES_AT_ONCE],
        marks=answer.marks | waiting,
        recheck_after=soonest((answer.recheck_after, next_retry(seen, waiting), more, *stranded)),
    )


def _by_turns(told: tuple[Reply, ...], seen: Snapshot) -> tuple[Reply, ...]:
    """Begin somewhere else each second: those that cannot be written must not stand before all others."""
    at = int(seen.now.timestamp()) * REPLIES_AT_ONCE % len(told) if len(told) > REPLIES_AT_ONCE else 0
    return told[at:] + told[:at]


def _dispatched(answer: Plan, dispatched: Dispatched) -> Plan:
    return replace(
        answer,
        nominations=dispatched.nominations,
        marks=answer.marks | dispatched.marks,
        recheck_after=soonest((answer.recheck_after, dispatched.recheck_after)),
    )


def _ready(course: Course) -> str:
    """Return what a Workload is told that may go: how many clusters there are for it, and which."""
    usable = [entry.cluster for entry in course.usable]
    others = (*course.selection.left_out, *course.beyond, *course.queued)
    if not usable:
        return ""
    return f"{len(usable)} of {len(usable) + len(others)} selected clusters usable: {some(usable)}"


def owners_of(seen: Snapshot) -> dict[str, str]:
    """Return the AdmissionChecks that use the config, uid → name: as long as one lives, so does it."""
    return {check.meta.uid: check.meta.name for check in (*seen.checks, *seen.users, *seen.holders)}


# -- the objects


def _listed(seen: Snapshot, course: Course, answer: Plan) -> Plan:
    """List every usable cluster, and after them those that leave and cannot go yet."""
    owners = owners_of(seen)
    ordered = order(seen, course.usable, [one.name for one in course.removal.staying])
    wanted = {entry.name: (entry.cluster, entry.source) for entry in course.usable}
    mine = course.listed.values()
    for one in course.removal.staying:
        found = seen.credentials.get(one.cluster) or seen.spare.get(one.cluster)
        source = found if isinstance(found, Source) else None
        if one.name in mine and (source or one.name in seen.clusters):
            wanted[one.name] = one.cluster, source
    clusters = tuple(
        WantedCluster(name, cluster, source, owners | _others(seen, name))
        for name, (cluster, source) in wanted.items()
    )
    return replace(
        answer,
        config=_config(seen, course, ordered.names),
        clusters=clusters + _needed_elsewhere(seen, wanted),
        marks=answer.marks | ordered.marks,
        recheck_after=soonest((answer.recheck_after, ordered.recheck_after)),
    )


def _config(seen: Snapshot, course: Course, names: tuple[str, ...]) -> WantedConfig | None:
    known = seen.config.draining if seen.config and seen.config.ours else {}
    draining = {one.name: known.get(one.name, seen.now) for one in course.removal.staying}
    if len(names) > seen.hub.clusters_max and seen.config:
        # The cap has shrunk: nothing can be written before enough of them could go together.
        names = seen.config.listed
    return WantedConfig(seen.name, names, owners_of(seen), draining) if names else None


def _kept(seen: Snapshot, answer: Plan) -> Plan:
    """Keep MultiKueueClusters for a while that are needed no more: Kueue still clears up there."""
    wanted = {cluster.name for cluster in answer.clusters}
    wanted.update(answer.config.clusters if answer.config else ())
    marks = [Mark("unlisted", obj.meta.name) for obj in removable(seen) if obj.meta.name not in wanted]
    left = {mark: _retention(seen, mark.of) - seen.ages.get(mark, 0.0) for mark in marks}
    kept = {mark: seconds for mark, seconds in left.items() if seconds > 0}
    return replace(
        answer,
        kept=frozenset(mark.of for mark in kept),
        marks=answer.marks | kept.keys(),
        recheck_after=soonest((answer.recheck_after, *kept.values())),
    )


def _retention(seen: Snapshot, name: str) -> float:
    """Return how long a MultiKueueCluster is kept: longer where Kueue has yet to come back and clear up."""
    kept, lost = seen.policy.retention, seen.clusters[name].active is False
    return max(kept, LOST_SECONDS) if kept and lost else kept


def _held(seen: Snapshot, answer: Plan) -> Plan:
    """Keep what is there as it is; only its owners follow."""
    owners = owners_of(seen)
    config = None
    if seen.config and not taken(seen.config, seen.name, ""):
        config = WantedConfig(seen.name, seen.config.listed, owners, seen.config.draining)
    mine = tuple(
        WantedCluster(name, cluster_of(seen, obj), None, owners | _others(seen, name))
        for name, obj in seen.clusters.items()
        if obj.ours and (obj.placement == seen.name or _listed_without_placement(obj, config))
    )
    kept = [cluster.name for cluster in mine]
    return replace(answer, config=config, clusters=mine + _needed_elsewhere(seen, kept))


def _none(seen: Snapshot, answer: Plan) -> Plan:
    """Want nothing but what other Placements share."""
    return replace(answer, clusters=_needed_elsewhere(seen, ()))


def _listed_without_placement(obj: KueueObject, config: WantedConfig | None) -> bool:
    """Whether it is listed here and shared, or its label was taken off."""
    return not obj.placement and config is not None and obj.meta.name in config.clusters


def _needed_elsewhere(seen: Snapshot, wanted: Container[str]) -> tuple[WantedCluster, ...]:
    """Shared MultiKueueClusters that only other Placements list: they stay as they are."""
    return tuple(
        WantedCluster(name, cluster_of(seen, obj), None, _others(seen, name) | _own_claim(seen, name))
        for name, obj in seen.clusters.items()
        if obj.ours and not obj.placement and name not in wanted and _others(seen, name)
    )


def _own_claim(seen: Snapshot, name: str) -> dict[str, str]:
    """Return the owners that others see in this Placement, as it selects what it does not list.

    All Placements must come to the same owners of what they share, or they would write them for ever.
    """
    return owners_of(seen) if seen.checks and isinstance(seen.credentials.get(name), Source) else {}


def _others(seen: Snapshot, name: str) -> dict[str, str]:
    return dict(seen.others.get(name, {}))
