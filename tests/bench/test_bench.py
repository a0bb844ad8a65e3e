"""The arithmetic of the bench: classes of requests, percentiles, ratios, growth, and the choice of hubs."""

from typing import Any

import pytest

from bench.__main__ import MEMORY, SIZES, Plan
from bench.driver import FROM_THE_HUB
from bench.processes import VARIANTS, named
from bench.report import (
    Figures,
    Row,
    bursts,
    cpu_per_1000,
    draw_rows,
    growth,
    latencies,
    lists_per_kind,
    markdown,
    per_change,
    per_minute,
    pooled,
    reference,
    rows,
    spread,
    watched_kinds,
    where_measured,
    writes,
)
from bench.scene import MINE, NS, PER_CHECK, Scene, is_mine, objects
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
        pytest.param(
            "GET",
            "/api/v1/namespaces/ns/secrets",
            {"limit": "200", "continue": "x"},
            "list secrets (next page)",
            id="goes on with a list",
        ),
        pytest.param("GET", "/api/v1/namespaces/ns/secrets/s", {}, "get secrets", id="one object"),
        pytest.param("GET", "/api/v1/namespaces/ns", {}, "get namespaces", id="a namespace itself"),
        pytest.param("POST", "/api/v1/namespaces/ns/events", {}, "post events", id="in a namespace"),
        pytest.param(
            "GET", f"{KUEUE}/workloads", {"watch": "true", "limit": "1"}, "watch workloads", id="a watch"
        ),
        pytest.param("GET", "/apis/kueue.x-k8s.io", {}, "get discovery", id="a group"),
        pytest.param("GET", KUEUE, {}, "get discovery", id="a version"),
        pytest.param("GET", f"/openapi/v3{KUEUE}", {}, "get discovery", id="a schema"),
    ],
)
def test_the_name_of_a_request(method: str, path: str, query: dict[str, str], name: str) -> None:
    assert named(method, path, query) == name


def test_all_pages_of_a_list_count_as_one() -> None:
    requests = {"list secrets": 1, "list secrets (next page)": 7, "list workloads": 2, "watch secrets": 3}
    assert lists_per_kind(requests) == {"secrets": 1, "workloads": 2}
    assert watched_kinds(requests) == {"secrets"}


def test_every_write_is_one_those_of_events_too() -> None:
    requests = {"patch a": 1, "patch a/status": 2, "post events": 4, "delete a": 8, "put a": 16, "get a": 32}
    assert writes(requests) == 31


def test_events_are_not_counted_as_requests_of_a_change() -> None:
    requests = {"patch multikueueconfigs": 10, "get secrets": 5, "patch events": 20}
    requests |= {"watch secrets": 1, "get discovery": 9, "list placements": 1}
    assert per_change(requests, 10) == {
        "requestsPerChange": 1.5,
        "requestsPerChangeByKind": {"get secrets": 0.5, "patch multikueueconfigs": 1.0},
        "eventsPerChange": 2.0,
        "eventsPerChangeByKind": {"patch events": 2.0},
    }


def test_requests_by_the_clock_are_counted_per_minute() -> None:
    windows = [({"watch secrets": 2, "patch a": 50}, 20.0), ({"get discovery": 8, "list secrets": 2}, 40.0)]
    assert per_minute(windows) == 12.0


def test_the_cost_of_rest_is_not_counted_for_changes() -> None:
    assert cpu_per_1000(spent=3.0, idle_share=0.05, seconds=20.0, changes=400) == 5.0
    assert cpu_per_1000(spent=0.1, idle_share=0.05, seconds=20.0, changes=400) == 0.0


def test_percentiles_are_of_the_times_themselves() -> None:
    assert spread([number / 1000 for number in range(101)]) == {
        "p50Ms": 50.0,
        "p90Ms": 90.0,
        "p99Ms": 99.0,
        "count": 101,
    }


def test_a_ratio_is_over_the_floor() -> None:
    found = latencies({"controller": [0.012] * 3, "floor": [0.008] * 3})
    assert (found["p50OverFloor"], found["p99OverFloor"]) == (1.5, 1.5)
    assert bursts({"controller": [1.0, 3.0, 9.0], "floor": [2.0]})["overFloor"] == 1.5, "of medians"


def size(checks: int, clusters: int, factor: float = 1.0) -> Figures:
    one: dict[str, Any] = {"p50Ms": 8 * factor, "medianSeconds": factor, "seconds": factor}
    both = {"controller": one, "floor": dict.fromkeys(one, 1.0)}
    return {
        "checks": checks,
        "clusters": clusters,
        **dict.fromkeys(("latency", "burst", "coldStart", "restart"), both),
        "requestsPerChange": 1.0,
        "cpuSecondsPer1000Changes": factor,
        "rssMb": 80.0,
    }


