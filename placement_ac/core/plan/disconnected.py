"""
The listed clusters to which Kueue has lost its connection: it sends no jobs there.

Pure. Kueue reports the connection in each MultiKueueCluster's condition `Active`, and tries again after 5,
10, 20 and 40 s. A loss that lasts is reported in the checks' condition and by events, and so is
its end.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from placement_ac.core.api.constants import CLUSTER_DISCONNECTED, CLUSTER_RECONNECTED
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.api.text import count_text
from placement_ac.core.inputs.state import EventIntent, Since, SinceKind, Snapshot
from placement_ac.core.plan.event_intents import DueEvents, named_with_reasons
from placement_ac.core.plan.targets import TargetClusters
from placement_ac.core.selection.selection import soonest

DISCONNECTED_SECONDS: Final = 10.0
"""How long a loss lasts before it is reported: Kueue has then tried once to connect again."""


def disconnected_clusters(snapshot: Snapshot, targets: TargetClusters) -> Mapping[str, str]:
    """Return the clusters to list that Kueue has lost for a while → its reason."""
    listed = set(snapshot.objects.listed)
    names = {entry.name: entry.cluster for entry in targets.to_list if entry.name in listed}
    return {names[name]: reason for name, reason in _lost(snapshot).items() if name in names}


def connection_events(snapshot: Snapshot, targets: TargetClusters) -> DueEvents:
    """Return the events about listed clusters that Kueue has lost, and about those that it has back."""
    lost = _lost(snapshot)
    known = {since.subject for since in snapshot.all_ages if since.kind is SinceKind.DISCONNECTED}
    clusters = {name: cluster for cluster, name in targets.listed.items()} if lost or known else {}
    back = [name for name in clusters if name in known and _object(snapshot, name).active]
    events = []
    if lost:
        reasons = {clusters.get(name, name): _since(snapshot, name, reason) for name, reason in lost.items()}
        verb = "is" if len(lost) == 1 else "are"
        what = f"{count_text(len(lost), 'listed cluster')} {verb} not connected to Kueue"
        events.append(EventIntent(CLUSTER_DISCONNECTED, f"{what}: {named_with_reasons(reasons)}"))
    if back:
        reasons = {clusters[name]: _since(snapshot, name, "") for name in back}
        verb = "is" if len(back) == 1 else "are"
        what = f"{count_text(len(back), 'cluster')} {verb} connected to Kueue again"
        events.append(EventIntent(CLUSTER_RECONNECTED, f"{what}: {named_with_reasons(reasons)}"))
    lasting = frozenset(Since(SinceKind.DISCONNECTED, name) for name in lost)
    return DueEvents(tuple(events), soonest(_left(snapshot)), lasting)


def _lost(snapshot: Snapshot) -> Mapping[str, str]:
    """Return the listed MultiKueueClusters that Kueue has lost for DISCONNECTED_SECONDS → its reason."""
    objects = ((name, snapshot.objects.clusters.get(name)) for name in snapshot.objects.listed)
    return {
        name: obj.active_reason or "Kueue gives no reason"
        for name, obj in objects
        if obj is not None and obj.active is False and _seconds(snapshot.now, obj) >= DISCONNECTED_SECONDS
    }


def _left(snapshot: Snapshot) -> list[float]:
    """Return the seconds until each other loss is reported."""
    objects = [
        snapshot.objects.clusters[name]
        for name in snapshot.objects.listed
        if name in snapshot.objects.clusters
    ]
    left = [DISCONNECTED_SECONDS - _seconds(snapshot.now, obj) for obj in objects if obj.active is False]
    return [seconds for seconds in left if seconds > 0]


def _seconds(now: datetime, obj: KueueObject) -> float:
    """Return for how long the connection has been as it is; without a time it counts as long."""
    return (now - obj.active_since).total_seconds() if obj.active_since else DISCONNECTED_SECONDS


def _object(snapshot: Snapshot, name: str) -> KueueObject:
    return snapshot.objects.clusters[name]


def _since(snapshot: Snapshot, name: str, reason: str) -> str:
    when = _object(snapshot, name).active_since
    since = f"since {when:%Y-%m-%dT%H:%M:%SZ}" if when else ""
    return ", ".join(filter(None, (reason, since)))
