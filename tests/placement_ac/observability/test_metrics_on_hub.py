"""Metrics of a controller after a story in which much happens, in alerts and dashboard."""

import base64
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from placement_ac.observability.metric_definitions import (
    CLUSTER_QUOTA,
    DEFINITIONS,
    JOB_ENDS,
    PREFIX,
    QUARANTINED,
    RELIABILITY,
)
from tests.support.builders import jwt, kubeconfig
from tests.support.driver import Controllers, Driver, free_port
from tests.support.jobs import Play, soon
from tests.support.monitoring import expressions, matches, selectors

OF_FAILURES = (QUARANTINED, RELIABILITY, JOB_ENDS)
ELSEWHERE = (*OF_FAILURES, CLUSTER_QUOTA)
"""They need `--avoid-after-failure` or quota: test_failing_clusters.py, test_capacity_report_on_hub.py."""
TARGET = {"job": "placement-ac", "instance": "10.0.0.1:8080", "pod": "placement-ac-0"}
"""Labels that Prometheus adds."""


class Series(NamedTuple):
    name: str
    labels: dict[str, str]
    value: float


class Page:
    """The content of `/metrics`."""

    def __init__(self, text: str) -> None:
        self.families = list(text_string_to_metric_families(text))
        self.series = [Series(s.name, s.labels, s.value) for f in self.families for s in f.samples]

    def sum(self, name: str, **labels: str) -> float:
        """Add up the series that have these labels, whatever else they have."""
        found = [one for one in self.series if one.name == PREFIX + name]
        return sum(one.value for one in found if labels.items() <= one.labels.items())

    def labels(self) -> dict[str, set[str]]:
        """Metric → the labels that its series have."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for family in self.families:
            name = f"{family.name}_total" if family.type == "counter" else family.name
            found[name].update(*(sample.labels for sample in family.samples))
        return dict(found)


Reads = Callable[[], Page]


def reads(port: int) -> Reads:
    return lambda: Page(requests.get(f"http://127.0.0.1:{port}/metrics", timeout=5).text)


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def read(port: int) -> Reads:
    return reads(port)


def test_all_that_happens_is_exported_and_alerts_and_dashboard_find_it(
    play: Play, admin: Driver, read: Reads, port: int
) -> None:
    stage, faults = play("a", "b", "full", "busy", held=["full", "busy"]), admin.hub.faults
    faults.add("PATCH", "/multikueueclusters/p-a$", status=429)
    faults.add("PATCH", "/multikueueclusters/p-b$", status=409)
    faults.add("PATCH", "/multikueueconfigs/p$", hang_up=True)
    stage.select(("a", 9), ("b", 5))
    stage.controllers.start(metrics_bind_address=f"127.0.0.1:{port}", report_scores=True)
    stage.until_listed("a", "b")
    stage.submit("one")
    soon(lambda: stage.placed("one") != "")
    here = stage.placed("one").removeprefix("p-")
    other = {"a": "b", "b": "a"}[here]
    stage.select(("a", 5), ("b", 9))
    soon(lambda: read().sum("decision_changes_total", placement="p", change="order"), 1.0)
    stage.select(other)
    soon(lambda: read().sum("clusters", check="p", state="draining"), 1.0)

    # A score of a cluster, as the controller reports it.
    admin.namespace("a")
    scores = "/apis/cluster.open-cluster-management.io/v1alpha1/namespaces/a/addonplacementscores"
    kind = {"apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "AddOnPlacementScore"}
    labels = {"app.kubernetes.io/managed-by": "placement-ac"}
    admin.ask("POST", scores, kind | {"metadata": {"name": "placement-ac", "labels": labels}})
    status = {"status": {"scores": [{"name": "gpuFree", "value": 42}]}}
    admin.ask("PATCH", f"{scores}/placement-ac/status", status, "merge")
    soon(lambda: read().sum("cluster_score", cluster="a", score="gpuFree"), 42.0)

    # Another check: a job waits on the cluster that leaves, and the gate holds another job.
    stage.add_placement("r")
    stage.select("full", placement="r")
    stage.submit("waits", "gated-r")
    stage.until_waits("waits", "full")
    stage.select("busy", placement="r")
    soon(lambda: stage.remark("r"), "draining: full (Workloads wait there)")
    stage.submit("held", "gated-r")
    soon(lambda: read().sum("held_workloads", check="r", cluster="full", drain_state="waiting"), 1.0)

    # Another check: one cluster has no credentials, and a write is refused once.
    ends = datetime.now(UTC).replace(microsecond=0)
    text = kubeconfig(jwt(issued=ends, hours=1), server="https://127.0.0.1:1")
    admin.secret("multikueue-d", value=base64.b64encode(text).decode())
    faults.add("PATCH", "/multikueueconfigs/q$", status=403)
    admin.check("q")
    admin.placement("q")
    admin.decide("q", "c", "d")
    soon(lambda: admin.listed("q"), ["q-d"])
    soon(lambda: read().sum("check_active", check="q", reason="SomeClustersUnusable"), 1.0)
    admin.ask("PATCH", admin.kueue("multikueueconfigs", "q"), {"spec": {"clusters": ["x"]}}, "merge")
    soon(lambda: admin.listed("q"), ["q-d"])
    page = read()

    wanted = {
        m.name: {*m.labels} | ({"le"} if m.type == "histogram" else set()) if m not in ELSEWHERE else set()
        for m in DEFINITIONS
    }
    assert {name: labels for name, labels in page.labels().items() if name.startswith(PREFIX)} == wanted
    unseen = [
        (expression.where, str(selector.name))
        for expression in expressions()
        for selector in selectors(expression.text)
        if str(selector.name) not in {metric.name for metric in ELSEWHERE}
        and not any(
            one.name == selector.name and matches(selector, one.labels | TARGET) for one in page.series
        )
    ]
    assert unseen == []

    clusters = {
        check: [
            page.sum("clusters", check=check, state=s) for s in ("selected", "listed", "draining", "unusable")
        ]
        for check in ("p", "q")
    }
    assert clusters == {"p": [1.0, 2.0, 1.0, 0.0], "q": [2.0, 1.0, 0.0, 1.0]}
    assert page.sum("decision_changes_total", placement="p", change="set") == 1.0
    assert page.sum("credential_expiration_timestamp_seconds", cluster="d") == ends.timestamp() + 3600
    since = page.sum("oldest_drain_start_timestamp_seconds", check="p")
    assert 0 <= datetime.now(UTC).timestamp() - since < 60
    assert page.sum("held_workloads", check="p", cluster=here, drain_state="running") == 0.0
    held_since = page.sum("oldest_held_workload_start_timestamp_seconds")
    assert 0 <= datetime.now(UTC).timestamp() - held_since < 60
    assert page.sum("ready_to_placed_seconds_count") == 1.0
    assert 0 < page.sum("ready_to_placed_seconds_sum") < 60
    writes, requests = "list_writes_total", "list_write_worker_requests_total"
    # It was new, which does not count; then two clusters were listed, with one Workload.
    assert [page.sum(name, placement="r") for name in (writes, requests)] == [1.0, 2.0]
    failed = {code: page.sum("api_errors_total", code=code, verb="patch") for code in ("429", "403", "none")}
    assert failed == {"429": 1.0, "403": 1.0, "none": 1.0}
    assert page.sum("writes_total", kind="MultiKueueConfig", result="refused") == 1.0
    assert page.sum("writes_total", kind="MultiKueueConfig", verb="apply", result="unavailable") == 1.0
    assert page.sum("writes_total", kind="MultiKueueCluster", verb="apply", result="conflict") == 1.0
    assert page.sum("undone_writes_total", kind="MultiKueueConfig") == 1.0
    assert page.sum("reconciles_total", controller="placement", result="refused") == 1.0
    assert page.sum("event_to_applied_seconds_count", controller="placement") >= 3
    assert (page.sum("leader"), page.sum("build_info")) == (1.0, 1.0)
    assert sum(one.value for one in page.series if one.name == "process_resident_memory_bytes") > 1e6


def test_only_the_leader_exports_metrics_of_checks(
    admin: Driver, controllers: Controllers, read: Reads, port: int
) -> None:
    admin.check("p")
    admin.select("p", "a")
    soon_again = {"leader_elect": True, "leader_elect_lease_duration": 3}
    first = controllers.start(metrics_bind_address=f"127.0.0.1:{port}", **soon_again)
    soon(lambda: admin.listed("p"), ["p-a"])
    other = free_port()
    controllers.start(
        metrics_bind_address=f"127.0.0.1:{other}",
        health_probe_bind_address=f"127.0.0.1:{other}",
        **soon_again,
    )
    soon(lambda: is_ready(other))
    soon(lambda: leader_and_checks(read()), (1.0, {"p"}))
    assert leader_and_checks(reads(other)()) == (0.0, set())
    first.stop()
    soon(lambda: leader_and_checks(reads(other)()), (1.0, {"p"}))


def is_ready(port: int) -> bool:
    try:
        return requests.get(f"http://127.0.0.1:{port}/readyz", timeout=5).ok
    except requests.ConnectionError:
        return False


def leader_and_checks(page: Page) -> tuple[float, set[str]]:
    """Whether it leads, and the checks of which it tells."""
    return page.sum("leader"), {one.labels["check"] for one in page.series if "check" in one.labels}
