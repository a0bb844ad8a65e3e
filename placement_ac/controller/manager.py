"""
The process: health and metrics pages, the Lease, and one session of kopf after the other.

A session ends when the hub serves something else, when a part of it fails, or when kopf gives up; then the
next one begins. Only a signal ends the process.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

import structlog

from placement_ac.config.policy import lease_durations, provisioning_policy
from placement_ac.config.published import lease_marks
from placement_ac.config.settings import Settings
from placement_ac.controller.build import SessionInputs
from placement_ac.controller.fair_slots import HANGING_SLOTS, QUICK_SLOTS
from placement_ac.controller.handlers import Handlers
from placement_ac.controller.hub_discovery import HubDiscovery
from placement_ac.controller.lease import Lease
from placement_ac.controller.session import Session, utc_now
from placement_ac.core.api.errors import ApiError, PlacementAcError, error_place
from placement_ac.core.capacity_report.model import CapacityReport
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login
from placement_ac.observability.health import Health
from placement_ac.observability.http import serve_pages
from placement_ac.observability.logs import LogDeduplicator
from placement_ac.observability.metric_definitions import QueueLoad
from placement_ac.observability.metrics import Metrics
from placement_ac.observability.watchdog import watch_event_loop
from placement_ac.workers.exec_plugins import AccessProviders

log = structlog.get_logger(__name__)

RESTART_SECONDS: Final = (0.5, 1.0, 2.0, 5.0)
"""Pauses before the next session; the last one is repeated."""
CONNECTIONS: Final = QUICK_SLOTS + HANGING_SLOTS + 16
"""The most connections to the hub: those of all writes, and some for everything else."""
HEALTHY_SECONDS: Final = 60.0
"""A session that lived this long makes the next pause short again."""


class Manager:
    """The controller for one hub.

    Raises LoginFailed, and BadSettings for a file of access providers that cannot be read.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        access = settings.access_providers
        self._providers = AccessProviders.load(access) if access else None
        self._login = Login(settings.kubeconfig, settings.context)
        self._provisioning = provisioning_policy(settings)
        self._session: Session | None = None
        self._metrics = Metrics(
            expiries=self._expiries,
            queue_load=self._load,
            leading=lambda: self.leading,
            scores=self._scores if settings.report_scores else dict,
            job_ends=lambda: self._session.cache.job_ends() if self._session else {},
            capacity=self._capacity,
        )
        self._lease = self._new_lease() if settings.leader_elect else None
        self._health = Health(without_leader=self._lease.without_leader if self._lease else None)
        self._discovery = HubDiscovery(settings, self._provisioning, self._health, self._login.server)
        self._logged = LogDeduplicator()

    @property
    def leading(self) -> bool:
        """Whether this process may write."""
        return self._lease is None or self._lease.leading

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set."""
        asyncio.get_running_loop().set_exception_handler(_log_unhandled)
        pages = serve_pages(self._settings, self._metrics.registry, self._health)
        lead = self._lease.run_election() if self._lease else contextlib.nullcontext()
        gate = self._lease.write_timeout if self._lease else None
        connected = Client(
            self._login,
            on_request_end=self._metrics.request_ended,
            write_fence=gate,
            connections=CONNECTIONS,
        )
        # The Lease is released after the last write.
        async with watch_event_loop(self._health), pages, lead, connected as client:
            failures = 0
            while not stop.is_set():
                began = time.monotonic()
                retry_after = await self._run_session(client, stop)
                self._health.no_session("the session has ended and begins anew")
                failures += 1
                if time.monotonic() - began > HEALTHY_SECONDS:
                    failures = 1
                    self._logged.ended("session")
                pause = RESTART_SECONDS[min(failures, len(RESTART_SECONDS)) - 1]
                await _pause(stop, max(pause, retry_after))

    async def _run_session(self, client: Client, stop: asyncio.Event) -> float:
        """Return how long the API server asked to wait, if that ended the session. Unit: seconds."""
        stop_flag = asyncio.Event()
        handlers = Handlers(
            lambda: self._begin_session(client, stop_flag),
            self._login,
            main_namespaces=self._settings.placement_namespace,
            stop_flag=stop_flag,
        )
        stopping = asyncio.create_task(_when_set(stop, stop_flag.set))
        try:
            await handlers.run()
        except Exception as error:  # whatever ended kopf: begin the next session
            why = str(error) if isinstance(error, PlacementAcError) else error_place(error)
            log.log(self._logged.level("session", why), "the session ended; beginning anew", error=why)
            return (error.retry_after if isinstance(error, ApiError) else None) or 0.0
        finally:
            stopping.cancel()
        return 0.0

    async def _begin_session(self, client: Client, stop_flag: asyncio.Event) -> Session:
        """Wait for the kinds that are needed, and start a session on them. Raises ApiError."""
        resources = await self._discovery.wait_for_kinds(client)
        inputs = SessionInputs(
            settings=self._settings,
            client=client,
            resources=resources,
            facts=await self._discovery.facts(client, resources),
            providers=self._providers,
            provisioning=self._provisioning,
            health=self._health,
            metrics=self._metrics,
        )
        self._session = Session(inputs, stop_flag, leads=lambda: self.leading)
        self._session.start()
        return self._session

    def _new_lease(self) -> Lease:
        settings = self._settings
        return Lease(
            self._login,
            lease_durations(settings),
            namespace=settings.leader_elect_resource_namespace or settings.kueue_namespace,
            name=settings.leader_elect_resource_name,
            on_change=self._leading_changed,
            marks=lambda: lease_marks(settings, self._has_reconciled),
            request_observer=self._metrics.request_ended,
        )

    @property
    def _has_reconciled(self) -> bool:
        """Whether this process is ready, and has reconciled since it leads."""
        is_ready = not any(check.problem for check in self._health.readiness())
        return is_ready and self._session is not None and self._session.has_reconciled

    def _leading_changed(self, leading: bool) -> None:
        if self._session:
            self._session.leading_changed(leading)

    def _expiries(self) -> Mapping[str, datetime]:
        return self._session.cache.credentials.expiries() if self._session else {}

    def _scores(self) -> Mapping[str, Mapping[str, int]]:
        return self._session.cache.scores.reported(utc_now()) if self._session else {}

    def _capacity(self) -> CapacityReport | None:
        reporter = self._session.capacity if self._session else None
        return reporter.report if reporter else None

    def _load(self) -> QueueLoad:
        return self._session.queue.load() if self._session else QueueLoad()


def _log_unhandled(_: asyncio.AbstractEventLoop, context: Mapping[str, object]) -> None:
    """Log the type of an unhandled exception (kopf leaves some when it stops), but not its text."""
    error = context.get("exception")
    log.debug("left behind in the loop", what=context.get("message"), error=type(error).__name__)


async def _when_set(event: asyncio.Event, then: Callable[[], None]) -> None:
    await event.wait()
    then()


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()
