"""
When a job that waits will start, and its position in its queue.

Pure. The controller's own simulation answers, with the runs of the Workloads that are still on the hub.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kubectl_placement.hub.dump import Object
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.jobs.choice import placements_of
from placement_ac.core.api.constants import CLUSTER_QUEUE, LOCAL_QUEUE, WORKLOAD
from placement_ac.core.api.decode import workload_with_job
from placement_ac.core.expected_start.estimate import all_steps, no_limit
from placement_ac.core.expected_start.forecast import forecast
from placement_ac.core.expected_start.history import finished_run
from placement_ac.core.expected_start.model import ExpectedStart, Interval, Unknown
from placement_ac.core.expected_start.position import QueuePosition, position_of
from placement_ac.core.expected_start.world import KUEUE_DECIDES, PlacementInputs
from placement_ac.core.inputs.queue_facts import QueueFacts, worker_facts

NOT_READ: Final = "use --workers, the quota of the workers was not read"
NO_PLACEMENT: Final = "no check of it leads to a Placement"
_UNITS: Final = (
    (2 * 86400.0, 86400.0, "d"),
    (2 * 3600.0, 3600.0, "h"),
    (120.0, 60.0, "min"),
    (0.0, 1.0, "s"),
)
"""From how many seconds on a unit is used, its length, and its sign."""


@dataclass(frozen=True, slots=True)
class StartReport:
    """When a job that waits will start."""

    p50_seconds: float | None
    """In so many seconds from now it has started in half of the cases; None: unknown."""
    p90_seconds: float | None
    """The same, in nine of ten cases."""
    unknown: str
    """Why nothing honest can be said; "": something is."""
    position: int | None
    """Its position in its queue, from 1; None: it is in none."""
    waiting: int
    """How many jobs wait in that queue."""


def expected_start(view: HubView, raw: Object, spent: Callable[[], float] = no_limit) -> ExpectedStart | None:
    """Return when a Workload starts; None: it does not wait. `spent`: see `expected_starts`."""
    job = workload_with_job(raw)
    if job.finished or job.cluster:
        return None
    names = placements_of(view, [entry.check for entry in job.check_states])
    if not names:
        return Unknown(NO_PLACEMENT)
    if not view.snapshot(names[0]).policy.dispatcher:
        return Unknown(KUEUE_DECIDES)
    if view.queue_facts is None:
        return Unknown(NOT_READ)
    every = [workload_with_job(one) for one in view.dump.of(WORKLOAD)]
    checks = {entry.check for one in every if not one.finished for entry in one.check_states}
    inputs = [
        PlacementInputs(view.snapshot(name), view.targets(name))
        for name in placements_of(view, sorted(checks))
    ]
    both = zip(view.dump.of(WORKLOAD), every, strict=True)
    runs = [run for run in (finished_run(one, workload) for one, workload in both) if run]
    uid = job.meta.uid
    steps = forecast(inputs, runs, _hub_queues(view), view.now, {uid}, spent)
    return all_steps(steps).get(uid, Unknown(NO_PLACEMENT))


def queue_position(view: HubView, raw: Object) -> QueuePosition | None:
    """Return the position of a Workload among those that wait in its ClusterQueue; None: it does not wait."""
    cluster_queues = {queue: facts.cluster_queue for queue, facts in (_hub_queues(view) or {}).items()}
    every = [workload_with_job(one) for one in view.dump.of(WORKLOAD)]
    return position_of(workload_with_job(raw), every, cluster_queues)


def start_report(view: HubView, raw: Object, spent: Callable[[], float] = no_limit) -> StartReport | None:
    """Return when a Workload starts, and its position; None: it does not wait."""
    start = expected_start(view, raw, spent)
    if start is None:
        return None
    position, waiting = queue_position(view, raw) or (None, 0)
    if isinstance(start, Unknown):
        return StartReport(None, None, start.why, position, waiting)
    return StartReport(round(start.p50_seconds, 1), round(start.p90_seconds, 1), "", position, waiting)


def expected_start_text(report: StartReport) -> str:
    """Return the report in one line."""
    if report.p50_seconds is None or report.p90_seconds is None:
        when = f"unknown: {report.unknown}"
    else:
        when = f"{interval_text(Interval(report.p50_seconds, report.p90_seconds))} (p50…p90)"
    place = f", position {report.position} of {report.waiting} in queue" if report.position else ""
    return f"expected start: {when}{place}"


def interval_text(interval: Interval) -> str:
    """Return an interval in words: `in 4 to 12 min`; rounded up, so that nothing is promised too soon."""
    _, length, sign = next(unit for unit in _UNITS if interval.p90_seconds >= unit[0])
    first, last = (-int(-seconds // length) for seconds in interval[:2])
    return f"in {first} to {last} {sign}" if first < last else f"in {last} {sign}"


def _hub_queues(view: HubView) -> Mapping[tuple[str, str], QueueFacts] | None:
    """Return the hub's queues; None: they are not known."""
    if view.dump.why_unknown(LOCAL_QUEUE) or view.dump.why_unknown(CLUSTER_QUEUE):
        return None
    facts = worker_facts(view.dump.of(LOCAL_QUEUE), view.dump.of(CLUSTER_QUEUE))
    return None if facts.problem else facts.queues
