"""
The history of a check from the controller's Kubernetes events: when clusters were listed, drained, removed.

Pure. The data is in an annotation of each event; those of older versions have none, and are shown as text.
Kubernetes keeps events for an hour by default, with times in seconds; a repeated event has only its first and
last time.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import itemgetter
from types import MappingProxyType
from typing import Final

from kubectl_placement.hub.dump import Object
from kubectl_placement.timeline.model import Lane, ListState, Point, Span, Timeline, sort_lanes
from kubectl_placement.timeline.state import RecordedState
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    CLUSTER_ADDED,
    CLUSTER_DRAINED,
    CLUSTER_DRAINING,
    CLUSTER_REMOVED,
    CLUSTERS_SELECTED,
    FIELD_MANAGER,
)
from placement_ac.core.api.fields import get_int, get_list, get_str, get_time
from placement_ac.core.api.list_change import Change, ClusterChange, ListChange, list_change_of
from placement_ac.core.api.printable import one_line
from placement_ac.core.api.text import count_text

REASONS: Final = (CLUSTERS_SELECTED, CLUSTER_ADDED, CLUSTER_DRAINING, CLUSTER_DRAINED, CLUSTER_REMOVED)
"""The reasons of events about the list, in the order in which events of one second count."""
LEFT_SINCE: Final = "it has left the list since"
"""The reason of a span whose end is unknown."""
TEXTS_SHOWN: Final = 5
"""The last so many events without data are shown as text."""


@dataclass(frozen=True, slots=True)
class ListEvent:
    """An event about the list. `change` None: it has no data, only its text."""

    at: datetime
    change: ListChange | None
    text: str = ""


def list_events(check: str, events: Iterable[Object]) -> list[ListEvent]:
    """Return our events about the list of a check, in order."""
    pairs = [occurrence for event in events if _is_ours(event, check) for occurrence in _occurrences(event)]
    return [event for _, event in sorted(pairs, key=itemgetter(0))]


def _is_ours(event: Object, check: str) -> bool:
    about = get_str(event, "involvedObject", "kind"), get_str(event, "involvedObject", "name")
    source = get_str(event, "reportingComponent") or get_str(event, "source", "component")
    ours = about == (ADMISSION_CHECK.kind, check) and source == FIELD_MANAGER
    return ours and get_str(event, "reason") in REASONS


def _occurrences(event: Object) -> Iterator[tuple[tuple[datetime, int, int], ListEvent]]:
    """Yield each known time with its sort key: within a second, events are in the order of writing."""
    first = get_time(event, "firstTimestamp") or get_time(event, "eventTime")
    last = get_time(event, "series", "lastObservedTime") or get_time(event, "lastTimestamp") or first
    again = (get_int(event, "series", "count") or get_int(event, "count") or 1) != 1
    version, reason = get_str(event, "metadata", "resourceVersion"), get_str(event, "reason")
    change, message = list_change_of(event), f"{reason}: {get_str(event, 'message')}"
    for at in dict.fromkeys(time for time in (first, last) if time):
        newest = int(version) if version.isdecimal() and (at == last or not again) else 0
        yield (at, newest, REASONS.index(reason)), ListEvent(at, change, message)


# -- the timeline


def timeline_of_events(
    check: str,
    events: Sequence[ListEvent],
    now: RecordedState,
    since: datetime,
    *,
    leaving: Mapping[str, datetime] = MappingProxyType({}),
    list_known: bool = True,
) -> Timeline:
    """Return the timeline of these events and of the present list (`now`), from `since` on.

    `leaving`: the draining clusters → since when. `list_known`: whether `now` contains the list.
    """
    changes = [(event.at, event.change) for event in events if event.change]
    named = (cluster.name for _, change in changes for cluster in change.clusters)
    builders = {name: _EventLane(name, since) for name in (*named, *now.listed)}
    for at, change in changes:
        for cluster in change.clusters:
            builders[cluster.name].add(at, change.change, cluster)
    lanes = [
        builder.lane(now, leaving.get(name), list_known=list_known) for name, builder in builders.items()
    ]
    return Timeline(check, since, now.time, sort_lanes(lanes), False, "events", tuple(_notes(events)))


def _notes(events: Iterable[ListEvent]) -> Iterator[str]:
    """Yield what is not in the lanes: the number of clusters that are not named, and events without data."""
    for event in events:
        if event.change and event.change.more:
            yield f"{count_text(event.change.more, 'cluster')} more at {event.at:%H:%M:%S}, not named"
    if old := [event for event in events if not event.change]:
        yield f"{count_text(len(old), 'event')} of an older version without data"
        yield from (f"{event.at:%H:%M:%S} {one_line(event.text)}" for event in old[-TEXTS_SHOWN:])


@dataclass(slots=True)
class _EventLane:
    """Builds the lane of a cluster, event by event, from `since` on."""

    name: str
    since: datetime
    spans: list[tuple[Span, tuple[str, ...]]] = field(default_factory=list)
    """Each with its reasons."""
    scores: list[Point] = field(default_factory=list)
    now: Span | None = None
    why: tuple[str, ...] = ()
    """The reasons of the span `now`."""

    def add(self, at: datetime, change: Change, cluster: ClusterChange) -> None:
        if change != "added" and self.now is None:  # it was listed, since an unknown time
            self._open_span("listed", self.since, known=False)
        self._close_span(at)
        if cluster.score is not None:
            self.scores.append(Point(at, cluster.score))
        reasons = tuple(filter(None, (cluster.cause, cluster.state)))
        if change != "removed":
            self._open_span("draining" if change == "draining" else "listed", at, reasons)
        elif self.spans:
            span, why = self.spans[-1]
            self.spans[-1] = span, (*why, *reasons)

    def _open_span(
        self, state: ListState, at: datetime, why: tuple[str, ...] = (), *, known: bool = True
    ) -> None:
        self.now, self.why = Span(state, at, at, begin_known=known), why

    def _close_span(self, at: datetime, *, known: bool = True) -> None:
        if self.now and (self.now.begin < at or not self.now.begin_known):
            self.spans.append((replace(self.now, end=at, end_known=known), self.why))
        self.now = None

    def lane(self, now: RecordedState, leaving: datetime | None, *, list_known: bool) -> Lane:
        """Return the lane, with the present list added."""
        is_listed = self.name in now.listed
        if is_listed and self.now is None:
            self._open_span("listed", self.spans[-1][0].end if self.spans else self.since, known=False)
        if leaving and self.now and self.now.state == "listed":
            at = min(max(leaving, self.now.begin), now.time)
            self._close_span(at)
            self._open_span("draining", at)
        if not is_listed and list_known:
            self.why = (*self.why, LEFT_SINCE)
        self._close_span(now.time, known=is_listed)
        if self.name in now.scores:
            self.scores.append(Point(now.time, now.scores[self.name]))
        spans = (replace(span, why="; ".join(dict.fromkeys(why))) for span, why in self.spans)
        return Lane(self.name, tuple(spans), tuple(self.scores))


def latest_time(objects: Iterable[Object]) -> datetime | None:
    """Return the latest time in these objects: the dump was taken then or later."""
    return max((at for obj in objects for at in _times(obj) if at), default=None)


def _times(obj: Object) -> Iterator[datetime | None]:
    yield get_time(obj, "metadata", "creationTimestamp")
    yield get_time(obj, "lastTimestamp")
    yield get_time(obj, "spec", "renewTime")
    yield from (
        get_time(condition, "lastTransitionTime") for condition in get_list(obj, "status", "conditions")
    )
