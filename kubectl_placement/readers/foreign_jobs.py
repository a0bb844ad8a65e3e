"""Look for the Jobs of somebody else on workers that have the names of jobs which wait for these workers."""

from collections.abc import Iterable, Mapping, Sequence

from kubectl_placement.jobs.waiting_jobs import ForeignJob, WaitingJob
from placement_ac.core.api import decode
from placement_ac.core.api.constants import WORKLOAD, Resource
from placement_ac.core.api.copy_owner import copy_owner
from placement_ac.core.api.errors import NotFound, Refused
from placement_ac.core.api.objects import KueueObject
from placement_ac.kube.client import Client, Object, gather_all
from placement_ac.workers.connector import WorkerConnector, WorkerLogin
from placement_ac.workers.reader import Problem, WorkerReader


async def find_foreign_jobs(
    client: Client, workloads: Resource, jobs: Iterable[WaitingJob]
) -> tuple[ForeignJob, ...]:
    """Return those of these names. Raises ApiError; what may not be read counts as absent."""
    jobs_there = await gather_all(_find(client, workloads, job) for job in jobs)
    return tuple(filter(None, jobs_there))


async def _find(client: Client, workloads: Resource, job: WaitingJob) -> ForeignJob | None:
    there = await _get(client, job.resource, job.name, job.namespace)
    if there is None or copy_owner(there).is_of(job.workload, job.uid):
        return None
    copy = await _get(client, workloads, job.workload, job.namespace)
    return ForeignJob(job, copy is not None and decode.workload(copy).has_quota)


async def _get(client: Client, resource: Resource, name: str, namespace: str) -> Object | None:
    try:
        return await client.get(resource, name, namespace)
    except (NotFound, Refused):  # `doctor` reports missing rights by itself: Kueue needs the same
        return None


class ForeignJobReader(WorkerReader[tuple[ForeignJob, ...]]):
    """Looks for the name of one job on workers."""

    kinds = (WORKLOAD,)
    permission = f"get workloads.{WORKLOAD.group} in all namespaces"
    too_deep = "a {} there is nested too deeply"

    def __init__(self, connector: WorkerConnector, job: WaitingJob) -> None:
        super().__init__(connector)
        self._job = job

    async def read_objects(
        self, client: Client, _: WorkerLogin, resources: Sequence[Resource]
    ) -> tuple[ForeignJob, ...]:
        return await find_foreign_jobs(client, resources[0], (self._job,))

    async def notes(self, clusters: Mapping[str, KueueObject]) -> tuple[str, ...]:
        """Return what there is to say about these clusters, by name. Raises nothing but CancelledError."""
        answers = await gather_all(map(self.answer, clusters.values()))
        return tuple(
            f"{name}: whether it has another {self._job.label} is unknown: {answer.why}"
            if isinstance(answer, Problem)
            else f"{name}: {answer[0].problem}"
            for name, answer in zip(clusters, answers, strict=True)
            if answer
        )
