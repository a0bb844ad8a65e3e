"""What Prometheus may read: the registry of one controller. `pages` shows it."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

EXPIRATION: Final = "placement_ac_credential_expiration_timestamp_seconds"

Expiries = Callable[[], Mapping[str, datetime]]
"""Tells cluster → when its credentials end; a cluster whose credentials do not end is not in it."""


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
