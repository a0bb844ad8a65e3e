"""
Who waits for the gate, by which removal, and how often the list changed. Pure.

No object says how often the list changed in the last hour: our events of that hour give a lower bound,
because an event that repeats has only its first and last time, events do not show a new order, and those of
older versions do not say whether a cluster was listed already.
"""

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final

from kubectl_placement.hub.dump import Dump, Object
from kubectl_placement.hub.hub_view import SETTLED
from kubectl_placement.status.model import HeldRow, ListWrites
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    CLUSTER_ADDED,
    CLUSTER_REMOVED,
    EVENT,
    FIELD_MANAGER,
    MULTIKUEUE_CONFIG,
    PENDING,
    WORKLOAD,
)
from placement_ac.core.api.fields import get_int, get_str, get_time
from placement_ac.core.api.list_change import list_change_of
from placement_ac.core.inputs.state import Ages, HeldWorkloads, Since, SinceKind, Snapshot
from placement_ac.core.plan.list_writes import kueue_workloads
from placement_ac.core.plan.workload_states import our_entries
from placement_ac.core.selection.selection import listed_clusters

HOUR: Final = timedelta(hours=1)
GONE: Final = "it is no longer listed"
_REASONS: Final = (CLUSTER_ADDED, CLUSTER_REMOVED)
"""One change posts at most one event of each. A draining cluster stays listed: at most the order changes."""


def ages_with_gate(snapshot: Snapshot) -> Ages | None:
    """Return the ages with those of a closed gate; None: no Workload may be held by it.

    No object says whether the gate is closed. If a Workload has quota and our entry is Pending, it counts as
    closed for all clusters that drain, since just now.
    """
    config = snapshot.objects.config
    if config is None or not any(
        entry.state == PENDING and workload.has_quota for workload, entry in our_entries(snapshot)
    ):
        return None
    clusters = listed_clusters(snapshot)
    closed = {
        Since(SinceKind.GATE_CLOSED_FOR, cluster): 0.0
        for cluster, name in clusters.items()
        if name in config.draining
    }
    return ChainMap(closed, SETTLED) if closed else None  # type: ignore[arg-type]  # it is only read


def held_rows(
    held: Iterable[HeldWorkloads], check: str, drain_reasons: Mapping[str, str]
) -> tuple[HeldRow, ...]:
    """Return the Workloads that the gate holds for a check.

    `drain_reasons`: the clusters that leave → why they are still listed.
    """
    return tuple(
        HeldRow(entry.clusters, _reason(entry.clusters, drain_reasons), entry.number, entry.since)
        for entry in held
        if entry.check == check
    )


def _reason(clusters: Sequence[str], drain_reasons: Mapping[str, str]) -> str:
    reasons = {cluster: drain_reasons.get(cluster, GONE) for cluster in clusters}
    if len(set(reasons.values())) == 1:
        return reasons[clusters[0]]
    return "; ".join(f"{cluster}: {reason}" for cluster, reason in reasons.items())


@dataclass(frozen=True)
class ListEvents:
    """Our events about the lists of all checks, indexed once."""

    dump: Dump
    now: datetime

    def writes(self, check: str, snapshot: Snapshot) -> ListWrites | None:
        """Return how often the list of a check changed after it was created; None: it has none."""
        config = snapshot.objects.config
        if config is None:
            return None
        raw = self.dump.find(MULTIKUEUE_CONFIG, config.meta.name) or {}
        jobs = None if self.dump.why_unknown(WORKLOAD) else kueue_workloads(snapshot)
        total = config.meta.generation - 1 if config.meta.generation else None
        at_least = self._at_least(check)
        if total is not None:  # events may be about an earlier MultiKueueConfig of that name
            at_least = min(at_least, total)
        return ListWrites(
            last_hour=None if self.dump.why_unknown(EVENT) else at_least,
            total=total,
            since=get_time(raw, "metadata", "creationTimestamp"),
            workloads=jobs,
            clusters=len(config.listed),
            requests=None if jobs is None else jobs * len(config.listed),
        )

    def _at_least(self, check: str) -> int:
        """Return how many changes there were in the last hour at least."""
        times: set[datetime] = set()
        counts: dict[str, int] = {}
        for event in self._by_check.get(check, ()):
            first_and_last = _times(event)
            recent = {time for time in first_and_last if self.now - time < HOUR}
            times |= recent
            what = get_str(event, "reason")
            is_whole = bool(recent) and recent == first_and_last
            counts[what] = counts.get(what, 0) + (_count(event) if is_whole else len(recent))
        return max(len(times), *counts.values()) if counts else 0

    @cached_property
    def _by_check(self) -> dict[str, list[Object]]:
        events: dict[str, list[Object]] = {}
        for event in self.dump.of(EVENT):
            if check := _check_of(event):
                events.setdefault(check, []).append(event)
        return events


def _check_of(event: Object) -> str:
    """Return the check that an event of ours about a changed list is on; "" for any other event."""
    source = get_str(event, "reportingComponent") or get_str(event, "source", "component")
    ours = source == FIELD_MANAGER and get_str(event, "reason") in _REASONS
    is_check = get_str(event, "involvedObject", "kind") == ADMISSION_CHECK.kind
    change = list_change_of(event) if ours and is_check else None
    is_changed = change is not None and not all(cluster.again for cluster in change.clusters)
    return get_str(event, "involvedObject", "name") if is_changed else ""


def _times(event: Object) -> set[datetime]:
    """Return the first and the last time of an event."""
    first = get_time(event, "firstTimestamp") or get_time(event, "eventTime")
    last = get_time(event, "series", "lastObservedTime") or get_time(event, "lastTimestamp") or first
    return {time for time in (first, last) if time}


def _count(event: Object) -> int:
    return get_int(event, "series", "count") or get_int(event, "count") or 1
