"""
Draw a timeline: a lane for each cluster, time from left to right. Pure.

A lane shows when the cluster was listed as a bar (hatched while it drains), its score, and the Workloads that
ran there. Exact scores are a line, others are dots. All scores share one scale; so do all counts.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Final

from kubectl_placement.drawing import svg
from kubectl_placement.drawing.svg import NAME_SIZE, SMALL_SIZE, TEXT_SIZE, Element, element
from kubectl_placement.timeline.model import Lane, Point, Span, Timeline, WorkloadRun
from placement_ac.core.api.text import count_text, joined

WIDTH: Final = 1200.0
LEFT: Final = 190.0
RIGHT: Final = 40.0
TOP: Final = 64.0
PAD: Final = 10.0
BAR: Final = 22.0
SCORE: Final = 44.0
"""Height of the score's line, with room for numbers above it."""
RUN: Final = 18.0
LEGEND: Final = 44.0
LANES_SHOWN: Final = 40
"""Lanes in a picture; further clusters are counted."""
RUNS_SHOWN: Final = 4
"""Workloads in a lane; further ones are counted."""
TICKS: Final = 9
"""Times along the axis, at most."""
_STEPS: Final = (
    *(1, 2, 5, 10, 15, 30),
    *(60, 120, 300, 600, 900, 1800),
    *(3600, 7200, 10800, 21600, 43200),
    *(86400, 172800, 604800),
)
"""Seconds between ticks; beyond the last, multiples of it."""

STYLE: Final = svg.color_css(
    (
        *svg.TEXT_RULES,
        ".lane .box{fill:$plain;stroke:$faint;stroke-width:1}",
        f".title{{font-size:{NAME_SIZE + 2}px;font-weight:600}}",
        f".value{{font-size:{SMALL_SIZE}px;font-weight:600}}",
        ".tick{stroke:$faint;stroke-width:1}",
        ".listed .bar{fill:$good;stroke:$good-line;stroke-width:1.4}",
        ".draining .bar{fill:$drain;stroke:$drain-line;stroke-width:1.4;stroke-dasharray:6 3}",
        ".hatch{stroke:$drain-line;stroke-width:1.2;opacity:.55}",
        ".run .bar{fill:$next;stroke:$next-line;stroke-width:1.2}",
        ".halo{paint-order:stroke;stroke:$drain;stroke-width:5px;stroke-linejoin:round}",
        ".score{fill:none;stroke:$path;stroke-width:2}",
        ".dot{fill:$path}",
        ".zero{stroke:$line;stroke-width:1;stroke-dasharray:2 3}",
    )
)


@dataclass(frozen=True, slots=True)
class _Scale:
    """Converts times to x, and values to a height above the bottom of a lane's score."""

    begin: datetime
    seconds: float
    low: int
    high: int

    def x(self, at: datetime) -> float:
        share = (at - self.begin).total_seconds() / self.seconds
        return LEFT + (WIDTH - LEFT - RIGHT) * min(max(share, 0.0), 1.0)

    def height(self, value: int) -> float:
        return (SCORE - 16) * (value - self.low) / (self.high - self.low)


def draw(timeline: Timeline, *, alone: bool = True) -> Element:
    """Return the picture. `alone` False: it is part of a page, which has the style and shows the details."""
    lanes, others = _drawn_lanes(timeline)
    scales = {
        counts: _scale(timeline, [one for one in lanes if bool(one.measure) is counts])
        for counts in (True, False)
    }
    parts: list[Element] = []
    y = TOP
    for place, lane in enumerate(lanes):
        drawn, end = _lane(lane, y, scales[bool(lane.measure)], timeline, "" if alone else f"lane{place}")
        parts.append(drawn)
        y = end + PAD
    title = f"Clusters of {timeline.check}, by {timeline.source}"
    bottom = y - PAD
    for note in (*timeline.notes, *_not_drawn(others)):
        y += 16
        parts.append(svg.text("small", svg.MARGIN, y, svg.cut(note, WIDTH - 40, SMALL_SIZE)))
    hatch = element("path", class_="hatch", d="M0 8L8 0")
    pattern = element("pattern", hatch, id="hatch", width=8, height=8, patternUnits="userSpaceOnUse")
    legend, _ = svg.legend(_legend_marks(timeline), y + PAD + 8, 20)
    return svg.picture(
        WIDTH,
        y + LEGEND,
        title,
        " ".join(describe_lane(lane, timeline.end) for lane in lanes) or "No cluster was listed.",
        STYLE if alone else "",
        element("defs", pattern),
        svg.text("title", svg.MARGIN, 26, svg.cut(title, WIDTH - 320, NAME_SIZE + 2, bold=True)),
        svg.text("small", WIDTH - RIGHT, 26, _day(timeline), text_anchor="end"),
        *_ticks(scales[False], bottom),
        *parts,
        legend,
    )


