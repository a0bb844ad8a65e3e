"""
Read the queues of workers: which LocalQueues there are, the quota of their ClusterQueues, and its use.

`questions` turns errors into problems.
"""

from collections.abc import Callable, Collection
from typing import Any, Final

import orjson
from cachetools import TTLCache

from placement_ac.core.api.constants import CLUSTER_QUEUE, KUEUE, LOCAL_QUEUE, Resource
from placement_ac.core.api.errors import ApiError, TooLarge
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.inputs.queue_facts import WorkerFacts, worker_facts
from placement_ac.kube.client import PAGE_SIZE, Client, Object
from placement_ac.workers.connector import (
    MAX_CACHED,
    TOO_LARGE_SECONDS,
    Version,
    WorkerConnector,
    WorkerError,
    WorkerLogin,
    worker_error_text,
)
from placement_ac.workers.copies import DISCOVERY_SECONDS
from placement_ac.workers.questions import Problem, WorkerQuestions

Resources = tuple[Resource, Resource]
"""ClusterQueues and LocalQueues, in the version that a worker serves."""

TOO_DEEP: Final = "look for the {} there that the log names: it is nested too deeply to be read"
PERMISSION: Final = f"list clusterqueues.{KUEUE} and localqueues.{KUEUE}"


class FactsReader:
    """Reads the queues of workers, each within the timeout of `connector`, `parallel` at once."""

    def __init__(self, connector: WorkerConnector, *, parallel: int = 8) -> None:
        self._connector = connector
        self._questions = WorkerQuestions(connector, parallel)
        self._resources: TTLCache[Version, Resources] = TTLCache(MAX_CACHED, DISCOVERY_SECONDS)
        self._too_large: TTLCache[Version, str] = TTLCache(MAX_CACHED, TOO_LARGE_SECONDS)
        """Credentials of workers whose queues are too many; their copies are read nevertheless."""

    async def read(self, cluster: KueueObject) -> WorkerFacts:
        """Return the queues on the worker of a MultiKueueCluster. Raises nothing but CancelledError."""
        answer = await self._questions.ask(cluster, self._read)
        return WorkerFacts(problem=answer) if isinstance(answer, Problem) else answer

    async def _read(self, login: WorkerLogin) -> WorkerFacts:
        if problem := self._too_large.get(login.version):
            raise WorkerError(problem)
        try:
            async with self._connector.client(login) as client:
                cluster_queues, local_queues = await self._served(client, login)
                quotas = await _list(client, cluster_queues, _cluster_queue)
                if not quotas:  # it has none, or shows none
                    raise WorkerError("the worker has no ClusterQueue: is Kueue set up there?")
                local = await _list(client, local_queues, _local_queue)
                facts = worker_facts(map(orjson.loads, local), map(orjson.loads, quotas))
                if facts.problem:
                    raise WorkerError(facts.problem)
                return facts
        except TooLarge as error:
            text = self._too_large[login.version] = worker_error_text(error, login.described_as, PERMISSION)
            raise WorkerError(text) from None
        except ApiError as error:
            if error.status == 404:  # what it serves may have changed
                self._resources.pop(login.version, None)
            raise self._connector.problem(error, login, PERMISSION) from None

    async def _served(self, client: Client, login: WorkerLogin) -> Resources:
        known = self._resources.get(login.version)
        if known is None:
            served = await client.discover((CLUSTER_QUEUE, LOCAL_QUEUE))
            if CLUSTER_QUEUE not in served or LOCAL_QUEUE not in served:
                raise WorkerError("the worker serves no ClusterQueues and LocalQueues: is Kueue there?")
            known = self._resources[login.version] = served[CLUSTER_QUEUE], served[LOCAL_QUEUE]
        return known


async def _list(client: Client, resource: Resource, keep: Callable[[Object], Object]) -> list[bytes]:
    """Return the parts of all objects that `keep` returns: a page at a time is held whole.

    They are kept as JSON, which takes a fraction of the memory, and read one by one.
    """
    found: list[bytes] = []
    async for page in client.pages(resource, limit=PAGE_SIZE):
        if page.kind != f"{resource.of.kind}List":
            raise WorkerError(f"what the worker answered is no list of {resource.of.kind}s")
        if page.skipped:  # counted as absent, a LocalQueue would be missing
            raise WorkerError(TOO_DEEP.format(resource.of.kind))
        if page.first:
            found.clear()
        found += map(orjson.dumps, map(keep, page.items))
        del page
    return found


def _cluster_queue(item: Object) -> Object:
    return _parts(item, spec=None, status=None)


def _local_queue(item: Object) -> Object:
    return _parts(item, spec=("clusterQueue", "stopPolicy"), status=("conditions",))


def _parts(item: Object, **fields: Collection[str] | None) -> Object:
    """Return the name of an object, and these fields of its parts (None: all); another shape stays."""
    metadata = item.get("metadata")
    names = _fields(metadata if isinstance(metadata, dict) else {}, ("namespace", "name"))
    return {"metadata": names} | {part: _fields(item.get(part), wanted) for part, wanted in fields.items()}


def _fields(part: Any, wanted: Collection[str] | None) -> Any:
    if wanted is None or not isinstance(part, dict):
        return part
    return {field: part[field] for field in wanted if field in part}
