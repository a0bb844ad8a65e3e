"""`placement-ac explain workload`: the state of a Workload, and a table of clusters and plugins."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from kubectl_placement.cli.output import age_text, plain_table, safe_text
from kubectl_placement.explain.workload import CheckEntry, WorkloadExplanation
from kubectl_placement.jobs.choice import ClusterChoice, PlacementChoice
from placement_ac.core.api.constants import WAITS_FOR
from placement_ac.core.api.text import joined

NOTHING: Final = "-"


def workload_texts(one: WorkloadExplanation, now: datetime, *, wide: bool) -> Iterator[RenderableType]:
    """Yield the state of the Workload, and a table for each of its Placements."""
    yield safe_text(f"Workload {one.namespace}/{one.name}: {_state(one, now)}", "bold")
    yield from (safe_text(f"({note})") for note in one.notes)
    for choice in one.placements:
        yield Text()
        checks = f"check {joined(choice.checks)}"
        if not choice.dispatcher:
            yield safe_text(f"Placement {choice.placement} ({checks})", "bold")
            yield safe_text(kueue_decides(choice))
            continue
        yield safe_text(f"Placement {choice.placement} ({checks}, profile {choice.profile})", "bold")
        for problem in filter(None, (choice.profile_problem, choice.problem)):
            yield safe_text(problem, "yellow")
        yield _table(choice, _since(one, now), wide=wide)


def kueue_decides(choice: PlacementChoice) -> str:
    """Return the line on a Workload for which Kueue's own dispatcher chooses."""
    names = [_named(one) for one in choice.fitting]
    order = joined(names) or "none"
    return f"Kueue's dispatcher decides (--dispatcher is false) among, in the list's order: {order}"


def _named(one: ClusterChoice) -> str:
    return one.cluster if one.state == "eligible" else f"{one.cluster} ({one.state})"


def placed_text(choice: PlacementChoice) -> str:
    """Return where a new job would go, in one line."""
    if not choice.dispatcher:
        return kueue_decides(choice)
    if choice.problem or not choice.fitting:
        return f"no cluster: {choice.problem or 'none is in use'}"
    return f"{joined(map(_named, choice.fitting))}, best first"


def _state(one: WorkloadExplanation, now: datetime) -> str:
    """Return the state of the Workload in one line."""
    parts = [f"queue {one.queue}" + (f" (ClusterQueue {one.cluster_queue})" if one.cluster_queue else "")]
    if one.owners:
        parts.append(f"of {joined(one.owners)}")
    if not one.active:
        parts.append("not active")
    age = f" for {age_text((now - one.quota_since).total_seconds())}" if one.quota_since else ""
    parts.append(f"has quota{age}" if one.has_quota else "no quota")
    parts += [_check(entry, is_placed=bool(one.placed_on)) for entry in one.checks]
    if one.nominated:
        parts.append(f"nominated to {joined(one.nominated)}")
    if one.placed_on:
        parts.append(f"placed on {one.placed_on}")
    return "; ".join(parts)


def _check(entry: CheckEntry, *, is_placed: bool) -> str:
    tells = entry.state != "Ready" or (entry.message.startswith(WAITS_FOR) and not is_placed)
    message = f" ({entry.message})" if entry.message and tells else ""
    return f"{entry.check} {entry.state}{message}"


def _since(one: WorkloadExplanation, now: datetime) -> str:
    """Return the time since the last nomination: of all of them, if there is only one."""
    if one.nominated_since is None or len(one.nominated) > 1:
        return "yes"
    return f"yes, {age_text((now - one.nominated_since).total_seconds())} ago"


def _table(choice: PlacementChoice, since: str, *, wide: bool) -> RenderableType:
    rates = {name for one in choice.clusters for name, points in one.points.items() if points is not None}
    weights = {name: weight for name, weight in choice.weights.items() if wide or name in rates}
    scores = [f"{name.upper()} x{weight}" for name, weight in weights.items()]
    table = plain_table(
        "CLUSTER",
        "FILTERS",
        *scores,
        "TOTAL",
        "NOMINATED",
        "STATE",
        *(("MULTIKUEUECLUSTER", "WHY") if wide else ()),
    )
    for one in choice.clusters:
        table.add_row(
            *map(
                safe_text,
                (
                    one.cluster,
                    _filters(one),
                    *(_number(one.points.get(name)) for name in weights),
                    _number(one.total),
                    since if one.nominated else NOTHING,
                    one.state,
                    *((one.cluster_object, one.why) if wide else ()),
                ),
            )
        )
    return table


def _filters(one: ClusterChoice) -> str:
    if one.filter:
        return f"{one.reason} ({one.filter})"
    return f"comes last: {one.doubt}" if one.doubt else NOTHING


def _number(points: float | None) -> str:
    return NOTHING if points is None else f"{points:.1f}".removesuffix(".0")
