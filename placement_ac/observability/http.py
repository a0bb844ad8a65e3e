"""
The pages for the kubelet and Prometheus: `/healthz`, `/livez`, `/readyz` and `/metrics`, over HTTP.

They contain no secrets, since they need no login. The controller's event loop serves them, so a blocked loop
fails the probes.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from placement_ac.config.settings import Settings
from placement_ac.core.api.errors import PlacementAcError
from placement_ac.observability.health import Health, HealthCheck

Page = Callable[[web.Request], Awaitable[web.Response]]
HealthChecks = Callable[[], Collection[HealthCheck]]

FAILED: Final = 500
"""The status of a failed health check, as in Kubernetes and controller-runtime."""


class CannotListen(PlacementAcError):
    """An address for metrics or health is in use or invalid."""


@asynccontextmanager
async def serve_pages(settings: Settings, metrics: CollectorRegistry, health: Health) -> AsyncIterator[None]:
    """Serve the pages at the addresses in the settings, as long as the `with` lasts. Raises CannotListen."""
    health_pages: dict[str, Page] = {
        "/healthz": partial(_health, "healthz", health.liveness),
        "/livez": partial(_health, "livez", health.liveness),
        "/readyz": partial(_health, "readyz", health.readiness),
    }
    servers: dict[str, tuple[str, dict[str, Page]]] = {}
    for setting, address, pages in (
        ("metrics-bind-address", settings.metrics_bind_address, {"/metrics": partial(_metrics, metrics)}),
        ("health-probe-bind-address", settings.health_probe_bind_address, health_pages),
    ):
        if address:
            servers.setdefault(address, (setting, {}))[1].update(pages)
    async with AsyncExitStack() as stack:
        for address, (setting, pages) in servers.items():
            await stack.enter_async_context(_server(setting, address, pages))
        yield


@asynccontextmanager
async def _server(setting: str, address: str, pages: Mapping[str, Page]) -> AsyncIterator[None]:
    host, _, port = address.rpartition(":")
    app = web.Application()
    for path, page in pages.items():
        app.router.add_get(path, page)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host.strip("[]") or None, int(port)).start()
        except OSError as error:
            raise CannotListen(f"{setting}: {address}: {error.strerror}") from None
        except ValueError:  # of the codec for host names, and of the socket
            raise CannotListen(f"{setting}: {address!r} has no host name that is possible") from None
        yield
    finally:
        await runner.cleanup()


async def _health(name: str, checks: HealthChecks, request: web.Request) -> web.Response:
    """Answer as Kubernetes does: `ok`, or every check if one fails or with `?verbose`."""
    results = checks()
    good = not any(check.problem for check in results)
    if good and "verbose" not in request.query:
        return _with_connection_close(web.Response(text="ok"))
    lines = [_line(check) for check in results]
    lines.append(f"{name} check {'passed' if good else 'failed'}")
    return _with_connection_close(web.Response(text="\n".join(lines) + "\n", status=200 if good else FAILED))


def _line(check: HealthCheck) -> str:
    if check.problem:
        return f"[-]{check.name} failed: {check.problem}"
    return f"[+]{check.name} ok{f': {check.note}' if check.note else ''}"


class _CollectedMetrics(Collector):
    """Metrics that have been collected before."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        return self._families


async def _metrics(metrics: CollectorRegistry, _: web.Request) -> web.Response:
    """Collect in the event loop, which owns the data; write the text, which takes longer, in a thread."""
    collected = _CollectedMetrics(metrics.collect())
    body = await asyncio.to_thread(generate_latest, collected)
    return _with_connection_close(web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST}))


def _with_connection_close(answer: web.Response) -> web.Response:
    """Have the connection closed after the answer: when kopf ends, it waits for aiohttp's task of each."""
    answer.force_close()
    return answer
