"""
When each cluster was on Kueue's list, and its scores: plain data.

Pure. A span says whether its ends are known. Scores that are known only at some times are points, not a line.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from placement_ac.inspection.timeline.recording import RecordedState

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
    """The history of one cluster; or, with a `measure`, of a number of clusters."""

    name: str
    spans: tuple[Span, ...] = ()
    scores: tuple[Point, ...] = ()
    runs: tuple[WorkloadRun, ...] = ()
    measure: str = ""


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
    """What is unknown."""


def sort_lanes(lanes: Iterable[Lane]) -> tuple[Lane, ...]:
    """Return the lanes: counts first, then clusters by when they were listed, then the others."""

    def place(lane: Lane) -> tuple[bool, bool, float, str]:
        first = lane.spans[0].begin.timestamp() if lane.spans else 0.0
        return not lane.measure, not lane.spans and not lane.measure, first, lane.name

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
        spans=tuple(replace(one, begin=max(one.begin, since)) for one in lane.spans if one.end > since),
        scores=(
            *(replace(point, at=since) for point in before if point.value is not None),
            *(point for point in lane.scores if point.at >= since),
        ),
        runs=tuple(replace(one, begin=max(one.begin, since)) for one in lane.runs if one.end > since),
    )


# -- from a recording


def timeline_of_states(check: str, states: Sequence[RecordedState]) -> Timeline:
    """Return the timeline of these states, which are in order; at least one."""
    tracks: dict[str, _RecordedLane] = {}
    for before, now in zip((None, *states), states, strict=False):
        for name in _clusters_of(before) | _clusters_of(now):
            tracks.setdefault(name, _RecordedLane()).add(name, now, first=before is None)
    end = states[-1].time
    lanes = (track.lane(name, end) for name, track in tracks.items())
    return Timeline(check, states[0].time, end, sort_lanes(lanes), True, "a recording of the hub")


def _clusters_of(state: RecordedState | None) -> set[str]:
    if state is None:
        return set()
    return {*state.listed, *state.scores, *(run.cluster for run in state.running.values())}


@dataclass(slots=True)
class _RecordedLane:
    """Builds the lane of a cluster, state by state."""

    spans: list[Span] = field(default_factory=list)
    scores: list[Point] = field(default_factory=list)
    runs: dict[str, WorkloadRun] = field(default_factory=dict)
    done: list[WorkloadRun] = field(default_factory=list)
    now: Span | None = None

    def add(self, name: str, state: RecordedState, *, first: bool) -> None:
        at = state.time
        listing = _list_state(name, state)
        if listing != (self.now.state if self.now else None):
            self._close_span(at)
            self.now = Span(listing, at, at, begin_known=not first) if listing else None
        score = state.scores.get(name)
        if score != (self.scores[-1].value if self.scores else None):
            self.scores.append(Point(at, score))
        here = {key: run for key, run in state.running.items() if run.cluster == name}
        for key in self.runs.keys() - here.keys():
            self.done.append(replace(self.runs.pop(key), end=at))
        for key, run in here.items():
            self.runs.setdefault(key, WorkloadRun(key, run.gpus, at, at))

    def _close_span(self, at: datetime) -> None:
        if self.now:
            self.spans.append(replace(self.now, end=at))
        self.now = None

    def lane(self, name: str, end: datetime) -> Lane:
        self._close_span(end)
        runs = [*self.done, *(replace(run, end=end) for run in self.runs.values())]
        ordered = tuple(sorted(runs, key=lambda run: (run.begin, run.name)))
        return Lane(name, tuple(self.spans), tuple(self.scores), ordered)


def _list_state(name: str, state: RecordedState) -> ListState | None:
    if name in state.draining:
        return "draining"
    return "listed" if name in state.listed else None


# -- from Prometheus


def with_counts(timeline: Timeline, counts: Mapping[str, Sequence[Point]]) -> Timeline:
    """Return the timeline with a lane for each count: state → its points."""
    lanes = [
        Lane(f"{state} clusters", scores=tuple(points), measure=state) for state, points in counts.items()
    ]
    return replace(timeline, lanes=sort_lanes((*lanes, *timeline.lanes)))