def _drawn_lanes(timeline: Timeline) -> tuple[Sequence[Lane], Sequence[Lane]]:
    """Return the lanes to draw, and the others: those with only a score, and those beyond LANES_SHOWN."""
    used = [lane for lane in timeline.lanes if lane.spans or lane.runs or lane.measure] or timeline.lanes
    shown = used[:LANES_SHOWN]
    return shown, [lane for lane in timeline.lanes if lane not in shown]


def _not_drawn(lanes: Sequence[Lane]) -> Iterator[str]:
    for used, message in ((False, "never listed, not drawn"), (True, "listed, not drawn for lack of space")):
        names = [lane.name for lane in lanes if bool(lane.spans or lane.runs) is used]
        if names:
            yield f"{message}: {joined(names)}"


def _scale(timeline: Timeline, lanes: Iterable[Lane]) -> _Scale:
    values = [point.value for lane in lanes for point in lane.scores if point.value is not None]
    low, high = min([0, *values]), max([0, *values])
    seconds = max((timeline.end - timeline.begin).total_seconds(), 1.0)
    return _Scale(timeline.begin, seconds, low, max(high, low + 1))


def _day(timeline: Timeline) -> str:
    begin, end = (at.astimezone(UTC) for at in (timeline.begin, timeline.end))
    days = f"{begin:%Y-%m-%d}" if begin.date() == end.date() else f"{begin:%Y-%m-%d} to {end:%Y-%m-%d}"
    return f"{days}, UTC"


def _ticks(scale: _Scale, bottom: float) -> Iterator[Element]:
    step = next((one for one in _STEPS if scale.seconds / one <= TICKS), 0)
    step = step or _STEPS[-1] * ceil(scale.seconds / TICKS / _STEPS[-1])
    form = "%H:%M:%S" if step < 60 else "%H:%M" if step < 86400 else "%m-%d"
    begin = scale.begin.astimezone(UTC)
    midnight = begin.replace(hour=0, minute=0, second=0, microsecond=0)
    first = ceil((begin - midnight).total_seconds() / step)
    for n in range(first, first + TICKS + 1):
        after = timedelta(seconds=n * step)
        if after <= begin - midnight + timedelta(seconds=scale.seconds):  # later there may be no calendar
            at = midnight + after
            x = scale.x(at)
            text = f"{at:%m-%d}" if at.hour == at.minute == at.second == 0 else at.strftime(form)
            yield element("line", class_="tick", x1=x, x2=x, y1=TOP - PAD, y2=bottom)
            yield svg.text("small", x, TOP - PAD - 4, text, text_anchor="middle")


# -- a lane


def _lane(lane: Lane, y: float, scale: _Scale, timeline: Timeline, page_id: str) -> tuple[Element, float]:
    """Return the lane, and where it ends."""
    parts = [svg.text("name", svg.MARGIN, y + 24, svg.cut(lane.name, LEFT - 40, NAME_SIZE, bold=True))]
    at = y + PAD
    if not lane.measure:
        parts += [_bar(span, at, scale) for span in lane.spans]
        at += BAR + PAD
    if lane.scores:
        text, down = ("how many", 44) if lane.measure else ("score", 46)
        parts.append(svg.text("small", svg.MARGIN, y + down, text))
        parts += _scores(lane, at + SCORE - 6, scale, timeline)
        at += SCORE
    parts += _runs(lane.runs, at, scale)
    rows = min(len(lane.runs), RUNS_SHOWN + 1)
    end = at + rows * RUN + (PAD if rows or not lane.scores else 4)
    box = element("rect", class_="box", x=PAD, y=y, width=WIDTH - 2 * PAD, height=end - y, rx=6)
    whole = describe_lane(lane, timeline.end)
    return svg.detailed("lane", page_id, whole, whole, box, *parts), end


def _bar(span: Span, y: float, scale: _Scale) -> Element:
    x = scale.x(span.begin)
    width = max(scale.x(span.end) - x, 2.0)
    parts = [element("rect", class_="bar", x=x, y=y, width=width, height=BAR, rx=3)]
    halo = ""
    if span.state == "draining":
        parts.append(element("rect", fill="url(#hatch)", x=x, y=y, width=width, height=BAR))
        halo = " halo"
    begins = "" if span.begin_known else " since before"
    ends = "" if span.end_known else " until ?"
    texts = (f"{span.state}{begins}{ends}", f"{span.state}{ends}")
    if text := next((one for one in texts if svg.width_of(one, TEXT_SIZE) + 12 <= width), ""):
        parts.append(svg.text(f"says{halo}", x + 6, y + BAR / 2 + 4, text))
    return element("g", *parts, class_=f"inside {span.state}")


