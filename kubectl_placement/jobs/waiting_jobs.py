"""
The jobs that wait for a worker, and the Jobs of somebody else there that have their names.

Pure. Kueue neither deletes nor adopts such a Job, but admits the copy beside it: the hub's job never runs.
"""

from typing import Final, NamedTuple

from kubectl_placement.hub.dump import Dump, Object, condition_of
from placement_ac.core.api.constants import WORKLOAD, Kind, Resource
from placement_ac.core.api.fields import Obj, get_list, get_str, get_strs, key_of
from placement_ac.core.inputs.rights import parse_external

MOST_JOBS: Final = 20
"""The jobs that are looked for on one worker, the oldest first."""


class WaitingJob(NamedTuple):
    """A job that is nominated and not placed; `resource` is its kind."""

    resource: Resource
    namespace: str
    name: str
    workload: str
    """The name of its Workload."""
    uid: str = ""

    @property
    def label(self) -> str:
        return f"{self.resource.of.kind} {self.namespace}/{self.name}"


class ForeignJob(NamedTuple):
    """A Job on a worker that has the name of a waiting one, and is not of its Workload."""

    job: WaitingJob
    has_quota: bool
    """Whether the copy of the waiting one has quota on that worker."""

    @property
    def problem(self) -> str:
        """The text for an admin, the fix first."""
        fix = f"rename or delete {self.job.label} there, or the hub's: it is another one of the same name"
        if self.has_quota:
            return f"{fix}, and the hub's has quota there, so it is sent nowhere else and never runs"
        return f"{fix}, and the hub's never runs if it gets quota there"


def owner_of(workload: Object) -> Obj | None:
    """Return the ownerReference of a Workload to its job."""
    return next(iter(get_list(workload, "metadata", "ownerReferences")), None)


def waiting_job(workload: Object) -> WaitingJob | None:
    """Return the job of a Workload; None if it does not wait for a worker, or is a Pod."""
    owner = owner_of(workload)
    group, _, version = get_str(owner, "apiVersion").partition("/")
    kind = parse_external(f"{get_str(owner, 'kind')}.{version}.{group}")
    is_placed = get_str(workload, "status", "clusterName")
    if isinstance(kind, str) or is_placed or condition_of(workload, "Finished").get("status") == "True":
        return None
    resource = Kind(kind.group, kind.kind, kind.plural, True, (kind.version,)).at(kind.version)
    namespace, name = key_of(workload)
    return WaitingJob(resource, namespace, get_str(owner, "name"), name, get_str(owner, "uid"))


def waiting_jobs(dump: Dump) -> dict[str, list[WaitingJob]]:
    """Return MultiKueueCluster → the jobs that wait for it, the oldest first."""
    jobs: dict[str, list[WaitingJob]] = {}
    for workload in sorted(dump.of(WORKLOAD), key=_created):
        if job := waiting_job(workload):
            for name in get_strs(workload, "status", "nominatedClusterNames"):
                jobs.setdefault(name, []).append(job)
    return jobs


def _created(workload: Object) -> str:
    return get_str(workload, "metadata", "creationTimestamp")
