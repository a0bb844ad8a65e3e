"""
The tables: one row per figure, with its budget beside it.

`python -m bench.report FILE` prints that of `bench` from a file of results, as Markdown.
"""

import json
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from rich.console import Console
from rich.markdown import Markdown

from bench.comparison import PREPARED, SHARED, VARIANTS
from bench.measure import FLOOR, MINE, Figures, figure
from bench.processes import usable

REFERENCE: Final = 200
"""The budgets are for this many checks by default."""
LARGE: Final = (1000, 5000)
"""Checks and clusters of the large scene."""
LARGE_RSS_MB: Final = 230.0
HEAD: Final = ("where", "what", "controller", "floor", "ratio", "wanted", "met")
SIZES: Final = (
    ("checks", "checks", "{}"),
    ("clusters", "clusters", "{}"),
    ("one change, p50", "latency.controller.p50Ms", "{} ms"),
    ("over floor", "latency.p50OverFloor", "{:.2f}"),
    ("burst", "burst.controller.medianSeconds", "{:.2f} s"),
    ("over floor", "burst.overFloor", "{:.2f}"),
    ("cold start", "coldStart.controller.seconds", "{:.2f} s"),
    ("over floor", "coldStart.overFloor", "{:.2f}"),
)
"""The columns of the summary of the sizes: title, figure, and its form."""


class Figure(NamedTuple):
    """A row: its title, the figure (`*`: of each side), its form, the ratio, and the budget at 200 checks."""

    what: str
    path: str
    form: str = "{:.2f} s"
    over: str = ""
    most: float | None = None

    def row(self, one: Figures, *, judged: bool) -> "Row | None":
        """Return the row with the figures of one size; None: not measured."""
        beside = self.path if "*" in self.path else f"costOfFloor.{self.path}"
        mine, floor = figure(one, self.path.replace("*", MINE)), figure(one, beside.replace("*", FLOOR))
        if mine is None:
            return None
        value = figure(one, self.over) if self.over else mine
        shown, beside = (self.form.format(side) if side is not None else "" for side in (mine, floor))
        return Row(self.what, shown, beside, value, self.most if judged else None, bool(self.over))


def _latency(play: str, what: str, *most: float | None) -> list[Figure]:
    return [
        Figure(f"{what}, {part}", f"{play}.*.{part}Ms", "{} ms", f"{play}.{part}OverFloor", budget)
        for part, budget in zip(("p50", "p90", "p99"), most, strict=True)
    ]


COSTS: Final = (
    Figure("requests per change", "requestsPerChange", "{:g}", most=1.0),
    Figure("events per change", "eventsPerChange", "{:g}"),
    Figure("requests by the clock, a minute", "requestsByTheClockPerMinute", "{:g}"),
    Figure("CPU of 1,000 changes", "cpuSecondsPer1000Changes", "{:g} s"),
    Figure("CPU at rest", "idleCpuPercent", "{:g} %", most=0.2),
    Figure("watched per change", "watchedBytesPerChange", "{:g} bytes"),
    Figure("watched at rest, a minute", "watchedBytesPerMinuteAtRest", "{:g} bytes"),
    Figure("RSS at rest", "rssMb", "{} MB", most=140.0),
    Figure("RSS after it all", "rssMbAfter", "{} MB", most=140.0),
)
ROWS: Final = (
    *_latency("latency", "one change", 1.5, None, 2.0),
    Figure("burst", "burst.*.medianSeconds", over="burst.overFloor", most=1.8),
    Figure("cold start", "coldStart.*.seconds", over="coldStart.overFloor", most=1.8),
    Figure("restart, nothing to do: ready", "restart.*.seconds", over="restart.overFloor"),
    Figure("  its writes", f"restart.{MINE}.writes", "{}", most=0.0),
    # One list by kopf, and one that completes the cache.
    Figure("  its lists of one kind, at most", f"restart.{MINE}.listsPerKind", "{}", most=2.0),
    Figure(
        "restart, all changed: right", "restart.afterChanges.*.seconds", over="restart.afterChanges.overFloor"
    ),
    *COSTS,
    Figure("right again after an outage", "outage.*.seconds", most=1.0),
)
OVER_BACK: Final = Figure("one change over one back, p50", "newOverBack", "{:.2f}-fold", most=1.5)
"""A change to new clusters over one to clusters that were listed before: the budget when all are prepared."""
DRAW_ROWS: Final = (
    *_latency("latency", "one change", 1.5, None, None),
    *_latency("back", "one change back", None, None, None),
    OVER_BACK,
    Figure("burst", "burst.*.medianSeconds", over="burst.overFloor", most=2.0),
    Figure("restart, all changed: right", "afterChanges.*.seconds", over="afterChanges.overFloor", most=2.0),
    *COSTS,
)
"""Of changes that draw clusters anew: the other budgets are for shared names."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure; `most` is the budget of `value`. None: not measured, or no budget."""

    what: str
    mine: str
    floor: str = ""
    value: float | None = None
    most: float | None = None
    is_ratio: bool = False

    @property
    def cells(self) -> tuple[str, ...]:
        ratio = f"{self.value:.2f}" if self.is_ratio and self.value is not None else ""
        if self.most is None:
            return self.what, self.mine, self.floor, ratio, "", ""
        met = "" if self.value is None else "yes" if self.value <= self.most else "NO"
        return self.what, self.mine, self.floor, ratio, f"≤ {self.most:g}", met


