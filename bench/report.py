"""
The arithmetic of the bench (classes of requests, percentiles, ratios, growth), and its tables: one row per
figure, with its budget beside it.

A *name* of a request is `verb plural[/subresource]`, such as `patch multikueueconfigs`.
`python -m bench.report FILE` prints the tables of `bench` from a file of results, as Markdown.
"""

import json
import os
import platform
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

from rich.console import Console
from rich.markdown import Markdown

from bench.processes import DISCOVERY, NEXT_PAGE, PREPARED, SHARED, VARIANTS, usable

Figures = dict[str, Any]
Requests = Mapping[str, int]
"""Number of requests by name."""

WRITES: Final = ("post", "put", "patch", "delete")
MINE: Final = "controller"
FLOOR: Final = "floor"


# -- requests


def writes(requests: Requests) -> int:
    return sum(count for name, count in requests.items() if name.split()[0] in WRITES)


def lists_per_kind(requests: Requests) -> dict[str, int]:
    """Return the number of lists of each kind; all pages of a list count as one."""
    lists = {name: count for name, count in sorted(requests.items()) if name.startswith("list ")}
    return {name.removeprefix("list "): n for name, n in lists.items() if not name.endswith(NEXT_PAGE)}


def watched_kinds(requests: Requests) -> set[str]:
    return {name.removeprefix("watch ") for name in requests if name.startswith("watch ")}


def per_change(requests: Requests, changes: int) -> Figures:
    """Return the cost of one change: its requests, and separately its events, for which nothing waits."""
    found: Figures = {}
    needed = {name: n for name, n in requests.items() if not by_the_clock(name)}
    for what, are_events in (("requests", False), ("events", True)):
        some = {name: n for name, n in sorted(needed.items()) if (name.split()[-1] == "events") is are_events}
        found[f"{what}PerChange"] = round(sum(some.values()) / changes, 3)
        found[f"{what}PerChangeByKind"] = {name: round(n / changes, 3) for name, n in some.items()}
    return found


def by_the_clock(name: str) -> bool:
    """Whether the request is periodic, independent of changes: a list, a renewed watch, API discovery."""
    return name.startswith(("list ", "watch ")) or name == DISCOVERY


def per_minute(windows: Iterable[tuple[Requests, float]]) -> float:
    """Return the number of periodic requests per minute, from windows and their seconds."""
    found, seconds = 0, 0.0
    for requests, lasted in windows:
        found += sum(count for name, count in requests.items() if by_the_clock(name))
        seconds += lasted
    return round(found / seconds * 60, 1)


def cpu_per_1000(spent: float, idle_share: float, seconds: float, changes: int) -> float:
    """Return the CPU seconds of 1,000 changes: `spent` in these seconds minus the cost of rest."""
    return round(max(0.0, spent - idle_share * seconds) * 1000 / changes, 2)


# -- times


def spread(seconds: Sequence[float]) -> Figures:
    """Return the percentiles of times, in milliseconds."""
    parts = statistics.quantiles(seconds, n=100, method="inclusive")
    return {f"p{part}Ms": round(parts[part - 1] * 1000, 2) for part in (50, 90, 99)} | {"count": len(seconds)}


def over(found: Mapping[str, float]) -> float:
    """Return the controller's value as a multiple of the floor's."""
    return round(found[MINE] / found[FLOOR], 3)


def latencies(seconds: Mapping[str, Sequence[float]]) -> Figures:
    figures: Figures = {name: spread(found) for name, found in seconds.items()}
    for part in ("p50", "p90", "p99"):
        figures[f"{part}OverFloor"] = over({name: figures[name][f"{part}Ms"] for name in seconds})
    return figures


def bursts(seconds: Mapping[str, Sequence[float]]) -> Figures:
    """Return the raw times, and the ratio of their medians."""
    medians = {name: statistics.median(found) for name, found in seconds.items()}
    figures: Figures = {
        name: {"medianSeconds": round(medians[name], 3), "seconds": [round(one, 3) for one in found]}
        for name, found in seconds.items()
    }
    return figures | {"overFloor": over(medians)}


