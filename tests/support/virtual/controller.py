"""
The whole controller on the virtual clock of a `VirtualKueue`.

Queue, reconciler and actor are the real ones, on an event loop whose time is Kueue's. Simulated are the rest:
delayed requests and events, queries to workers, and crashes between any two writes.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from placement_ac.cache.store import Cache
from placement_ac.cache.tables import NO_SETUP
from placement_ac.controller.background_queries import ReadQueues
from placement_ac.controller.capacity_reporter import CapacityReporter
from placement_ac.controller.reconcile import Reconciler
from placement_ac.controller.recorder import Recorder
from placement_ac.controller.score_reporter import ReadWorker, ScoreReporter
from placement_ac.controller.session import ECHO_SECONDS, WRITTEN_KINDS
from placement_ac.controller.writer import Writer
from placement_ac.core.api import decode
from placement_ac.core.api.constants import WORKLOAD, Kind
from placement_ac.core.api.errors import Unavailable
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.capacity_report.policy import CapacityPolicy
from placement_ac.core.inputs.fitness import Fitness
from placement_ac.core.inputs.score_reports import ScorePolicy
from placement_ac.core.inputs.state import Key, PlacementPolicy, WorkerCopies
from placement_ac.core.inputs.worker_setup import WorkerSetupPolicy
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.kube.informer import RELIST_SECONDS
from placement_ac.kube.workqueue import Workqueue
from placement_ac.observability.metrics import Metrics
from tests.support.builders import Raw
from tests.support.virtual.client import Odds, VirtualClient
from tests.support.virtual.hub import VirtualHub

ASK_SECONDS: Final = (0.0025, 0.025)
"""Delay of a query to a worker, one way."""
NO_REPORTS: Final = ScorePolicy()
UNPUBLISHED: Final = CapacityPolicy()
TIMEOUT_SECONDS: Final = 5.0
"""The timeout of a query to a worker."""


class VirtualController:
    """A controller that crashes and restarts. It starts when it is created.

    `read_queues`: reads a worker's queues, for our dispatcher; `read_worker` the same for the scores.
    """

    def __init__(
        self,
        hub: VirtualHub,
        policy: PlacementPolicy,
        odds: Odds,
        read_queues: ReadQueues | None = None,
        setup: WorkerSetupPolicy = NO_SETUP,
        reports: ScorePolicy = NO_REPORTS,
        read_worker: ReadWorker | None = None,
        capacity: CapacityPolicy = UNPUBLISHED,
    ) -> None:
        self._hub = hub
        self._story = asyncio.current_task()
        self._away = 0.0
        self.began = hub.kueue.now
        """When it started last."""
        self.reconciles: Counter[Key] = Counter()
        """How often each key was reconciled, over all lives."""
        self._live = partial(
            _Life,
            hub,
            policy,
            odds,
            read_queues,
            self.reconciles,
            setup,
            reports,
            read_worker,
            capacity=capacity,
        )
        self._life: _Life | None = self._live()
        hub.struck = self._die

    @property
    def metrics(self) -> Metrics | None:
        """Those of the running controller; None: there is none."""
        return self._life.metrics if self._life else None

    def crash(self, away: float, after_writes: int = 0) -> None:
        """Crash after `after_writes` more writes, and restart `away` seconds later."""
        self._away = away
        self._hub.strike_in = after_writes
        if not after_writes:
            self._die()

    def _die(self) -> None:
        if self._life is None:
            return
        self._life.end(asyncio.all_tasks() - {self._story})
        self._life = None
        self._hub.kueue.later(self._away, self._begin)

    def _begin(self) -> None:
        self.began = self._hub.kueue.now
        self._life = self._live()


class _Life:
    """One run of the controller, from start to crash; corresponds to `session.Session`."""

    def __init__(
        self,
        hub: VirtualHub,
        policy: PlacementPolicy,
        odds: Odds,
        read_queues: ReadQueues | None,
        reconciles: Counter[Key],
        setup: WorkerSetupPolicy,
        reports: ScorePolicy,
        read_worker: ReadWorker | None,
        *,
        capacity: CapacityPolicy,
    ) -> None:
        self._hub = hub
        self._odds = odds
        self._latest: dict[Kind, float] = {}
        self._ended = False
        self._loop = asyncio.get_running_loop()
        self._cache = Cache(hub.facts, policy=policy, setup=setup, reports=reports)
        self._queue: Workqueue[Key] = Workqueue(self._work)
        self._reconciles = reconciles
        self._dispatches = policy.dispatcher
        self.metrics = Metrics(leading=lambda: True)
        client: Any = VirtualClient(hub, odds)  # VirtualClient has the used part of `kube.Client`
        served = {kind: kind.at(kind.versions[0]) for kind in self._cache.kinds}
        reporter = capacity.enabled and CapacityReporter(
            self._cache, client, capacity, clock=self._clock, monotonic=self._loop.time, in_thread=_at_once
        )
        writer = Writer(client, served, self._wrote, self.metrics, monotonic=self._loop.time)
        scores = read_worker and ScoreReporter(
            self._cache,
            writer,
            reports,
            read_worker,
            clock=self._clock,
            monotonic=self._loop.time,
            add_after=self._queue.add_after,
            ask_cluster=reporter.ask_cluster if reporter else None,
        )
        self._reconciler = Reconciler(
            self._cache,
            writer,
            Recorder(client, served, self._clock),
            read_copies=self._ask,
            read_queues=read_queues,
            ask_worker=reporter.ask_worker if reporter else None,
            probe=self._probe if policy.probe else None,
            clock=self._clock,
            monotonic=self._loop.time,
            add_after=self._queue.add_after,
            metrics=self.metrics,
            scores=scores,
        )
        self._reporting = self._loop.create_task(reporter.run(lambda: True)) if reporter else None
        hub.listeners.append(self._hear)
        self._listing = self._loop.create_task(self._list())

    def end(self, tasks: set[asyncio.Task[Any]]) -> None:
        """Cancel all `tasks`, wherever they are."""
        self._ended = True
        self._hub.listeners.remove(self._hear)
        for task in tasks:
            task.cancel()
        self._closing = self._loop.create_task(self._queue.close())

    def _clock(self) -> datetime:
        return datetime.fromtimestamp(self._loop.time(), UTC)

    async def _work(self, key: Key) -> None:
        self._reconciles[key] += 1
        await self._reconciler.reconcile(key)

    async def _list(self) -> None:
        """List every kind, and again every RELIST_SECONDS."""
        while True:
            for kind in self._cache.kinds:
                await asyncio.sleep(self._odds.event())
                items, version = self._hub.items(kind)
                await asyncio.sleep(self._odds.event())
                self._cache.replace(kind, items, version)
            self._queue.add(*sorted(self._cache.keys()))  # the same order in each process
            await asyncio.sleep(RELIST_SECONDS)

    def _hear(self, what: str, kind: Kind, raw: Raw) -> None:
        """Deliver an event with a delay; events of one kind keep their order."""
        now = self._loop.time()
        due = max(self._latest.get(kind, now), now + self._odds.event())
        self._latest[kind] = due
        self._hub.kueue.later(due - now, lambda: self._arrives(what == "remove", kind, raw))

    def _arrives(self, gone: bool, kind: Kind, raw: Raw) -> None:
        if not self._ended:
            self._take(kind, raw, gone, soon=kind in WRITTEN_KINDS)

    def _wrote(self, kind: Kind, raw: Raw, gone: bool) -> None:
        self._take(kind, raw, gone, soon=kind != WORKLOAD or not self._dispatches)

    def _take(self, kind: Kind, raw: Raw, gone: bool, *, soon: bool) -> None:
        """Take in a change. `soon`: in a burst, reconciling at once would run each key twice."""
        keys = (self._cache.remove if gone else self._cache.put)(kind, raw)
        for key in sorted(keys) if self._cache.has_synced else ():
            if soon:
                self._queue.add_after(key, ECHO_SECONDS)
            else:
                self._queue.add(key)

    async def _ask(self, cluster: KueueObject) -> WorkerCopies:
        await asyncio.sleep(self._odds.draw(ASK_SECONDS))
        try:
            copies = map(decode.workload, self._hub.kueue.copies(cluster.meta.name))
        except Unavailable as error:
            await asyncio.sleep(TIMEOUT_SECONDS if self._odds.chance.random() < 0.5 else 0.0)
            return WorkerCopies({}, error.message)
        has_quota = {one.meta.id: one.has_quota and not one.finished for one in copies}
        await asyncio.sleep(self._odds.draw(ASK_SECONDS))
        return WorkerCopies(has_quota)

    async def _probe(self, source: CredentialSource, _: object) -> Fitness:
        await asyncio.sleep(self._odds.draw(ASK_SECONDS))
        return self._hub.fitness.get(source.name.removeprefix("multikueue-"), Fitness())


async def _at_once(work: Callable[..., Any], *arguments: Any) -> Any:
    """Work in the event loop: its time does not go on meanwhile."""
    return work(*arguments)
