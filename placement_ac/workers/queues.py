"""
Reads the queues of workers: which LocalQueues there are, the quota of their ClusterQueues, and its use.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import orjson
from cachetools import TTLCache

from placement_ac.core.api.constants import CLUSTER_QUEUE, KUEUE, LOCAL_QUEUE, Resource
from placement_ac.core.api.errors import ApiError, TooLarge
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.inputs.job_facts import NO_NEEDS, JobNeeds
from placement_ac.core.inputs.queue_facts import WorkerFacts, with_flavors, worker_facts
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.kube.client import Client, Object
from placement_ac.workers.connector import (
    MAX_CACHED,
    TOO_LARGE_SECONDS,
    Version,
    WorkerConnector,
    WorkerError,
    WorkerLogin,
    worker_error_text,
)
from placement_ac.workers.flavors import FlavorReader
from placement_ac.workers.needs import NeedsReader
from placement_ac.workers.reader import Problem, Silence, WorkerReader

NEEDS_FRACTION: Final = 0.5
"""Of the timeout of a worker: if the queues are read by then, the rest is for what jobs need beside them."""


class QueueReader(WorkerReader[WorkerFacts]):
    """Reads the queues of workers. `kueue_namespace`: see `NeedsReader`."""

    kinds = (CLUSTER_QUEUE, LOCAL_QUEUE)
    permission = f"list clusterqueues.{KUEUE} and localqueues.{KUEUE}"
    too_deep = "look for the {} there that the log names: it is nested too deeply to be read"

    def __init__(self, connector: WorkerConnector, *, parallel: int = 8, kueue_namespace: str = "") -> None:
        super().__init__(connector, parallel=parallel)
        self._too_large: TTLCache[Version, str] = TTLCache(MAX_CACHED, TOO_LARGE_SECONDS)
        """Credentials of workers whose queues are too many; their copies are read nevertheless."""
        self._needs = NeedsReader(kueue_namespace)
        self._flavors = FlavorReader()

    async def read(self, cluster: KueueObject, needs: JobNeeds = NO_NEEDS) -> WorkerFacts:
        """Return the queues on the worker of a MultiKueueCluster, and what it has of `needs`.

        Raises nothing but CancelledError.
        """
        answer = await self.answer(cluster, partial(self._read_all, needs))
        if isinstance(answer, Problem):
            return WorkerFacts(problem=answer, silent=isinstance(answer, Silence))
        return (
            replace(answer, problem=Problem(cluster.meta.name, answer.problem)) if answer.problem else answer
        )

    async def read_by(self, cluster: str, source: CredentialSource) -> WorkerFacts:
        """Return the queues on the worker of a cluster, listed or not. Raises nothing but CancelledError."""
        answer = await self.answer_by(cluster, lambda: source)
        return WorkerFacts(problem=answer.why) if isinstance(answer, Problem) else answer

    async def _read_all(
        self, needs: JobNeeds, client: Client, login: WorkerLogin, resources: Sequence[Resource]
    ) -> WorkerFacts:
        """Read the queues first: what jobs need beside them takes no answer about the queues away."""
        clock = asyncio.get_running_loop().time
        began = clock()
        until = began + self.connector.timeout * NEEDS_FRACTION
        facts = await self.read_objects(client, login, resources)
        flavors = await self._flavors.read(
            client, login.version, resources[0].version, facts, until - clock()
        )
        jobs = await self._needs.read(client, login.version, needs, until - clock())
        return replace(facts, queues=with_flavors(facts.queues, flavors), jobs=jobs)

    async def read_objects(
        self, client: Client, login: WorkerLogin, resources: Sequence[Resource]
    ) -> WorkerFacts:
        if problem := self._too_large.get(login.version):
            raise WorkerError(problem)
        cluster_queues, local_queues = resources
        quotas = await self._list(client, cluster_queues, _cluster_queue)
        if not quotas:  # it has none, or shows none
            raise WorkerError("the worker has no ClusterQueue: is Kueue set up there?")
        local = await self._list(client, local_queues, _local_queue)
        return worker_facts(map(orjson.loads, local), map(orjson.loads, quotas))

    async def _list(
        self, client: Client, resource: Resource, keep: Callable[[Object], Object]
    ) -> list[bytes]:
        """Return the parts of all objects that `keep` returns: a page at a time is held whole.

        They are kept as JSON, which takes a fraction of the memory, and read one by one.
        """
        kept: list[bytes] = []
        async for page in self.pages(client, resource):
            if page.first:
                kept.clear()
            kept += map(orjson.dumps, map(keep, page.items))
            del page
        return kept

    def problem(self, error: ApiError, login: WorkerLogin) -> WorkerError:
        if not isinstance(error, TooLarge):
            return super().problem(error, login)
        text = worker_error_text(error, login.described_as, self.permission)
        self._too_large[login.version] = text
        return WorkerError(text)


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
