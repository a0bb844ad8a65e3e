"""
What is counted, and what Prometheus reads of it: one registry for each controller, none for the process.

To count costs microseconds and never fails. What has been counted stays as long as the controller lives, from
session to session; what there is at the moment is looked up when somebody asks. `pages` shows it.
"""

import platform
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from types import TracebackType
from typing import Final, NamedTuple, Self

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from placement_ac.core.api.errors import ApiError
from placement_ac.core.plan.stats import PlacementStats
from placement_ac.observability import measures
from placement_ac.observability.measures import MetricDefinition, result_of


class QueueLoad(NamedTuple):
    """How busy a queue is: numbers of keys, and seconds."""

    waiting: int = 0
    oldest: float = 0.0
    """How long the one has waited that has waited the longest."""
    longest: float = 0.0
    """How long the one has been worked on that takes the longest."""
    retrying: int = 0


@dataclass(frozen=True, slots=True)
class GaugeSources:
    """Where it is looked up how things are at the moment."""

    expiries: Callable[[], Mapping[str, datetime]] = dict
    """Cluster → when its credentials end; a cluster whose credentials do not end is not in it."""
    queue_load: Callable[[], QueueLoad] = QueueLoad
    leading: Callable[[], bool] = bool


class Metrics:
    """Counts what one controller does. It belongs to one event loop."""

    def __init__(self, sources: GaugeSources | None = None) -> None:
        self.registry: CollectorRegistry = _RegistryWithoutCreated()
        self._reconciles = _counter(measures.RECONCILES, self.registry)
        self._reconcile_seconds = _histogram(measures.RECONCILE_SECONDS, self.registry)
        self._latency = _histogram(measures.LATENCY, self.registry)
        self._decision_changes = _counter(measures.DECISION_CHANGES, self.registry)
        self._writes = _counter(measures.WRITES, self.registry)
        self._api_seconds = _histogram(measures.API_SECONDS, self.registry)
        self._api_errors = _counter(measures.API_ERRORS, self.registry)
        self.waiting: dict[Hashable, float] = {}
        """Keys → since when an event waits for what follows from it."""
        self.stats: dict[Hashable, PlacementStats] = {}
        self.registry.register(_CurrentGauges(sources or GaugeSources(), self.stats))
        ProcessCollector(registry=self.registry)
        for controller in measures.CONTROLLERS:  # a rate needs to know that there was nothing before
            self._latency.labels(controller)
            for result in measures.RESULTS:
                self._reconciles.labels(controller, result)

    def begin_session(self) -> None:
        """Forget what is known of keys: a new world begins."""
        self.waiting.clear()
        self.stats.clear()
        self._decision_changes.clear()

    def event_received(self, keys: Iterable[Hashable]) -> None:
        """Take in that an event touches these keys."""
        now = time.perf_counter()
        for key in keys:
            self.waiting.setdefault(key, now)

    def record_stats(self, key: Hashable, now: PlacementStats) -> None:
        """Take in how it stands with a Placement, or with a check without one."""
        before = self.stats.get(key)
        if not now.checks:
            if before is not None:
                self._forget(key, before)
            return
        self.stats[key] = now
        if not now.placement:
            return
        if before is None:  # a rate needs to know that there was nothing before
            for change in ("set", "order"):
                self._decision_changes.labels(now.placement, change)
        elif before.selected != now.selected:
            same = set(before.selected) == set(now.selected)
            self._decision_changes.labels(now.placement, "order" if same else "set").inc()

    def _forget(self, key: Hashable, before: PlacementStats) -> None:
        del self.stats[key]
        for change in ("set", "order") if before.placement else ():
            self._decision_changes.remove(before.placement, change)

    def wrote(self, kind: str, verb: str, error: ApiError | None = None) -> None:
        """Count a write to the hub."""
        self._writes.labels(kind, verb, result_of(error)).inc()

    def request_ended(self, verb: str, status: int | None, seconds: float | None) -> None:
        """Count a request to the hub's API server: a `RequestObserver`."""
        if seconds is not None:
            self._api_seconds.labels(verb).observe(seconds)
        if status is not None:
            self._api_errors.labels(str(status or measures.NO_ANSWER), verb).inc()

    # -- for ReconcileRun alone

    def reconcile_ended(self, run: "ReconcileRun", error: BaseException | None) -> None:
        """Count a look that has ended. After a failure the event still waits."""
        if error is not None and not isinstance(error, Exception):
            return
        result, now = result_of(error), time.perf_counter()
        self._reconciles.labels(run.controller, result).inc()
        self._reconcile_seconds.labels(run.controller, result).observe(now - run.began)
        if run.since is None:
            return
        if error is not None:
            self.waiting[run.key] = run.since
        elif run.applied_at is not None:
            self._latency.labels(run.controller).observe(run.applied_at - run.since)


