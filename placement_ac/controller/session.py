"""
A session of the controller on a hub: the cache, the informers that fill it, and the reconcilers.

A session lives as long as the hub serves the same kinds and kopf runs; `manager` begins the next one.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import structlog

from placement_ac.cache.listing import EVERYWHERE, Scope
from placement_ac.config import policy
from placement_ac.controller.build import (
    SessionInputs,
    new_cache,
    new_capacity_reporter,
    new_reconciler,
)
from placement_ac.controller.hub_discovery import discover, wanted_kinds
from placement_ac.core.api.constants import MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG, WORKLOAD, Kind, Resource
from placement_ac.core.api.errors import ApiError, error_place
from placement_ac.core.api.fields import get_str
from placement_ac.core.inputs.kinds import KOPF_KINDS
from placement_ac.core.inputs.state import Key
from placement_ac.kube.client import Object
from placement_ac.kube.informer import Informer, KopfInformer
from placement_ac.kube.workqueue import Workqueue
from placement_ac.observability.clock import watch_clock
from placement_ac.observability.health import WatchHealth
from placement_ac.observability.logs import LogDeduplicator
from placement_ac.observability.memory import freeze_when_complete
from placement_ac.workers.queries import running_kueue

log = structlog.get_logger(__name__)

REDISCOVERY_SECONDS: Final = 30.0
"""How often to check whether the hub serves other kinds or versions than before."""
STALLED_SECONDS: Final = 30.0
"""After this long without a complete cache, the log says which lists are missing."""
CLOSE_SECONDS: Final = 1.2
"""How long writes that are under way may take when the session ends; then they are cancelled.

