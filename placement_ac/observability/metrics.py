"""
The metrics of one controller, in a registry of its own.

Counting takes microseconds and never fails. Counters last as long as the controller, over all its sessions,
except those of one Placement: they end with its last check, with the leadership and with the session. Gauges
are computed when Prometheus reads them, from `http`.
"""

import platform
import time
from collections import Counter as Counts
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from importlib.metadata import version
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from placement_ac.core.api.errors import ApiError
from placement_ac.core.capacity_report.model import CapacityReport
from placement_ac.core.dispatch.filters import FILTERS
from placement_ac.core.draining.state import DrainState
from placement_ac.core.plan.stats import PlacementStats
from placement_ac.observability import metric_definitions as definitions
from placement_ac.observability.metric_definitions import MetricDefinition, QueueLoad, result_of


class Metrics(Collector):
    """The metrics of one controller, the collector of its gauges. Not thread-safe: one event loop owns it.

    `expiries`: cluster → when its credentials expire, without clusters whose credentials do not expire;
    `job_ends`: cluster and cause → how many jobs ended so; `scores`: cluster → those that are reported;
    `capacity`: the capacity of the clusters that is published (None: there is none).
    """

    def __init__(
        self,
        *,
        expiries: Callable[[], Mapping[str, datetime]] = dict,
        queue_load: Callable[[], QueueLoad] = QueueLoad,
        leading: Callable[[], bool] = bool,
        scores: Callable[[], Mapping[str, Mapping[str, int]]] = dict,
        job_ends: Callable[[], Mapping[tuple[str, str], int]] = dict,
        capacity: Callable[[], CapacityReport | None] = lambda: None,
    ) -> None:
        self._capacity = capacity
        self._scores = scores
        self._expiries, self._queue_load, self._leading = expiries, queue_load, leading
        self._job_ends = job_ends
        # They are a third of all series, and of no use.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the package has no types here
        self.registry = CollectorRegistry()
        self._reconciles = _counter(definitions.RECONCILES, self.registry)
        self._reconcile_seconds = _histogram(definitions.RECONCILE_SECONDS, self.registry)
        self._latency = _histogram(definitions.LATENCY, self.registry)
        self._decision_changes = _counter(definitions.DECISION_CHANGES, self.registry)
        self._writes = _counter(definitions.WRITES, self.registry)
        self._writes_undone = _counter(definitions.WRITES_UNDONE, self.registry)
        self._api_seconds = _histogram(definitions.API_SECONDS, self.registry)
        self._api_errors = _counter(definitions.API_ERRORS, self.registry)
        self._list_writes = _counter(definitions.LIST_WRITES, self.registry)
        self._list_write_requests = _counter(definitions.LIST_WRITE_REQUESTS, self.registry)
        self._placing = _histogram(definitions.PLACING, self.registry)
        self.waiting: dict[Hashable, float] = {}
        """Key → since when an event waits for the writes that follow from it."""
        self.stats: dict[Hashable, PlacementStats] = {}
        self.registry.register(self)
        ProcessCollector(registry=self.registry)
        for kind in definitions.UNDONE_KINDS:  # a rate needs a first value of 0
            self._writes_undone.labels(kind.kind)
        for controller in definitions.CONTROLLERS:
            self._latency.labels(controller)
            for result in definitions.RESULTS:
                self._reconciles.labels(controller, result)

    def begin_session(self) -> None:
        """Forget everything about keys."""
        self.waiting.clear()
        self.stats.clear()
        self._decision_changes.clear()
        self._list_writes.clear()
        self._list_write_requests.clear()

    def event_received(self, keys: Iterable[Hashable]) -> None:
        """Take in that an event touches these keys."""
        now = time.perf_counter()
        for key in keys:
            self.waiting.setdefault(key, now)

    def record_stats(self, key: Hashable, now: PlacementStats) -> None:
        """Take in the stats of a Placement, or of a check without one."""
        before = self.stats.get(key)
        if not now.checks:
            if before is not None:
                self._forget(key, before)
            return
        self.stats[key] = now
        if not now.placement:
            return
        if before is None:  # a rate needs a first value of 0
            for change in ("set", "order"):
                self._decision_changes.labels(now.placement, change)
            self._list_writes.labels(now.placement)
            self._list_write_requests.labels(now.placement)
        elif before.selected != now.selected:
            same = set(before.selected) == set(now.selected)
            self._decision_changes.labels(now.placement, "order" if same else "set").inc()

    def _forget(self, key: Hashable, before: PlacementStats) -> None:
        del self.stats[key]
        if not before.placement:
            return
        for change in ("set", "order"):
            self._decision_changes.remove(before.placement, change)
        self._list_writes.remove(before.placement)
        self._list_write_requests.remove(before.placement)

    def wrote(self, kind: str, verb: str, error: ApiError | None = None) -> None:
        """Count a write to the hub."""
        self._writes.labels(kind, verb, result_of(error)).inc()

    def write_undone(self, kind: str) -> None:
        """Count a write that somebody has undone soon."""
        self._writes_undone.labels(kind).inc()

    def list_written(self, key: Hashable, requests: int) -> None:
        """Count a write that changed the list of a Placement, with the requests to workers that it causes."""
        if (stats := self.stats.get(key)) and stats.placement:
            self._list_writes.labels(stats.placement).inc()
            self._list_write_requests.labels(stats.placement).inc(requests)

    def workload_placed(self, seconds: float) -> None:
        """Take in how long after our Ready a Workload was placed."""
        self._placing.observe(seconds)

    def request_ended(self, verb: str, status: int | None, seconds: float | None) -> None:
        """Count a request to the hub's API server: a `RequestObserver`."""
        if seconds is not None:
            self._api_seconds.labels(verb).observe(seconds)
        if status is not None:
            self._api_errors.labels(str(status or definitions.NO_ANSWER), verb).inc()

    @contextmanager
    def measure_reconcile(self, key: Hashable, controller: str) -> Iterator["ReconcileRun"]:
        """Measure a reconcile as long as the `with` lasts. After a failure the event still waits."""
        run, began = ReconcileRun(), time.perf_counter()
        since = self.waiting.pop(key, None)  # later events wait for the next reconcile
        try:
            yield run
        except Exception as error:
            self._reconcile_ended(controller, began, error)
            if since is not None:
                self.waiting[key] = since
            raise
        self._reconcile_ended(controller, began)
        if since is not None and run.applied_at is not None:
            self._latency.labels(controller).observe(run.applied_at - since)

    def _reconcile_ended(self, controller: str, began: float, error: Exception | None = None) -> None:
        result = result_of(error)
        self._reconciles.labels(controller, result).inc()
        self._reconcile_seconds.labels(controller, result).observe(time.perf_counter() - began)

    # -- the gauges, computed when they are read

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that the registry does not collect before there is a session."""
        return ()

    def collect(self) -> Iterable[Metric]:
        yield from self._queue_gauges()
        yield from self._check_gauges()
        expiries = sorted(self._expiries().items())
        yield _gauge(definitions.EXPIRATION, (((cluster,), end.timestamp()) for cluster, end in expiries))
        scores = self._scores().items() if self._leading() else ()
        yield _gauge(
            definitions.CLUSTER_SCORE,
            (((cluster, name), value) for cluster, known in scores for name, value in known.items()),
        )
        report = self._capacity() if self._leading() else None
        yield _gauge(definitions.CLUSTER_QUOTA, _quota_values(report) if report else ())
        ends = CounterMetricFamily(
            definitions.JOB_ENDS.name, definitions.JOB_ENDS.help, labels=definitions.JOB_ENDS.labels
        )
        for labels, number in sorted(self._job_ends().items()) if self._leading() else ():
            ends.add_metric(labels, number)
        yield ends
        yield _gauge(definitions.LEADER, [((), float(self._leading()))])
        yield _gauge(definitions.BUILD_INFO, [(_BUILD, 1.0)])

    def _queue_gauges(self) -> Iterable[Metric]:
        load = self._queue_load()
        yield _gauge(definitions.QUEUE_DEPTH, [((), load.waiting)])
        yield _gauge(definitions.QUEUE_AGE, [((), load.oldest)])
        yield _gauge(definitions.QUEUE_RUNNING, [((), load.longest)])
        yield _gauge(definitions.QUEUE_RETRYING, [((), load.retrying)])

    def _check_gauges(self) -> Iterable[Metric]:
        all_stats = self.stats.values() if self._leading() else ()
        known = [(check, stats) for stats in all_stats for check in stats.checks]
        yield _gauge(
            definitions.CHECK_ACTIVE,
            (((name, stats.placement, reason), float(active)) for (name, active, reason), stats in known),
        )
        yield _gauge(
            definitions.CLUSTERS,
            (((name, state), n) for (name, _, _), stats in known for state, n in _cluster_counts(stats)),
        )
        yield _gauge(
            definitions.CONNECTED,
            (
                ((name, cluster), float(connected))
                for (name, _, _), stats in known
                for cluster, connected in stats.connected.items()
            ),
        )
        yield _gauge(
            definitions.QUARANTINED,
            (
                ((name, cluster), float(value))
                for (name, _, _), stats in known
                for cluster, value in stats.quarantined.items()
            ),
        )
        yield _gauge(
            definitions.RELIABILITY,
            (
                ((name, cluster), share)
                for (name, _, _), stats in known
                for cluster, share in stats.reliability.items()
            ),
        )
        yield _gauge(
            definitions.DRAIN_START,
            (((name,), min(stats.draining)) for (name, _, _), stats in known if stats.draining),
        )
        yield from _held_gauges(known)
        yield from _dispatch_gauges([stats for stats in all_stats if stats.placement])


def _quota_values(report: CapacityReport) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield the amounts of GPUs, CPU and memory of each cluster that is known, with the labels."""
    counted = {*report.gpus, *definitions.QUOTA_RESOURCES}
    for cluster in report.clusters:
        for resource, amounts in report.totals([cluster]).items():
            for kind in definitions.QUOTA_KINDS if resource in counted else ():
                if (value := getattr(amounts, kind)) is not None:
                    yield (cluster.name, resource, kind), value / 1000


