"""
The listed clusters to which Kueue has lost its connection: it sends no jobs there.

Pure. Kueue reports the connection in each MultiKueueCluster's condition `Active`, and tries again after 5,
10, 20 and 40 s. A loss that lasts is reported in the checks' condition and by events. It ends when the
connection has lasted as well: a connection that comes and goes is one loss, reported once.
"""

import math
from collections.abc import Collection, Mapping
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
RECONNECTED_SECONDS: Final = 120.0
"""How long a connection lasts before the loss has ended; one that is lost before continues it."""


def disconnected_clusters(snapshot: Snapshot, targets: TargetClusters) -> Mapping[str, str]:
    """Return the clusters to list that Kueue has lost, and not had back for long → its reason."""
    listed = set(snapshot.objects.listed)
    names = {entry.name: entry.cluster for entry in targets.to_list if entry.name in listed}
    return {names[name]: reason for name, reason in _lost(snapshot).items() if name in names}


def connection_events(snapshot: Snapshot, targets: TargetClusters) -> DueEvents:
    """Return the events about listed clusters that Kueue has lost, and about those that it has back.

    No text has a time: the same event of the same clusters is counted up.
    """
    lost, known = _lost(snapshot), _known(snapshot)
    clusters = {name: cluster for cluster, name in targets.listed.items()} if lost or known else {}
    active = {name: obj.active for name, obj in _listed(snapshot).items()}
    down = {clusters.get(name, name): reason for name, reason in lost.items() if active[name] is False}
    back = [name for name in clusters if name in known and name not in lost and active.get(name)]
    events = []
    if down:
        verb = "is" if len(down) == 1 else "are"
        what = f"{count_text(len(down), 'listed cluster')} {verb} not connected to Kueue"
        events.append(EventIntent(CLUSTER_DISCONNECTED, f"{what}: {named_with_reasons(down)}"))
    if back:
        verb = "is" if len(back) == 1 else "are"
        what = f"{count_text(len(back), 'cluster')} {verb} connected to Kueue again"
        events.append(
            EventIntent(
                CLUSTER_RECONNECTED, f"{what}: {named_with_reasons({clusters[name]: '' for name in back})}"
            )
        )
    lasting = frozenset(Since(SinceKind.DISCONNECTED, f"{name} {reason}") for name, reason in lost.items())
    return DueEvents(tuple(events), soonest(_left(snapshot, lost)), lasting)


def _lost(snapshot: Snapshot) -> Mapping[str, str]:
    """Return the listed MultiKueueClusters whose loss is reported → Kueue's reason, the last that lasted."""
    known, lost = _known(snapshot), {}
    for name, obj in _listed(snapshot).items():
        seconds = _seconds(snapshot.now, obj)
        if obj.active is False and seconds >= DISCONNECTED_SECONDS:
            lost[name] = obj.active_reason or "Kueue gives no reason"
        elif name in known and (obj.active is False or (obj.active and seconds < RECONNECTED_SECONDS)):
            lost[name] = known[name]
    return lost


def _known(snapshot: Snapshot) -> Mapping[str, str]:
    """Return the MultiKueueClusters whose loss the last plan reported → Kueue's reason."""
    parts = (subject.partition(" ") for subject in snapshot.ages(SinceKind.DISCONNECTED))
    return {name: reason for name, _, reason in parts}


def _left(snapshot: Snapshot, lost: Collection[str]) -> list[float]:
    """Return the seconds until each other loss is reported, and until each reported one has ended."""
    left = []
    for name, obj in _listed(snapshot).items():
        if obj.active is False:
            left.append(DISCONNECTED_SECONDS - _seconds(snapshot.now, obj))
        elif name in lost:
            left.append(RECONNECTED_SECONDS - _seconds(snapshot.now, obj))
    return [seconds for seconds in left if seconds > 0]


def _listed(snapshot: Snapshot) -> Mapping[str, KueueObject]:
    """Return the listed MultiKueueClusters that exist, by name."""
    clusters = snapshot.objects.clusters
    return {name: clusters[name] for name in snapshot.objects.listed if name in clusters}


def _seconds(now: datetime, obj: KueueObject) -> float:
    """Return for how long the connection has been as it is; without a time it counts as long."""
    return (now - obj.active_since).total_seconds() if obj.active_since else math.inf
