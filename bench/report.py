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
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from bench.comparison import PREPARED, SHARED, VARIANTS
from bench.measure import FLOOR, MINE, Figures
from bench.processes import usable

REFERENCE: Final = 200
"""The budgets are for this many checks by default."""
P50_OVER_FLOOR: Final = 1.5
P99_OVER_FLOOR: Final = 2.0
BURST_OVER_FLOOR: Final = 1.8
COLD_START_OVER_FLOOR: Final = 1.8
DRAWN_OVER_FLOOR: Final = 2.0
"""Burst and restart, of changes that draw clusters anew, with shared names."""
NEW_OVER_BACK: Final = 1.5
"""A change to new clusters over one to clusters that were listed before, when all are prepared."""
LISTS_PER_KIND: Final = 2.0
"""At a start: one list by kopf, and one that completes the cache."""
OUTAGE_SECONDS: Final = 1.0
"""Budget: seconds from the end of an outage until the list is correct."""
RSS_MB: Final = 140.0
LARGE: Final = (1000, 5000)
"""Checks and clusters of the large scene."""
LARGE_RSS_MB: Final = 230.0
HEAD: Final = ("where", "what", "controller", "floor", "ratio", "wanted", "met")
SIZES: Final = (
    "checks", "clusters", "one change, p50", "over floor", "burst", "over floor", "cold start", "over floor"
)  # fmt: skip


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
    most = [one for one in sizes if one["checks"] == REFERENCE]
    return min(most, key=lambda one: int(one["clusters"])) if most else dict(*sizes[-1:])


# -- tables


def table(whole: Figures) -> Table:
    """Return the table of a file of results."""
    shown = Table(*(name.upper() for name in HEAD), caption=where_measured(whole["machine"]))
    for section in (*_sizes(whole, whole["sizes"]), *_others(whole)):
        for cells in _cells(*section):
            shown.add_row(*cells)
        shown.add_section()
    return shown


def markdown(whole: Figures) -> Iterator[str]:
    """Yield the lines of two Markdown tables: a summary of the sizes, and all figures with their budgets."""
    first = reference(whole["sizes"])
    sections = [*(_sizes(whole, [first]) if first else ()), *_others(whole)]
    yield where_measured(whole["machine"])
    yield ""
    yield from markdown_table(SIZES, map(_in_short, whole["sizes"]))
    yield ""
    yield from markdown_table(HEAD, (cells for section in sections for cells in _cells(*section)))


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    for cells in (head, ["---" for _ in head], *rows):
        yield f"| {' | '.join(cell.strip() for cell in cells)} |"


def show(head: Sequence[str], rows: Mapping[str, Sequence[str]]) -> None:
    """Print a table of named rows to standard error."""
    shown = Table(*head, box=None)
    for name, cells in rows.items():
        shown.add_row(name, *cells)
    Console(stderr=True).print(shown)


def _cells(where: str, rows: Iterable[Row]) -> Iterator[tuple[str, ...]]:
    for number, row in enumerate(rows):
        yield (where if number == 0 else "", *row.cells)


def _sizes(whole: Figures, sizes: Iterable[Figures]) -> Iterator[tuple[str, Iterator[Row]]]:
    wanted = reference(whole["sizes"])
    for one in sizes:
        yield _where(one), rows(one, judged=one is wanted and one["checks"] == REFERENCE)


def _others(whole: Figures) -> Iterator[tuple[str, Iterator[Row]]]:
    for one in whole["draws"]:
        yield f"{_where(one)}, drawn anew, {VARIANTS[one['variant']].title}", draw_rows(one)
    for one in whole["memory"]:
        yield _where(one), _memory_rows(one)
    for what, found in whole["growth"].items():
        yield f"{found['from'][what]} to {found['to'][what]} {what}", _growth(found)


def _where(one: Figures) -> str:
    return f"{one['checks']} checks, {one['clusters']} clusters"


def _in_short(one: Figures) -> tuple[str, ...]:
    latency, burst, cold = one["latency"], one["burst"], one["coldStart"]
    p50 = (f"{latency[MINE]['p50Ms']} ms", f"{latency['p50OverFloor']:.2f}")
    starts = (_seconds(cold[MINE], "seconds"), f"{cold['overFloor']:.2f}")
    bursts = (_seconds(burst[MINE], "medianSeconds"), f"{burst['overFloor']:.2f}")
    return str(one["checks"]), str(one["clusters"]), *p50, *bursts, *starts


# -- rows


