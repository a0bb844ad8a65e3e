"""`placement-ac explain workload`: the state of a Workload, and a table of clusters."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from kubectl_placement.cli.output import age_text, plain_table, safe_text
from kubectl_placement.explain.workload import CheckEntry, WorkloadExplanation
from kubectl_placement.jobs.choice import ClusterChoice, PlacementChoice
from kubectl_placement.jobs.queue_position import QueuePosition
from placement_ac.core.api.constants import NO_CLUSTER_FITS, WAITS_FOR
from placement_ac.core.api.text import joined

NOTHING: Final = "-"


def workload_texts(
    explanation: WorkloadExplanation, now: datetime, *, wide: bool
) -> Iterator[RenderableType]:
    """Yield the state of the Workload, and a table for each of its Placements."""
    yield safe_text(
        f"Workload {explanation.namespace}/{explanation.name}: {_state(explanation, now)}", "bold"
    )
    if explanation.position:
        yield safe_text(position_text("ClusterQueue", explanation.position))
    yield from (safe_text(f"({note})") for note in explanation.notes)
    yield from choice_texts(explanation, now, wide=wide)


def position_text(kind: str, position: QueuePosition) -> str:
    """Return the position of a job in a queue of that kind, in one line."""
    place, jobs = position.place, position.jobs
    return f"It is number {place} of the {jobs} that wait in {kind} {position.queue}."


def choice_texts(explanation: WorkloadExplanation, now: datetime, *, wide: bool) -> Iterator[RenderableType]:
    """Yield the table of filters and scores of each Placement."""
    for choice in explanation.placements:
        yield Text()
        checks = f"check {joined(choice.checks)}"
        if not choice.dispatcher:
            yield safe_text(f"Placement {choice.placement} ({checks})", "bold")
            yield safe_text(kueue_decides(choice))
            continue
        yield safe_text(f"Placement {choice.placement} ({checks}, profile {choice.profile})", "bold")
        for problem in filter(None, (choice.profile_problem, choice.problem)):
            yield safe_text(problem, "yellow")
        unread = refused_by_controller(explanation) and not choice.problem
        if unread and any(cluster.quota == "not read" for cluster in choice.clusters):
            yield safe_text(
                "The controller has compared the workers' quota, which was not read here: --workers reads it",
                "yellow",
            )
        yield _table(choice, _since(explanation, now), unread=unread, wide=wide)


def refused_by_controller(explanation: WorkloadExplanation) -> bool:
    """Whether the controller has answered that no cluster fits."""
    return any(entry.message.startswith(NO_CLUSTER_FITS) for entry in explanation.checks)


def kueue_decides(choice: PlacementChoice) -> str:
    """Return the line on a Workload for which our dispatcher does not choose, as far as that is known."""
    names = [_named(cluster) for cluster in choice.fitting]
    order = joined(names) or "none"
    if choice.dispatcher is None:
        return f"who decides is unknown, as no controller has published its settings; on the list: {order}"
    return f"Kueue's dispatcher decides (--dispatcher is false) among, in the list's order: {order}"


def _named(choice: ClusterChoice) -> str:
    return choice.cluster if choice.state == "eligible" else f"{choice.cluster} ({choice.state})"


def placed_text(choice: PlacementChoice) -> str:
    """Return where a new job would go, in one line."""
    if not choice.dispatcher:
        return kueue_decides(choice)
    if choice.problem or not choice.fitting:
        return f"no cluster: {choice.problem or 'none is in use'}"
    return f"{joined(map(_named, choice.fitting))}, best first"


def _state(explanation: WorkloadExplanation, now: datetime) -> str:
    """Return the state of the Workload in one line."""
    parts = [
        f"queue {explanation.queue}"
        + (f" (ClusterQueue {explanation.cluster_queue})" if explanation.cluster_queue else "")
    ]
    if explanation.owners:
        parts.append(f"of {joined(explanation.owners)}")
    if not explanation.active:
        parts.append("not active")
    age = (
        f" for {age_text((now - explanation.quota_since).total_seconds())}" if explanation.quota_since else ""
    )
    parts.append(f"has quota{age}" if explanation.has_quota else "no quota")
    parts += [_check(entry, is_placed=bool(explanation.placed_on)) for entry in explanation.checks]
    if explanation.nominated:
        parts.append(f"nominated to {joined(explanation.nominated)}")
    if explanation.placed_on:
        parts.append(f"placed on {explanation.placed_on}")
    return "; ".join(parts)


def _check(entry: CheckEntry, *, is_placed: bool) -> str:
    tells = entry.state != "Ready" or (entry.message.startswith(WAITS_FOR) and not is_placed)
    message = f" ({entry.message})" if entry.message and tells else ""
    return f"{entry.check} {entry.state}{message}"


def _since(explanation: WorkloadExplanation, now: datetime) -> str:
    """Return the time since the last nomination: of all of them, if there is only one."""
    if explanation.nominated_since is None or len(explanation.nominated) > 1:
        return "yes"
    return f"yes, {age_text((now - explanation.nominated_since).total_seconds())} ago"


def _table(choice: PlacementChoice, since: str, *, unread: bool, wide: bool) -> RenderableType:
    """Return the table of clusters; `unread`: the answer depends on quota that may not have been read."""
    rates = {
        name for cluster in choice.clusters for name, points in cluster.points.items() if points is not None
    }
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
    for cluster in choice.clusters:
        is_unread = unread and cluster.quota == "not read" and not cluster.filter
        table.add_row(
            *map(
                safe_text,
                (
                    cluster.cluster,
                    "quota not read" if is_unread else _filters(cluster),
                    *(NOTHING if is_unread else _number(cluster.points.get(name)) for name in weights),
                    NOTHING if is_unread else _number(cluster.total),
                    since if cluster.nominated else NOTHING,
                    cluster.state,
                    *((cluster.cluster_object, cluster.why) if wide else ()),
                ),
            )
        )
    return table


def _filters(choice: ClusterChoice) -> str:
    if choice.filter:
        return f"{choice.reason} ({choice.filter})"
    return f"comes last: {choice.doubt}" if choice.doubt else NOTHING


def _number(points: float | None) -> str:
    return NOTHING if points is None else f"{points:.1f}".removesuffix(".0")
