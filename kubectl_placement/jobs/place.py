"""Where a job is: the cluster that its Workload was placed on, and whether it has finished. Pure."""

from dataclasses import dataclass

from kubectl_placement.hub.dump import Object, condition_of
from kubectl_placement.jobs.lookup import JobId, jobs_of
from placement_ac.core.api.constants import WORKLOAD
from placement_ac.core.api.fields import get_list, get_str, key_of


@dataclass(frozen=True, slots=True)
class JobPlace:
    """A job as its Workload on the hub says."""

    job: JobId
    workload: str
    """The name of its Workload."""
    cluster: str
    """The MultiKueueCluster; "": it is on none."""
    finished: bool
    uid: str = ""
    """The uid of the job on the hub."""

    @property
    def label(self) -> str:
        """The job as kubectl names it: `job.batch/train`."""
        return f"{self.job.type}/{self.job.name}"


def place_of(workload: Object) -> JobPlace:
    """Return where the job of a Workload is."""
    namespace, name = key_of(workload)
    api_version = WORKLOAD.at(WORKLOAD.versions[0]).api_version
    job = next(iter(jobs_of(workload)), JobId(namespace, api_version, WORKLOAD.kind, name))
    owner = next(iter(get_list(workload, "metadata", "ownerReferences")), None)
    return JobPlace(
        job,
        name,
        get_str(workload, "status", "clusterName"),
        condition_of(workload, "Finished").get("status") == "True",
        get_str(owner, "uid"),
    )
