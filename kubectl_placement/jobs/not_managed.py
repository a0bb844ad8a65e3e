"""
Jobs that MultiKueue never starts: `spec.managedBy` is not Kueue's, or Kueue does not send their kind. Pure.

Kueue's webhook sets `spec.managedBy` of a job whose LocalQueue exists and leads to MultiKueue; nobody can set
it later. The check then rejects the job each time that it gets quota, so `spec.active: true` does not help.
Source: Kueue's pkg/controller/admissionchecks/multikueue/workload.go.
"""

import re
from datetime import timedelta
from typing import Final, NamedTuple

from kubectl_placement.hub.dump import Object, condition_of
from kubectl_placement.jobs.lookup import jobs_of
from placement_ac.core.api.constants import REJECTED
from placement_ac.core.api.fields import get_list, get_str, get_time, key_of

_FOR_GOOD: Final = re.compile(r"(?:The owner is not managed by Kueue|No multikueue adapter found)[^();]*")
_MANAGED_BY: Final = re.compile(r'managedBy to be "[^"]*" not "([^"]*)"')
_NO_MANAGER: Final = "Kueue did not set spec.managedBy, and nobody can set it later"
_AT_ONCE: Final = timedelta(seconds=1)
"""Times of Kubernetes are whole seconds, and Kueue must have seen the queue."""


class NeverStarts(NamedTuple):
    """Why MultiKueue never starts a job, and what to do."""

    why: str
    fix: str


def never_starts(workload: Object, local_queue: Object | None = None) -> NeverStarts | None:
    """Return why MultiKueue never starts the job of a Workload; None: nothing says so.

    `local_queue`: that of the job, if it was read: it may be newer than the job.
    """
    if condition_of(workload, "Finished").get("status") == "True" or not (why := _why(workload)):
        return None
    namespace, name = key_of(workload)
    job = next(iter(jobs_of(workload)), None)
    target = f"{job.type} {job.name}" if job else f"workloads.kueue.x-k8s.io {name}"
    again = f"kubectl delete {target} -n {namespace}, then create it again from its manifest"
    manager = _MANAGED_BY.search(why)
    if manager is None:
        return NeverStarts(why, f"{again} in a queue that sends no jobs to other clusters")
    if manager[1]:
        return NeverStarts(why, f"{again} without spec.managedBy: Kueue sets it")
    return NeverStarts(why, f"{again}: {_unset(workload, local_queue)}")


def _why(workload: Object) -> str:
    """Return Kueue's reason: of the entry that says Rejected, later of the eviction that follows."""
    entries = get_list(workload, "status", "admissionChecks")
    rejected = [get_str(entry, "message") for entry in entries if get_str(entry, "state") == REJECTED]
    evicted = get_str(condition_of(workload, "Evicted"), "message")
    match = next(filter(None, map(_FOR_GOOD.search, (*rejected, evicted))), None)
    return match[0].strip() if match else ""


def _unset(workload: Object, local_queue: Object | None) -> str:
    made, queued = (get_time(one, "metadata", "creationTimestamp") for one in (workload, local_queue))
    if made and queued and queued + _AT_ONCE >= made:
        return f"it is older than LocalQueue {'/'.join(key_of(local_queue or {}))}, so {_NO_MANAGER}"
    return f"as of a job that is older than its LocalQueue, {_NO_MANAGER}"
