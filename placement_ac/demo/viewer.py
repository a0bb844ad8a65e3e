"""
What the audience sees of the hub: the kinds of the stories, as they are, and when they last changed.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Self

from placement_ac.kube import Client, Object
from placement_ac.login import Login
from placement_ac.names import (
    ADMISSION_CHECK,
    KUEUE,
    KUEUE_VERSIONS,
    LABEL_PLACEMENT,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PLACEMENT,
    PLACEMENT_DECISION,
    Kind,
)
from placement_ac.sim.informer import Informer

CLUSTER_QUEUE: Final = Kind(KUEUE, "ClusterQueue", "clusterqueues", False, KUEUE_VERSIONS)
KINDS: Final = (
    PLACEMENT,
    PLACEMENT_DECISION,
    ADMISSION_CHECK,
    MULTIKUEUE_CONFIG,
    MULTIKUEUE_CLUSTER,
    CLUSTER_QUEUE,
)


class Viewer:
    """Watches the hub; `async with` it."""

    def __init__(self, login: Login, client: Client) -> None:
        self._informer = Informer(login, client, KINDS, self._changed)
        self._moved = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._decided_at: dict[str, float] = {}

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._informer.run())
        await self._informer.synced()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _changed(self, kind: Kind, namespace: str, name: str) -> None:
        if kind is PLACEMENT_DECISION:
            decision = self._informer.objects[kind].get((namespace, name)) or {}
            labels = (decision.get("metadata") or {}).get("labels") or {}
            self._decided_at[labels.get(LABEL_PLACEMENT, "")] = time.monotonic()
        self._moved.set()

    async def until(self, right: Callable[[], bool], seconds: float) -> bool:
        """Wait until `right()`; return whether it came within `seconds`."""
        end = time.monotonic() + seconds
        while not right():
            left = end - time.monotonic()
            if left <= 0:
                return False
            self._moved.clear()
            try:
                await asyncio.wait_for(self._moved.wait(), left)
            except TimeoutError:
                return right()
        return True

    def decided_at(self, placement: str) -> float | None:
        """Return when the Placement's decision last changed (time.monotonic), None for never."""
        return self._decided_at.get(placement)

    def get(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        return self._informer.objects[kind].get((namespace, name))

    def all(self, kind: Kind) -> list[Object]:
        """Return the objects of a kind, by name."""
        return [obj for _, obj in sorted(self._informer.objects[kind].items())]

    def listed(self, config: str) -> list[str]:
        """Return what a MultiKueueConfig lists; nothing when it is not there."""
        obj = self.get(MULTIKUEUE_CONFIG, config)
        return list(obj["spec"]["clusters"]) if obj else []

    def decided(self, placement: str) -> list[str]:
        """Return the clusters in a Placement's decisions."""
        return [
            entry["clusterName"]
            for obj in self.all(PLACEMENT_DECISION)
            if (obj["metadata"].get("labels") or {}).get(LABEL_PLACEMENT) == placement
            for entry in (obj.get("status") or {}).get("decisions") or ()
        ]

    def condition(self, kind: Kind, name: str) -> Mapping[str, Any]:
        """Return the condition `Active` of an object; empty when it has none."""
        obj = self.get(kind, name) or {}
        conditions = (obj.get("status") or {}).get("conditions") or ()
        return next((condition for condition in conditions if condition["type"] == "Active"), {})
