"""The reconciler, with its client on a hub and a clock that the test sets: one key at a time."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from placement_ac.cache.store import Cache
from placement_ac.controller.reconcile import Reconciler
from placement_ac.controller.recorder import Recorder
from placement_ac.controller.writer import Writer
from placement_ac.core.api.constants import Kind
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.inputs.state import Key, WorkerCopies
from placement_ac.kube.client import Client
from placement_ac.kube.workqueue import Requeue
from placement_ac.observability.metrics import Metrics
from tests.support.builders import AT_ONCE
from tests.support.driver import Driver

P = Key("placement", "p")
FORBIDDEN = {"kind": "Status", "message": "you shall not", "reason": "Forbidden", "code": 403}
WHEN = datetime(2026, 8, 1, 12, tzinfo=UTC)


@dataclass
class Rig:
    """A reconciler with a world that was listed once, and a clock that the test sets."""

    client: Client
    resources: Any
    ticks: float = 0.0
    later: list[tuple[Key, float]] = field(default_factory=list)
    events: Recorder = field(init=False)
    world: Cache = field(default_factory=lambda: Cache(policy=AT_ONCE))
    metrics: Metrics = field(default_factory=Metrics)
    copies: WorkerCopies | None = None
    """The answer of each worker; None: it does not answer."""

    def __post_init__(self) -> None:
        self.events = Recorder(self.client, self.resources, lambda: WHEN)
        self.reconciler = Reconciler(
            self.world,
            Writer(self.client, self.resources, self._store, monotonic=lambda: self.ticks),
            self.events,
            read_copies=self._ask,
            clock=lambda: WHEN,
            monotonic=lambda: self.ticks,
            add_after=lambda key, seconds: self.later.append((key, seconds)),
            metrics=self.metrics,
        )

    async def _ask(self, cluster: KueueObject) -> WorkerCopies:
        return self.copies or WorkerCopies({}, f"nobody answers for {cluster.meta.name}")

    def _store(self, kind: Kind, obj: Any, gone: bool) -> None:
        (self.world.remove if gone else self.world.put)(kind, obj)

    async def list(self) -> None:
        for kind, resource in self.resources.items():
            listing = await self.client.list(resource)
            self.world.replace(kind, listing.items, listing.resource_version)

    async def settle_events(self) -> None:
        """Wait until the events that were queued are posted, or not."""
        await asyncio.gather(*(task for task in asyncio.all_tasks() if task.get_name() == "post events"))

    async def look(self, key: Key = P) -> Requeue | None:
        try:
            await self.reconciler.reconcile(key)
        except Requeue as requeue:
            return requeue
        return None


def condition_of(admin: Driver) -> tuple[str, str, str]:
    """Status, reason and message of the check p."""
    active = admin.active("p")
    return active.get("status", ""), active.get("reason", ""), active.get("message", "")