def played(seconds: float, writes: int | None) -> Figures:
    start = {"seconds": seconds, "rssMb": seconds}
    restart = start | {"writes": writes, "afterChanges": {"seconds": seconds + 1}}
    return {
        "latency": [seconds],
        "burst": [seconds] * 2,
        "coldStart": start,
        "restart": restart,
        "rssMb": seconds,
        "rssMbAfter": seconds + 1,
        "outage": None if writes is None else {"seconds": seconds},
    }


def test_rounds_are_pooled_and_the_worst_is_not_hidden() -> None:
    assert pooled([played(1.0, 0)]) == played(1.0, 0)
    assert pooled([played(9.0, 2), played(1.0, 0), played(2.0, 1)]) == {
        "latency": [9.0, 1.0, 2.0],
        "burst": [9.0, 9.0, 1.0, 1.0, 2.0, 2.0],
        "coldStart": {"seconds": 2.0, "rssMb": 2.0, "rounds": [9.0, 1.0, 2.0]},
        "restart": {
            "seconds": 2.0,
            "rssMb": 2.0,
            "writes": 2,
            "afterChanges": {"seconds": 3.0, "rounds": [10.0, 2.0, 3.0]},
            "rounds": [9.0, 1.0, 2.0],
        },
        "rssMb": 9.0,
        "rssMbAfter": 10.0,
        "outage": {"seconds": 9.0},
    }
    without_requests = pooled([played(1.0, None)] * 2)
    assert (without_requests["restart"]["writes"], without_requests["outage"]) == (None, None)


def test_cold_starts_that_nothing_followed_count_with_the_others() -> None:
    alone = played(1.0, 0)
    more = [{"seconds": seconds, "rssMb": seconds} for seconds in (9.0, 2.0)]
    assert pooled([alone], more) == alone | {
        "coldStart": {"seconds": 2.0, "rssMb": 2.0, "rounds": [1.0, 9.0, 2.0]}
    }


def test_growth_compares_scenes_that_differ_in_one_number() -> None:
    sizes = [size(1, 40, 9), size(1000, 40, 30), size(10, 40, 2), size(200, 5000, 6), size(200, 100, 4)]
    found = growth(sizes)
    assert found.keys() == {"checks", "clusters"}
    assert found["checks"]["from"] == {"checks": 10, "clusters": 40}, "a single check is no beginning"
    assert found["checks"]["to"] == {"checks": 1000, "clusters": 40}
    assert (found["checks"]["burst"], found["checks"]["burstPerCheck"]) == (15.0, 0.15)
    assert found["clusters"]["to"] == {"checks": 200, "clusters": 5000}
    assert (found["clusters"]["latencyP50"], found["clusters"]["latencyP50OfFloor"]) == (1.5, 1.0)
    assert found["clusters"]["requestsPerChange"] == 1.0


def test_a_missing_figure_has_no_growth() -> None:
    small, big = size(10, 40) | {"requestsPerChange": None}, size(50, 40) | {"requestsPerChange": None}
    assert growth([small, big])["checks"]["requestsPerChange"] is None
    assert growth([small]) == {}


def test_the_figures_on_top_are_those_of_200_checks() -> None:
    sizes = [size(200, 5000), size(200, 40), size(1000, 40)]
    assert reference(sizes) is sizes[1]
    assert reference([size(1, 40), size(50, 40)])["checks"] == 50, "or of the last there are"


@pytest.mark.parametrize(
    ("value", "most", "met"), [(1.4, 1.5, "yes"), (1.6, 1.5, "NO"), (None, 1.5, ""), (9.0, None, "")]
)
def test_a_row_shows_whether_the_budget_is_met(value: float | None, most: float | None, met: str) -> None:
    assert Row("p50", "", "", value, most).cells[-1] == met


def whole_size() -> Figures:
    """Return the figures of one size, of a hub that does not count requests."""
    one = size(200, 40) | {"latency": latencies({"controller": [0.01] * 2, "floor": [0.01] * 2})}
    start = {"controller": {"seconds": 2.0, "requests": None}, "floor": {"seconds": 1.0}, "overFloor": 2.0}
    one |= {"burst": one["burst"] | {"overFloor": 1.0}, "coldStart": start}
    one |= {"restart": start | {"afterChanges": start}, "outage": {"controller": None}, "rssMbAfter": 80.0}
    cost = dict.fromkeys(("requestsPerChange", "eventsPerChange", *FROM_THE_HUB))
    cost |= {"idleCpuPercent": 0.1, "cpuSecondsPer1000Changes": 5.0}
    return one | cost | {"costOfFloor": cost | {"rssMb": 60.0}}