With handlers.STOP_SECONDS (twice) and lease.RELEASE_SECONDS, a stop takes at most three seconds.
"""
WRITTEN_KINDS: Final = (MULTIKUEUE_CONFIG, MULTIKUEUE_CLUSTER)
"""Kinds that hardly anyone else writes: an event of theirs is mostly the echo of a write of ours."""
ECHO_SECONDS: Final = 0.05
"""How long a key waits after a write of ours, and after an event of WRITTEN_KINDS."""

utc_now: Final = partial(datetime.now, UTC)


class Session:
    """The cache and the queue of one session; no key is reconciled unless this process `leads`.

    `stop_flag` is kopf's: the session sets it to end itself.
    """

    def __init__(self, inputs: SessionInputs, stop_flag: asyncio.Event, *, leads: Callable[[], bool]) -> None:
        self._inputs = inputs
        self._stop_flag = stop_flag
        self._leads = leads
        self._metrics = inputs.metrics
        self._metrics.begin_session()
        self.cache = new_cache(inputs)
        self.queue: Workqueue[Key] = Workqueue(self._reconcile)
        self.capacity = new_capacity_reporter(inputs, self.cache, utc_now)
        """Publishes the capacity of the workers; None: nobody does."""
        self._reconciler = new_reconciler(
            inputs,
            self.cache,
            on_write=self._wrote,
            add_after=self.queue.add_after,
            clock=utc_now,
            capacity=self.capacity,
        )
        self._outages = LogDeduplicator()
        names = {scope: _watch_name(*scope) for scope in self.cache.scopes if scope[0] in inputs.resources}
        watches = inputs.health.begin_session(names.values())
        self._informers = {scope: self._informer(scope, watches[name]) for scope, name in names.items()}
        self._tasks: list[asyncio.Task[None]] = []
        self._closing: asyncio.Task[None] | None = None
        self._reconciled_one = False
        """Whether a key has been reconciled since this process leads."""

    def _informer(self, scope: Scope, health: WatchHealth) -> Informer:
        kind, namespace = scope
        is_kopfs = kind in KOPF_KINDS
        return (KopfInformer if is_kopfs else Informer)(
            self._inputs.client,
            self._inputs.resources[kind],
            namespace,
            self.cache,
            health,
            enqueue=self._enqueue_soon if kind in WRITTEN_KINDS else self._enqueue,
            enqueue_after_list=self._enqueue,
            on_recovery=self.queue.retry_failed if is_kopfs else self._recovered,
            outages=self._outages,
        )

    def start(self) -> None:
        """Start the informers of the kinds that kopf does not watch, and the periodic tasks."""
        for kind in self.cache.kinds:
            if kind not in self._inputs.resources:
                log.info("not served by this hub; going on without", kind=str(kind))
                self.cache.replace(kind, (), "")
        parts = (
            *(part for informer in self._informers.values() for part in informer.tasks()),
            self._rediscover(),
            self._log_when_stalled(),
            watch_clock(utc_now, self._enqueue_all),
            freeze_when_complete(lambda: self.cache.has_synced),
            *((self.capacity.run(self._leads),) if self.capacity else ()),
        )
        self._tasks = [asyncio.create_task(run_task(part, self._stop_flag)) for part in parts]

    def _recovered(self) -> None:
        """Go on after a gap: kopf's watches have had it as well, and do not say so."""
        self.queue.retry_failed()
        for informer in self._informers.values():
            if isinstance(informer, KopfInformer):
                informer.list_soon()

    async def close(self) -> None:
        """End it: writes that are under way get CLOSE_SECONDS. It may be called more than once."""
        self._stop_flag.set()
        self._closing = self._closing or asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.queue.close()
        except TimeoutError:
            keys = [key.name for key in self.queue.processing]
            log.warning("writes that took too long were cancelled; the next leader repeats them", keys=keys)
            self.queue.clear()
        await self._reconciler.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- what kopf watches

    def watched_resources(self) -> Mapping[Resource, tuple[str, ...]]:
        """Return the resources that kopf watches, and in which namespaces."""
        kinds = (kind for kind in self.cache.kinds if kind in KOPF_KINDS and kind in self._inputs.resources)
        return {self._inputs.resources[kind]: self.cache.namespaces(kind) for kind in kinds}

    def event(self, resource: Resource, change: str | None, obj: Mapping[str, Any]) -> None:
        """Take in an object that kopf has listed (`change` None) or that has changed."""
        namespaces = (get_str(obj, "metadata", "namespace"), EVERYWHERE)
        informers = (self._informers.get((resource.of, namespace)) for namespace in namespaces)
        if informer := next(filter(None, informers), None):
            informer.take(change, obj)

    # -- which keys are reconciled, and when

    @property
    def has_reconciled(self) -> bool:
        """Whether a key was reconciled since this process leads; without keys, whether all was listed."""
        return self.cache.has_synced and (self._reconciled_one or not self.cache.keys())

    def leading_changed(self, leading: bool) -> None:
        """Begin to reconcile every key, or stop as if this process had just begun; the cache stays."""
        self._reconciled_one = False
        self._reconciler.reset()
        if self.capacity:
            self.capacity.reset()
        if leading:
            self._enqueue_all()
        else:
            self.queue.clear()
            self._metrics.begin_session()

    async def _reconcile(self, key: Key) -> None:
        if self._leads():
            self._reconciled_one |= await self._reconciler.reconcile(key)

    def _enqueue(self, keys: Iterable[Key]) -> None:
        if self.cache.has_synced and self._leads():
            touched = tuple(keys)
            self._metrics.event_received(
                key for key in touched if key.kind != "score"
            )  # they wait on purpose
            self.queue.add(*touched)

    def _enqueue_soon(self, keys: Iterable[Key]) -> None:
        """Enqueue keys after a write of ours; in a burst, doing so at once would run each key twice."""
        if self.cache.has_synced and self._leads():
            for key in keys:
                self.queue.add_after(key, ECHO_SECONDS)

    def _wrote(self, kind: Kind, obj: Object, gone: bool) -> None:
        """Take in a write of ours at once; its echo then changes nothing.

        With our dispatcher, a Workload that has become Ready is nominated next.
        """
        keys = (self.cache.remove if gone else self.cache.put)(kind, obj)
        is_next = kind == WORKLOAD and self._inputs.settings.dispatcher
        (self._enqueue if is_next else self._enqueue_soon)(keys)

    def _enqueue_all(self) -> None:
        self._enqueue(self.cache.keys())

    # -- whether it is still the right session

    async def _log_when_stalled(self) -> None:
        logged = LogDeduplicator()
        while True:
            await asyncio.sleep(STALLED_SECONDS)
            if not self.cache.has_synced:
                missing = self.cache.unsynced()
                level = logged.level("stalled", str(missing))
                log.log(level, "still waiting for the first list", kinds=missing)

    async def _rediscover(self) -> None:
        while True:
            await asyncio.sleep(REDISCOVERY_SECONDS)
            self._inputs.health.request_sent()
            try:
                if await self._must_begin_anew():
                    self._stop_flag.set()
            except ApiError as error:  # the watches deal with outages
                await asyncio.sleep(error.retry_after or 0.0)

    async def _must_begin_anew(self) -> bool:
        """Whether the hub is no longer what this session was begun for. Raises ApiError."""
        inputs = self._inputs
        served = await discover(inputs.client, wanted_kinds(inputs.settings, inputs.provisioning))
        self._inputs.health.request_answered()
        if lost := self._inputs.health.lost_watches():
            log.warning("nothing received on a watch for too long; beginning anew", watches=lost)
        elif served != self._inputs.resources:
            log.info("the hub serves other kinds or versions than before; beginning anew")
        elif await self._has_another_kueue():
            log.info("the hub has another Kueue, or other feature gates, than before; beginning anew")
        else:
            return False
        return True

    async def _has_another_kueue(self) -> bool:
        settings, known = self._inputs.settings, self._inputs.facts.kueue
        if not policy.needs_kueue(settings):
            return False
        running, _ = await running_kueue(self._inputs.client, settings.kueue_namespace)
        return policy.known_kueue(settings, running, known) != known


async def run_task(part: Coroutine[object, object, None], stop_flag: asyncio.Event) -> None:
    """Run a part of a session, and end the session when it fails: half a session is worse than a new one."""
    try:
        await part
    except Exception as error:  # whatever it is: it is logged, and the session begins anew
        log.error("a part of the session failed", error=error_place(error))  # noqa: TRY400  it would quote
        stop_flag.set()


def _watch_name(kind: Kind, namespace: str) -> str:
    named = f" named {kind.only}" if kind.only else ""
    return f"{kind.plural}{named}" + (f" in {namespace}" if namespace else "")
