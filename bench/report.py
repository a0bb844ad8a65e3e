"""
The final table: one row per figure, with its budget beside it.

`python -m bench.report FILE` prints it from a file of results, as Markdown.
"""

import json
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from bench.draws import PREPARED, SHARED, VARIANTS
from bench.figures import FLOOR, MINE, Figures
from bench.processors import usable

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


HEAD: Final = ("where", "what", "controller", "floor", "ratio", "wanted", "met")


def sections(whole: Figures) -> Iterator[tuple[str, list[Row]]]:
    """Yield a title and its rows; `whole` is the content of the file of results."""
    sizes = whole["sizes"]
    wanted = reference(sizes)
    for one in sizes:
        yield _where(one), list(rows(one, judged=one is wanted and one["checks"] == REFERENCE))
    yield from _other_sections(whole)


def _other_sections(whole: Figures) -> Iterator[tuple[str, list[Row]]]:
    for one in whole["draws"]:
        title = VARIANTS[one["variant"]].title
        yield f"{_where(one)}, drawn anew, {title}", list(draw_rows(one))
    for one in whole["memory"]:
        yield _where(one), list(_memory(one))
    for what, found in whole["growth"].items():
        yield f"{found['from'][what]} to {found['to'][what]} {what}", list(_growth(found))


def _where(one: Figures) -> str:
    return f"{one['checks']} checks, {one['clusters']} clusters"


def table(whole: Figures) -> Table:
    shown = Table(*(name.upper() for name in HEAD), caption=where_measured(whole["machine"]))
    for where, found in sections(whole):
        for number, row in enumerate(found):
            shown.add_row(where if number == 0 else "", *row.cells)
        shown.add_section()
    return shown


SIZES: Final = (
    "checks",
    "clusters",
    "one change, p50",
    "over floor",
    "burst",
    "over floor",
    "cold start",
    "over floor",
)


def markdown(whole: Figures) -> Iterator[str]:
    """Yield the lines of two Markdown tables: a summary of the sizes, and all figures with their budgets."""
    yield where_measured(whole["machine"])
    yield ""
    yield from _lines(SIZES, map(_in_short, whole["sizes"]))
    yield ""
    found = list(_other_sections(whole))
    if first := reference(whole["sizes"]):
        found.insert(0, (_where(first), list(rows(first, judged=first["checks"] == REFERENCE))))
    cells = [
        (where if number == 0 else "", *row.cells) for where, some in found for number, row in enumerate(some)
    ]
    yield from _lines(HEAD, cells)


def _in_short(one: Figures) -> tuple[str, ...]:
    latency, burst, cold = one["latency"], one["burst"], one["coldStart"]
    return (
        str(one["checks"]),
        str(one["clusters"]),
        f"{latency[MINE]['p50Ms']} ms",
        f"{latency['p50OverFloor']:.2f}",
        _seconds(burst[MINE], "medianSeconds"),
        f"{burst['overFloor']:.2f}",
        _seconds(cold[MINE], "seconds"),
        f"{cold['overFloor']:.2f}",
    )


def _lines(head: Sequence[str], found: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for cells in found:
        yield f"| {' | '.join(cell.strip() for cell in cells)} |"


def rows(one: Figures, *, judged: bool) -> Iterator[Row]:
    """Yield the rows of one size; with `judged` also their budgets."""
    yield from _latency(one["latency"], {"p50": P50_OVER_FLOOR, "p99": P99_OVER_FLOOR} if judged else {})
    yield _ratio("burst", one["burst"], "medianSeconds", BURST_OVER_FLOOR if judged else None)
    yield _ratio("cold start", one["coldStart"], "seconds", COLD_START_OVER_FLOOR if judged else None)
    yield from _restart(one["restart"], judged)
    yield from _cost(one, one["costOfFloor"], judged)
    yield _memory_row("RSS at rest", one["rssMb"], RSS_MB if judged else None, one["costOfFloor"]["rssMb"])
    yield _memory_row("RSS after it all", one["rssMbAfter"], RSS_MB if judged else None)
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
    yield from _cost(one, one["costOfFloor"], judged=shared)
    yield _memory_row("RSS at rest", one["rssMb"], RSS_MB if shared else None, one["costOfFloor"]["rssMb"])
    yield _memory_row("RSS after it all", one["rssMbAfter"], RSS_MB if shared else None)


def _latency(found: Figures, wanted: Mapping[str, float], what: str = "one change") -> Iterator[Row]:
    for part in ("p50", "p90", "p99"):
        mine, floor = (f"{found[side][f'{part}Ms']} ms" for side in (MINE, FLOOR))
        ratio = found[f"{part}OverFloor"]
        yield Row(f"{what}, {part}", mine, floor, ratio, wanted.get(part), is_ratio=True)


def _ratio(what: str, found: Figures, key: str, most: float | None = None) -> Row:
    mine, floor = (_seconds(found[side], key) for side in (MINE, FLOOR))
    return Row(what, mine, floor, found["overFloor"], most, is_ratio=True)


def _restart(found: Figures, judged: bool) -> Iterator[Row]:
    yield _ratio("restart, nothing to do: ready", found, "seconds")
    mine = found[MINE]
    if mine["requests"] is not None:
        count, lists = mine["writes"], max(mine["listsPerKind"].values())
        yield Row("  its writes", str(count), "", count, 0.0 if judged else None)
        yield Row(
            "  its lists of one kind, at most", str(lists), "", lists, LISTS_PER_KIND if judged else None
        )
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


def _cost(mine: Figures, floor: Figures, judged: bool) -> Iterator[Row]:
    for what, key, unit, most in COSTS:
        value, beside = mine[key], floor[key]
        if value is not None:
            yield Row(what, f"{value:g}{unit}", f"{beside:g}{unit}", value, most if judged else None)


def _memory(one: Figures) -> Iterator[Row]:
    most = LARGE_RSS_MB if (one["checks"], one["clusters"]) == LARGE else None
    yield _memory_row("RSS at rest, having found all", one["rssMb"], most)
    yield _memory_row("RSS at rest, having made all", one["rssMbCold"], most)


def _memory_row(what: str, value: float, most: float | None, floor: float | None = None) -> Row:
    return Row(what, f"{value} MB", "" if floor is None else f"{floor} MB", value, most)


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
        floor = found.get(f"{key}OfFloor")
        yield Row(what, _times(found[key]), _times(floor), found[key], most)
    if found["from"]["checks"] != found["to"]["checks"]:
        yield Row("burst, for each check", _times(found["burstPerCheck"]))


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}-fold"


def _seconds(found: Figures, key: str) -> str:
    return f"{found[key]:.2f} s"


OWN: Final = {True: ", one of them for the hubs alone", False: ", all of them for everybody", None: ""}


def where_measured(machine: Mapping[str, Any]) -> str:
    """Return the machine in one line, with the processors of the embedded hubs."""
    own = OWN[machine.get("hubsHaveOwnProcessor")]
    return f"{machine['model']}, {machine['cpus']} CPUs{own}; Python {machine['python']}"


def machine() -> dict[str, Any]:
    """Return the machine of the measurement, with the usable processors and its load."""
    return {
        "cpus": len(usable()) or os.cpu_count(),
        "model": _model(),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "loadAtStart": round(os.getloadavg()[0], 2),
    }


def _model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in markdown(json.loads(Path(sys.argv[1]).read_text())))
