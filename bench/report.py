"""The arithmetic of the bench (requests, percentiles, ratios), its tables and progress, and the machine."""

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.markdown import Markdown

from bench.processes import CONTROLLER, FLOOR, Requests, usable

Figures = dict[str, Any]
BY_THE_CLOCK: Final = ("list ", "watch ", "get discovery")
"""How the names of requests begin that are periodic, independent of changes."""


def per_change(requests: Requests, changes: int) -> Figures:
    """Return the requests of one change, and separately its events, for which nothing waits."""
    found = {name: n / changes for name, n in requests.items() if not name.startswith(BY_THE_CLOCK)}
    events = sum(n for name, n in found.items() if name.endswith(" events"))
    return {"requests": round(sum(found.values()) - events, 3), "events": round(events, 3)}


def costs(window: Figures, rested: Figures, changes: int) -> Figures:
    """Return the cost of a change, from a window with so many changes; `rested`: a window without any."""
    share = rested["cpu"] / rested["seconds"]
    spent = max(0.0, window["cpu"] - share * window["seconds"])
    found = {"idleCpuPercent": round(share * 100, 2), "cpuMs": round(spent * 1000 / changes, 2)}
    return found | ({} if window["requests"] is None else per_change(window["requests"], changes))


def spread(seconds: Sequence[float]) -> Figures:
    """Return the percentiles of times, in milliseconds."""
    parts = statistics.quantiles(seconds, n=100, method="inclusive")
    return {f"p{part}Ms": round(parts[part - 1] * 1000, 2) for part in (50, 90, 99)} | {"count": len(seconds)}


def over(found: Mapping[str, float]) -> float:
    """Return the controller's value as a multiple of the floor's."""
    return round(found[CONTROLLER.name] / found[FLOOR.name], 3)


def latencies(seconds: Mapping[str, Sequence[float]]) -> Figures:
    """Return the percentiles of each side, and their ratios."""
    figures: Figures = {name: spread(found) for name, found in seconds.items()}
    ratios = {
        f"{part}OverFloor": over({name: figures[name][f"{part}Ms"] for name in seconds})
        for part in ("p50", "p90", "p99")
    }
    return figures | ratios


def seconds_of(seconds: Mapping[str, Sequence[float]]) -> Figures:
    """Return the median of each side with all its times, and the ratio of the medians."""
    medians = {name: statistics.median(found) for name, found in seconds.items()}
    figures: Figures = {
        name: {"median": round(medians[name], 3), "seconds": [round(one, 3) for one in found]}
        for name, found in seconds.items()
    }
    return figures | {"overFloor": over(medians)}


# -- tables


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    for cells in (head, ["---" for _ in head], *rows):
        yield f"| {' | '.join(cells)} |"


def show(lines: Iterable[str]) -> None:
    """Print Markdown for a terminal."""
    Console(width=120).print(Markdown("\n".join(lines)))


def progress(what: str) -> Callable[[str], None]:
    """Return a function that reports a play, with the seconds since now, to standard error."""
    began = time.monotonic()
    return lambda play: click.echo(f"{time.monotonic() - began:5.0f} s  {what}: {play}", err=True)


HEAD: Final = ("", "controller", "floor", "ratio")


def rows(one: Figures) -> Iterator[Sequence[str]]:
    """Yield the rows of the figures of one size: a title, both sides, and their ratio."""
    mine, floor = one[CONTROLLER.name], one[FLOOR.name]
    for part in ("p50", "p90", "p99"):
        times = (f"{one['latency'][side.name][f'{part}Ms']} ms" for side in (CONTROLLER, FLOOR))
        yield f"one change, {part}", *times, f"{one['latency'][f'{part}OverFloor']:.2f}"
    for title, play in ((f"burst of {one['checks']}", "burst"), ("cold start", "coldStart")):
        times = (f"{one[play][side.name]['median']:.2f} s" for side in (CONTROLLER, FLOOR))
        yield title, *times, f"{one[play]['overFloor']:.2f}"
    for title, key, unit in COSTS:
        if key in mine:
            yield title, f"{mine[key]:g}{unit}", f"{floor[key]:g}{unit}", ""


COSTS: Final = (
    ("requests of a change", "requests", ""),
    ("events of a change", "events", ""),
    ("CPU of a change", "cpuMs", " ms"),
    ("CPU at rest", "idleCpuPercent", " %"),
    ("RSS at rest", "rssMb", " MB"),
    ("RSS after it all", "rssMbAfter", " MB"),
)


# -- the machine


def machine() -> str:
    """Return the machine in one line, with its load now."""
    cpus = Path("/proc/cpuinfo")
    lines = (line.partition(":") for line in (cpus.read_text().splitlines() if cpus.exists() else ()))
    models = (value.strip() for name, _, value in lines if name.startswith("model name"))
    model, count = next(models, platform.machine()), len(usable()) or os.cpu_count()
    return f"{model}, {count} CPUs, load {os.getloadavg()[0]:.1f}; Python {platform.python_version()}"
