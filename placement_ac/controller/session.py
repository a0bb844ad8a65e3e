"""
One life of the controller on a hub: the world, what fills it, and what works on its keys.

A `Session` lives as long as the hub serves the same kinds and kopf goes on; `operator` begins the next one.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

import structlog

from placement_ac.cache.listing import EVERYWHERE, Scope
from placement_ac.cache.store import Cache
from placement_ac.cache.tables import kinds_for
from placement_ac.config.policy import (
    needs_kueue_release,
    placement_policy,
    worker_policy_rules,
    worker_requirements,
)
from placement_ac.config.settings import Settings
from placement_ac.controller.reconcile import Reconciler
from placement_ac.controller.recorder import Recorder
from placement_ac.controller.sync import Sync
from placement_ac.controller.worker_questions import Examine
from placement_ac.controller.workqueue import Workqueue
from placement_ac.controller.writer import Writer
from placement_ac.core.api.constants import (
    ACCOUNT,
    CLUSTER_PROFILE,
    KOPFS_KINDS,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PERMISSION,
    SECRET,
    WORKLOAD,
    Kind,
    Resource,
)
from placement_ac.core.api.errors import ApiError
from placement_ac.core.inputs.fitness import Fitness
from placement_ac.core.inputs.provisioning import ProvisioningPolicy
from placement_ac.core.inputs.state import HubFacts, Key
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.kube.client import Client, Object
from placement_ac.kube.informer import Informer
from placement_ac.kube.login import Login
from placement_ac.observability.clock import watch_clock
from placement_ac.observability.health import Health, Reachability, WatchHealth
from placement_ac.observability.logs import error_place
from placement_ac.observability.memory import freeze_when_complete
from placement_ac.observability.metrics import Metrics
from placement_ac.workers.copies import CopyReader
from placement_ac.workers.exec_plugins import AccessProviders
from placement_ac.workers.local_queues import HubLocalQueues
from placement_ac.workers.probe import Probe
from placement_ac.workers.queries import running_kueue

log = structlog.get_logger(__name__)

REDISCOVERY_SECONDS: Final = 30.0
"""How often a hub is asked whether it serves other kinds or versions than before."""

Resources = Mapping[Kind, Resource]


OURS: Final = (MULTIKUEUE_CONFIG, MULTIKUEUE_CLUSTER)
"""Kinds that hardly anybody else writes: an event of theirs is mostly the echo of a write of ours."""
ECHO_SECONDS: Final = 0.05
"""How long the second look at a key waits after a write of ours."""
_now: Final = partial(datetime.now, UTC)


class Session:
    """One life of the watch, and the world that it fills; no key is worked on unless it `leads`."""

    def __init__(
        self,
        settings: Settings,
        login: Login,
        client: Client,
        resources: Resources,
        facts: HubFacts,
        providers: AccessProviders | None,
        provisioning: ProvisioningPolicy,
        vitals: Health,
        metrics: Metrics,
        *,
        leads: Callable[[], bool],
    ) -> None:
        self._vitals = vitals
        self._client = client
        self._leads = leads
        self._metrics = metrics
        metrics.begin_session()
        self._resources = resources
        self._kueue = facts.kueue
        self._kueues_namespace = settings.kueue_namespace if needs_kueue_release(settings) else None
        self.world = Cache(
            facts,
            kueue_namespace=settings.kueue_namespace,
            methods=settings.credentials,
            policy=placement_policy(settings),
            provisioning=replace(
                provisioning,
                served={ACCOUNT, PERMISSION} <= resources.keys(),
                rules=worker_policy_rules(settings, facts.kueue),
            ),
            providers=providers.supported if providers else None,
        )
        self._kinds = kinds_for(provisioning)
        fed = [kind for kind in self._kinds if kind not in KOPFS_KINDS]
        signs = _signs(vitals, [(kind, where) for kind in resources for where in self.world.namespaces(kind)])
        everywhere = {kind: sign for (kind, where), sign in signs.items() if where == EVERYWHERE}
        self.queue: Workqueue[Key] = Workqueue(self._work)
        self._workers = CopyReader(
            client,
            resources[SECRET],
            settings.kueue_namespace,
            timeout=settings.worker_timeout,
            providers=providers,
            profile_resource=resources.get(CLUSTER_PROFILE),
        )
        self._reconciler = Reconciler(
            self.world,
            Writer(client, resources, self._wrote, metrics),
            Recorder(client, resources, _now),
            ask=self._workers.ask,
            examine=_examiner(settings, client, resources, facts, self._workers),
            clock=_now,
            ticks=time.monotonic,
            later=self.queue.add_after,
            metrics=metrics,
        )
        self._sync = Sync(
            client,
            resources,
            self.world,
            touched=self._touched,
            signs=everywhere,
            fed=fed,
            kinds=self._kinds,
        )
        self._reach = Reachability()
        self._feeds = [
            Informer(
                client,
                resources[kind],
                self.world,
                namespace=namespace,
                touched=self._echoed if kind in OURS else self._touched,
                settled=self._sync.settled,
                sign=signs[kind, namespace],
                back=self.queue.try_now,
                reach=self._reach,
            )
            for kind in fed
            if kind in resources
            for namespace in self.world.namespaces(kind)
        ]
        self._kopfs = partial(
            self._watch,
            login,
            {kind: resource for kind, resource in resources.items() if kind in KOPFS_KINDS},
            everywhere,
        )

    async def run(self, stop: asyncio.Event, on_started: Callable[[], None]) -> None:
        """Go on until `stop` is set, kopf ends, or the hub serves something else."""
        ended, started = asyncio.Event(), asyncio.Event()
        # Created before kopf: what is created after it, kopf takes for its own, waits for and cancels.
        helpers = [
            asyncio.create_task(_guard(work, ended))
            for work in (
                *self._sync.parts(),
                *(part for feed in self._feeds for part in feed.parts()),
                self._rediscover(ended),
                watch_clock(_now, self._look_again),
                freeze_when_complete(lambda: self.world.complete),
                _after(stop, ended.set),
                _after(started, on_started),
            )
        ]
        try:
            await self._kopfs(ended, started)
        finally:
            for task in helpers:
                task.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)
            await self.queue.close()
            await self._reconciler.close()

    async def _watch(
        self,
        login: Login,
        resources: Resources,
        signs: Mapping[Kind, WatchHealth],
        ended: asyncio.Event,
        started: asyncio.Event,
    ) -> None:
        """Let kopf follow what is its own. It is loaded where there is any: it takes 5 MB."""
        if not resources:
            started.set()
            await ended.wait()
            return
        from placement_ac.controller.handlers import Watch  # noqa: PLC0415  told above

        gap, answered = self._sync.request, self._metrics.answered
        watch = Watch(
            login,
            resources,
            self.world,
            touched=self._touched,
            gap=gap,
            signs=signs,
            answered=answered,
            reach=self._reach,
        )
        await watch.run(ended, started)

    def led(self, leading: bool) -> None:
        """Begin to work on every key, or stop as if this process had just begun; the world stays."""
        self._reconciler.forget()
        if leading:
            self._touched(self.world.keys())
        else:
            self.queue.drop()
            self._metrics.begin_session()

    async def _work(self, key: Key) -> None:
        if self._leads():
            await self._reconciler.reconcile(key)

    def _touched(self, keys: Iterable[Key]) -> None:
        if self.world.complete and self._leads():
            touched = tuple(keys)
            self._metrics.event_received(touched)
            self.queue.add(*touched)

    def _echoed(self, keys: Iterable[Key]) -> None:
        """Look soon at what a write has touched: in a burst an immediate look would double the work."""
        if self.world.complete and self._leads():
            for key in keys:
                self.queue.add_after(key, ECHO_SECONDS)

    def _look_again(self) -> None:
        self._touched(self.world.keys())

    def _wrote(self, kind: Kind, obj: Object, gone: bool) -> None:
        """Our own write is known at once; its echo then changes nothing."""
        self._echoed((self.world.remove if gone else self.world.put)(kind, obj))

    async def _rediscover(self, ended: asyncio.Event) -> None:
        while not ended.is_set():
            await asyncio.sleep(REDISCOVERY_SECONDS)
            self._vitals.asked()
            with contextlib.suppress(ApiError):  # the watch deals with outages
                served = await self._client.discover(self._kinds)
                self._vitals.answered()
                if lost := self._vitals.lost():
                    log.warning("no word on a watch for too long; beginning anew", watches=lost)
                    ended.set()
                elif served != self._resources:
                    log.info("the hub serves other kinds or versions than before; beginning anew")
                    ended.set()
                elif await self._has_another_kueue():
                    log.info("the hub has another release of Kueue than before; beginning anew")
                    ended.set()

    async def _has_another_kueue(self) -> bool:
        if self._kueues_namespace is None:
            return False
        return await running_kueue(self._client, self._kueues_namespace) not in (None, self._kueue)


def _examiner(
    settings: Settings, client: Client, resources: Resources, facts: HubFacts, workers: CopyReader
) -> Examine | None:
    """Return what asks a cluster whether it is fit; None when nobody wants to know."""
    if not settings.credentials_probe:
        return None
    queues = HubLocalQueues(client)
    probe = Probe(workers.entrance, worker_requirements(settings, resources[WORKLOAD].version, facts.kueue))

    async def examine(source: CredentialSource, checks: Collection[str]) -> Fitness:
        return await probe.ask(source, await queues.of(checks))

    return examine


def _signs(vitals: Health, scopes: Collection[Scope]) -> dict[Scope, WatchHealth]:
    names = [_watch_name(kind, namespace) for kind, namespace in scopes]
    found = vitals.begin(names)
    return {scope: found[name] for scope, name in zip(scopes, names, strict=True)}


def _watch_name(kind: Kind, namespace: str) -> str:
    named = f" named {kind.only}" if kind.only else ""
    return f"{kind.plural}{named}" + (f" in {namespace}" if namespace else "")


async def _guard(work: Coroutine[object, object, None], ended: asyncio.Event) -> None:
    """End the session when one of its helpers fails: half a session is worse than a new one."""
    try:
        await work
    except Exception as error:  # whatever it is: it is told, and the session begins anew
        log.error("a part of the session failed", error=error_place(error))  # noqa: TRY400  it would quote
        ended.set()


async def _after(event: asyncio.Event, then: Callable[[], None]) -> None:
    await event.wait()
    then()
