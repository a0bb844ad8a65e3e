"""
How a job left a cluster, as the hub's Workload shows it, and whether that counts against the cluster.

Pure. The hub shows less than the worker: of an eviction there it has the cluster, but not the reason, so a
preemption and a PodsReady timeout differ only by whether the Pods were ready. Source: Kueue main of August
2026 (`reconcileGroup` of MultiKueue, `Evict`, `Finish`, `generatePodsReadyCondition`).
"""

import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

from placement_ac.core.api.fields import Obj, get_dict, get_list, get_str, parse_time

EARLY_SECONDS: Final = 60.0
"""A job that fails within this time of its start counts against its cluster."""
_EVICTED: Final = re.compile(r'Workload evicted on worker cluster: "([^"]{1,256})"')
_OUT_OF_SYNC: Final = re.compile(r'Remote workload on worker cluster "([^"]{1,256})" is out of sync')


class Cause(StrEnum):
    """How a job left a cluster; the label `cause` of the metric."""

    FINISHED = "finished"
    """It succeeded, or it failed later than EARLY_SECONDS after its start."""
    FAILED_EARLY = "failed_early"
    NOT_READY = "evicted_not_ready"
    """The worker evicted it while its Pods were not ready: PodsReady timeout, node failure, a check there."""
    OUT_OF_SYNC = "out_of_sync"
    PODS_READY_TIMEOUT = "pods_ready_timeout"
    """The hub's own Kueue evicted it, because its Pods on the worker were not ready in time."""
    EVICTED = "evicted"
    """The worker evicted it, and it is not known whether its Pods were ready: it may be a preemption."""


BAD: Final = frozenset({Cause.FAILED_EARLY, Cause.NOT_READY, Cause.OUT_OF_SYNC, Cause.PODS_READY_TIMEOUT})
"""The causes that count against the cluster."""


class End(NamedTuple):
    """One end of a job on a cluster."""

    at: datetime
    worker: str
    """The MultiKueueCluster."""
    uid: str
    """Of the Workload."""
    job: str
    """The same for all Workloads of one job: those of a namespace with the same podSets."""
    cause: Cause
    started: datetime
    """When it was placed there, or its Pods were ready; `at`: the hub does not show it any more."""
    is_over: bool = False
    """Whether it is an eviction after which the job has quota again: it was before `at`."""
    is_pinned: bool = False
    """Whether the job names one cluster alone."""

    @property
    def namespace(self) -> str:
        return self.job.partition("/")[0]

    @property
    def is_bad(self) -> bool:
        return self.cause in BAD

    @property
    def is_good(self) -> bool:
        return self.cause is Cause.FINISHED


def end_of(raw: Obj, before: str | None, job: str, *, is_pinned: bool = False) -> End | None:
    """Return how the Workload ended on the cluster where it was last; None: it did not, or this says nothing.

    `before`: the cluster where it was when it was seen last; None: it was not seen before.
    """
    conditions = {get_str(one, "type"): one for one in get_list(raw, "status", "conditions")}
    uid = get_str(get_dict(raw, "metadata"), "uid")
    is_finished = _is_true(conditions, "Finished")
    kind = "Finished" if is_finished else "Evicted"
    at, is_over = _time(conditions, kind), not _is_true(conditions, kind)
    if at is None or (is_over and before is not None):  # it was taken in when it was
        return None
    found = _finish(raw, conditions, at) if is_finished else _eviction(conditions, at, before or "")
    if found is None:
        return None
    worker, cause = found
    return End(at, worker, uid, job, cause, min(_started(conditions) or at, at), is_over, is_pinned)


_Found = tuple[str, Cause]
_Conditions = Mapping[str, Obj]


def _finish(raw: Obj, conditions: _Conditions, at: datetime) -> _Found | None:
    worker, reason = get_str(raw, "status", "clusterName"), get_str(conditions["Finished"], "reason")
    if not worker or reason not in ("Succeeded", "Failed"):
        return None
    started = _started(conditions)
    early = started is not None and (at - started).total_seconds() <= EARLY_SECONDS
    return worker, Cause.FAILED_EARLY if reason == "Failed" and early else Cause.FINISHED


def _eviction(conditions: _Conditions, at: datetime, before: str) -> _Found | None:
    """Return the last eviction; its condition is False, and quotes the message, when there is quota again."""
    message = get_str(conditions["Evicted"], "message")
    if match := _OUT_OF_SYNC.search(message):
        return match[1], Cause.OUT_OF_SYNC
    if match := _EVICTED.search(message):
        ready = _was_ready(conditions, at) if _is_true(conditions, "Evicted") else None
        cause = Cause.EVICTED if ready is None else Cause.NOT_READY
        return None if ready else (match[1], cause)  # one that ran was preempted, or its queue stopped
    if before and get_str(conditions["Evicted"], "reason") == "PodsReadyTimeout":
        return before, Cause.PODS_READY_TIMEOUT
    return None


def _was_ready(conditions: _Conditions, at: datetime) -> bool | None:
    """Return whether the Pods were ready at that time; None: the hub does not show it.

    It shows it if its Kueue has `waitForPodsReady`, which sets the condition to False soon after an eviction.
    """
    since, is_ready = _time(conditions, "PodsReady"), _is_true(conditions, "PodsReady")
    if since is None or since == at:
        return None
    return is_ready if since < at else None if is_ready else True


def _started(conditions: _Conditions) -> datetime | None:
    """Return when the job was placed, or when its Pods became ready, if that was later."""
    times = [_time(conditions, kind) for kind in ("Admitted", "PodsReady") if _is_true(conditions, kind)]
    return max(filter(None, times), default=None)


def _is_true(conditions: _Conditions, kind: str) -> bool:
    return get_str(conditions.get(kind), "status") == "True"


def _time(conditions: _Conditions, kind: str) -> datetime | None:
    return parse_time(get_str(conditions.get(kind), "lastTransitionTime"))
