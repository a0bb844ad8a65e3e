"""
Starts and stops everything: login, discovery, the Lease, the pages; and begins a session anew that has ended.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import datetime
from typing import Final, TypeVar

import structlog

from placement_ac.cache.tables import kinds_for
from placement_ac.config.policy import (
    configured_kueue,
    hub_facts,
    lease_durations,
    needs_kueue_release,
    provisioning_policy,
)
from placement_ac.config.settings import Settings
from placement_ac.controller.lease import Lease
from placement_ac.controller.session import Resources, Session
from placement_ac.core.api.constants import (
    ACCOUNT,
    MULTIKUEUE_CONFIG,
    OPTIONAL_KINDS,
    PERMISSION,
    REQUIRED_KINDS,
    Kind,
)
from placement_ac.core.api.errors import ApiError, PlacementAcError
from placement_ac.core.inputs.rights import KueueRelease
from placement_ac.core.inputs.state import HubFacts
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login
from placement_ac.observability.health import Health
from placement_ac.observability.http import serve_pages
from placement_ac.observability.logs import LogDeduplicator, error_place
from placement_ac.observability.metrics import GaugeSources, Metrics, QueueLoad
from placement_ac.observability.watchdog import watch_event_loop
from placement_ac.workers.exec_plugins import AccessProviders
from placement_ac.workers.queries import running_kueue

log = structlog.get_logger(__name__)

DISCOVERY_SECONDS: Final = 2.0
"""How often a hub is asked again while kinds are missing that we cannot do without."""
PATIENCE_SECONDS: Final = 60.0
"""How long nothing is decided when an optional kind that was there is served no more."""
RESTART_SECONDS: Final = (0.5, 1.0, 2.0, 5.0)
"""Pauses before a session begins anew; the last one is repeated."""
HEALTHY_SECONDS: Final = 60.0
"""A session that lived this long makes the next pause short again."""

T = TypeVar("T")


class Manager:
    """The controller for one hub. `on_started` is called whenever the watch has been started (anew).

    Raises LoginFailed, and BadSettings for a file of access providers that cannot be read.
    """

    def __init__(
        self,
        settings: Settings,
        login: Login | None = None,
        *,
        on_started: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._on_started = on_started
        access = settings.access_providers
        self._providers = AccessProviders.load(access) if access else None
        self._login = login or Login(settings.kubeconfig, settings.context)
        self._terms = provisioning_policy(settings)
        self._kinds = kinds_for(self._terms)
        self._current: Session | None = None
        self._metrics = Metrics(GaugeSources(self._expiries, self._load, lambda: self.leading))
        self._lease = self._candidate() if settings.leader_elect else None
        self._vitals = Health()
        self._kueue = configured_kueue(settings)
        """The hub's, as it was known last."""
        self._unknown_told = False
        self._told = LogDeduplicator()
        self._missed_since: dict[Kind, float | None] = {}
        """Kinds that this hub has served: since when it does not (None: it does)."""

    @property
    def leading(self) -> bool:
        """Whether this process may write."""
        return self._leads()

    def _leads(self) -> bool:
        return self._lease is None or self._lease.leading

    def _candidate(self) -> Lease:
        settings = self._settings
        return Lease(
            self._login,
            lease_durations(settings),
            namespace=settings.leader_elect_resource_namespace or settings.kueue_namespace,
            name=settings.leader_elect_resource_name,
            changed=self._led,
            answered=self._metrics.answered,
        )

    def _led(self, leading: bool) -> None:
        if self._current:
            self._current.led(leading)

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set."""
        asyncio.get_running_loop().set_exception_handler(_left_behind)
        failures = 0
        listening = serve_pages(self._settings, self._metrics.registry, self._vitals)
        lead = self._lease.sought() if self._lease else contextlib.nullcontext()
        gate = self._lease.left if self._lease else None
        connected = Client(self._login, answered=self._metrics.answered, gate=gate)
        # The lead is given up when nothing is written any more.
        async with watch_event_loop(self._vitals), listening, lead, connected as client:
            while resources := await self._wait_for_kinds(client, stop):
                began = time.monotonic()
                why = ""
                try:
                    await self._session(client, resources, stop)
                except Exception as error:  # kopf ends in many ways, and each means: begin anew
                    why = str(error) if isinstance(error, PlacementAcError) else error_place(error)
                self._vitals.waits("the session has ended and begins anew")
                failures += 1
                if time.monotonic() - began > HEALTHY_SECONDS:
                    failures = 1
                    self._told.ended("session")
                if why:
                    level = self._told.level("session", why)
                    log.log(level, "the session ended; beginning anew", error=why)
                await _pause(stop, RESTART_SECONDS[min(failures, len(RESTART_SECONDS)) - 1])

    async def _wait_for_kinds(self, client: Client, stop: asyncio.Event) -> Resources | None:
        """Return what the hub serves once nothing indispensable is missing; None when stopped."""
        while not stop.is_set():
            self._vitals.asked()
            try:
                resources = await _unless(stop, client.discover(self._kinds))
                if resources is None:
                    break
                self._vitals.answered()
                missing = [
                    str(kind) for kind in (*REQUIRED_KINDS, *self._missed(resources)) if kind not in resources
                ]
                if not missing:
                    if self._told.ended("kinds"):
                        self._told.ended("hub")
                    return resources
                self._vitals.waits(f"waiting for CRDs that are not installed: {', '.join(missing)}")
                level = self._told.level("kinds", str(missing))
                log.log(level, "waiting for CRDs that are not installed", kinds=missing)
            except ApiError as error:
                self._vitals.failed(error)
                self._vitals.waits(f"the API server does not answer: {error.message}")
                level = self._told.level("kinds", type(error).__name__)
                log.log(level, "the API server does not answer; waiting", error=error.message)
            await _pause(stop, DISCOVERY_SECONDS)
        return None

    def _missed(self, resources: Resources) -> Iterable[Kind]:
        """Yield the kinds that were served a moment ago: clusters may depend on them, and hubs hiccup."""
        now = time.monotonic()
        self._missed_since |= dict.fromkeys(resources, None)
        for kind in (*OPTIONAL_KINDS, ACCOUNT, PERMISSION):
            if kind in self._missed_since and kind not in resources:
                since = self._missed_since[kind] = self._missed_since[kind] or now
                if now - since < PATIENCE_SECONDS:
                    yield kind
                else:
                    del self._missed_since[kind]

    async def _session(self, client: Client, resources: Resources, stop: asyncio.Event) -> None:
        facts = await _unless(stop, self._facts(client, resources))
        if facts is not None:
            self._current = Session(
                self._settings,
                self._login,
                client,
                resources,
                facts,
                self._providers,
                self._terms,
                self._vitals,
                self._metrics,
                leads=self._leads,
            )
            await self._current.run(stop, self._on_started)

    def _expiries(self) -> Mapping[str, datetime]:
        return self._current.world.expiries() if self._current else {}

    def _load(self) -> QueueLoad:
        return self._current.queue.load() if self._current else QueueLoad()

    async def _facts(self, client: Client, resources: Resources) -> HubFacts:
        schema = await client.schema(resources[MULTIKUEUE_CONFIG])
        facts = hub_facts(self._settings, resources, schema, await self._hubs_kueue(client))
        log.log(
            self._told.level("hub", str((facts, resources)), logging.INFO),
            "found the hub",
            server=self._login.server,
            kueue=str(facts.kueue or ""),
            clusters_max=facts.clusters_max,
            versions={kind.kind: resource.api_version for kind, resource in resources.items()},
        )
        return facts

    async def _hubs_kueue(self, client: Client) -> KueueRelease | None:
        if needs_kueue_release(self._settings):
            self._kueue = await running_kueue(client, self._settings.kueue_namespace) or self._kueue
            if not (self._kueue or self._unknown_told):
                self._unknown_told = True
                log.info(
                    "the release of the hub's Kueue is not known: what any release needs on a worker counts;"
                    " allow to get its Deployment, or set kueue-version",
                    namespace=self._settings.kueue_namespace,
                )
        return self._kueue


def _left_behind(_: asyncio.AbstractEventLoop, context: Mapping[str, object]) -> None:
    """Tell of an exception that nobody took (kopf leaves some when it ends), without what it quotes."""
    error = context.get("exception")
    log.debug("left behind in the loop", what=context.get("message"), error=type(error).__name__)


async def _unless(stop: asyncio.Event, work: Coroutine[object, object, T]) -> T | None:
    """Return what comes of `work`; None, and that at once, when `stop` is set before."""
    doing, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({doing, stopped}, return_when=asyncio.FIRST_COMPLETED)
        return await doing if doing.done() else None
    finally:
        for task in (doing, stopped):
            task.cancel()
        await asyncio.gather(doing, stopped, return_exceptions=True)


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