def test_a_hub_without_a_journal_has_no_rows_of_requests() -> None:
    shown = [row.what for row in rows(whole_size(), judged=True)]
    assert "CPU at rest" in shown
    assert not {"requests per change", "  its writes", "right again after an outage"} & set(shown)


def test_the_budgets_of_200_checks() -> None:
    one = whole_size() | {"outage": {side: {"seconds": 0.5} for side in ("controller", "floor")}}
    budgets = {row.what: row.most for row in rows(one, judged=True) if row.most is not None}
    assert budgets == {
        "one change, p50": 1.5,
        "one change, p99": 2.0,
        "burst": 1.8,
        "cold start": 1.8,
        "right again after an outage": 1.0,
        "RSS at rest": 140.0,
        "RSS after it all": 140.0,
        "CPU at rest": 0.2,
    }
    assert [row.most for row in rows(one, judged=False) if row.most is not None] == []


def drawn_size(variant: str) -> Figures:
    one = whole_size()
    cost = {key: value for key, value in one.items() if key not in ("coldStart", "restart", "outage")}
    after = {"controller": {"seconds": 2.5}, "floor": {"seconds": 1.0}, "overFloor": 2.5}
    return cost | {"variant": variant, "back": one["latency"], "newOverBack": 1.1, "afterChanges": after}


@pytest.mark.parametrize(
    ("variant", "budgets"),
    [
        pytest.param("default", {}, id="default names"),
        pytest.param(
            "shared",
            {
                "one change, p50": 1.5,
                "burst": 2.0,
                "restart, all changed: right": 2.0,
                "CPU at rest": 0.2,
                "RSS at rest": 140.0,
                "RSS after it all": 140.0,
            },
            id="shared names",
        ),
        pytest.param("prepared", {"one change over one back, p50": 1.5}, id="prepared"),
    ],
)
def test_the_budgets_of_changes_that_draw_anew(variant: str, budgets: dict[str, float]) -> None:
    found = {row.what: row.most for row in draw_rows(drawn_size(variant)) if row.most is not None}
    assert found == budgets


def test_a_table_of_draws_alone() -> None:
    whole = {"sizes": [], "memory": [], "growth": {}, "machine": MACHINE, "draws": [drawn_size("shared")]}
    lines = list(markdown(whole))
    where = "200 checks, 40 clusters, drawn anew, shared names"
    assert f"| {where} | one change, p50 | 10.0 ms | 10.0 ms | 1.00 | ≤ 1.5 | yes |" in lines
    assert "|  | restart, all changed: right | 2.50 s | 1.00 s | 2.50 | ≤ 2 | NO |" in lines


def test_the_draws_alone() -> None:
    alone = Plan.chosen(quick=False, sizes=[], changes=20, draws=[VARIANTS["shared"]])
    ((variant, scene, length),) = alone.draws
    assert (alone.sizes, alone.memory) == ([], ())
    assert (scene, length.changes) == (variant.scene(200, 40), 20)
    assert scene.shared_names


MACHINE = {"model": "a CPU", "cpus": 2, "python": "3.11.7"}


@pytest.mark.parametrize(
    ("own", "shown"),
    [
        pytest.param({"hubsHaveOwnProcessor": True}, ", one of them for the hubs alone", id="apart"),
        pytest.param({"hubsHaveOwnProcessor": False}, ", all of them for everybody", id="together"),
        pytest.param({"hubsHaveOwnProcessor": None}, "", id="hubs of others"),
    ],
)
def test_the_machine_in_a_line(own: dict[str, bool | None], shown: str) -> None:
    assert where_measured(MACHINE | own) == f"a CPU, 2 CPUs{shown}; Python 3.11.7"


def test_the_table_as_markdown() -> None:
    memory = [{"checks": 1000, "clusters": 5000, "rssMb": 220.0, "rssMbCold": 240.5}]
    whole = {"sizes": [whole_size()], "memory": memory, "growth": {}, "machine": MACHINE, "draws": []}
    caption, _, *lines = markdown(whole)
    assert caption == "a CPU, 2 CPUs; Python 3.11.7"
    assert lines[2] == "| 200 | 40 | 10.0 ms | 1.00 | 1.00 s | 1.00 | 2.00 s | 2.00 |"
    lines = lines[lines.index("") + 1 :]
    first = "200 checks, 40 clusters | one change, p50"
    assert lines[2] == f"| {first} | 10.0 ms | 10.0 ms | 1.00 | ≤ 1.5 | yes |"
    assert "|  | cold start | 2.00 s | 1.00 s | 2.00 | ≤ 1.8 | NO |" in lines
    assert lines[-1] == "|  | RSS at rest, having made all | 240.5 MB |  |  | ≤ 230 | NO |"
    assert {line.count("|") for line in lines} == {8}