def _scores(lane: Lane, bottom: float, scale: _Scale, timeline: Timeline) -> Iterator[Element]:
    zero = bottom - scale.height(0)
    yield element("line", class_="zero", x1=LEFT, x2=WIDTH - RIGHT, y1=zero, y2=zero)
    if timeline.exact or lane.measure:
        line = _score_line(lane.scores, bottom, scale, timeline.end)
        yield element("path", class_="score", d=line)
    else:
        for point in lane.scores:
            y = bottom - scale.height(point.value or 0)
            yield element("circle", class_="dot", cx=scale.x(point.at), cy=y, r=3.5)
    free = 0.0
    for point in lane.scores:
        width = svg.width_of(str(point.value), SMALL_SIZE, bold=True)
        x = min(scale.x(point.at) + 3, WIDTH - RIGHT - width)
        if point.value is not None and x >= free:
            yield svg.text("value", x, bottom - scale.height(point.value) - 5, str(point.value))
            free = x + width + 4


def _score_line(points: Sequence[Point], bottom: float, scale: _Scale, end: datetime) -> str:
    """Return the path of a line that keeps its height until the next point, the last one until `end`."""
    path, connected = "", False
    for point, following in zip(points, [*points[1:], Point(end, None)], strict=True):
        if point.value is not None:
            y = bottom - scale.height(point.value)
            path += f"V{y:.1f}" if connected else f"M{scale.x(point.at):.1f} {y:.1f}"
            path += f"H{scale.x(following.at):.1f}"
        connected = point.value is not None
    return path


def _runs(runs: Sequence[WorkloadRun], y: float, scale: _Scale) -> Iterator[Element]:
    for place, run in enumerate(runs[:RUNS_SHOWN]):
        x, top = scale.x(run.begin), y + place * RUN
        width = max(scale.x(run.end) - x, 2.0)
        text = svg.cut(_describe_run(run), 400, SMALL_SIZE)
        long = svg.width_of(text, SMALL_SIZE)
        bar = element("rect", class_="bar", x=x, y=top, width=width, height=RUN - 3, rx=2)
        if long + 12 <= width:
            inside = svg.text("says", x + 6, top + 11.5, text, font_size=SMALL_SIZE)
            yield element("g", bar, inside, class_="inside run")
            continue
        after = x + width + 6
        left = after + long > WIDTH - RIGHT
        beside, anchor = (x - 6, "end") if left else (after, "start")
        yield element("g", bar, class_="run")
        yield svg.text("small", beside, top + 11.5, text, text_anchor=anchor)
    if len(runs) > RUNS_SHOWN:
        more = f"and {count_text(len(runs) - RUNS_SHOWN, 'Workload')} more"
        yield svg.text("small", LEFT, y + RUNS_SHOWN * RUN + 11.5, more)


# -- as text


def _describe_run(run: WorkloadRun) -> str:
    return run.name + (f", {count_text(run.gpus, 'GPU')}" if run.gpus else "")


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%H:%M:%S}"


def describe_lane(lane: Lane, end: datetime) -> str:
    """Return the content of a lane as text, line by line; spans that last until `end` are open."""
    scores = [f"{point.value} at {_time(point.at)}" for point in lane.scores if point.value is not None]
    lines = [lane.name, *(_describe_span(span, end) for span in lane.spans)]
    if scores:
        lines.append(f"{'how many' if lane.measure else 'score'}: {joined(scores)}")
    lines += [f"{_describe_run(run)}: {_time(run.begin)} {_until(run.end, end)}" for run in lane.runs]
    return "\n".join(lines)


def _describe_span(span: Span, end: datetime) -> str:
    begin = _time(span.begin) if span.begin_known else f"before {_time(span.begin)}"
    until = _until(span.end, end) if span.end_known else "to an unknown time"
    return f"{span.state} from {begin} {until}" + (f": {span.why}" if span.why else "")


def _until(at: datetime, end: datetime) -> str:
    return f"to {_time(at)}" if at < end else "on"


def _legend_marks(timeline: Timeline) -> Iterator[tuple[str, Element, float]]:
    width = 30
    states = {span.state for lane in timeline.lanes for span in lane.spans}
    bar = element("rect", class_="bar", width=width, height=16, y=-8, rx=3)
    if "listed" in states:
        yield "listed", element("g", bar, class_="listed"), width
    if "draining" in states:
        hatch = element("rect", fill="url(#hatch)", width=width, height=16, y=-8)
        yield "draining: listed until it has drained", element("g", bar, hatch, class_="draining"), width
    if any(lane.scores for lane in timeline.lanes):
        if timeline.exact:
            yield "score", element("path", class_="score", d="M0 4h14v-8h16"), width
        else:
            yield "score at that time", element("circle", class_="dot", cx=15, cy=0, r=3.5), width
    if any(lane.runs for lane in timeline.lanes):
        run = element("rect", class_="bar", width=width, height=14, y=-7, rx=2)
        yield "a Workload that runs there", element("g", run, class_="run"), width
