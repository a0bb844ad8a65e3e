"""
The kopf handlers of a session, and the kopf operators that call them.

on.startup begins the session, on.login logs in, on.event puts an object into the cache, on.cleanup ends the
session. An on.event handler writes nothing, returns None and never raises, so kopf writes to no object.

A kopf operator watches namespaced kinds in the namespaces that it is given, and cluster-scoped kinds
everywhere. Kinds that are watched in other namespaces get an operator of their own, so that Roles suffice.
All operators of a session share its stop flag.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import kopf
import structlog

from placement_ac.cache.listing import EVERYWHERE
from placement_ac.controller.session import Session
from placement_ac.core.api.constants import Resource
from placement_ac.kube import client
from placement_ac.kube.login import Login

if TYPE_CHECKING:
    import aiohttp

log = structlog.get_logger(__name__)

Namespaces = tuple[str, ...]
"""Where an operator watches namespaced kinds; (EVERYWHERE,): in all namespaces."""

STOP_SECONDS: Final = 0.3
"""How long kopf may take to stop. It needs 0.1 s; its own grace period is 5 s."""


class Handlers:
    """Runs kopf for one session.

    `begin` returns the session once the hub serves what it needs. `stop_flag`: setting it ends the session,
    and it is set when the session has ended. `main_namespaces`: those of the operator that begins and ends
    the session. Not to be run in the main thread: there kopf handles SIGINT and SIGTERM itself.
    """

    def __init__(
        self,
        begin: Callable[[], Awaitable[Session]],
        login: Login,
        *,
        main_namespaces: Namespaces,
        stop_flag: asyncio.Event,
    ) -> None:
        self._begin = begin
        self._login = login
        self._main_namespaces = main_namespaces
        self._stop_flag = stop_flag
        self._session: Session | None = None
        self._failure: Exception | None = None
        """Why the session could not begin."""
        self._registry = kopf.OperatorRegistry()
        """Of the operator that begins and ends the session."""
        self._http_sessions: list[aiohttp.ClientSession] = []
        """The sessions that were given to kopf."""
        self._operators: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Run until the stop flag is set or kopf ends. Raises the error that ended kopf."""
        silence_kopf()
        registry, permanent = self._registry, kopf.ErrorsMode.PERMANENT
        kopf.on.startup(registry=registry, id="startup", errors=permanent)(self.on_startup)
        kopf.on.cleanup(registry=registry, id="cleanup", errors=permanent)(self.on_cleanup)
        main = self._start_operator(registry, self._main_namespaces)
        try:
            await self._stop_flag.wait()
        finally:
            await self.on_cleanup()
            await self._stop_kopf()
        for operator in (main, *self._operators):
            if operator.done() and not operator.cancelled() and (error := operator.exception()):
                raise self._failure or error

    # -- the handlers

    async def on_startup(self, settings: kopf.OperatorSettings, **_: Any) -> None:
        """Begin the session, and watch its resources."""
        await _configure(settings)
        try:
            self._session = await self._begin()
        except Exception as error:
            self._failure = error
            raise
        places: dict[Namespaces, kopf.OperatorRegistry] = {self._main_namespaces: self._registry}
        for resource, namespaces in self._session.watched_resources().items():
            place = namespaces if resource.of.namespaced else self._main_namespaces
            self._watch(places.setdefault(place, kopf.OperatorRegistry()), resource)
        for place, registry in places.items():
            if place != self._main_namespaces:
                kopf.on.startup(registry=registry, id="startup")(_configure)
                self._start_operator(registry, place)

    async def on_login(self, **_: Any) -> kopf.AiohttpSession:
        """Return an HTTP session for kopf alone, since kopf closes it."""
        if self._stop_flag.is_set():
            raise kopf.PermanentError("the session has ended")
        http = self._login.session()
        self._http_sessions.append(http)
        return kopf.AiohttpSession(server=self._login.server, aiohttp_session=http)

    async def on_cleanup(self, **_: Any) -> None:
        """End the session."""
        self._stop_flag.set()
        if self._session:
            await self._session.close()

    def _watch(self, registry: kopf.OperatorRegistry, resource: Resource) -> None:
        """Register on.event for a kind, in the version that the hub serves."""
        kind, session = resource.of, self._session

        @kopf.on.event(kind.group, resource.version, kind.plural, registry=registry, id=kind.plural)
        async def on_event(event: Mapping[str, Any], **_: Any) -> None:
            if session:
                session.event(resource, event["type"], event["object"])

    # -- the operators

    def _start_operator(self, registry: kopf.OperatorRegistry, namespaces: Namespaces) -> asyncio.Task[None]:
        kopf.on.login(registry=registry, id="login")(self.on_login)
        operator = asyncio.create_task(self._run_operator(registry, namespaces))
        self._operators.add(operator)
        return operator

    async def _run_operator(self, registry: kopf.OperatorRegistry, namespaces: Namespaces) -> None:
        everywhere = namespaces == (EVERYWHERE,)
        try:
            await kopf.operator(
                registry=registry,
                clusterwide=everywhere,
                namespaces=() if everywhere else namespaces,
                standalone=True,
                stop_flag=self._stop_flag,
            )
        finally:
            self._stop_flag.set()

    async def _stop_kopf(self) -> None:
        """Wait until kopf stops, and close its HTTP sessions, so that its next request fails."""
        await asyncio.wait(self._operators, timeout=STOP_SECONDS)
        for http in self._http_sessions:
            await http.close()
        if running := {operator for operator in self._operators if not operator.done()}:
            for operator in running:
                operator.cancel()
            _, running = await asyncio.wait(running, timeout=STOP_SECONDS)
        if running:
            log.warning("kopf has not ended in time; going on without", operators=len(running))


class _Backoffs:
    """Seconds between the tries of one request, without an end: a watch must survive any outage."""

    def __iter__(self) -> Iterator[float]:
        yield from (0.1, 0.2)
        while True:
            yield 0.5


class _NoLastState(kopf.DiffBaseStorage):
    """Keeps no last-seen state: on.event handlers compare nothing, so kopf need not copy every object."""

    def build(self, *, body: kopf.Body, extra_fields: Iterable[Any] | None = None) -> kopf.BodyEssence:
        del body, extra_fields
        return kopf.BodyEssence()

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:
        del body
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """Store nothing."""


async def _configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = False
    settings.persistence.diffbase_storage = _NoLastState()
    settings.scanning.disabled = True
    settings.process.ultimate_exiting_timeout = None
    settings.networking.error_backoffs = _Backoffs()
    settings.networking.connect_timeout = 5.0
    settings.networking.request_timeout = client.TIMEOUT_SECONDS
    # kopf's defaults are none and 70 seconds, but a stuck watch must be restarted within 60.
    settings.watching.server_timeout = client.WATCH_SECONDS
    settings.watching.inactivity_timeout = client.WATCH_IDLE_SECONDS


def silence_kopf() -> None:
    """Drop kopf's log lines, which may quote whole objects; only the place of a failure is logged."""
    kopfs = logging.getLogger("kopf")
    kopfs.handlers, kopfs.propagate = [logging.NullHandler()], False
