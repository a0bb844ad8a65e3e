"""
The last hour of a check: what has been seen since the page is served, and the controller's events before.

Pure.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from kubectl_placement.timeline.event_history import ListEvent, timeline_of_events
from kubectl_placement.timeline.model import Lane, Span, Timeline, clip, sort_lanes, timeline_of_states
from kubectl_placement.timeline.state import RecordedState

HOUR: Final = timedelta(hours=1)
STATES: Final = 500
"""States that are remembered of a check, at most."""


@dataclass(slots=True)
class History:
    """The states of one check that were seen."""

    states: deque[RecordedState] = field(default_factory=lambda: deque(maxlen=STATES))
    leaving: Mapping[str, datetime] = field(default_factory=dict)
    """At the first state: the draining clusters → since when."""

    def add(self, now: RecordedState, leaving: Mapping[str, datetime]) -> None:
        """Take in the present state if it differs from the last one."""
        if not self.states:
            self.leaving = leaving
        elif replace(self.states[-1], time=now.time) == now:
            return
        self.states.append(now)
        while len(self.states) > 1 and self.states[1].time <= now.time - HOUR:
            self.states.popleft()

    def timeline(self, check: str, events: Iterable[ListEvent], now: datetime) -> Timeline:
        """Return the last hour until `now`. At least one state must have been added."""
        first = self.states[0]
        timeline = timeline_of_states(check, [*self.states, replace(self.states[-1], time=now)])
        begin = now - HOUR
        if first.time <= begin:
            return clip(timeline, begin)
        known = [event for event in events if event.at <= first.time]
        since = min((event.at for event in known), default=first.time)
        leaving = {name: at for name, at in self.leaving.items() if name in first.draining}
        before = timeline_of_events(check, known, first, since, leaving=leaving)
        whole = replace(
            before,
            end=timeline.end,
            lanes=sort_lanes(_joined(before.lanes, timeline.lanes)),
            source="events, then what was seen",
        )
        return clip(whole, begin)


def _joined(earlier: Iterable[Lane], later: Iterable[Lane]) -> list[Lane]:
    """Return one lane for each cluster; a span that goes on is one span."""
    lanes = {lane.name: lane for lane in later}
    joined: list[Lane] = []
    for lane in earlier:
        then = lanes.pop(lane.name, Lane(lane.name))
        known_scores = lane.scores[:-1] if then.scores else lane.scores
        joined.append(
            replace(then, spans=_joined_spans(lane.spans, then.spans), scores=(*known_scores, *then.scores))
        )
    return [*joined, *lanes.values()]


def _joined_spans(earlier: tuple[Span, ...], later: tuple[Span, ...]) -> tuple[Span, ...]:
    if earlier and later and earlier[-1].state == later[0].state and earlier[-1].end >= later[0].begin:
        span = replace(later[0], begin=earlier[-1].begin, begin_known=earlier[-1].begin_known)
        return (*earlier[:-1], replace(span, why=earlier[-1].why), *later[1:])
    return (*earlier, *later)
