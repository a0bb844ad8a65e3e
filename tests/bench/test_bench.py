"""The arithmetic of the bench: requests, costs, percentiles, ratios, growth; and whose objects are."""

import pytest

from bench.growth import multiples, sizes
from bench.processes import named
from bench.report import HEAD, Figures, costs, latencies, markdown_table, per_change, rows, seconds_of, spread
from bench.scene import CHANGES, MINE, NS, PER_CHECK, Scene, is_mine, objects, scene_of
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    LABEL_MANAGED_BY,
    MANAGED_BY,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    SECRET,
    Kind,
)

BY_US = {LABEL_MANAGED_BY: MANAGED_BY}
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"


@pytest.mark.parametrize(
    ("method", "path", "query", "name"),
    [
        pytest.param("PATCH", f"{KUEUE}/multikueueconfigs/p", {}, "patch multikueueconfigs", id="a write"),
        pytest.param(
            "PATCH",
            f"{KUEUE}/admissionchecks/c/status",
            {},
            "patch admissionchecks/status",
            id="a subresource",
        ),
        pytest.param(
            "GET", f"{KUEUE}/admissionchecks", {"limit": "200"}, "list admissionchecks", id="a list"
        ),
        pytest.param("GET", "/api/v1/namespaces/ns/secrets/s", {}, "get secrets", id="one object"),
        pytest.param("GET", "/api/v1/namespaces/ns", {}, "get namespaces", id="a namespace itself"),
        pytest.param("POST", "/api/v1/namespaces/ns/events", {}, "post events", id="in a namespace"),
        pytest.param(
            "GET", f"{KUEUE}/workloads", {"watch": "true", "limit": "1"}, "watch workloads", id="a watch"
        ),
        pytest.param("GET", "/apis/kueue.x-k8s.io", {}, "get discovery", id="a group"),
        pytest.param("GET", f"/openapi/v3{KUEUE}", {}, "get discovery", id="a schema"),
    ],
)
def test_the_name_of_a_request(method: str, path: str, query: dict[str, str], name: str) -> None:
    assert named(method, path, query) == name


def test_neither_events_nor_requests_by_the_clock_are_requests_of_a_change() -> None:
    requests = {"patch multikueueconfigs": 10, "get secrets": 5, "patch events": 20}
    requests |= {"watch secrets": 1, "get discovery": 9, "list placements": 1}
    assert per_change(requests, 10) == {"requests": 1.5, "events": 2.0}


@pytest.mark.parametrize(
    ("cpu", "requests", "cost"),
    [
        pytest.param(3.0, {"patch a": 400}, {"cpuMs": 5.0, "requests": 1.0, "events": 0.0}, id="at work"),
        pytest.param(0.1, {}, {"cpuMs": 0.0, "requests": 0.0, "events": 0.0}, id="no less than nothing"),
        pytest.param(3.0, None, {"cpuMs": 5.0}, id="a hub that counts no requests"),
    ],
)
def test_the_cost_of_rest_is_not_counted_for_changes(
    cpu: float, requests: dict[str, int] | None, cost: Figures
) -> None:
    window, rested = {"cpu": cpu, "seconds": 20.0, "requests": requests}, {"cpu": 0.5, "seconds": 10.0}
    assert costs(window, rested, 400) == {"idleCpuPercent": 5.0} | cost


def test_percentiles_are_of_the_times_themselves() -> None:
    times = [number / 1000 for number in range(101)]
    assert spread(times) == {"p50Ms": 50.0, "p90Ms": 90.0, "p99Ms": 99.0, "count": 101}


def size(checks: int, factor: float, **rest: float) -> Figures:
    """Return the figures of one size: those of the controller are the factor times those of the floor."""
    times = {"controller": [0.008 * factor] * 2, "floor": [0.008] * 2}
    cost = {"idleCpuPercent": 0.1, "cpuMs": 5.0 * factor, "rssMb": 80.0, "rssMbAfter": 81.0}
    return {
        "checks": checks,
        "latency": latencies(times),
        "burst": seconds_of({"controller": [factor, 2 * factor, 9.0], "floor": [2.0]}),
        "coldStart": seconds_of({"controller": [factor], "floor": [1.0]}),
        "controller": cost | rest,
        "floor": cost | {"cpuMs": 5.0} | rest,
    }


