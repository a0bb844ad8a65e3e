"""
The last runs of jobs, and the run times that they give for a job: of its queue and size, if there are enough.

Pure. A run lasts from the moment when the job was placed until it has finished, by the conditions of its
Workload on the hub. Those that were deleted are remembered as long as this memory is.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from placement_ac.core.api.constants import READY
from placement_ac.core.api.fields import Obj, get_list, get_str, get_time, parse_time
from placement_ac.core.api.job_spec import JobSpec
from placement_ac.core.api.objects import Workload
from placement_ac.core.api.pod_requests import PODS
from placement_ac.core.expected_start.run_times import RunTimes
from placement_ac.core.inputs.queue_facts import Queue

RUNS_KEPT: Final = 100
"""Of each LocalQueue: the last ones say what the next ones are like."""
QUEUES_KEPT: Final = 500
RUNS_LEAST: Final = 10
"""So few runs say nothing."""
RUNS_OF_A_SIZE: Final = 15
"""With so many, a size has run times of its own."""


class Run(NamedTuple):
    """A job that has run, or runs."""

    uid: str
    queue: Queue
    job: JobSpec
    priority: int
    created: datetime
    cluster: str
    """The MultiKueueCluster."""
    began: datetime
    """When it was placed."""
    seconds: float | None = None
    """How long it ran; None: it still runs."""


def finished_run(raw: Obj, workload: Workload) -> Run | None:
    """Return the run of a Workload that has finished; None: it never ran, or its times cannot be read."""
    if not workload.finished or workload.created is None:
        return None
    conditions = {get_str(one, "type"): one for one in get_list(raw, "status", "conditions")}
    ended = get_time(conditions.get("Finished"), "lastTransitionTime")
    checks = get_list(raw, "status", "admissionChecks")
    ready = (get_str(one, "lastTransitionTime") for one in checks if get_str(one, "state") == READY)
    times = [when for when in map(parse_time, ready) if when]
    if get_str(conditions.get("Admitted"), "status") == "True" and not times:
        times = [when for when in [get_time(conditions["Admitted"], "lastTransitionTime")] if when]
    if ended is None or not times or not workload.cluster:
        return None
    began = max(times)
    return _run(workload, began, (ended - began).total_seconds()) if ended >= began else None


def lasting_run(workload: Workload) -> Run | None:
    """Return the run of a Workload that still runs; None: it does not, or since when is not known."""
    if workload.finished or workload.placed_since is None or workload.created is None:
        return None
    return _run(workload, workload.placed_since, None)


def _run(workload: Workload, began: datetime, seconds: float | None) -> Run:
    created = workload.created or began
    queue = workload.meta.namespace, workload.job.queue
    uid, job, priority = workload.meta.uid, workload.job, workload.priority
    return Run(uid, queue, job, priority, created, workload.cluster, began, seconds)


class RunHistory:
    """The last runs of each LocalQueue, RUNS_KEPT of each."""

    def __init__(self) -> None:
        self._runs: dict[Queue, dict[str, Run]] = {}

    def take(self, raw: Obj, workload: Workload) -> None:
        """Take in a Workload as it is now; one that was taken in before changes nothing."""
        run = finished_run(raw, workload) if workload.finished else None
        if run is None:
            return
        known = self._runs.pop(run.queue, None) or {}
        self._runs[run.queue] = known  # the queue whose last run is the oldest is the first to go
        known.setdefault(run.uid, run)
        if len(known) > RUNS_KEPT:
            del known[min(known, key=lambda uid: known[uid].began)]
        if len(self._runs) > QUEUES_KEPT:
            del self._runs[next(iter(self._runs))]

    def copy(self) -> "RunHistory":
        """Return a memory of the same; later changes of either stay its own."""
        other = RunHistory()
        other._runs = {queue: dict(runs) for queue, runs in self._runs.items()}
        return other

    def __iter__(self) -> Iterator[Run]:
        for runs in self._runs.values():
            yield from runs.values()


Size = tuple[tuple[str, int], ...]
"""The resources of a job, each by the power of two up to which it goes."""


def size_of(job: JobSpec) -> Size:
    """Return the size class of a job: sizes within a factor of two are one."""
    total: dict[str, int] = defaultdict(int)
    for podset in job.requests:
        for resource, amount in podset:
            total[resource] += amount
    return tuple(sorted((name, (n - 1).bit_length()) for name, n in total.items() if name != PODS and n))


class RunTimeBook:
    """The run times of jobs by queue and size. `now`: until when those that run have run."""

    def __init__(self, runs: Iterable[Run], now: datetime, cluster_queues: Mapping[Queue, str]) -> None:
        self._cluster_queues = cluster_queues
        groups: dict[object, list[Run]] = defaultdict(list)
        for run in runs:
            for key in self._keys(run.queue, run.job):
                groups[key].append(run)
        self._times = {
            key: times for key, group in groups.items() if (times := _times(group, now)) is not None
        }

    def of(self, queue: Queue, job: JobSpec) -> RunTimes | None:
        """Return the run times for a job: of its LocalQueue and size, else of its size in the ClusterQueue,
        else of either queue; None: too few have finished.
        """
        for at, key in enumerate(self._keys(queue, job)):
            times, least = self._times.get(key), RUNS_OF_A_SIZE if at % 2 == 0 else RUNS_LEAST
            if times and times.finished >= least:
                return times
        return None

    def _keys(self, queue: Queue, job: JobSpec) -> Iterator[object]:
        size, cluster_queue = size_of(job), self._cluster_queues.get(queue, "")
        yield queue, size
        yield queue
        if cluster_queue:
            yield cluster_queue, size
            yield cluster_queue


def _times(runs: Iterable[Run], now: datetime) -> RunTimes | None:
    """Return the run times of the last that began: of these, whether they have ended or not."""
    last = sorted(runs, key=lambda run: run.began)[-RUNS_KEPT:]
    finished = [run.seconds for run in last if run.seconds is not None]
    lasting = [(now - run.began).total_seconds() for run in last if run.seconds is None]
    return RunTimes(finished, lasting) if finished else None
