"""
Counts the copies on workers that have the origin of this hub's Kueue, and no Workload on this hub.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from cachetools import TTLCache

from placement_ac.core.api import decode
from placement_ac.core.api.constants import CONFIG_MAP, LABEL_ORIGIN, WORKLOAD, Resource
from placement_ac.core.api.errors import ApiError
from placement_ac.core.api.kueue_gates import KUEUE_CONFIG_MAP
from placement_ac.core.api.kueue_origin import DEFAULT_ORIGIN, origin_of_config_map
from placement_ac.core.inputs.unknown_copies import COUNTED_MAX, UnknownCopies
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.kube.client import Client, gather_all
from placement_ac.workers.connector import MAX_COPIES_BYTES, WorkerConnector, WorkerError, WorkerLogin
from placement_ac.workers.reader import Problem, WorkerReader

ORIGIN_SECONDS: Final = 60.0
"""How long it is known which origin Kueue's configuration sets."""
AT_ONCE: Final = 8
Id = tuple[str, str]


@dataclass(slots=True)
class _Count:
    """The copies counted so far: an answer that breaks off does not make them none."""

    number: int = 0


class UnknownCopyReader(WorkerReader[None]):
    """Counts them. `workloads`: the hub's; `is_known`: whether it has one, as far as that is cached."""

    kinds = (WORKLOAD,)
    permission = f"list workloads.{WORKLOAD.group} in all namespaces"
    total_bytes = MAX_COPIES_BYTES
    too_deep = "look for the {} there that the log names: it is nested too deeply to be read"

    def __init__(
        self,
        connector: WorkerConnector,
        workloads: Resource,
        is_known: Callable[[Id], bool],
    ) -> None:
        super().__init__(connector)
        self._workloads = workloads
        self._is_known = is_known
        self._origin: TTLCache[str, str] = TTLCache(1, ORIGIN_SECONDS)

    async def read(self, source: CredentialSource, asked_at: datetime) -> UnknownCopies:
        """Return how many the worker of `source` has. Raises nothing but CancelledError."""
        origin, count = await self._read_origin(), _Count()
        assumed = "" if origin else f"ConfigMap {self.connector.kueue_namespace}/{KUEUE_CONFIG_MAP}"
        origin = origin or DEFAULT_ORIGIN
        read = partial(self.read_objects, origin=origin, count=count)
        answer = await self.answer_by(source.name, lambda: source, read)
        problem = answer.why if isinstance(answer, Problem) and not count.number else ""
        number = min(count.number, COUNTED_MAX)
        return UnknownCopies(source.version, asked_at, number, origin, assumed, problem)

    async def read_objects(
        self,
        client: Client,
        _: WorkerLogin,
        resources: Sequence[Resource],
        *,
        origin: str = DEFAULT_ORIGIN,
        count: _Count | None = None,
    ) -> None:
        count = count or _Count()
        async with aclosing(self.pages(client, resources[0], f"{LABEL_ORIGIN}={origin}")) as pages:
            async for page in pages:
                if page.first:
                    count.number = 0
                running = [
                    w.meta.id for w in map(decode.workload, page.items) if w.has_quota and not w.finished
                ]
                del page  # two pages at a time would take twice the memory
                unsure = [id_ for id_ in running if not self._is_known(id_)]
                for start in range(0, len(unsure), AT_ONCE):
                    count.number += await self._missing(unsure[start : start + AT_ONCE])
                    if count.number >= COUNTED_MAX:
                        return

    async def _read_origin(self) -> str:
        """Return the origin of the hub's Kueue; "": it cannot be read."""
        if "" not in self._origin:
            try:
                config_map = await self.connector.hub.get(
                    CONFIG_MAP.at("v1"), KUEUE_CONFIG_MAP, self.connector.kueue_namespace
                )
                self._origin[""] = await asyncio.to_thread(origin_of_config_map, config_map)
            except ApiError:
                return ""
        return self._origin[""]

    async def _missing(self, ids: Sequence[Id]) -> int:
        """Return how many of these Workloads the hub does not have. Raises WorkerError if it does not say."""
        try:
            there = await gather_all(
                self.connector.hub.exists(self._workloads, name, space) for space, name in ids
            )
        except ApiError as error:
            raise WorkerError(
                f"whether this hub has the Workloads of its copies is unknown: {error.message}"
            ) from None
        return sum(not one for one in there)
