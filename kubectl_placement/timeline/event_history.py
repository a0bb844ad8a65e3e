"""
The history of a check from the controller's Kubernetes events: when clusters were listed, drained, removed.

Pure: the inverse of `event_intents`. Kubernetes keeps events for an hour by default, with times in seconds; a
repeated event has only its first and last time. An event names five clusters and counts the others.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final

from kubectl_placement.hub.dump import Object
from kubectl_placement.timeline.model import Lane, ListState, Point, Span, Timeline, sort_lanes
from kubectl_placement.timeline.recording import RecordedState
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    CLUSTER_ADDED,
    CLUSTER_DRAINED,
    CLUSTER_DRAINING,
    CLUSTER_REMOVED,
    CLUSTERS_SELECTED,
    FIELD_MANAGER,
)
from placement_ac.core.api.fields import instant, integer, listed, text
from placement_ac.core.api.text import count_text

REASONS: Final = (CLUSTERS_SELECTED, CLUSTER_ADDED, CLUSTER_DRAINING, CLUSTER_DRAINED, CLUSTER_REMOVED)
"""The reasons of events about the list, in the order in which events of one second count."""
LEFT_SINCE: Final = "it has left the list since"
"""The reason of a span whose end is unknown."""
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_MORE: Final = re.compile(r"(.*?) and (\d+) more", re.DOTALL)
_SCORE: Final = re.compile(r"score (-?\d+)")


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """An event: clusters → why; `unnamed`: how many more clusters it counts."""

    at: datetime
    reason: str
    clusters: dict[str, str]
    unnamed: int = 0


def cluster_events(check: str, events: Iterable[Object]) -> list[ClusterEvent]:
    """Return our events about a check, in order."""
    found = [one for event in events if _is_ours(event, check) for one in _occurrences(event)]
    return [one for _, one in sorted(found, key=lambda pair: pair[0])]


def _is_ours(event: Object, check: str) -> bool:
    about = text(event, "involvedObject", "kind"), text(event, "involvedObject", "name")
    source = text(event, "reportingComponent") or text(event, "source", "component")
    ours = about == (ADMISSION_CHECK.kind, check) and source == FIELD_MANAGER
    return ours and text(event, "reason") in REASONS


def _occurrences(event: Object) -> Iterator[tuple[tuple[datetime, int, int], ClusterEvent]]:
    """Yield each known time with its sort key: within a second, events are in the order of writing."""
    first = instant(event, "firstTimestamp") or instant(event, "eventTime")
    last = instant(event, "series", "lastObservedTime") or instant(event, "lastTimestamp") or first
    again = (integer(event, "series", "count") or integer(event, "count") or 1) != 1
    version, reason = text(event, "metadata", "resourceVersion"), text(event, "reason")
    clusters, unnamed = clusters_in(text(event, "message"))
    for at in dict.fromkeys(one for one in (first, last) if one):
        newest = int(version) if version.isdecimal() and (at == last or not again) else 0
        yield (at, newest, REASONS.index(reason)), ClusterEvent(at, reason, clusters, unnamed)


def clusters_in(message: str) -> tuple[dict[str, str], int]:
    """Return the clusters that a message names, with why, and how many more it counts."""
    found: dict[str, str] = {}
    unnamed = 0
    _, _, rest = message.partition(": ")
    for part in _parts(rest):
        more = _MORE.fullmatch(part)
        unnamed += int(more[2]) if more else 0
        names, bracket, why = (more[1] if more else part).partition(" (")
        for name in names.split(", "):
            if _NAME.fullmatch(name):
                found[name] = why.removesuffix(")") if bracket else ""
    return found, unnamed


def _parts(message: str) -> list[str]:
    """Split at `; ` outside of brackets."""
    parts, depth, begin = [], 0, 0
    for place, letter in enumerate(message):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and message.startswith("; ", place):
            parts.append(message[begin:place])
            begin = place + 2
    return [*parts, message[begin:]]


# -- the timeline


def timeline_of_events(
    check: str,
    events: Sequence[ClusterEvent],
    now: RecordedState,
    since: datetime,
    *,
    leaving: Mapping[str, datetime] = MappingProxyType({}),
    list_known: bool = True,
) -> Timeline:
    """Return the timeline of these events and of the present list (`now`), from `since` on.

    `leaving`: the draining clusters → since when. `list_known`: whether `now` contains the list.
    """
    names = dict.fromkeys((*(name for event in events for name in event.clusters), *now.listed))
    builders = {name: _EventLane(name, since) for name in names}
    for event in events:
        for name, why in event.clusters.items():
            builders[name].add(event, why)
    lanes = [one.lane(now, leaving.get(name), list_known=list_known) for name, one in builders.items()]
    notes = [
        f"{count_text(one.unnamed, 'cluster')} more at {one.at:%H:%M:%S}, not named"
        for one in events
        if one.unnamed
    ]
    return Timeline(check, since, now.time, sort_lanes(lanes), False, "events", tuple(notes))


@dataclass(slots=True)
class _EventLane:
    """Builds the lane of a cluster, event by event, from `since` on."""

    name: str
    since: datetime
    spans: list[Span] = field(default_factory=list)
    scores: list[Point] = field(default_factory=list)
    now: Span | None = None

    def add(self, event: ClusterEvent, why: str) -> None:
        comes = event.reason in (CLUSTERS_SELECTED, CLUSTER_ADDED)
        if not comes and self.now is None:  # it was listed, since an unknown time
            self.now = Span("listed", self.since, event.at, begin_known=False)
        self._close_span(event.at)
        if score := _SCORE.fullmatch(why):
            self.scores.append(Point(event.at, int(score[1])))
            why = ""
        if event.reason != CLUSTER_REMOVED:
            state: ListState = "draining" if event.reason == CLUSTER_DRAINING else "listed"
            self.now = Span(state, event.at, event.at, why=why)
        elif self.spans:
            self.spans[-1] = _with_reason(self.spans[-1], why)

    def _close_span(self, at: datetime, *, known: bool = True) -> None:
        if self.now and (self.now.begin < at or not self.now.begin_known):
            self.spans.append(replace(self.now, end=at, end_known=known))
        self.now = None

    def lane(self, now: RecordedState, leaving: datetime | None, *, list_known: bool) -> Lane:
        """Return the lane, with the present list added."""
        is_listed = self.name in now.listed
        if is_listed and self.now is None:
            begin = self.spans[-1].end if self.spans else self.since
            self.now = Span("listed", begin, now.time, begin_known=False)
        if leaving and self.now and self.now.state == "listed":
            at = min(max(leaving, self.now.begin), now.time)
            self._close_span(at)
            self.now = Span("draining", at, now.time)
        if self.now and not is_listed and list_known:
            self.now = _with_reason(self.now, LEFT_SINCE)
        self._close_span(now.time, known=is_listed)
        if self.name in now.scores:
            self.scores.append(Point(now.time, now.scores[self.name]))
        return Lane(self.name, tuple(self.spans), tuple(self.scores))


def _with_reason(span: Span, why: str) -> Span:
    """Return the span with one more reason, without repetition."""
    parts = [part for part in (*span.why.split("; "), *why.split("; ")) if part]
    return replace(span, why="; ".join(dict.fromkeys(parts)))


def latest_time(objects: Iterable[Object]) -> datetime | None:
    """Return the latest time in these objects: the dump was taken then or later."""
    return max((at for obj in objects for at in _times(obj) if at), default=None)


def _times(obj: Object) -> Iterator[datetime | None]:
    yield instant(obj, "metadata", "creationTimestamp")
    yield instant(obj, "lastTimestamp")
    yield instant(obj, "spec", "renewTime")
    yield from (instant(one, "lastTransitionTime") for one in listed(obj, "status", "conditions"))