def compared(found: Mapping[str, Figures]) -> Figures:
    """Return the figures of both sides, and the ratio of their seconds."""
    return {**found, "overFloor": over({name: figures["seconds"] for name, figures in found.items()})}


# -- rounds


def pooled(rounds: Sequence[Figures], more_starts: Sequence[Figures] = ()) -> Figures:
    """Return one side's figures of all rounds: all changes and bursts, the median of starts, else the last.

    `more_starts`: cold starts without further plays. The writes of a restart, memory and the time after an
    outage are those of the worst round.
    """
    found = dict(rounds[-1])
    if len(rounds) + len(more_starts) > 1:
        found["coldStart"] = _median([*[one["coldStart"] for one in rounds], *more_starts])
    if len(rounds) == 1:
        return found
    for play in ("latency", "burst"):
        found[play] = [seconds for one in rounds for seconds in one[play]]
    restarts = [one["restart"] for one in rounds]
    meanwhile = _median([restart["afterChanges"] for restart in restarts])
    found["restart"] = _median(restarts) | {"afterChanges": meanwhile}
    if found["restart"]["writes"] is not None:
        found["restart"]["writes"] = max(restart["writes"] for restart in restarts)
    for memory in ("rssMb", "rssMbAfter"):
        found[memory] = max(one[memory] for one in rounds)
    if found["outage"] is not None:
        found["outage"] = max([one["outage"] for one in rounds], key=itemgetter("seconds"))
    return found


def _median(starts: Sequence[Figures]) -> Figures:
    seconds = [one["seconds"] for one in starts]
    return {**starts[-1], "seconds": round(statistics.median(seconds), 3), "rounds": seconds}


# -- growth

GROWING: Final = {
    "latencyP50": f"latency.{MINE}.p50Ms",
    "latencyP50OfFloor": f"latency.{FLOOR}.p50Ms",
    "burst": f"burst.{MINE}.medianSeconds",
    "burstOfFloor": f"burst.{FLOOR}.medianSeconds",
    "coldStart": f"coldStart.{MINE}.seconds",
    "coldStartOfFloor": f"coldStart.{FLOOR}.seconds",
    "restart": f"restart.{MINE}.seconds",
    "requestsPerChange": "requestsPerChange",
    "cpuSecondsPer1000Changes": "cpuSecondsPer1000Changes",
    "rssMb": "rssMb",
}
SMALLEST: Final = {"checks": 10, "clusters": 100}
"""The smallest scene for growth: below it the constant part dominates."""


def grown(small: Figures, big: Figures) -> Figures:
    """Return the figures of the big scene as multiples of those of the small one."""
    sizes = [{key: one[key] for key in ("checks", "clusters")} for one in (small, big)]
    found: Figures = dict(zip(("from", "to"), sizes, strict=True))
    for name, path in GROWING.items():
        before, after = figure(small, path), figure(big, path)
        found[name] = round(after / before, 3) if before and after else None
    burst, times = found["burst"], big["checks"] / small["checks"]
    return found | {"burstPerCheck": round(burst / times, 3) if burst else None}


def growth(sizes: Iterable[Figures]) -> dict[str, Figures]:
    """Return the growth of all figures with the checks, and with the clusters: biggest scene over smallest.

    Compares scenes that differ only in that number, from 10 checks or clusters on.
    """
    found: dict[str, Figures] = {}
    for what, other in (("checks", "clusters"), ("clusters", "checks")):
        alike: dict[int, list[Figures]] = {}
        for size in sizes:
            if size[what] >= SMALLEST[what]:
                alike.setdefault(size[other], []).append(size)
        longest: list[Figures] = max(alike.values(), key=len, default=[])
        most = sorted(longest, key=itemgetter(what))
        if len(most) > 1:
            found[what] = grown(most[0], most[-1])
    return found


def figure(one: Figures, path: str) -> Any:
    """Return the figure at a path, None if it is not there; the greatest if there are several."""
    value: Any = one
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return max(value.values()) if isinstance(value, dict) else value


# -- tables

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