def test_the_table_of_a_run_has_the_rows_of_every_size() -> None:
    sizes = [whole_size(), whole_size() | {"checks": 10}]
    whole = {"sizes": sizes, "memory": [], "growth": {}, "machine": MACHINE, "draws": []}
    row = "one change, p50 | 10.0 ms | 10.0 ms | 1.00 |"
    lines = list(markdown(whole, every_size=True))
    assert [line for line in lines if row in line] == [
        f"| 200 checks, 40 clusters | {row} ≤ 1.5 | yes |",
        f"| 10 checks, 40 clusters | {row}  |  |",
    ], "the budgets are for 200 checks"


def test_a_change_swaps_one_cluster() -> None:
    scene = Scene(checks=3, clusters=40)
    before, after = (set(scene.clusters_of(2, turn)) for turn in (0, 1))
    assert len(before) == len(after) == PER_CHECK
    assert len(before & after) == PER_CHECK - 1
    assert set(scene.clusters_of(2, turn=2)) == before, "back and forth"


def test_a_scene_that_draws_replaces_most_clusters_of_a_check() -> None:
    scene = Scene(checks=200, clusters=40, draws=True)
    turns = [[set(scene.clusters_of(check, turn)) for check in range(200)] for turn in (0, 1)]
    assert {len(clusters) for turn in turns for clusters in turn} == {PER_CHECK}
    replaced = [len(after - before) for before, after in zip(*turns, strict=True)]
    assert 7.2 < sum(replaced) / len(replaced) < 7.8
    assert turns[0] == [set(scene.clusters_of(check, turn=0)) for check in range(200)], "the same every time"


@pytest.mark.parametrize(("shared", "listed"), [(False, "p2-cluster-0014"), (True, "cluster-0014")])
def test_the_list_has_the_names_of_the_scene(shared: bool, listed: str) -> None:
    assert Scene(3, 40, shared_names=shared).config(2, turn=0)[0] == listed


def test_all_objects_of_a_scene_have_its_label() -> None:
    created = [one for few in objects(Scene(2, 3)) for one in few]
    assert len(created) == 1 + 2 * 3 + 3 * 2
    assert all(one["metadata"]["labels"].items() >= MINE.items() for one in created)
    assert {one["metadata"].get("namespace", NS) for one in created} == {NS}


@pytest.mark.parametrize(
    ("kind", "name", "labels", "mine"),
    [
        pytest.param(ADMISSION_CHECK, "c1", MINE, True, id="ours by its label"),
        pytest.param(ADMISSION_CHECK, "c1", {}, False, id="of others, by our name"),
        pytest.param(SECRET, "multikueue-a", None, False, id="of others, no labels"),
        pytest.param(MULTIKUEUE_CONFIG, "p17", {}, True, id="the config of one of our checks"),
        pytest.param(MULTIKUEUE_CONFIG, "prod", {}, False, id="another config"),
        pytest.param(MULTIKUEUE_CLUSTER, "p17-cluster-0003", {}, True, id="a cluster of one of our checks"),
        pytest.param(MULTIKUEUE_CLUSTER, "cluster-0003", BY_US, True, id="a cluster that all checks share"),
        pytest.param(MULTIKUEUE_CLUSTER, "cluster-0003", {}, False, id="of others, by a shared name"),
        pytest.param(MULTIKUEUE_CLUSTER, "p17-cluster-a", {}, False, id="another cluster"),
    ],
)
def test_objects_of_the_bench_are_recognized(
    kind: Kind, name: str, labels: dict[str, str] | None, mine: bool
) -> None:
    assert is_mine(kind, {"metadata": {"name": name, "labels": labels}}) is mine


def test_the_sizes_and_lengths_of_a_measurement() -> None:
    whole = Plan.chosen(quick=False, sizes=[], changes=None)
    assert [scene for scene, _ in whole.sizes] == list(SIZES)
    assert whole.memory == MEMORY
    assert [variant for variant, _, _ in whole.draws] == list(VARIANTS.values())
    assert {(scene.checks, scene.clusters, scene.draws) for _, scene, _ in whole.draws} == {(200, 40, True)}
    assert [scene.checks for scene, length in whole.sizes if length.outage] == [200]
    assert [length.rounds for _, length in whole.sizes].count(1) == len(SIZES) - 1
    quick = Plan.chosen(quick=True, sizes=[], changes=None)
    assert [(scene.checks, length.changes) for scene, length in quick.sizes] == [(50, 100)]
    assert quick.memory == ()
    alone = Plan.chosen(quick=False, sizes=[Scene(7, 90)], changes=12, rounds=3)
    assert [(scene, length.changes, length.rounds) for scene, length in alone.sizes] == [
        (Scene(7, 90), 12, 3)
    ]
