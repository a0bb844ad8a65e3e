"""
Decide the Kubernetes events: how the list changes, which clusters cannot be used, and what expires soon.

Pure. Events compare the observed list with the wanted one and remember nothing: a new controller
that finds all in order posts none. An event about a write is posted only after that write
(`postable_events`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Final

from placement_ac.core.api.constants import (
    ANNOTATION_IGNORED,
    CLUSTER_ADDED,
    CLUSTER_DRAINED,
    CLUSTER_DRAINING,
    CLUSTER_LACKS,
    CLUSTER_MAINTENANCE,
    CLUSTER_REMOVED,
    CLUSTER_UNUSABLE,
    CLUSTERS_SELECTED,
    EXPIRES_SOON,
    IMMEDIATE,
    MANUAL_CHANGE_REVERTED,
    MULTIKUEUE_CONFIG,
    NO_CLUSTER_FITS,
    NOMINATED,
    NOMINATED_TO,
    UNUSABLE_SECONDS,
    WORKLOAD,
    WRITES_UNDONE,
    Kind,
)
from placement_ac.core.api.fields import format_time
from placement_ac.core.api.list_change import Change, ClusterChange, ListChange
from placement_ac.core.api.objects import KueueObject, Workload
from placement_ac.core.api.text import and_more, count_text, duration_text, joined
from placement_ac.core.draining.state import DrainStep
from placement_ac.core.inputs.state import (
    EventIntent,
    KueueObjects,
    Plan,
    Since,
    SinceKind,
    Snapshot,
    WantedCluster,
    WantedConfig,
)
from placement_ac.core.plan.diff import Action, Apply, Nominate
from placement_ac.core.plan.targets import TargetClusters
from placement_ac.core.selection.probe_schedule import probe_remarks
from placement_ac.core.selection.selection import is_forced_out, maintenance_of

SELECTED_AGAIN: Final = "selected again while it drained"
"""Why a cluster is added that is listed already."""
NAMES_SHOWN: Final = 5
"""An event names so many clusters, and counts the rest."""
WORKLOAD_EVENTS_MAX: Final = 20
"""So many Workloads get an event of their own at once; the event on the check names all."""
LAST_SHARE: Final = 0.1
"""Of its life: OCM renews a token when a fifth of it is left, so with a tenth left nobody does."""


@dataclass(frozen=True, slots=True)
class DueEvents:
    """The events about lasting states that are due, and the seconds until there may be others."""

    events: tuple[EventIntent, ...] = ()
    requeue_after: float | None = None
    lasting: frozenset[Since] = frozenset()


@dataclass(frozen=True, slots=True)
class PostableEvent:
    """One event that may be posted now; `about` None: on every check."""

    reason: str
    message: str
    lasts: bool
    """Whether it is about a state that lasts: then a repetition counts as the same event."""
    about: Workload | KueueObject | None = None
    about_kind: Kind = WORKLOAD
    data: str = ""
    """The annotation of a change of the list; "": it is about something else."""


def undone_event(message: str) -> PostableEvent:
    """Return the event about a write that somebody undoes again and again."""
    return PostableEvent(WRITES_UNDONE, message, lasts=True)


def reverted_events(snapshot: Snapshot, done: Iterable[Action]) -> Iterator[PostableEvent]:
    """Yield the events about changes of others that were changed back, on the object and on the checks."""
    for action in done:
        observed = action.observed if isinstance(action, Apply) else None
        if isinstance(observed, KueueObject) and (who := observed.applied_fields.changed_by):
            what = f"the spec of {action.kind.kind} {observed.meta.name}"
            message = (
                f"{_what_to_change(snapshot, observed)} instead: what {who} changed in {what} was reverted"
            )
            yield PostableEvent(MANUAL_CHANGE_REVERTED, message, lasts=False)
            yield PostableEvent(MANUAL_CHANGE_REVERTED, message, False, observed, action.kind)


def deleted_events(
    snapshot: Snapshot, before: KueueObjects, done: Iterable[Action], own: Collection[str]
) -> Iterator[PostableEvent]:
    """Yield the events about objects that were made again because somebody has deleted them.

    `before`: the objects that the last plan of this process saw; `own`: the uids of those that it has deleted
    itself. The API does not say who deletes an object: its audit log does.
    """
    for action in done:
        if not isinstance(action, Apply) or action.observed:
            continue
        gone = before.config if action.kind is MULTIKUEUE_CONFIG else before.clusters.get(action.name)
        if gone and gone.ours and gone.meta.name == action.name and gone.meta.uid not in own:
            message = (
                f"{_change_placement(snapshot)} instead: {action.kind.kind} {action.name} was deleted, and"
                " has been made again; the API server's audit log says by whom"
            )
            yield PostableEvent(MANUAL_CHANGE_REVERTED, message, lasts=False)


def dispatch_events(wanted: Plan, done: Iterable[Action]) -> Iterator[PostableEvent]:
    """Yield the events on Workloads about nominations that were written, and about those that fit nowhere."""
    for action in done:
        if isinstance(action, Nominate) and (new := set(action.clusters) - set(action.workload.nominated)):
            names = joined([name for name in action.clusters if name in new])
            yield PostableEvent(NOMINATED, NOMINATED_TO + names, lasts=False, about=action.workload)
    for workload, problem in wanted.unfit:
        yield PostableEvent(NO_CLUSTER_FITS, problem, lasts=True, about=workload)
    for workload, problem in wanted.ignored:
        yield PostableEvent(ANNOTATION_IGNORED, problem, lasts=True, about=workload)


def _what_to_change(snapshot: Snapshot, obj: KueueObject) -> str:
    if obj.cluster:
        return f"change the credentials of cluster {obj.cluster}"
    return _change_placement(snapshot)


def _change_placement(snapshot: Snapshot) -> str:
    where = f"{snapshot.decisions.placement.namespace}/" if snapshot.decisions.placement else ""
    return f"change Placement {where}{snapshot.name}"


# -- events about the list


def config_events(
    snapshot: Snapshot, targets: TargetClusters, wanted: WantedConfig | None
) -> tuple[EventIntent, ...]:
    """Return the events to post when the list is written: one per reason, however many clusters."""
    config = snapshot.objects.config
    before, drained = (config.listed, config.draining) if config else ((), {})
    after, draining = (wanted.clusters, wanted.draining) if wanted else ((), {})
    live = [name for name in before if name not in drained]
    stays = {step.name for step in targets.drain.staying}
    added = [name for name in after if name not in stays and name not in live]
    removed = [name for name in before if name not in after]
    if config and config.applied_fields.changed_by and not config.applied_fields.clusters:
        # `reverted_events` tells of the changes that somebody else has made in the list.
        added = [name for name in added if name in before or not _was_listed(snapshot, name)]
        removed = [name for name in removed if _was_listed(snapshot, name)]
    events = (
        _selected(snapshot, targets, added) if not live else _added(snapshot, targets, added, drained),
        _draining(snapshot, targets, [name for name in draining if name not in drained]),
        _drained(targets, [name for name in drained if name in stays and name not in draining]),
        _removed(snapshot, targets, removed, drained),
    )
    return tuple(filter(None, events))


def _was_listed(snapshot: Snapshot, name: str) -> bool:
    """Whether the controller had listed a MultiKueueCluster: it exists, and has not left the list."""
    return name in snapshot.objects.clusters and Since(SinceKind.RETAINED, name) not in snapshot.all_ages


def unusable_clusters(snapshot: Snapshot, targets: TargetClusters) -> DueEvents:
    """Return the event about selected clusters that cannot be used, listed for now or not.

    While credentials are made, one reason follows another: only a reason that lasts gives an event.
    """
    staying = {step.cluster for step in targets.drain.staying}
    reasons = {
        cluster: f"{why}; listed until it has drained" if cluster in staying else why
        for cluster, why in targets.selection.left_out.items()
        if not maintenance_of(snapshot, cluster)
    }
    if not reasons:
        return DueEvents()
    what = "selected cluster cannot" if len(reasons) == 1 else "selected clusters cannot"
    message = f"{len(reasons)} {what} be used: {named_with_reasons(reasons)}"
    return _once_it_lasts(SinceKind.CLUSTERS_UNUSABLE, CLUSTER_UNUSABLE, message, snapshot)


def maintenance_events(snapshot: Snapshot) -> Iterator[EventIntent]:
    """Yield an event for each cluster whose maintenance is announced; it stays the same when that begins."""
    for cluster, window in sorted(snapshot.fleet.maintenance.items()):
        starts, then = format_time(window.starts), _removal_message(snapshot, force=window.force)
        yield EventIntent(CLUSTER_MAINTENANCE, f"{cluster} is in maintenance from {starts} on: {then}")


def lacking_clusters(snapshot: Snapshot, targets: TargetClusters) -> DueEvents:
    """Return the event about clusters that stay listed although the probe finds that they lack something.

    One cluster is probed after another: only what lasts gives an event.
    """
    remarks = probe_remarks(snapshot, sorted(entry.cluster for entry in targets.to_list))
    what = f"{count_text(len(remarks), 'listed cluster')}: {named_with_reasons(remarks)}"
    return _once_it_lasts(SinceKind.CLUSTERS_LACK, CLUSTER_LACKS, what, snapshot) if remarks else DueEvents()


def _once_it_lasts(kind: SinceKind, reason: str, message: str, snapshot: Snapshot) -> DueEvents:
    since = Since(kind, message)
    left = UNUSABLE_SECONDS - snapshot.age(since)
    if left > 0:
        return DueEvents(lasting=frozenset({since}), requeue_after=left)
    return DueEvents((EventIntent(reason, message),), lasting=frozenset({since}))


def _selected(snapshot: Snapshot, targets: TargetClusters, names: Collection[str]) -> EventIntent | None:
    message = f"{count_text(len(names), 'cluster')}, {_by(snapshot)}"
    return _list_event(CLUSTERS_SELECTED, message, "added", _to_list(targets, names))


def _added(
    snapshot: Snapshot, targets: TargetClusters, names: Collection[str], drained: Collection[str]
) -> EventIntent | None:
    message = f"{count_text(len(names), 'cluster')} more, {_by(snapshot)}"
    return _list_event(CLUSTER_ADDED, message, "added", _to_list(targets, names, drained))


def _by(snapshot: Snapshot) -> str:
    where = f"{snapshot.decisions.placement.namespace}/" if snapshot.decisions.placement else ""
    return f"by Placement {where}{snapshot.name}"


def _to_list(
    targets: TargetClusters, names: Collection[str], drained: Collection[str] = ()
) -> list[ClusterChange]:
    """Return the clusters of these MultiKueueClusters, first those that are new."""
    return [
        ClusterChange(
            entry.cluster,
            entry.rank.score or None if entry.rank and not again else None,
            cause=SELECTED_AGAIN if again else "",
            again=again,
        )
        for again in (False, True)
        for entry in targets.to_list
        if entry.name in names and (entry.name in drained) is again
    ]


def _list_event(
    reason: str, message: str, change: Change, clusters: Collection[ClusterChange], end: str = ""
) -> EventIntent | None:
    """Return the event about these clusters, as text and as data; None: there are none."""
    reasons = {
        cluster.name: "; ".join(filter(None, (cluster.cause, cluster.state)))
        or (f"score {cluster.score}" if cluster.score else "")
        for cluster in clusters
    }
    whole = f"{message}: {named_with_reasons(reasons)}{end}"
    data = ListChange(change, tuple(clusters))
    return EventIntent(reason, whole, "list", change=data) if clusters else None


def _draining(snapshot: Snapshot, targets: TargetClusters, names: Collection[str]) -> EventIntent | None:
    steps = [step for step in targets.drain.staying if step.name in names]
    clusters = [
        ClusterChange(
            step.cluster, cause=_cause(snapshot, targets, step.cluster), state=_drain_message(targets, step)
        )
        for step in steps
    ]
    verb = "drains" if len(clusters) == 1 else "drain"
    runs = [step.cluster for step in steps if targets.workloads.running.get(step.name)]
    ends = (_removal_message(snapshot, force=is_forced_out(snapshot, cluster)) for cluster in runs)
    policy = "".join(f"; {end}" for end in dict.fromkeys(ends))
    message = f"{count_text(len(clusters), 'cluster')} {verb}"
    return _list_event(CLUSTER_DRAINING, message, "draining", clusters, policy)


def _drained(targets: TargetClusters, names: Collection[str]) -> EventIntent | None:
    clusters = [ClusterChange(step.cluster) for step in targets.drain.staying if step.name in names]
    verb = "has drained and stands by" if len(clusters) == 1 else "have drained and stand by"
    message = f"{count_text(len(clusters), 'cluster')} {verb}"
    return _list_event(CLUSTER_DRAINED, message, "drained", clusters)


def _drain_message(targets: TargetClusters, step: DrainStep) -> str:
    """Return why a cluster is still listed; where Workloads run, how many."""
    running = len(targets.workloads.running.get(step.name, ()))
    if not running or not step.state.waits_for_jobs:
        return step.message
    return f"{count_text(running, 'Workload')} {'runs' if running == 1 else 'run'} there"


def _removal_message(snapshot: Snapshot, *, force: bool) -> str:
    policy = snapshot.policy
    if policy.removal == IMMEDIATE or force:
        return "Workloads are sent back at once"
    if policy.drain_deadline is None:
        return "Workloads are waited for"
    return f"Workloads are waited for, {duration_text(policy.drain_deadline)} at most, and then sent back"


def _removed(
    snapshot: Snapshot, targets: TargetClusters, names: Collection[str], drained: Collection[str]
) -> EventIntent | None:
    of = {name: cluster for cluster, name in targets.listed.items()}
    clusters = []
    for name in names:
        cluster = of.get(name, name)
        state = "drained" if name in drained else "nothing ran there"
        is_gone = cluster in snapshot.fleet.deleted_clusters
        cause = _cause(snapshot, targets, cluster)
        clusters.append(ClusterChange(cluster, cause=cause, state="" if is_gone else state))
    verb = "is" if len(clusters) == 1 else "are"
    message = f"{count_text(len(clusters), 'cluster')} {verb} no longer listed"
    return _list_event(CLUSTER_REMOVED, message, "removed", clusters)


def _cause(snapshot: Snapshot, targets: TargetClusters, cluster: str) -> str:
    if cluster in snapshot.fleet.deleted_clusters:
        return "its ManagedCluster is gone"
    if any(entry.cluster == cluster for entry in targets.renaming):
        return "its MultiKueueCluster gets another name"
    if maintenance := maintenance_of(snapshot, cluster):
        return maintenance
    if cluster in targets.selection.left_out:
        return f"unusable: {targets.selection.left_out[cluster]}"
    return "others have its slot" if cluster in targets.over_limit else "not selected any more"


def named_with_reasons(reasons: Mapping[str, str]) -> str:
    """Return `a, b (why); c (another why) and 12 more`."""
    shown = list(reasons.items())[:NAMES_SHOWN]
    text = "; ".join(
        ", ".join(name for name, _ in group) + (f" ({reason})" if reason else "")
        for reason, group in groupby(shown, itemgetter(1))
    )
    return text + and_more(len(reasons) - NAMES_SHOWN)


# -- credentials that expire soon


def expiry_warnings(snapshot: Snapshot, clusters: Iterable[WantedCluster]) -> DueEvents:
    """Return the warnings about the credentials of the clusters to list."""
    warnings, times, now = [], [], snapshot.now
    for cluster in clusters:
        source = cluster.source
        if source is None or source.expires is None:
            continue
        warn_at = _warn_at(source.expires, source.issued, snapshot.policy.expiry_warning)
        times.append(warn_at if warn_at > now else source.expires)
        if warn_at <= now < source.expires:
            credentials = f"the credentials of cluster {cluster.cluster} in {source.kind} {source.name}"
            message = f"renew {credentials}: they expire at {source.expires:%Y-%m-%dT%H:%M:%SZ}"
            warnings.append(EventIntent(EXPIRES_SOON, message))
    requeue_after = max((min(times) - now).total_seconds(), 0.0) if times else None
    return DueEvents(tuple(warnings), requeue_after)


@lru_cache(4096)
def _warn_at(expires: datetime, issued: datetime | None, warning: float) -> datetime:
    """Return the time of the warning: `warning` seconds before the end, but in the last tenth of its life."""
    lead = min(warning, LAST_SHARE * (expires - issued).total_seconds()) if issued else warning
    try:
        return expires - timedelta(seconds=lead)
    except OverflowError:  # an admin who wants the warning at any time
        return datetime.min.replace(tzinfo=UTC)


# -- events that may be posted now


def postable_events(
    intents: Iterable[EventIntent], *, listed: bool, answered: Collection[str], succeeded: bool
) -> Iterator[PostableEvent]:
    """Yield the events that follow from `intents`, on the checks first.

    `listed`: whether the MultiKueueConfig was written; `answered`: uids of the Workloads that were
    sent back; `succeeded`: whether all went well, so that events about lasting states may be posted too.
    """
    for intent in intents:
        postable = {"success": succeeded, "list": listed, "answers": bool(answered)}[intent.after]
        done = [w for w in intent.workloads if intent.after != "answers" or w.meta.uid in answered]
        if not postable or (intent.workloads and not done):
            continue
        names = f": {joined(workload.label for workload in done)}" if done else ""
        data = intent.change.to_json() if intent.change else ""
        yield PostableEvent(intent.reason, intent.message + names, lasts=intent.after == "success", data=data)
        for workload in done[:WORKLOAD_EVENTS_MAX]:
            yield PostableEvent(*intent.to_each, lasts=False, about=workload)
