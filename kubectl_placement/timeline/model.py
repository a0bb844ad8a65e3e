"""
When each cluster was on Kueue's list, and its scores: plain data.

Pure. A span says whether its ends are known. Scores that are known only at some times are points, not a line.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Literal, TypeVar

from kubectl_placement.timeline.state import RecordedState

T = TypeVar("T")
ListState = Literal["listed", "draining"]


@dataclass(frozen=True, slots=True)
class Span:
    """A time in which a cluster was on Kueue's list, and whether it was draining."""

    state: ListState
    begin: datetime
    end: datetime
    begin_known: bool = True
    """False: it began before the first known time."""
    end_known: bool = True
    """False: it has ended at an unknown time. A span that has not ended ends with the timeline."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """A value from `at` on; None: no value from then on."""

    at: datetime
    value: int | None


@dataclass(frozen=True, slots=True)
class WorkloadRun:
    """A time in which a Workload ran on the cluster."""

    name: str
    gpus: int
    begin: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Lane:
    """The history of one cluster."""

    name: str
    spans: tuple[Span, ...] = ()
    scores: tuple[Point, ...] = ()
    runs: tuple[WorkloadRun, ...] = ()


@dataclass(frozen=True, slots=True)
class Timeline:
    """`exact`: each score holds until the next point; else it is known only at its time."""

    check: str
    begin: datetime
    end: datetime
    lanes: tuple[Lane, ...]
    exact: bool
    source: str
    """The source of the data, as text."""
    notes: tuple[str, ...] = ()
    """The unknown facts, as text."""


def sort_lanes(lanes: Iterable[Lane]) -> tuple[Lane, ...]:
    """Return the lanes: clusters by when they were listed, then the others."""

    def place(lane: Lane) -> tuple[bool, float, str]:
        first = lane.spans[0].begin.timestamp() if lane.spans else 0.0
        return not lane.spans, first, lane.name

    return tuple(sorted(lanes, key=place))


def clip(timeline: Timeline, since: datetime) -> Timeline:
    """Return the timeline from `since` on."""
    if since <= timeline.begin:
        return timeline
    lanes = (_clip_lane(lane, since, timeline.exact) for lane in timeline.lanes)
    kept = tuple(lane for lane in lanes if lane.spans or lane.scores or lane.runs)
    return replace(timeline, begin=since, lanes=kept)


def _clip_lane(lane: Lane, since: datetime, exact: bool) -> Lane:
    """Return the lane from `since` on; an exact score that holds at `since` begins there."""
    before = [point for point in lane.scores if point.at < since and exact][-1:]
    return replace(
        lane,
        spans=tuple(replace(span, begin=max(span.begin, since)) for span in lane.spans if span.end > since),
        scores=(
            *(replace(point, at=since) for point in before if point.value is not None),
            *(point for point in lane.scores if point.at >= since),
        ),
        runs=tuple(replace(run, begin=max(run.begin, since)) for run in lane.runs if run.end > since),
    )


def timeline_of_states(check: str, states: Sequence[RecordedState]) -> Timeline:
    """Return the timeline of these states, which are in order; at least one."""
    runs: dict[str, list[WorkloadRun]] = {}
    for name in {name for state in states for name in state.running}:
        for cluster, run in _runs_of(name, states):
            runs.setdefault(cluster, []).append(run)
    clusters = {*runs, *(name for state in states for name in (*state.listed, *state.scores))}
    lanes = [_seen_lane(name, states, runs.get(name, ())) for name in clusters]
    return Timeline(check, states[0].time, states[-1].time, sort_lanes(lanes), True, "what was seen")


def _periods(
    states: Sequence[RecordedState], value_of: Callable[[RecordedState], T]
) -> Iterator[tuple[T, RecordedState, datetime]]:
    """Yield each period in which a value stays the same: the value, the first state and the end."""
    periods = [(value, next(members)) for value, members in groupby(states, value_of)]
    ends = [*(first.time for _, first in periods[1:]), states[-1].time]
    return ((value, first, end) for (value, first), end in zip(periods, ends, strict=True))


def _runs_of(workload: str, states: Sequence[RecordedState]) -> Iterator[tuple[str, WorkloadRun]]:
    periods = _periods(states, lambda state: run.cluster if (run := state.running.get(workload)) else None)
    for name, first, end in periods:
        if name is not None:
            yield name, WorkloadRun(workload, first.running[workload].gpus, first.time, end)


def _seen_lane(name: str, states: Sequence[RecordedState], runs: Iterable[WorkloadRun]) -> Lane:
    spans = [
        Span(listing, first.time, end, begin_known=first is not states[0])
        for listing, first, end in _periods(states, lambda state: _list_state(name, state))
        if listing
    ]
    scores = [
        Point(first.time, score)
        for score, first, _ in _periods(states, lambda state: state.scores.get(name))
        if score is not None or first is not states[0]
    ]
    ordered = sorted(runs, key=lambda run: (run.begin, run.name))
    return Lane(name, tuple(spans), tuple(scores), tuple(ordered))


def _list_state(name: str, state: RecordedState) -> ListState | None:
    if name in state.draining:
        return "draining"
    return "listed" if name in state.listed else None
