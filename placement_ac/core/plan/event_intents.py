"""
What Kubernetes events tell of the list: how it changes, and which selected clusters cannot be used.

Pure. A change is told by the difference between the list that is there and the one that is to be,
never from memory: a new controller that finds all in order has nothing to tell. What is told
of a write is posted only when that write was done (`due`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from placement_ac.core.api.constants import (
    CLUSTER_ADDED,
    CLUSTER_DRAINING,
    CLUSTER_REMOVED,
    CLUSTER_UNUSABLE,
    CLUSTERS_SELECTED,
    IMMEDIATE,
    UNUSABLE_SECONDS,
)
from placement_ac.core.api.objects import Workload
from placement_ac.core.api.text import and_more, count_text, duration_text, joined
from placement_ac.core.draining.state import DrainState, DrainStep
from placement_ac.core.inputs.state import EventIntent, Snapshot, Timer, TimerKind, WantedConfig
from placement_ac.core.plan.targets import TargetClusters

NAMES_SHOWN: Final = 5
"""Clusters told one by one in an event; the rest is counted."""
WORKLOAD_EVENTS_MAX: Final = 20
"""Workloads that get an event of their own on one occasion; the check's tells of all."""


RUNNING_STATES: Final = (DrainState.RUNNING, DrainState.SEND_BACK_DUE, DrainState.CANNOT_SEND_BACK)
"""States in which an event says how many Workloads run."""


@dataclass(frozen=True, slots=True)
class UnusableClusters:
    """What is to be said of clusters that cannot be used, once it has lasted."""

    events: tuple[EventIntent, ...] = ()
    timers: frozenset[Timer] = frozenset()
    recheck_after: float | None = None


@dataclass(frozen=True, slots=True)
class PostableEvent:
    """One event that may be posted now; `about` None: on every check."""

    reason: str
    message: str
    lasts: bool
    """Whether it tells of what lasts: then it is the same, however often it is said."""
    about: Workload | None = None


# -- what is to be told


def list_events(
    seen: Snapshot, targets: TargetClusters, wanted: WantedConfig | None
) -> tuple[EventIntent, ...]:
    """Return what the write of the list is to be told by: one event per reason, however many clusters."""
    config = seen.objects.config
    before, left = (config.listed, config.draining) if config else ((), {})
    after, leaving = (wanted.clusters, wanted.draining) if wanted else ((), {})
    live = [name for name in before if name not in left]
    added = [name for name in after if name not in leaving and name not in live]
    told = (
        _selected(seen, targets, added) if not live else _added(seen, targets, added, left),
        _draining(seen, targets, [name for name in leaving if name not in left]),
        _removed(seen, targets, [name for name in before if name not in after], left),
    )
    return tuple(EventIntent(reason, message, "list") for reason, message in told if message)


def unusable_clusters(seen: Snapshot, targets: TargetClusters) -> UnusableClusters:
    """Return what is to be said of selected clusters that cannot be used, listed for now or not.

    While they are made, credentials fall short for one reason after another: only what stays is told.
    """
    if not targets.selection.left_out:
        return UnusableClusters()
    decided = {cluster for decision in seen.decision.decisions for cluster in decision.clusters}
    staying = {one.cluster for one in targets.drain.staying}
    whys = {
        cluster: f"{why}; listed until it has drained" if cluster in staying else why
        for cluster, why in targets.selection.left_out.items()
        if cluster in decided
    }
    if not whys:
        return UnusableClusters()
    what = "selected cluster cannot" if len(whys) == 1 else "selected clusters cannot"
    message = f"{len(whys)} {what} be used: {_each(whys)}"
    mark = Timer(TimerKind.CLUSTERS_UNUSABLE, message)
    left = UNUSABLE_SECONDS - seen.timer_ages.get(mark, 0.0)
    if left > 0:
        return UnusableClusters(timers=frozenset({mark}), recheck_after=left)
    return UnusableClusters((EventIntent(CLUSTER_UNUSABLE, message),), frozenset({mark}))


def _selected(seen: Snapshot, targets: TargetClusters, names: Collection[str]) -> tuple[str, str]:
    return CLUSTERS_SELECTED, _by(seen, count_text(len(names), "cluster"), _scores(targets, names))


def _added(
    seen: Snapshot, targets: TargetClusters, names: Collection[str], left: Collection[str]
) -> tuple[str, str]:
    whys = _scores(targets, [name for name in names if name not in left])
    whys |= dict.fromkeys(_clusters(targets, names, left), "selected again while it drained")
    return CLUSTER_ADDED, _by(seen, f"{count_text(len(names), 'cluster')} more", whys)


