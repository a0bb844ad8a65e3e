"""
kopf registrations: an event goes into the world and its keys into the queue, nothing else.

Handlers return None, write nothing and never raise. A request that kopf makes
to list a kind means that its watch begins anew: `gap` is told.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import aiohttp
import kopf
import structlog

from placement_ac.login import Login
from placement_ac.names import Kind, Resource
from placement_ac.snapshot import Key
from placement_ac.world import World

log = structlog.get_logger(__name__)

Touched = Callable[[Iterable[Key]], None]


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
        world: World,
        *,
        namespaces: Mapping[Kind, str],
        touched: Touched,
        gap: Callable[[Kind], None],
    ) -> None:
        self._login = login
        self._resources = resources
        self._world = world
        self._namespaces = namespaces
        self._touched = touched
        self._gap = gap
        self._paths = {resource.path(): kind for kind, resource in resources.items()}

    async def run(self, stop: asyncio.Event, ready: asyncio.Event) -> None:
        """Watch until `stop` is set; raises what kopf could not cope with."""
        logging.getLogger("kopf").setLevel(logging.CRITICAL)
        logging.getLogger("kopf").propagate = False
        await kopf.operator(
            registry=self._registry(),
            settings=self._settings(),
            clusterwide=True,
            standalone=True,
            stop_flag=stop,
            ready_flag=ready,
        )

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
        for kind, namespace in self._namespaces.items():
            settings.watching.field_selectors[kind.group, kind.plural] = f"metadata.namespace={namespace}"
        return settings

    async def _log_in(self, **_: Any) -> kopf.AiohttpSession:
        trace = aiohttp.TraceConfig()
        trace.on_request_end.append(self._see_request)
        return kopf.AiohttpSession(
            server=self._login.server, aiohttp_session=self._login.session(trace_configs=[trace])
        )

    async def _see_request(self, _: object, __: object, request: aiohttp.TraceRequestEndParams) -> None:
        kind = self._paths.get(request.url.path)
        if kind and "watch" not in request.url.query and request.response.status == 200:
            self._gap(kind)

    def _handler(self, kind: Kind) -> Callable[..., Any]:
        async def seen(event: Mapping[str, Any], **_: Any) -> None:
            take = self._world.remove if event["type"] == "DELETED" else self._world.put
            self._touched(take(kind, event["object"]))

        return seen
