"""The set-up of bare workers: until a job runs there, and what happens when something is wrong."""

import json
from collections.abc import Iterator

import pytest

from placement_lab.standins.multikueue import hub_job
from tests.support import commands
from tests.support.bare_workers import GPU, BareStage, bare_stage
from tests.support.driver import Controllers, Driver
from tests.support.jobs import label, soon
from tests.support.stage import shorten


@pytest.fixture
def bare(admin: Driver, controllers: Controllers) -> Iterator[BareStage]:
    with bare_stage(admin, controllers, "c1", "c2") as opened:
        yield opened


def test_a_job_runs_on_bare_workers(bare: BareStage) -> None:
    bare.stage.until_listed("c1", "c2")
    assert bare.there("c1", "", "team-a")
    assert bare.there("c1", "localqueues", "team", "team-a")
    assert bare.quota("c1", "team") == {"cpu": "90", GPU: "8"}
    job = hub_job("train", "team-a", "team", {GPU: "4"})
    bare.admin.ask("POST", "/apis/batch/v1/namespaces/team-a/jobs", job)
    soon(lambda: bare.stage.fleet.counter.running("train"))
    assert {cluster: bare.work_writes(cluster) for cluster in ("c1", "c2")} == {"c1": 1, "c2": 1}


def test_another_local_queue_comes_and_goes_everywhere(bare: BareStage) -> None:
    bare.stage.until_listed("c1", "c2")
    bare.local_queue("more", "team-b", "team")
    soon(lambda: all(bare.there(cluster, "localqueues", "more", "team-b") for cluster in ("c1", "c2")))
    bare.delete_local_queue("more", "team-b")
    soon(lambda: any(bare.there(cluster, "localqueues", "more", "team-b") for cluster in ("c1", "c2")), False)
    assert bare.there("c1", "", "team-b")
    assert [bare.work_writes(cluster) for cluster in ("c1", "c2")] == [3, 3]


def test_a_worker_without_an_agent_is_left_out_until_there_is_one(
    admin: Driver, controllers: Controllers
) -> None:
    with bare_stage(admin, controllers, "c1", "c2", start=False) as bare:
        bare.agents.pause("c2")
        controllers.start(worker_setup="manifestwork")
        bare.stage.until_listed("c1")
        soon(bare.stage.remark, REPORTS_NOTHING)
        assert unusable(controllers) == {"c2": REPORTS_NOTHING.partition("(")[2].removesuffix(")")}
        bare.agents.resume("c2")
        bare.stage.until_listed("c1", "c2")


def unusable(controllers: Controllers) -> dict[str, str]:
    """Return the clusters that `status` reports as unusable, and why."""
    settings = controllers.kubeconfig.with_name("settings.yaml")
    settings.write_text("workerSetup: {method: manifestwork}\n")
    words = (
        "status",
        "p",
        "--kubeconfig",
        str(controllers.kubeconfig),
        "--settings",
        str(settings),
        "-ojson",
    )
    [check] = json.loads(commands.run(*words).stdout)["checks"]
    return {row["name"]: row["why"] for row in check["clusters"] if row["state"] == "unusable"}


REPORTS_NOTHING = (
    "left out: c2 (wait, or see that OCM's work agent runs there: it has not reported on ManifestWork"
    " c2/placement-ac-queues yet)"
)


def test_what_an_admin_made_by_hand_stays_and_counts(admin: Driver, controllers: Controllers) -> None:
    with bare_stage(admin, controllers, "c1", "c2", start=False) as bare:
        bare.by_hand("c1", "team", "team-a", "their-queue")
        controllers.start(worker_setup="manifestwork")
        bare.stage.until_listed("c1", "c2")
        soon(
            bare.stage.remark,
            "c1: LocalQueue team-a/team on the worker stays as somebody else has set it",
        )
        assert bare.there("c1", "localqueues", "team", "team-a")["spec"] == {"clusterQueue": "their-queue"}
        bare.stage.select("c2")
        soon(lambda: bare.work("c1"), None)
        assert bare.there("c1", "localqueues", "team", "team-a")
        assert bare.there("c1", "localqueues", "gated", "default") is None


