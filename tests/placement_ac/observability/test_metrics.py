"""The metrics: counting, and exporting."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from placement_ac.cache.store import Cache
from placement_ac.core.api.constants import ADMISSION_CHECK, SECRET
from placement_ac.core.api.errors import (
    ApiError,
    Conflict,
    NotFound,
    NotLeading,
    Refused,
    Unavailable,
    WorkloadWritesFailed,
)
from placement_ac.core.api.fields import Obj
from placement_ac.core.capacity_report.model import Amounts, CapacityReport, ClusterCapacity, Supply
from placement_ac.core.plan.stats import PlacementStats
from placement_ac.core.plan.waiting import HeldWorkloads
from placement_ac.kube.workqueue import Requeue
from placement_ac.observability.metric_definitions import RESULTS, QueueLoad, result_of
from placement_ac.observability.metrics import Metrics
from tests.support.builders import NOW, check, decision, jwt, kubeconfig, secret, world

Labels = dict[str, str]


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    """The value of one series on the page."""
    page = generate_latest(metrics.registry).decode()
    samples = [sample for family in text_string_to_metric_families(page) for sample in family.samples]
    found = [sample.value for sample in samples if (sample.name, sample.labels) == (name, labels)]
    assert len(found) <= 1
    return found[0] if found else None


def caused(error: Exception) -> Exception:
    """A Requeue as `reconcile` raises it."""
    requeue = Requeue()
    requeue.__cause__ = error
    return requeue


@pytest.mark.parametrize(
    ("error", "result"),
    [
        pytest.param(None, "success", id="nothing"),
        pytest.param(Conflict(""), "conflict", id="conflict"),
        pytest.param(NotFound(""), "not_found", id="not found"),
        pytest.param(caused(Refused("")), "refused", id="refused"),
        pytest.param(caused(Unavailable("")), "unavailable", id="unavailable"),
        pytest.param(caused(WorkloadWritesFailed("")), "workload", id="a Workload"),
        pytest.param(NotLeading(""), "not_leading", id="another one leads"),
        pytest.param(ApiError(""), "error", id="another error of the API"),
        pytest.param(KeyError("x"), "error", id="nobody expected it"),
    ],
)
def test_a_result_is_named_by_its_cause(error: Exception | None, result: str) -> None:
    assert result_of(error) == result
    assert result in RESULTS


def run(metrics: Metrics, *, applies: bool = False, error: BaseException | None = None) -> None:
    with suppress(type(error) if error else ()), metrics.measure_reconcile("key", "placement") as one:
        if error:
            raise error
        if applies:
            one.applied()


def latencies(metrics: Metrics) -> float | None:
    return value(metrics, "placement_ac_event_to_applied_seconds_count", controller="placement")


def reconciles(metrics: Metrics, result: str) -> float | None:
    return value(metrics, "placement_ac_reconciles_total", controller="placement", result=result)


def test_an_event_counts_once_when_something_was_written() -> None:
    metrics = Metrics()
    metrics.event_received(["key"])
    run(metrics, applies=True)
    assert latencies(metrics) == 1.0
    run(metrics, applies=True)  # no event came meanwhile
    metrics.event_received(["key"])
    run(metrics)  # nothing had to be written
    run(metrics, applies=True)
    assert (latencies(metrics), reconciles(metrics, "success")) == (1.0, 4.0)


def test_an_event_waits_through_failures() -> None:
    metrics = Metrics()
    metrics.event_received(["key"])
    run(metrics, error=caused(Conflict("")))
    assert (latencies(metrics), reconciles(metrics, "conflict")) == (0.0, 1.0)
    run(metrics, applies=True)
    assert latencies(metrics) == 1.0


def test_a_cancelled_reconcile_is_not_counted() -> None:
    metrics = Metrics()
    run(metrics, error=asyncio.CancelledError())
    assert sum(reconciles(metrics, result) or 0.0 for result in RESULTS) == 0.0


def stands(*selected: str, checks: tuple[str, ...] = ("c",), placement: str = "p") -> PlacementStats:
    return PlacementStats(placement, tuple((name, True, "Active") for name in checks), selected)


def held_stats(*held: HeldWorkloads, states: Mapping[str, str] | None = None) -> PlacementStats:
    return replace(stands("a", checks=("c", "d")), held=held, drain_states=states or {})


def held_gauge(metrics: Metrics, check: str, cluster: str, state: str) -> float | None:
    return value(metrics, "placement_ac_held_workloads", check=check, cluster=cluster, drain_state=state)


def test_a_held_workload_counts_once_for_its_check() -> None:
    metrics, early = leading(), NOW - timedelta(minutes=1)
    metrics.record_stats(
        "key",
        held_stats(
            HeldWorkloads("c", ("a",), 2, NOW),
            HeldWorkloads("c", ("a", "b"), 1, early),
            HeldWorkloads("d", ("gone",), 4, None),
            states={"a": "waiting", "b": "running"},
        ),
    )
    series = [("a", "waiting"), ("b", "running"), ("gone", "unlisted")]
    assert [held_gauge(metrics, "c", *one) for one in series] == [3.0, 0.0, None]
    assert [held_gauge(metrics, "d", *one) for one in series] == [0.0, 0.0, 4.0]
    since = "placement_ac_oldest_held_workload_start_timestamp_seconds"
    assert [value(metrics, since, check=check) for check in "cd"] == [early.timestamp(), None]


def test_refusals_of_all_placements_are_counted_by_filter() -> None:
    metrics = leading()
    metrics.record_stats("p", replace(stands("a"), unfit=2, refusals={"NodeLabels": 6}))
    metrics.record_stats("q", replace(stands("a", placement="q"), refusals={"NodeLabels": 1}))
    assert [value(metrics, "placement_ac_unfit_workloads", placement=one) for one in "pq"] == [2.0, 0.0]
    refusals = "placement_ac_dispatch_refusals"
    assert [value(metrics, refusals, filter=one) for one in ("NodeLabels", "ClusterNames")] == [7.0, 0.0]


def test_list_writes_and_their_requests_are_counted_by_placement() -> None:
    names = [f"placement_ac_list_{what}_total" for what in ("writes", "write_worker_requests")]

    def counts() -> list[float | None]:
        return [value(metrics, name, placement="p") for name in names]

    metrics = leading()
    metrics.list_written("key", 5)
    assert counts() == [None, None]
    metrics.record_stats("key", stands("a"))
    assert counts() == [0.0, 0.0]
    metrics.list_written("key", 12)
    metrics.list_written("key", 0)
    assert counts() == [2.0, 12.0]
    metrics.record_stats("key", stands(checks=()))
    assert counts() == [None, None]


def test_the_time_to_a_placement_is_counted_in_buckets_around_the_grace() -> None:
    metrics = Metrics()
    for seconds in (0.4, 4.0, 59.0):
        metrics.workload_placed(seconds)
    name = "placement_ac_ready_to_placed_seconds"
    within = [value(metrics, f"{name}_bucket", le=le) for le in ("0.5", "5.0", "20.0", "60.0")]
    assert (within, value(metrics, f"{name}_sum")) == ([1.0, 2.0, 2.0, 3.0], 63.4)


def changes(metrics: Metrics) -> list[float | None]:
    name = "placement_ac_decision_changes_total"
    return [value(metrics, name, placement="p", change=change) for change in ("set", "order")]


def leading() -> Metrics:
    return Metrics(leading=lambda: True)


def test_a_changed_set_and_a_changed_order_are_distinguished() -> None:
    metrics = leading()
    for selected, counts in (("ab", [0, 0]), ("ab", [0, 0]), ("ba", [0, 1]), ("bc", [1, 1]), ("", [2, 1])):
        metrics.record_stats("key", stands(*selected))
        assert changes(metrics) == counts


def test_a_check_that_has_gone_takes_its_series_along() -> None:
    metrics = leading()
    metrics.record_stats("key", stands("a", checks=("one", "two")))
    metrics.record_stats("bad", stands(checks=("three",), placement=""))
    clusters = {"name": "placement_ac_clusters", "state": "selected"}
    assert [value(metrics, check=c, **clusters) for c in ("one", "two", "three")] == [1.0, 1.0, 0.0]
    metrics.record_stats("key", stands("a", checks=("two",)))
    assert [value(metrics, check=c, **clusters) for c in ("one", "two", "three")] == [None, 1.0, 0.0]
    metrics.record_stats("key", stands(checks=()))
    metrics.record_stats("key", stands(checks=()))
    metrics.record_stats("bad", stands(checks=(), placement=""))
    assert [value(metrics, check=c, **clusters) for c in ("one", "two", "three")] == [None, None, None]
    assert changes(metrics) == [None, None]


def test_a_new_session_knows_no_checks_and_has_forgotten_no_count() -> None:
    metrics = leading()
    metrics.event_received(["key"])
    run(metrics, applies=True)
    metrics.event_received(["key"])
    metrics.record_stats("key", stands("a"))
    metrics.begin_session()
    run(metrics, applies=True)
    assert (latencies(metrics), reconciles(metrics, "success")) == (1.0, 2.0)
    assert (changes(metrics), value(metrics, "placement_ac_clusters", check="c", state="selected")) == (
        [None, None],
        None,
    )


def test_a_standby_exports_no_metric_of_a_check() -> None:
    leads = True
    metrics = Metrics(leading=lambda: leads)
    metrics.record_stats("key", stands("a"))
    active = {"name": "placement_ac_check_active", "check": "c", "placement": "p", "reason": "Active"}
    assert (value(metrics, **active), value(metrics, "placement_ac_leader")) == (1.0, 1.0)
    leads = False
    assert (value(metrics, **active), value(metrics, "placement_ac_leader")) == (None, 0.0)


def test_the_present_is_looked_up_when_somebody_asks() -> None:
    now = datetime(2026, 8, 1, tzinfo=UTC)
    metrics = Metrics(expiries=lambda: {"a": now}, queue_load=lambda: QueueLoad(1, 2.0, 3.0, 4))
    names = ("depth", "oldest_waiting_seconds", "longest_running_seconds", "retrying")
    assert [value(metrics, f"placement_ac_workqueue_{name}") for name in names] == [1.0, 2.0, 3.0, 4.0]
    expires = value(metrics, "placement_ac_credential_expiration_timestamp_seconds", cluster="a")
    assert expires == now.timestamp()


def test_the_page_of_a_large_hub_stays_small() -> None:
    """2,000 clusters with credentials, and 200 checks that have changed their lists. Unit: bytes."""
    metrics = Metrics(
        leading=lambda: True, expiries=lambda: dict.fromkeys((f"cluster{n:04}" for n in range(2000)), NOW)
    )
    for number in range(200):
        name = f"placement-{number:03}"
        metrics.record_stats(name, stands("a", "b", checks=(name,), placement=name))
        metrics.list_written(name, 20)
    page = generate_latest(metrics.registry)
    assert page.count(b"placement_ac_credential_expiration_timestamp_seconds{") == 2000
    assert 100_000 < len(page) < 500_000


def test_quota_has_few_series_however_many_flavors_and_resources_a_worker_has() -> None:
    resources = ("nvidia.com/gpu", "cpu", "memory", "ephemeral-storage", "example.com/licence")
    amounts = Amounts(nominal=8000, used=3000, waiting=None, free=5000)
    quota = {Supply(f"f{n}", resource): amounts for n in range(50) for resource in resources}
    clusters = (ClusterCapacity("a", quota=quota), ClusterCapacity("b", problem="it does not answer"))
    metrics = Metrics(leading=lambda: True, capacity=lambda: CapacityReport(clusters, resources[:1]))
    page = generate_latest(metrics.registry)
    assert page.count(b"placement_ac_cluster_quota{") == 3 * 3
    for kind, number in (("nominal", 400.0), ("used", 150.0), ("waiting", None), ("free", 250.0)):
        labels = {"cluster": "a", "resource": "nvidia.com/gpu", "kind": kind}
        assert value(metrics, "placement_ac_cluster_quota", **labels) == number


def test_several_controllers_in_one_process_count_for_themselves() -> None:
    one, other = Metrics(), Metrics()
    one.wrote("Secret", "apply")
    labels = {"kind": "Secret", "verb": "apply", "result": "success"}
    assert value(one, "placement_ac_writes_total", **labels) == 1.0
    assert value(other, "placement_ac_writes_total", **labels) is None


def test_expiries_follow_the_latest_report() -> None:
    def token_secret(name: str, hours: float, version: int) -> Obj:
        return secret(f"multikueue-{name}", kubeconfig(jwt(hours=hours)), version=version)

    def hours(cache: Cache) -> dict[str, float]:
        return {name: (end - NOW) / timedelta(hours=1) for name, end in cache.credentials.expiries().items()}

    seen = world(check(), decision("a", "b"), token_secret("a", 1, 1))
    assert hours(seen) == hours(seen) == {"a": 1.0}
    seen.put(SECRET, token_secret("b", 2, 1))
    assert hours(seen) == {"a": 1.0, "b": 2.0}
    seen.put(SECRET, token_secret("a", 3, 2))
    assert hours(seen) == {"a": 3.0, "b": 2.0}
    seen.remove(SECRET, token_secret("a", 3, 2))
    assert hours(seen) == {"b": 2.0}
    seen.remove(ADMISSION_CHECK, check())
    assert hours(seen) == {}
