"""`capacity`: the controller's answers or the workers' own, in every view and form, by few rights."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kubectl_placement.capacity import views
from kubectl_placement.cli import ui_feed
from kubectl_placement.cli.ui_thread import UiThread
from placement_ac.config.settings import Settings
from tests.kubectl_placement.test_timeline import prometheus
from tests.support.commands import READ_GROUPS, Run, listing, on_hub, reader
from tests.support.driver import CORE, NS, Controllers, Driver
from tests.support.hub_client import Client as HubClient
from tests.support.jobs import Stage, dispatched, has_quota, soon
from tests.support.rights import RBAC, allow, bound_to, rule
from tests.support.stage import shorten
from tests.support.ui import events

GPU = "nvidia.com/gpu"
QUOTAS = {"a": {"f": {GPU: "4", "memory": "1Ti"}}, "b": {"f": {GPU: "8", "memory": "2Ti"}}}
TABLE = """\
CLUSTER  FLAVOR  RESOURCE        NOMINAL  USED  WAITING  BORROWABLE  FREE  LARGEST
a        f       nvidia.com/gpu        4     3        3           0     1        0
a        f       memory              1Ti     0        0           0   1Ti      1Ti
b        f       nvidia.com/gpu        8     0        0           0     8        8
b        f       memory              2Ti     0        0           0   2Ti      2Ti
TOTAL            nvidia.com/gpu       12     3        3           0     9        8
TOTAL            memory              3Ti     0        0           0   3Ti      2Ti
"""


@pytest.fixture
def stage(admin: Driver, controllers: Controllers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A job runs on a, and another one waits there; the controller has published that."""
    shorten(monkeypatch, WRITE_SECONDS=0.3, LOOK_SECONDS=0.1, GATHER_SECONDS=0.0)
    with dispatched(admin, controllers, [*QUOTAS], quotas=QUOTAS) as opened:
        opened.submit("one", requests={GPU: "3"})
        opened.until_runs("one", "a")
        opened.submit(
            "two", requests={GPU: "3"}, annotations={"kueue.x-k8s.io/multikueue-cluster-names": "a"}
        )
        run = on_hub(controllers.kubeconfig)
        soon(lambda: [(row["used"], row["waiting"]) for row in shown(run)["totals"]], [(3, 3), (0, 0)])
        yield opened


@pytest.fixture
def run(stage: Stage) -> Run:
    return on_hub(stage.controllers.kubeconfig)


def shown(run: Run, *words: str) -> dict[str, Any]:
    done = run("capacity", "-o", "json", *words)
    return dict(json.loads(done.stdout)) if done.exit_code == 0 else {"totals": []}


def without_age(table: str) -> str:
    """The table without its last column, the age of the answers."""
    lines = table.splitlines()
    at = lines[0].index("  AGE") if "  AGE" in lines[0] else None
    return "".join(f"{line[:at].rstrip()}\n" for line in lines)


