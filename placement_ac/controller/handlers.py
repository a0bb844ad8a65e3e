"""
kopf registrations: an event goes into the world and its keys into the queue, nothing else.

Handlers return None, write nothing and never raise. A request that kopf makes
to list a kind means that its watch begins anew: `gap` is told. So it is when that
request is refused, for kopf tries for ever and says nothing: the list that `gap`
asks for then tells what the API server says.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import aiohttp
import kopf
from yarl import URL

from placement_ac.cache.store import Cache
from placement_ac.core.api.constants import Kind, Resource
from placement_ac.core.api.errors import PlacementAcError
from placement_ac.core.inputs.state import Key
from placement_ac.kube import client
from placement_ac.kube.login import Login
from placement_ac.observability.health import Reachability, WatchHealth
from placement_ac.observability.logs import error_place, redacted

Touched = Callable[[Iterable[Key]], None]

FIRST_TO_END: Final = "stop-flag checker"
"""kopf 1.45: the name of a task that lives exactly until the operator begins to end."""
GRACE_SECONDS: Final = 2.0
"""How long kopf may take to end by itself, and a write that is under way to finish."""
CANCEL_AGAIN_SECONDS: Final = 0.2


class WatchEnded(PlacementAcError):
    """kopf gave up. What it says quotes nothing that kopf was working on."""


class _Backoffs:
    """Pauses between tries, without an end: a watch must outlive any outage."""

    pauses: Final = (0.1, 0.2, 0.5)
    last: Final = 0.5

    def __iter__(self) -> Iterator[float]:
        yield from self.pauses
        while True:
            yield self.last


class Watch:
    """The kopf operator that keeps the world up to date."""

    def __init__(
        self,
        login: Login,
        resources: Mapping[Kind, Resource],
        world: Cache,
        *,
        touched: Touched,
        gap: Callable[[Kind], None],
        signs: Mapping[Kind, WatchHealth],
        answered: client.RequestObserver,
        reach: Reachability,
    ) -> None:
        self._login = login
        self._resources = resources
        self._world = world
        self._touched = touched
        self._gap = gap
        self._signs = signs
        self._answered = answered
        self._reach = reach
        prefix = URL(login.server).path.rstrip("/")
        self._paths = {prefix + resource.path(): kind for kind, resource in resources.items()}

    async def run(self, stop: asyncio.Event, started: asyncio.Event) -> None:
        """Watch until `stop` is set; raises what kopf could not cope with."""
        grumbles = _Grumbles.instead_of_kopfs_log()
        others = asyncio.all_tasks()
        ready = asyncio.create_task(started.wait())
        operator = asyncio.create_task(
            kopf.operator(
                registry=self._registry(),
                settings=self._settings(),
                clusterwide=True,
                standalone=True,
                stop_flag=stop,
                ready_flag=started,
            )
        )
        try:
            await asyncio.wait({operator, ready}, return_when=asyncio.FIRST_COMPLETED)
            await _until_it_ends(operator)
        finally:
            await _make_it_end(operator, others)
            ready.cancel()
        if not stop.is_set():
            raise WatchEnded(grumbles.last or "kopf ended without saying why")

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry, id="login")(self._log_in)
        for kind, resource in self._resources.items():
            kopf.on.event(kind.group, resource.version, kind.plural, registry=registry, id=kind.plural)(
                self._handler(kind)
            )
        return registry

    def _settings(self) -> kopf.OperatorSettings:
        settings = kopf.OperatorSettings()
        settings.posting.enabled = False
        settings.scanning.disabled = True
        settings.process.ultimate_exiting_timeout = None
        settings.networking.error_backoffs = _Backoffs()
        settings.networking.connect_timeout = 5.0
        settings.networking.request_timeout = client.TIMEOUT_SECONDS
        # kopf's own are "whenever the server ends it" and 70 seconds: a stuck watch is to begin within 60.
        settings.watching.server_timeout = client.WATCH_SECONDS
        settings.watching.inactivity_timeout = client.SILENCE_SECONDS
        return settings

    async def _log_in(self, **_: Any) -> kopf.AiohttpSession:
        trace = aiohttp.TraceConfig()
        trace.on_request_end.append(self._see_request)
        trace.on_request_exception.append(self._see_failure)
        return kopf.AiohttpSession(
            server=self._login.server, aiohttp_session=self._login.session(trace_configs=[trace])
        )

    async def _see_request(self, _: object, __: object, request: aiohttp.TraceRequestEndParams) -> None:
        self._reach.back()
        if request.response.status >= 400:
            self._answered(_verb(request.url), request.response.status, None)
        kind = self._paths.get(request.url.path)
        if kind:
            self._signs[kind].heard()
        if kind and "watch" not in request.url.query:
            self._gap(kind)

    async def _see_failure(self, _: object, __: object, request: aiohttp.TraceRequestExceptionParams) -> None:
        error = request.exception
        if not isinstance(error, (OSError, aiohttp.ClientError)):
            return  # we stop
        self._answered(_verb(request.url), 0, None)
        self._reach.lost(redacted(error))

    def _handler(self, kind: Kind) -> Callable[..., Any]:
        async def seen(event: Mapping[str, Any], **_: Any) -> None:
            self._signs[kind].heard()
            take = self._world.remove if event["type"] == "DELETED" else self._world.put
            self._touched(take(kind, event["object"]))

        return seen


def _verb(url: URL) -> str:
    return "watch" if "watch" in url.query else "list"


async def _until_it_ends(operator: asyncio.Task[None]) -> None:
    """Return when kopf has ended or begun to: then its task of this name is over."""
    checkers = {task for task in asyncio.all_tasks() if task.get_name() == FIRST_TO_END}
    await asyncio.wait({operator, *checkers}, return_when=asyncio.FIRST_COMPLETED)


async def _make_it_end(operator: asyncio.Task[None], others: Collection[asyncio.Task[Any]]) -> None:
    """Wait for kopf's end, and bring it about if need be.

    kopf cancels each of its watchers once; one whose stream ends in that very moment swallows it
    (`streaming_block`), goes on, and the operator would wait for it for ever.
    """
    await asyncio.wait({operator}, timeout=GRACE_SECONDS)
    while not operator.done():
        for task in asyncio.all_tasks() - set(others):
            task.cancel()
        await asyncio.wait({operator}, timeout=CANCEL_AGAIN_SECONDS)


class _Grumbles(logging.Handler):
    """Keeps the last failure that kopf logs, and nothing else: its lines quote whole objects, Secrets too."""

    last = ""

    @classmethod
    def instead_of_kopfs_log(cls) -> "_Grumbles":
        handler = cls(logging.ERROR)
        kopfs = logging.getLogger("kopf")
        kopfs.handlers, kopfs.propagate = [handler], False
        return handler

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not self.last:
            self.last = error_place(error)