class ReconcileRun:
    """Measures one look at a key, from the first question to the last write: as long as its `with` lasts."""

    __slots__ = ("_metrics", "applied_at", "began", "controller", "key", "since")

    def __init__(self, metrics: Metrics, key: Hashable, controller: str) -> None:
        self._metrics = metrics
        self.key = key
        self.controller = controller
        self.applied_at: float | None = None
        self.began = time.perf_counter()
        self.since = metrics.waiting.pop(key, None)  # what comes from now on is another one
        """Since when an event waits for `key`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        self._metrics.reconcile_ended(self, error)

    def applied(self) -> None:
        """Take in that all has been written that had to be, and that there was something."""
        self.applied_at = time.perf_counter()


class _CurrentGauges(Collector):
    """How things are at the moment."""

    def __init__(self, sources: GaugeSources, stats: Mapping[Hashable, PlacementStats]) -> None:
        self._sources = sources
        self._stats = stats

    def describe(self) -> Iterable[Metric]:
        """Spare the registry a look at what is not there yet."""
        return ()

    def collect(self) -> Iterable[Metric]:
        yield from self._queue_gauges()
        yield from self._check_gauges()
        expiries = sorted(self._sources.expiries().items())
        yield _gauge(measures.EXPIRATION, (((cluster,), end.timestamp()) for cluster, end in expiries))
        yield _gauge(measures.LEADER, [((), float(self._sources.leading()))])
        yield _gauge(measures.BUILD_INFO, [(_BUILD, 1.0)])

    def _queue_gauges(self) -> Iterable[Metric]:
        load = self._sources.queue_load()
        yield _gauge(measures.QUEUE_DEPTH, [((), load.waiting)])
        yield _gauge(measures.QUEUE_AGE, [((), load.oldest)])
        yield _gauge(measures.QUEUE_RUNNING, [((), load.longest)])
        yield _gauge(measures.QUEUE_RETRYING, [((), load.retrying)])

    def _check_gauges(self) -> Iterable[Metric]:
        standings = self._stats.values() if self._sources.leading() else ()
        known = [(check, one) for one in standings for check in one.checks]
        yield _gauge(
            measures.CHECK_ACTIVE,
            (((name, one.placement, reason), float(active)) for (name, active, reason), one in known),
        )
        yield _gauge(
            measures.CLUSTERS,
            (((name, state), n) for (name, _, _), one in known for state, n in _cluster_counts(one)),
        )
        yield _gauge(
            measures.DRAIN_START,
            (((name,), min(one.draining)) for (name, _, _), one in known if one.draining),
        )


_BUILD: Final = (version("placement-ac"), platform.python_version())


def _cluster_counts(one: PlacementStats) -> tuple[tuple[str, int], ...]:
    return (
        ("selected", len(one.selected)),
        ("listed", one.listed),
        ("draining", len(one.draining)),
        ("unusable", one.unusable),
    )


def _counter(of: MetricDefinition, registry: CollectorRegistry) -> Counter:
    return Counter(of.name, of.help, of.labels, registry=registry)


def _histogram(of: MetricDefinition, registry: CollectorRegistry) -> Histogram:
    return Histogram(of.name, of.help, of.labels, registry=registry, buckets=of.buckets)


def _gauge(of: MetricDefinition, values: Iterable[tuple[tuple[str, ...], float]]) -> Metric:
    family = GaugeMetricFamily(of.name, of.help, labels=of.labels)
    for labels, value in values:
        family.add_metric(labels, value)
    return family


class _RegistryWithoutCreated(CollectorRegistry):
    """Leaves out when each counter began: nobody asks, and there would be half as many series again."""

    def collect(self) -> Iterable[Metric]:
        for family in super().collect():
            family.samples = [one for one in family.samples if not one.name.endswith("_created")]
            yield family