def test_the_answers_of_the_controller_and_of_the_workers_are_the_same(
    stage: Stage, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a table, as CSV, and in each view; of each team; and those that are old, or unknown, are named."""
    for words in ((), ("--workers",)):
        done = run("capacity", *words)
        assert (done.exit_code, done.stderr) == (0, "")
        assert without_age(done.stdout) == TABLE
    assert run("top", "--workers").stdout == run("capacity", "--workers").stdout
    answers = [shown(run, *words) for words in ((), ("--workers",))]
    assert [answer["source"] for answer in answers] == ["controller", "workers"]
    assert answers[0]["rows"] == [
        row | {"readAt": answers[0]["rows"][n].get("readAt")} if "readAt" in row else row
        for n, row in enumerate(answers[1]["rows"])
    ]
    gpus = {
        by: [
            (row[by], row["used"], row["waiting"])
            for row in shown(run, "--by", by, "--gpus")["rows"]
            if row.get("on") != "hub"
        ]
        for by in ("cluster", "placement", "queue", "team")
    }
    assert gpus == {
        "cluster": [("a", 3, 3), ("b", 0, 0)],
        "placement": [("p", 3, 3)],
        "queue": [("cluster-queue", 3, 3)],
        "team": [("default", 3, 3)],
    }
    done = run("capacity", "-o", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [(row["cluster"], row["resource"], row["nominal"]) for row in rows] == [
        ("a", GPU, "4"),
        ("a", "memory", str(2**40)),
        ("b", GPU, "8"),
        ("b", "memory", str(2**41)),
    ]
    there = stage.admin
    there.namespace("other")
    has_quota(there, "theirs", namespace="other", requests={"cpu": "2"})
    assert teams(run) == teams(run, "-n", "default") == {"default"}
    assert teams(run, "-n", "other") == {"other"}
    assert teams(run, "-A") == {"default", "other"}
    there.namespace("empty")
    done = run("capacity", "--by", "team", "-n", "empty")
    assert (done.exit_code, done.stderr) == (0, "No Workloads with quota in namespace empty\n")

    monkeypatch.setattr(views, "OLD", timedelta(seconds=-1))
    done = run("capacity")
    assert done.stderr.startswith("ask the workers with --workers: the answers of a, b are old (")
    stage.fleet.hubs["b"].stop()
    done = run("capacity", "--workers", "--by", "placement", "--gpus")
    assert done.stderr.startswith("not known: b: ")
    assert rows_in(done.stdout)[1:] == [
        ["p", "f", GPU, "4", "3", "3", "0", "1", "0"],
        ["TOTAL", "(1", "of", "2", "clusters)", GPU, "4", "3", "3", "0", "1", "0"],
    ]
    done = run("capacity", "--workers", "--gpus")
    assert ["b", *["-"] * 6] in rows_in(done.stdout)


def rows_in(table: str) -> list[list[str]]:
    return [line.split() for line in table.splitlines()]


def test_the_hubs_own_queues_are_beside_those_of_the_workers(stage: Stage, run: Run) -> None:
    resources = [{"name": GPU, "nominalQuota": "100"}]
    group = {"coveredResources": [GPU], "flavors": [{"name": "f", "resources": resources}]}
    path = f"{stage.admin.kueue('clusterqueues')}/gated"
    stage.admin.ask("PATCH", path, {"spec": {"resourceGroups": [group]}}, "merge")
    rows = shown(run, "--by", "queue", "--gpus")["rows"]
    kinds = ("queue", "on", "nominal", "used", "waiting", "free", "largest")
    assert [tuple(row[kind] for kind in kinds) for row in rows] == [
        ("gated", "hub", 100, None, None, None, None),
        ("cluster-queue", "workers", 12, 3, 3, 9, 8),
    ]


def teams(run: Run, *words: str) -> set[str]:
    return {row["team"] for row in shown(run, "--by", "team", *words)["rows"]}


def test_a_user_with_few_rights_sees_totals_and_their_own_namespace(stage: Stage, tmp_path: Path) -> None:
    few = reader(stage.admin.hub, tmp_path)
    owner = HubClient(stage.admin.hub)
    run = on_hub(few)
    done = run("capacity")
    assert done.exit_code == 1
    assert "ask an admin for the role placement-ac-capacity-viewer" in done.stderr
    body = {"rules": [rule("get", "", "configmaps") | {"resourceNames": ["placement-ac-capacity"]}]}
    owner.create(f"{RBAC}/namespaces/{NS}/roles", {"metadata": {"name": "few"}} | body)
    owner.create(f"{RBAC}/namespaces/{NS}/rolebindings", bound_to("Role", "few"))
    assert without_age(run("capacity").stdout) == TABLE
    done = run("capacity", "--by", "queue")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "you may not get ConfigMap kueue-system/placement-ac-capacity-queues" in done.stderr
    for words, place in (((), "namespace default"), (("-A",), "all namespaces")):
        done = run("capacity", "--by", "team", *words)
        assert f"use -n NAMESPACE: you may not list Workloads in {place}" in done.stderr
    team = {"rules": [rule("list", "kueue.x-k8s.io", "workloads")]}
    owner.create(f"{RBAC}/namespaces/default/roles", {"metadata": {"name": "few"}} | team)
    owner.create(f"{RBAC}/namespaces/default/rolebindings", bound_to("Role", "few"))
    assert "default  nvidia.com/gpu     3        3" in run("capacity", "--by", "team").stdout
    done = run("capacity", "--workers")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "you may not list admissionchecks, multikueueconfigs, multikueueclusters" in done.stderr
    allow(owner, *listing(*READ_GROUPS))
    done = run("capacity", "--workers")
    assert done.exit_code == 0
    assert done.stderr == "not known: a, b: you have no right to get Secrets in namespace kueue-system\n"


def test_without_published_answers_it_says_what_to_do(admin: Driver, controllers: Controllers) -> None:
    done = on_hub(controllers.kubeconfig)("capacity")
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: use --workers, or name the namespace")
    body = {"metadata": {"name": "placement-ac-capacity"}, "data": {"capacity.json": "[]"}}
    admin.ask("POST", f"{CORE}/namespaces/{NS}/configmaps", body)
    done = on_hub(controllers.kubeconfig)("capacity")
    assert done.exit_code == 1
    assert "this one cannot read it: it: " in done.stderr


def test_the_page_has_the_gpus_as_bars_and_the_last_day_by_prometheus(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def answer(query: dict[str, Any]) -> tuple[int, str]:
        asked.update(query)
        begin = float(query["start"])
        values = [[begin + 360 * n, str(3 * (n > 1))] for n in range(240)]
        result = [{"metric": {"cluster": "a"}, "values": values}]
        return 200, json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})

    with last_day(stage, answer) as bars:
        assert [[point["value"] for point in bar["day"]] for bar in bars["clusters"]] == [[0, 3], []]
    names = "|".join(name.replace(".", r"\\.") for name in Settings.model_fields["score_gpus"].default)
    series = f'placement_ac_cluster_quota{{kind="used",resource=~"{names}"}}'
    assert asked["query"] == f"sum by (cluster) (max by (cluster, resource) ({series}))"
    assert float(asked["end"]) - float(asked["start"]) == pytest.approx(86400)
    with last_day(stage, lambda _: (503, "no")) as bars:
        assert (bars["day"], bars["dayProblem"]) == (None, "Prometheus answers 503: no")
    kinds = ("name", "nominal", "used", "waiting", "free")
    assert [tuple(bar[kind] for kind in kinds) for bar in bars["clusters"]] == [
        ("a", 4, 3, 3, 1),
        ("b", 8, 0, 0, 8),
    ]
    monkeypatch.setattr(ui_feed, "CAPACITY_SECONDS", 0.2)
    with last_day(stage, lambda _: (200, "[" * 100_000)) as bars:  # Python gives up with a RecursionError
        assert ([bar["name"] for bar in bars["clusters"]], bars["day"]) == (["a", "b"], None)


@contextmanager
def last_day(stage: Stage, answer: Callable[[dict[str, Any]], tuple[int, str]]) -> Iterator[Any]:
    """The GPUs on a page with a Prometheus that answers so."""
    with (
        prometheus(answer) as url,
        UiThread(stage.controllers.kubeconfig, prometheus=url) as served,
        events(served.url, "p") as page,
    ):
        yield page.until("capacity")
