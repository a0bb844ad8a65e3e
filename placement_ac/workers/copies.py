"""
List which copies of this hub's Workloads the worker clusters hold. `questions` turns errors into problems.
"""

from collections.abc import Mapping
from typing import Final

from cachetools import TTLCache

from placement_ac.core.api import decode
from placement_ac.core.api.constants import LABEL_ORIGIN, WORKLOAD, Resource
from placement_ac.core.api.errors import ApiError, TooLarge
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.inputs.state import WorkerCopies
from placement_ac.kube.client import PAGE_SIZE, Client
from placement_ac.kube.deep_json import MAX_LEVELS
from placement_ac.workers.connector import (
    MAX_CACHED,
    MAX_COPIES_BYTES,
    Version,
    WorkerConnector,
    WorkerError,
    WorkerLogin,
)
from placement_ac.workers.questions import Problem, WorkerQuestions

Id = tuple[str, str]

DISCOVERY_SECONDS: Final = 600.0
"""How long the version in which a worker serves Workloads is cached."""
MAX_COPIES: Final = 30_000
"""The most copies of a worker that are kept: with their names they take up to 10 MB."""
NAME_LENGTH: Final = 100
"""Characters of namespace and name, on average at most."""
TOO_DEEP: Final = (
    "look for the Workload there that the log names, and remove what is nested more than "
    f"{MAX_LEVELS} levels deep: it cannot be read, so it is unknown whether it runs"
)


class CopyReader:
    """Lists the copies on workers, each within the timeout of `connector`, `parallel` at once."""

    def __init__(self, connector: WorkerConnector, *, parallel: int = 8) -> None:
        self._connector = connector
        self.questions = WorkerQuestions(connector, parallel)
        self._workload_resources: TTLCache[Version, Resource] = TTLCache(MAX_CACHED, DISCOVERY_SECONDS)

    async def read(self, cluster: KueueObject) -> WorkerCopies:
        """Return the copies on the worker of a MultiKueueCluster. Raises nothing but CancelledError."""
        answer = await self.questions.ask(cluster, self._list)
        return WorkerCopies(problem=answer) if isinstance(answer, Problem) else WorkerCopies(answer)

    async def _list(self, login: WorkerLogin) -> Mapping[Id, bool]:
        try:
            async with self._connector.client(login, MAX_COPIES_BYTES) as client:
                return await _list_copies(client, await self._workload_resource(client, login))
        except ApiError as error:
            if error.status == 404:  # what it serves may have changed
                self._workload_resources.pop(login.version, None)
            permission = f"list workloads.{WORKLOAD.group} in all namespaces"
            raise self._connector.problem(error, login, permission) from None

    async def _workload_resource(self, client: Client, login: WorkerLogin) -> Resource:
        resource = self._workload_resources.get(login.version)
        if resource is None:
            resource = (await client.discover([WORKLOAD])).get(WORKLOAD)
            if resource is None:
                raise WorkerError("the worker serves no Workloads: is Kueue installed there?")
            self._workload_resources[login.version] = resource
        return resource


async def _list_copies(client: Client, resource: Resource) -> Mapping[Id, bool]:
    copies: dict[Id, bool] = {}
    characters = 0
    async for page in client.pages(resource, limit=PAGE_SIZE, label_selector=LABEL_ORIGIN):
        if page.kind != f"{WORKLOAD.kind}List":  # another server knows of no copies
            raise WorkerError("what the worker answered is no list of Workloads")
        if page.skipped:  # counted as absent, its cluster would be unlisted, and its job would run twice
            raise WorkerError(TOO_DEEP)
        if page.first:
            copies.clear()
            characters = 0
        for workload in map(decode.workload, page.items):
            copies[workload.meta.id] = workload.has_quota and not workload.finished
            characters += sum(map(len, workload.meta.id))
        del page  # two pages at a time would take twice the memory
        if len(copies) > MAX_COPIES or characters > MAX_COPIES * NAME_LENGTH:
            raise TooLarge(f"more than {MAX_COPIES:,} copies")
    return copies