def test_what_leaves_keeps_namespaces_and_local_queues_with_jobs(bare: BareStage) -> None:
    bare.stage.until_listed("c1", "c2")
    bare.own_job("c1", "theirs", "team-a", "team")
    bare.stage.select("c2")
    soon(lambda: bare.work("c1"), None)
    assert bare.there("c1", "localqueues", "team", "team-a")
    assert bare.there("c1", "localqueues", "gated", "default") is None
    assert bare.there("c1", "", "team-a")
    assert bare.quota("c1", "team") == {"cpu": "90", GPU: "8"}
    assert bare.there("c2", "localqueues", "team", "team-a")


def test_quota_follows_what_lasts_and_never_falls_below_what_is_in_use(
    bare: BareStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(monkeypatch, QUOTA_FOLLOWS_SECONDS=1.0)
    bare.stage.until_listed("c1", "c2")
    bare.own_job("c1", "theirs", "team-a", "team", {GPU: "6"})
    bare.allocatable("c1", **{"cpu": "100", GPU: "2"})
    bare.allocatable("c2", **{"cpu": "50", GPU: "16"})
    soon(lambda: bare.quota("c2", "team"), {"cpu": "45", GPU: "16"})
    falls = "c1: the quota of ClusterQueue team on the worker falls when less of it is in use"
    soon(bare.stage.remark, falls)
    assert bare.quota("c1", "team") == {"cpu": "90", GPU: "8"}
    bare.end_own_job("c1", "theirs", "team-a")
    soon(lambda: bare.quota("c1", "team"), {"cpu": "90", GPU: "2"})
    soon(bare.stage.remark, "")


TEMPLATE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata:
  name: t4
spec:
  nodeLabels:
    region: "{label.region}"
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata:
  name: all
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: ["nvidia.com/gpu"]
    flavors:
    - name: t4
      resources:
      - name: nvidia.com/gpu
        nominalQuota: "{allocatable.nvidia.com/gpu * 0.5}"
"""


def test_a_template_makes_the_queues_and_a_wrong_one_changes_nothing_and_names_the_line(
    admin: Driver, controllers: Controllers
) -> None:
    with bare_stage(admin, controllers, "c1", "c2", start=False) as bare:
        label(admin, "c1", region="eu")
        bare.template(TEMPLATE)
        controllers.start(worker_setup="manifestwork", worker_setup_template="queues")
        bare.stage.until_listed("c1")
        assert bare.quota("c1", "all") == {GPU: "4"}
        assert bare.there("c1", "localqueues", "team", "team-a")["spec"] == {"clusterQueue": "all"}
        where = "in queues.yaml of ConfigMap kueue-system/queues"
        soon(bare.stage.remark, f"left out: c2 ({where}, line 8: give c2 the label region: it has none)")
        writes = bare.work_writes("c1")
        bare.template(TEMPLATE.replace("* 0.5", "/ 2"))
        soon(
            lambda: (
                "c1: in queues.yaml of ConfigMap kueue-system/queues, line 22: write {alloc"
                in bare.stage.remark()
            )
        )
        assert bare.stage.listed() == ["c1"]
        assert bare.work_writes("c1") == writes
        bare.template(TEMPLATE.replace('"{label.region}"', "eu"))
        bare.stage.until_listed("c1", "c2")


def test_without_kueue_on_a_worker_the_condition_says_what_to_install(
    admin: Driver, controllers: Controllers
) -> None:
    with bare_stage(admin, controllers, "c1", "c2", start=False) as bare:
        bare.without_kueue("c2")
        controllers.start(worker_setup="manifestwork")
        bare.stage.until_listed("c1")
        soon(bare.stage.remark, NO_KUEUE)


NO_KUEUE = (
    "left out: c2 (install Kueue there: it serves no ResourceFlavor.kueue.x-k8s.io (Failed to apply manifest:"
    ' the server doesn\'t have a resource type "ResourceFlavor"))'
)
