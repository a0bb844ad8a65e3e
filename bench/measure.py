"""
The arithmetic of the bench: classes of requests, percentiles, ratios, growth. Pure.

A *name* of a request is `verb plural[/subresource]`, such as `patch multikueueconfigs`.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

Figures = dict[str, Any]
Requests = Mapping[str, int]
"""Number of requests by name."""

NEXT_PAGE: Final = " (next page)"
"""The suffix of the name of a LIST that continues an earlier page."""
DISCOVERY: Final = "get discovery"
WRITES: Final = ("post", "put", "patch", "delete")
MINE: Final = "controller"
FLOOR: Final = "floor"


# -- requests


def named(method: str, path: str, query: Mapping[str, str]) -> str:
    """Return a request's name; its path is /apis/GROUP/VERSION[/namespaces/NS]/PLURAL[/NAME[/SUB]]."""
    parts = path.strip("/").split("/")
    rest = {"api": parts[2:], "apis": parts[3:]}.get(parts[0], [])
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    if not rest:
        return DISCOVERY
    plural, name, sub = (*rest, "", "")[:3]
    verb = {"GET": "get" if name else "list"}.get(method, method.lower())
    if "watch" in query:
        verb = "watch"
    more = NEXT_PAGE if verb == "list" and query.get("continue") else ""
    return f"{verb} {plural}{'/' + sub if sub else ''}{more}"


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