def rows(one: Figures, *, judged: bool) -> Iterator[Row]:
    """Yield the rows of one size; with `judged` also their budgets."""
    yield from _latency(one["latency"], {"p50": P50_OVER_FLOOR, "p99": P99_OVER_FLOOR} if judged else {})
    yield _ratio("burst", one["burst"], "medianSeconds", BURST_OVER_FLOOR if judged else None)
    yield _ratio("cold start", one["coldStart"], "seconds", COLD_START_OVER_FLOOR if judged else None)
    yield from _restart(one["restart"], judged)
    yield from _cost(one, judged)
    if one["outage"][MINE]:
        mine, floor = (_seconds(one["outage"][side], "seconds") for side in (MINE, FLOOR))
        seconds = one["outage"][MINE]["seconds"]
        yield Row("right again after an outage", mine, floor, seconds, OUTAGE_SECONDS if judged else None)


def draw_rows(one: Figures) -> Iterator[Row]:
    """Yield the rows of changes that draw clusters anew, with the budgets of its variant at 200 checks."""
    wanted = one["checks"] == REFERENCE
    shared = wanted and one["variant"] == SHARED.name
    most = DRAWN_OVER_FLOOR if shared else None
    yield from _latency(one["latency"], {"p50": P50_OVER_FLOOR} if shared else {})
    yield from _latency(one["back"], {}, "one change back")
    over_back = NEW_OVER_BACK if wanted and one["variant"] == PREPARED.name else None
    yield Row("one change over one back, p50", _times(one["newOverBack"]), "", one["newOverBack"], over_back)
    yield _ratio("burst", one["burst"], "medianSeconds", most)
    yield _ratio("restart, all changed: right", one["afterChanges"], "seconds", most)
    yield from _cost(one, judged=shared)


def _latency(found: Figures, wanted: Mapping[str, float], what: str = "one change") -> Iterator[Row]:
    for part in ("p50", "p90", "p99"):
        mine, floor = (f"{found[side][f'{part}Ms']} ms" for side in (MINE, FLOOR))
        yield Row(f"{what}, {part}", mine, floor, found[f"{part}OverFloor"], wanted.get(part), is_ratio=True)


def _ratio(what: str, found: Figures, key: str, most: float | None = None) -> Row:
    mine, floor = (_seconds(found[side], key) for side in (MINE, FLOOR))
    return Row(what, mine, floor, found["overFloor"], most, is_ratio=True)


def _restart(found: Figures, judged: bool) -> Iterator[Row]:
    yield _ratio("restart, nothing to do: ready", found, "seconds")
    mine = found[MINE]
    if mine["requests"] is not None:
        count, lists = mine["writes"], max(mine["listsPerKind"].values())
        yield Row("  its writes", str(count), "", count, 0.0 if judged else None)
        most = LISTS_PER_KIND if judged else None
        yield Row("  its lists of one kind, at most", str(lists), "", lists, most)
    yield _ratio("restart, all changed: right", found["afterChanges"], "seconds")


COSTS: Final = (
    ("requests per change", "requestsPerChange", "", 1.0),
    ("events per change", "eventsPerChange", "", None),
    ("requests by the clock, a minute", "requestsByTheClockPerMinute", "", None),
    ("CPU of 1,000 changes", "cpuSecondsPer1000Changes", " s", None),
    ("CPU at rest", "idleCpuPercent", " %", 0.2),
    ("watched per change", "watchedBytesPerChange", " bytes", None),
    ("watched at rest, a minute", "watchedBytesPerMinuteAtRest", " bytes", None),
)


def _cost(one: Figures, judged: bool) -> Iterator[Row]:
    floor = one["costOfFloor"]
    for what, key, unit, most in COSTS:
        if one[key] is not None:
            mine, beside = (f"{side[key]:g}{unit}" for side in (one, floor))
            yield Row(what, mine, beside, one[key], most if judged else None)
    yield _memory("RSS at rest", one["rssMb"], RSS_MB if judged else None, f"{floor['rssMb']} MB")
    yield _memory("RSS after it all", one["rssMbAfter"], RSS_MB if judged else None)


def _memory_rows(one: Figures) -> Iterator[Row]:
    most = LARGE_RSS_MB if (one["checks"], one["clusters"]) == LARGE else None
    yield _memory("RSS at rest, having found all", one["rssMb"], most)
    yield _memory("RSS at rest, having made all", one["rssMbCold"], most)


def _memory(what: str, value: float, most: float | None, floor: str = "") -> Row:
    return Row(what, f"{value} MB", floor, value, most)


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


def _seconds(found: Figures, key: str) -> str:
    return f"{found[key]:.2f} s"


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
