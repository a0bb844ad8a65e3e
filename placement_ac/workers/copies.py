"""
Lists which copies of this hub's Workloads the worker clusters hold.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from placement_ac.core.api import decode
from placement_ac.core.api.constants import LABEL_ORIGIN, WORKLOAD, Resource
from placement_ac.core.api.errors import TooLarge
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.inputs.state import WorkerCopies
from placement_ac.kube.client import Client
from placement_ac.kube.deep_json import MAX_LEVELS
from placement_ac.workers.connector import MAX_COPIES_BYTES, WorkerLogin
from placement_ac.workers.reader import Problem, WorkerReader

Id = tuple[str, str]

MAX_COPIES: Final = 30_000
"""The most copies of a worker that are kept: with their names they take up to 10 MB."""
NAME_LENGTH: Final = 100
"""Characters of namespace and name, on average at most."""


class CopyReader(WorkerReader[Mapping[Id, bool]]):
    """Lists the copies on workers."""

    kinds = (WORKLOAD,)
    permission = f"list workloads.{WORKLOAD.group} in all namespaces"
    total_bytes = MAX_COPIES_BYTES
    # Counted as absent, its cluster would be unlisted, and its job would run twice.
    too_deep = (
        "look for the {} there that the log names, and remove what is nested more than "
        f"{MAX_LEVELS} levels deep: it cannot be read, so it is unknown whether it runs"
    )

    async def read(self, cluster: KueueObject) -> WorkerCopies:
        """Return the copies on the worker of a MultiKueueCluster. Raises nothing but CancelledError."""
        answer = await self.answer(cluster)
        return WorkerCopies(problem=answer) if isinstance(answer, Problem) else WorkerCopies(answer)

    async def read_objects(
        self, client: Client, _: WorkerLogin, resources: Sequence[Resource]
    ) -> Mapping[Id, bool]:
        copies: dict[Id, bool] = {}
        characters = 0
        async for page in self.pages(client, resources[0], LABEL_ORIGIN):
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
