"""
What Kueue's Workloads and the Jobs behind them look like: labels, conditions, admission. Pure.

Used by the stand-ins for Kueue on the hub and on a worker. Source: shared/kueue (Kueue v0.20.0-devel).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha1
from typing import Final

from placement_ac.kube import Object
from placement_ac.names import Kind

JOB: Final = Kind("batch", "Job", "jobs", True, ("v1",))
LABEL_QUEUE: Final = "kueue.x-k8s.io/queue-name"
LABEL_PREBUILT: Final = "kueue.x-k8s.io/prebuilt-workload-name"
"""On a worker's Job: the Workload that MultiKueue has put there for it."""
LABEL_ORIGIN: Final = "kueue.x-k8s.io/multikueue-origin"
"""On everything that MultiKueue puts on a worker: who put it there."""
FLAVOR: Final = "default-flavor"

OWNER_NOT_FOUND: Final = "The workload's owner no longer exists"
NO_RESERVATION: Final = "The workload has no reservation"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition less its time."""

    type: str
    status: bool
    reason: str
    message: str

    def is_said_by(self, item: Object) -> bool:
        """Return whether the object's status has it already."""
        found = condition_of(item, self.type) or {}
        wanted = (str(self.status), self.reason, self.message)
        return wanted == (found.get("status"), found.get("reason"), found.get("message"))


def condition_of(item: Object | None, type_: str) -> Object | None:
    """Return the object's condition of that type, if it has one."""
    conditions = ((item or {}).get("status") or {}).get("conditions") or ()
    return next((dict(one) for one in conditions if one.get("type") == type_), None)


def is_true(item: Object | None, type_: str) -> bool:
    """Return whether the object has that condition, and it is True."""
    return (condition_of(item, type_) or {}).get("status") == "True"


def is_suspended(job: Object) -> bool:
    return bool((job.get("spec") or {}).get("suspend"))


def is_over(job: Object | None) -> bool:
    """Return whether the Job is complete or has failed."""
    return is_true(job, "Complete") or is_true(job, "Failed")


def is_running(job: Object) -> bool:
    """Return whether Pods of the Job may exist: it is neither suspended nor over."""
    return not is_suspended(job) and not is_over(job)


def job_finished(job: Object) -> Condition:
    """Return what Kueue says of the Workload of a Job that is over."""
    if is_true(job, "Complete"):
        return Condition("Finished", True, "Succeeded", "Job finished successfully")
    message = (condition_of(job, "Failed") or {}).get("message", "")
    return Condition("Finished", True, "Failed", message or "Job failed")


def merged(item: Object, wanted: Iterable[Condition], drop: Sequence[str] = ()) -> list[Object]:
    """Return the object's conditions with `wanted` put in; a time moves with its status alone."""
    before = {one["type"]: one for one in (item.get("status") or {}).get("conditions") or ()}
    after = {type_: one for type_, one in before.items() if type_ not in drop}
    for one in wanted:
        said = {"type": one.type, "status": str(one.status), "reason": one.reason, "message": one.message}
        old = before.get(one.type) or {}
        same = old.get("status") == said["status"]
        after[one.type] = said | {
            "lastTransitionTime": old["lastTransitionTime"] if same else stamp(),
            "observedGeneration": item["metadata"].get("generation", 0),
        }
    return list(after.values())


def admission_of(workload: Object, queue: str) -> Object:
    """Return `status.admission` of a Workload that has quota in the ClusterQueue `queue`."""
    assignments = [
        {"name": one.get("name", "main"), "count": one.get("count", 1), "flavors": {"cpu": FLAVOR}}
        for one in workload["spec"].get("podSets") or ()
    ]
    return {"clusterQueue": queue, "podSetAssignments": assignments}


def workload_name(job: Object) -> str:
    """Return the name of a Job's Workload: job-NAME-HHHHH. Kueue: the hash is of the owner."""
    metadata = job["metadata"]
    return f"job-{metadata['name']}-{sha1(metadata['uid'].encode()).hexdigest()[:5]}"  # noqa: S324  # a name, no secret


def stamp(now: datetime | None = None) -> str:
    """Return a time (by default: this one) as Kubernetes writes it: RFC 3339, UTC, whole seconds."""
    return (now or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