def _by(seen: Snapshot, what: str, whys: Mapping[str, str]) -> str:
    where = f"{seen.decision.placement.meta.namespace}/" if seen.decision.placement else ""
    return f"{what}, by Placement {where}{seen.name}: {_each(whys)}" if whys else ""


def _scores(targets: TargetClusters, names: Collection[str]) -> dict[str, str]:
    return {
        entry.cluster: f"score {entry.rank.score}" if entry.rank and entry.rank.score else ""
        for entry in targets.usable
        if entry.name in names
    }


def _clusters(targets: TargetClusters, names: Collection[str], among: Collection[str]) -> list[str]:
    return [entry.cluster for entry in targets.usable if entry.name in names and entry.name in among]


def _draining(seen: Snapshot, targets: TargetClusters, names: Collection[str]) -> tuple[str, str]:
    leaving = [one for one in targets.drain.staying if one.name in names]
    whys = {one.cluster: f"{_cause(seen, targets, one.cluster)}; {_stays(targets, one)}" for one in leaving}
    if not whys:
        return CLUSTER_DRAINING, ""
    verb = "drains" if len(whys) == 1 else "drain"
    runs = any(targets.workloads.running.get(one.name) for one in leaving)
    patience = f"; {_patience(seen)}" if runs else ""
    return CLUSTER_DRAINING, f"{count_text(len(whys), 'cluster')} {verb}: {_each(whys)}{patience}"


def _stays(targets: TargetClusters, one: DrainStep) -> str:
    """Return why it is still listed; where Workloads run, how many."""
    running = len(targets.workloads.running.get(one.name, ()))
    if not running or one.state not in RUNNING_STATES:
        return one.message
    return f"{count_text(running, 'Workload')} {'runs' if running == 1 else 'run'} there"


def _patience(seen: Snapshot) -> str:
    policy = seen.policy
    if policy.removal == IMMEDIATE:
        return "Workloads are sent back at once"
    if policy.drain_deadline is None:
        return "Workloads are waited for"
    return f"Workloads are waited for, {duration_text(policy.drain_deadline)} at most, and then sent back"


def _removed(
    seen: Snapshot, targets: TargetClusters, names: Collection[str], left: Collection[str]
) -> tuple[str, str]:
    clusters = {name: cluster for cluster, name in targets.listed.items()}
    whys: dict[str, str] = {}
    for name in names:
        cluster = clusters.get(name, name)
        cause = _cause(seen, targets, cluster)
        gone = cluster in seen.fleet.deleted_clusters
        whys[cluster] = cause if gone else f"{cause}; {'drained' if name in left else 'nothing ran there'}"
    verb = "is" if len(whys) == 1 else "are"
    told = f"{count_text(len(whys), 'cluster')} {verb} listed no more: {_each(whys)}"
    return CLUSTER_REMOVED, told if whys else ""


def _cause(seen: Snapshot, targets: TargetClusters, cluster: str) -> str:
    """Return why a listed cluster leaves."""
    if cluster in seen.fleet.deleted_clusters:
        return "its ManagedCluster is gone"
    if cluster in targets.selection.left_out:
        return f"unusable: {targets.selection.left_out[cluster]}"
    return "others have its seat" if cluster in targets.over_limit else "not selected any more"


def _each(whys: Mapping[str, str]) -> str:
    """Return `a, b (why); c (another why) and 12 more`."""
    shown = list(whys.items())[:NAMES_SHOWN]
    told = "; ".join(
        ", ".join(name for name, _ in group) + (f" ({why})" if why else "")
        for why, group in groupby(shown, lambda one: one[1])
    )
    return told + and_more(len(whys) - NAMES_SHOWN)


# -- what may be told now


def postable_events(
    notices: Iterable[EventIntent], *, listed: bool, answered: Collection[str], calm: bool
) -> Iterator[PostableEvent]:
    """Yield the events that follow from `notices`, on the checks first.

    `listed`: whether the MultiKueueConfig was written; `answered`: uids of the Workloads that were
    told to come back; `calm`: whether all went well, so that what lasts may be told as well.
    """
    for notice in notices:
        may = {"": calm, "list": listed, "answers": bool(answered)}[notice.after]
        done = [w for w in notice.workloads if notice.after != "answers" or w.meta.uid in answered]
        if not may or (notice.workloads and not done):
            continue
        names = f": {joined(workload.label for workload in done)}" if done else ""
        yield PostableEvent(notice.reason, notice.message + names, lasts=not notice.after)
        for workload in done[:WORKLOAD_EVENTS_MAX]:
            yield PostableEvent(*notice.to_each, lasts=False, about=workload)