def reference(sizes: Sequence[Figures]) -> Figures:
    """Return the size of the first table: 200 checks on the smallest measured number of clusters, if any."""
    most = [size for size in sizes if size["checks"] == REFERENCE]
    return min(most, key=lambda one: int(one["clusters"])) if most else dict(*sizes[-1:])


# -- tables


def markdown(whole: Figures, *, every_size: bool = False) -> Iterator[str]:
    """Yield the lines of two Markdown tables: a summary of the sizes, and the figures with their budgets.

    The second one has the rows of one size, of 200 checks if there is one, or with `every_size` of all.
    """
    first = reference(whole["sizes"])
    sizes = whole["sizes"] if every_size else [first] if first else []
    yield where_measured(whole["machine"])
    yield ""
    cells = ([form.format(figure(size, path)) for _, path, form in SIZES] for size in whole["sizes"])
    yield from markdown_table([title for title, _, _ in SIZES], cells)
    yield ""
    sections = [*_sizes(first, sizes), *_others(whole)]
    yield from markdown_table(HEAD, (cells for section in sections for cells in _cells(*section)))


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    for cells in (head, ["---" for _ in head], *rows):
        yield f"| {' | '.join(cell.strip() for cell in cells)} |"


def show(lines: Iterable[str], *, err: bool = False) -> None:
    """Print Markdown for a terminal, to standard output or error."""
    Console(width=120, stderr=err).print(Markdown("\n".join(lines)))


def _cells(where: str, rows: Iterable[Row]) -> Iterator[tuple[str, ...]]:
    for number, row in enumerate(rows):
        yield (where if number == 0 else "", *row.cells)


def _sizes(first: Figures, sizes: Iterable[Figures]) -> Iterator[tuple[str, Iterator[Row]]]:
    for size in sizes:
        yield _where(size), rows(size, judged=size is first and size["checks"] == REFERENCE)


def _others(whole: Figures) -> Iterator[tuple[str, Iterator[Row]]]:
    for draw in whole["draws"]:
        yield f"{_where(draw)}, drawn anew, {VARIANTS[draw['variant']].title}", draw_rows(draw)
    for one in whole["memory"]:
        yield _where(one), _memory_rows(one)
    for what, found in whole["growth"].items():
        yield f"{found['from'][what]} to {found['to'][what]} {what}", _growth(found)


def _where(one: Figures) -> str:
    return f"{one['checks']} checks, {one['clusters']} clusters"


# -- rows


def rows(one: Figures, *, judged: bool) -> Iterator[Row]:
    """Yield the rows of one size; with `judged` also their budgets."""
    return (row for row_of in ROWS if (row := row_of.row(one, judged=judged)))


def draw_rows(one: Figures) -> Iterator[Row]:
    """Yield the rows of changes that draw clusters anew, with the budgets of its variant at 200 checks."""
    for row_of in DRAW_ROWS:
        variant = PREPARED if row_of is OVER_BACK else SHARED
        judged = one["checks"] == REFERENCE and one["variant"] == variant.name
        if row := row_of.row(one, judged=judged):
            yield row


def _memory_rows(one: Figures) -> Iterator[Row]:
    most = LARGE_RSS_MB if (one["checks"], one["clusters"]) == LARGE else None
    for what, key in (("found", "rssMb"), ("made", "rssMbCold")):
        yield Row(f"RSS at rest, having {what} all", f"{one[key]} MB", "", one[key], most)


GROWTH: Final = (
    ("one change, p50", "latencyP50", 1.5),
    ("burst", "burst", None),
    ("cold start", "coldStart", None),
    ("restart, nothing to do", "restart", None),
    ("requests per change", "requestsPerChange", None),
    ("CPU per change", "cpuSecondsPer1000Changes", None),
    ("RSS at rest", "rssMb", None),
)


def _growth(found: Figures) -> Iterator[Row]:
    for what, key, most in GROWTH:
        yield Row(what, _times(found[key]), _times(found.get(f"{key}OfFloor")), found[key], most)
    if found["from"]["checks"] != found["to"]["checks"]:
        yield Row("burst, for each check", _times(found["burstPerCheck"]))


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}-fold"


# -- the machine

OWN: Final = {True: ", one of them for the hubs alone", False: ", all of them for everybody", None: ""}


def where_measured(machine: Mapping[str, Any]) -> str:
    """Return the machine in one line, with the processors of the embedded hubs."""
    own = OWN[machine.get("hubsHaveOwnProcessor")]
    return f"{machine['model']}, {machine['cpus']} CPUs{own}; Python {machine['python']}"


def machine() -> dict[str, Any]:
    """Return the machine of the measurement, with the usable processors and its load."""
    lines = (line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines())
    models = (value.strip() for name, _, value in lines if name.startswith("model name"))
    return {
        "cpus": len(usable()) or os.cpu_count(),
        "model": next(models, platform.machine()),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "loadAtStart": round(os.getloadavg()[0], 2),
    }


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in markdown(json.loads(Path(sys.argv[1]).read_text())))