def test_the_table_of_one_size() -> None:
    lines = list(markdown_table(HEAD, rows(size(200, 2.0, requests=1.0, events=2.08))))
    assert lines[2:] == [
        "| one change, p50 | 16.0 ms | 8.0 ms | 2.00 |",
        "| one change, p90 | 16.0 ms | 8.0 ms | 2.00 |",
        "| one change, p99 | 16.0 ms | 8.0 ms | 2.00 |",
        "| burst of 200 | 4.00 s | 2.00 s | 2.00 |",
        "| cold start | 2.00 s | 1.00 s | 2.00 |",
        "| requests of a change | 1 | 1 |  |",
        "| events of a change | 2.08 | 2.08 |  |",
        "| CPU of a change | 10 ms | 5 ms |  |",
        "| CPU at rest | 0.1 % | 0.1 % |  |",
        "| RSS at rest | 80 MB | 80 MB |  |",
        "| RSS after it all | 81 MB | 81 MB |  |",
    ]
    assert not [line for line in markdown_table(HEAD, rows(size(200, 2.0))) if "requests" in line]


def test_growth_is_of_the_largest_over_the_smallest_with_the_floor_beside_it() -> None:
    grown = {"checks": (Scene(10), Scene(50), Scene(1000))}
    found = {Scene(10): size(10, 2.0), Scene(50): size(50, 9.0), Scene(1000): size(1000, 3.0)}
    assert list(multiples(found, grown)) == [
        ("10 to 1000 checks", "1.5 (1)", "1.5 (1)", "1.5 (1)", "1.5 (1)", "1 (1)")
    ]
    assert next(iter(sizes(found))) == ("10 checks, 40 clusters", "16", "10", "4", "2", "80")


@pytest.mark.parametrize("kind", CHANGES)
def test_turns_of_a_check(kind: str) -> None:
    scene = scene_of(kind, 4, 40)
    first, second, third = (set(scene.clusters_of(2, turn)) for turn in range(3))
    assert {len(first), len(second), len(third)} == {PER_CHECK}
    if kind == "swap":
        assert (len(first & second), first) == (PER_CHECK - 1, third)
    else:
        assert first != second != third != first
    prefix = "" if kind == "shared" else "p2-"
    assert set(scene.config(2, 0)) == {f"{prefix}{cluster}" for cluster in first}


def test_a_scene_is_labelled_so_that_it_can_be_deleted() -> None:
    (first,), *rest = objects(Scene(2, 12))
    assert first["metadata"]["name"] == NS
    assert all(MINE.items() <= item["metadata"]["labels"].items() for few in rest for item in few)


@pytest.mark.parametrize(
    ("kind", "name", "labels", "mine"),
    [
        pytest.param(SECRET, "multikueue-a", MINE, True, id="with the label"),
        pytest.param(SECRET, "multikueue-a", None, False, id="without labels"),
        pytest.param(ADMISSION_CHECK, "c0", BY_US, False, id="of the controller"),
        pytest.param(MULTIKUEUE_CONFIG, "p17", {}, True, id="the config of one of our checks"),
        pytest.param(MULTIKUEUE_CONFIG, "prod", {}, False, id="another config"),
        pytest.param(MULTIKUEUE_CLUSTER, "p17-cluster-0003", {}, True, id="a cluster of one of our checks"),
        pytest.param(MULTIKUEUE_CLUSTER, "cluster-0003", BY_US, True, id="a cluster that all checks share"),
        pytest.param(MULTIKUEUE_CLUSTER, "cluster-0003", MINE, True, id="such a cluster, of the floor"),
        pytest.param(MULTIKUEUE_CLUSTER, "cluster-0003", {}, False, id="of others, by a shared name"),
        pytest.param(MULTIKUEUE_CLUSTER, "p17-cluster-a", {}, False, id="another cluster"),
    ],
)
def test_objects_of_the_bench_are_recognized(
    kind: Kind, name: str, labels: dict[str, str] | None, mine: bool
) -> None:
    assert is_mine(kind, {"metadata": {"name": name, "labels": labels}}) is mine