class ReconcileRun:
    """A reconcile that is being measured."""

    applied_at: float | None = None

    def applied(self) -> None:
        """Note that there was something to write, and that all of it has been written."""
        self.applied_at = time.perf_counter()


_BUILD: Final = (version("placement-ac"), platform.python_version())
STANDING_BY: Final = DrainState.STANDING_BY.name.lower()
UNLISTED: Final = DrainState.UNLISTED.name.lower()
"""The state of a cluster that is no longer listed: the gate opens a second later."""


def _cluster_counts(stats: PlacementStats) -> tuple[tuple[str, int], ...]:
    return (
        ("selected", len(stats.selected)),
        ("listed", stats.listed),
        ("standby", sum(state == STANDING_BY for state in stats.drain_states.values())),
        ("draining", len(stats.draining)),
        ("unusable", stats.unusable),
    )


def _held_gauges(known: Iterable[tuple[tuple[str, bool, str], PlacementStats]]) -> Iterator[Metric]:
    counts: Counts[tuple[str, ...]] = Counts()
    since: dict[tuple[str, ...], float] = {}
    for (check, _, _), stats in known:
        for cluster, state in stats.drain_states.items():
            counts[check, cluster, state] += 0
        for held in (held for held in stats.held if held.check == check):
            cluster = held.clusters[0]
            counts[check, cluster, stats.drain_states.get(cluster, UNLISTED)] += held.number
            if held.since:
                began = held.since.timestamp()
                since[check,] = min(began, since.get((check,), began))
    yield _gauge(definitions.HELD, counts.items())
    yield _gauge(definitions.HELD_START, since.items())


def _dispatch_gauges(known: Iterable[PlacementStats]) -> Iterator[Metric]:
    yield _gauge(definitions.UNFIT, [((stats.placement,), stats.unfit) for stats in known])
    refusals = Counts[str](dict.fromkeys(FILTERS, 0))
    for stats in known:
        refusals.update(stats.refusals)
    yield _gauge(definitions.REFUSALS, [((name,), number) for name, number in refusals.items()])


def _counter(of: MetricDefinition, registry: CollectorRegistry) -> Counter:
    return Counter(of.name, of.help, of.labels, registry=registry)


def _histogram(of: MetricDefinition, registry: CollectorRegistry) -> Histogram:
    return Histogram(of.name, of.help, of.labels, registry=registry, buckets=of.buckets)


def _gauge(of: MetricDefinition, values: Iterable[tuple[tuple[str, ...], float]]) -> Metric:
    family = GaugeMetricFamily(of.name, of.help, labels=of.labels)
    for labels, value in values:
        family.add_metric(labels, value)
    return family
