"""
Which LocalQueues of the hub send jobs through a check: what its workers should have as well.

Read when it is asked for, and believed for a minute.
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import Final

import structlog
from cachetools import TTLCache

from placement_ac.core.api.constants import KUEUE, KUEUE_VERSIONS, Kind
from placement_ac.core.api.decode import checks_listed
from placement_ac.core.api.errors import ApiError
from placement_ac.kube.client import Client, Object
from placement_ac.observability.logs import LogDeduplicator

log = structlog.get_logger(__name__)

CLUSTER_QUEUE: Final = Kind(KUEUE, "ClusterQueue", "clusterqueues", False, KUEUE_VERSIONS)
LOCAL_QUEUE: Final = Kind(KUEUE, "LocalQueue", "localqueues", True, KUEUE_VERSIONS)
CACHE_SECONDS: Final = 60.0


class HubLocalQueues:
    """The hub's ClusterQueues and LocalQueues."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._cached: TTLCache[str, tuple[list[Object], list[Object]]] = TTLCache(1, CACHE_SECONDS)
        self._reading = asyncio.Lock()
        self._logged = LogDeduplicator()

    async def for_checks(self, checks: Collection[str]) -> Mapping[str, frozenset[str]]:
        """Return namespace → LocalQueues behind ClusterQueues that list one of `checks`.

        Empty if that cannot be read: a worker is asked for nothing then.
        """
        try:
            cluster_queues, local_queues = await self._read()
        except ApiError as error:
            log.log(
                self._logged.level(self, error.message), "cannot read the hub's queues", error=error.message
            )
            return {}
        if self._logged.ended(self):
            log.info("the hub's queues can be read again")
        using = {
            item["metadata"]["name"] for item in cluster_queues if not checks_listed(item).isdisjoint(checks)
        }
        found: dict[str, set[str]] = {}
        for item in local_queues:
            if (item.get("spec") or {}).get("clusterQueue") in using:
                found.setdefault(item["metadata"]["namespace"], set()).add(item["metadata"]["name"])
        return {namespace: frozenset(names) for namespace, names in found.items()}

    async def _read(self) -> tuple[list[Object], list[Object]]:
        async with self._reading:  # who comes meanwhile waits for the same answer
            known = self._cached.get("")
            if known is None:
                served = await self._client.discover((CLUSTER_QUEUE, LOCAL_QUEUE))
                lists = [
                    list((await self._client.list(served[kind])).items) if kind in served else []
                    for kind in (CLUSTER_QUEUE, LOCAL_QUEUE)
                ]
                known = self._cached[""] = lists[0], lists[1]
        return known
