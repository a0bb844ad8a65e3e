"""Follows the MultiKueueConfigs and AdmissionChecks of a hub and records when each becomes correct."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

from bench.scene import newest
from placement_ac.core.api.constants import ADMISSION_CHECK, MULTIKUEUE_CONFIG, Kind
from placement_ac.core.api.errors import ApiError
from placement_ac.kube.client import Client, Object


class Follower:
    """The current objects by name, and the awaited states. Times are of the event loop."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lists: dict[str, Sequence[str]] = {}
        self._active: set[str] = set()
        self._wanted: dict[str, Sequence[str]] = {}
        self._checks: set[str] = set()
        self._reached = asyncio.Event()

    async def lists(self, wanted: Mapping[str, Sequence[str]], checks: set[str] | None = None) -> float:
        """Return the time at which the MultiKueueConfigs have these lists and these checks are Active."""
        self._wanted = {
            name: clusters for name, clusters in wanted.items() if self._lists.get(name) != clusters
        }
        self._checks = (checks or set()) - self._active
        self._reached = asyncio.Event()
        if self._wanted or self._checks:
            await self._reached.wait()
        return asyncio.get_running_loop().time()

    def _take(self, kind: Kind, change: str, item: Object) -> None:
        name = item["metadata"]["name"]
        if kind is MULTIKUEUE_CONFIG:
            self._lists[name] = [] if change == "DELETED" else item["spec"]["clusters"]
            if self._wanted.get(name) == self._lists[name]:
                del self._wanted[name]
        elif change != "DELETED" and _is_active(item):
            self._active.add(name)
            self._checks.discard(name)
        else:
            self._active.discard(name)
        if not self._wanted and not self._checks:
            self._reached.set()

    async def _follow(self, kind: Kind) -> None:
        while True:
            try:
                async with aclosing(self._client.watch(newest(kind), "")) as events:
                    async for change, item in events:
                        if change != "BOOKMARK":
                            self._take(kind, change, item)
            except ApiError:
                await asyncio.sleep(0.01)


def _is_active(check: Mapping[str, Any]) -> bool:
    conditions = (check.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Active" and one["status"] == "True" for one in conditions)


@asynccontextmanager
async def following(client: Client) -> AsyncIterator[Follower]:
    """Follow both kinds for the duration of the `with`."""
    follower = Follower(client)
    kinds = (MULTIKUEUE_CONFIG, ADMISSION_CHECK)
    tasks = [asyncio.create_task(follower._follow(kind)) for kind in kinds]  # noqa: SLF001  # its own
    try:
        yield follower
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
