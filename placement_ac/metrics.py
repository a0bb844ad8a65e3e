"""What Prometheus may read: the registry and the page `/metrics`, where an admin wants it."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from placement_ac.errors import PlacementAcError

EXPIRATION: Final = "placement_ac_credential_expiration_timestamp_seconds"

Expiries = Callable[[], Mapping[str, datetime]]
"""Tells cluster → when its credentials end; a cluster whose credentials do not end is not in it."""


class CannotListen(PlacementAcError):
    """The address for metrics is taken, or is none."""


class _Credentials(Collector):
    def __init__(self, expiries: Expiries) -> None:
        self._expiries = expiries

    def collect(self) -> Iterable[Metric]:
        told = "When the credentials of a cluster expire, in seconds since 1970."
        gauge = GaugeMetricFamily(EXPIRATION, told, labels=["cluster"])
        for cluster, when in sorted(self._expiries().items()):
            gauge.add_metric([cluster], when.timestamp())
        yield gauge


def registry(expiries: Expiries) -> CollectorRegistry:
    """Return a registry of its own, so that several controllers may live in one process."""
    found = CollectorRegistry()
    found.register(_Credentials(expiries))
    return found


@asynccontextmanager
async def served(metrics: CollectorRegistry, address: str) -> AsyncIterator[None]:
    """Serve `/metrics` at `host:port` as long as the `with` lasts; "": nowhere. Raises CannotListen."""
    if not address:
        yield
        return
    host, _, port = address.rpartition(":")
    app = web.Application()
    app.router.add_get("/metrics", partial(_page, metrics))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host.strip("[]") or None, int(port)).start()
        except OSError as error:
            raise CannotListen(f"metrics-bind-address: {address}: {error.strerror}") from None
        yield
    finally:
        await runner.cleanup()


async def _page(metrics: CollectorRegistry, _: web.Request) -> web.Response:
    return web.Response(body=generate_latest(metrics), headers={"Content-Type": CONTENT_TYPE_LATEST})
