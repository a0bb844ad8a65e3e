"""
Reads of workers what their scores depend on: the queues, and if wanted the GPUs of their nodes.
"""

import asyncio
from collections.abc import Collection, Sequence

from placement_ac.core.api.constants import NODE, Resource
from placement_ac.core.api.fields import get_value
from placement_ac.core.api.quantities import milli
from placement_ac.core.inputs.score_reports import WorkerReading
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.kube.client import Client
from placement_ac.workers.connector import WorkerConnector, WorkerLogin
from placement_ac.workers.queues import QueueReader
from placement_ac.workers.reader import Problem, WorkerReader

Health = tuple[float | None]
"""The share of the GPUs that nodes have and that can be allocated; None: they have none."""


class NodeReader(WorkerReader[Health]):
    """Reads how many of a worker's GPUs can be allocated; `gpus` are the names of the resources."""

    kinds = (NODE,)
    permission = "list nodes"
    too_deep = "look for the {} there that the log names: it is nested too deeply to be read"

    def __init__(self, connector: WorkerConnector, gpus: Collection[str]) -> None:
        super().__init__(connector)
        self._gpus = gpus

    async def read_objects(self, client: Client, _: WorkerLogin, resources: Sequence[Resource]) -> Health:
        capacity = allocatable = 0
        async for page in self.pages(client, resources[0]):
            for node in page.items:
                for gpu in self._gpus:
                    there = max(milli(get_value(node, "status", "capacity", gpu)) or 0, 0)
                    now = milli(get_value(node, "status", "allocatable", gpu)) or 0
                    capacity += there
                    allocatable += min(max(now, 0), there)
        return (allocatable / capacity if capacity else None,)


class ScoreReader:
    """Reads workers; `nodes` None: their nodes are not read."""

    def __init__(self, queues: QueueReader, nodes: NodeReader | None) -> None:
        self._queues = queues
        self._nodes = nodes

    async def read(self, cluster: str, source: CredentialSource) -> WorkerReading:
        """Return the state of the worker of a cluster. Raises nothing but CancelledError."""
        if self._nodes is None:
            return WorkerReading(await self._queues.read_by(cluster, source))
        facts, health = await asyncio.gather(
            self._queues.read_by(cluster, source), self._nodes.answer_by(cluster, lambda: source)
        )
        if isinstance(health, Problem):
            return WorkerReading(facts, node_problem=health.why)
        return WorkerReading(facts, health[0])
