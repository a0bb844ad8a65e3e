"""The last hour of a check: the controller's events, then what was seen."""

from datetime import UTC, datetime, timedelta
from typing import Any

from kubectl_placement.timeline.event_history import ListEvent
from kubectl_placement.timeline.model import Point, Span
from kubectl_placement.timeline.state import RecordedState
from kubectl_placement.ui.history import STATES, History
from placement_ac.core.api.list_change import Change, ClusterChange, ListChange

NOON = datetime(2026, 8, 1, 12, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def listed(minutes: float, *names: str, draining: tuple[str, ...] = (), **scores: int) -> RecordedState:
    return RecordedState(at(minutes), names, draining, scores)


def event(minutes: float, change: Change, **rest: Any) -> ListEvent:
    return ListEvent(at(minutes), ListChange(change, (ClusterChange("a", **rest),)))


def test_a_span_that_goes_on_is_one() -> None:
    history = History()
    history.add(listed(0, "a", a=70), {})
    history.add(listed(10, "b", "a", draining=("a",), a=10, b=80), {"a": at(10)})
    events = [event(-20, "added", score=90)]
    found = history.timeline("p", events, at(15))
    a, b = found.lanes
    assert a.spans == (Span("listed", at(-20), at(10)), Span("draining", at(10), at(15)))
    assert a.scores == (Point(at(-20), 90), Point(at(0), 70), Point(at(10), 10))
    assert b.spans == (Span("listed", at(10), at(15)),)
    assert (found.begin, found.end, found.exact) == (at(-20), at(15), False)


def test_one_that_drains_at_first_began_before() -> None:
    history = History()
    history.add(listed(0, "a", draining=("a",)), {"a": at(-5)})
    events = [event(-20, "added")]
    [lane] = history.timeline("p", events, at(1)).lanes
    assert lane.spans == (Span("listed", at(-20), at(-5)), Span("draining", at(-5), at(1)))


def test_events_after_the_first_state_do_not_count() -> None:
    history = History()
    history.add(listed(0, "a"), {})
    events = [event(1, "removed", state="drained")]
    [lane] = history.timeline("p", events, at(2)).lanes
    assert [span.end for span in lane.spans] == [at(2)]


def test_only_an_hour_is_remembered_and_shown() -> None:
    history = History()
    for minutes in range(0, 200, 10):
        history.add(listed(minutes, "a", a=minutes), {})
    found = history.timeline("p", [], at(190))
    assert (found.begin, found.exact) == (at(130), True)
    assert len(history.states) == 7
    for number in range(2 * STATES):
        history.add(listed(190 + number / 1000, "a", a=number), {})
    assert len(history.states) == STATES


def test_the_same_state_is_not_kept_twice() -> None:
    history = History()
    history.add(listed(0, "a"), {})
    history.add(listed(1, "a"), {})
    assert [state.time for state in history.states] == [at(0)]
