"""`placement-ac plan` previews of Story 3 what happens when it is applied."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_placement.cli.plan import NOT_VALIDATED
from placement_lab.hub import Hub
from placement_lab.standins.manifests import apply, connect
from placement_lab.standins.runner import StandIns
from tests.support.commands import Run, default_settings, on_hub, reader, run
from tests.support.driver import OCM, Controllers, Driver, Object, eventually
from tests.support.rights import rule
from tests.support.whatif import DEMO2, SAMPLES, job, sample

WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads"
C2, C3 = f"{DEMO2}-cluster2", f"{DEMO2}-cluster3"
STORY_3 = "placement-demo2-2.yaml"
OCM_GROUP, KUEUE_GROUP = "cluster.open-cluster-management.io", "kueue.x-k8s.io"


def put(kubeconfig: Path, objects: Iterable[Object]) -> None:
    apply(connect(kubeconfig), objects)


def fleet() -> list[Object]:
    """The samples' fleet, its clusters labelled as an admin does and their GPUs scored; without Secrets."""
    found = [one for one in sample("fleet") if one["kind"] not in ("Secret", "AddOnPlacementScore")]
    for one in found:
        if one["kind"] == "ManagedCluster" and one["metadata"]["name"] != "cluster1":
            one["metadata"]["labels"]["accelerator"] = "nvidia-tesla-t4"
    return [*found, scored("cluster2", 30), scored("cluster3", 70)]


def scored(cluster: str, free: int) -> Object:
    return {
        "apiVersion": "cluster.open-cluster-management.io/v1alpha1",
        "kind": "AddOnPlacementScore",
        "metadata": {"name": "resource-usage-score", "namespace": cluster},
        "status": {"scores": [{"name": "gpuClusterAvailable", "value": free}]},
    }


def start_job(admin: Driver, name: str, cluster: str, gpus: int) -> None:
    """A Workload as Kueue has it when its job runs on a cluster."""
    wanted = job(name, cluster, gpus=gpus)
    container = wanted["spec"]["podSets"][0]["template"]["spec"]["containers"][0]
    pods = {"count": 1, "name": "main", "template": {"spec": {"containers": [container | {"name": "c"}]}}}
    spec = {"active": True, "queueName": wanted["spec"]["queueName"], "podSets": [pods]}
    body = {"apiVersion": wanted["apiVersion"], "kind": "Workload", "metadata": {"name": name}, "spec": spec}
    admin.ask("POST", WORKLOADS, body)
    admin.ask("PATCH", f"{WORKLOADS}/{name}/status", {"status": wanted["status"]}, "merge")


def end_job(admin: Driver, name: str) -> None:
    finished = {"type": "Finished", "status": "True", "reason": "Succeeded", "message": ""}
    finished["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    admin.ask("PATCH", f"{WORKLOADS}/{name}/status", {"status": {"conditions": [finished]}}, "merge")


def decided(admin: Driver) -> list[str]:
    (one,) = admin.ask("GET", f"{OCM}/placementdecisions")["items"]
    return [entry["clusterName"] for entry in one["status"]["decisions"]]


def conditions(admin: Driver) -> list[dict[str, Any]]:
    found = (admin.get(f"{OCM}/placements/{DEMO2}") or {})["status"]["conditions"]
    return [{key: one[key] for key in ("type", "status", "reason", "message")} for one in found]


@pytest.fixture
def plan(run: Run) -> Run:
    return lambda *words: run("plan", *words)


def test_story_3_matches_its_preview(
    admin: Driver, controllers: Controllers, kubeconfig: Path, plan: Run
) -> None:
    put(kubeconfig, fleet())
    admin.secrets_for("cluster2", "cluster3")
    with StandIns(kubeconfig, ("ocm",)):
        controllers.start()
        put(kubeconfig, sample("multikueue-setup-demo2.yaml", "placement-demo2-1.yaml"))
        eventually(lambda: admin.listed(DEMO2), [C2, C3])
        eventually(lambda: admin.reason(DEMO2), "Active")
        start_job(admin, "train", "cluster2", 2)
        done = plan("-f", str(SAMPLES / STORY_3), "-o", "json")
        assert done.exit_code == 1, done.output
        (output,) = json.loads(done.stdout)["placements"]
        assert output["affected"] == [
            {
                "namespace": "default",
                "name": "train",
                "queue": "user-queue-demo2",
                "cluster": "cluster2",
                "state": "running",
                "gpus": 2,
            }
        ]
        put(kubeconfig, sample(STORY_3))
        eventually(lambda: admin.listed(DEMO2), [C3, C2])
        (check,) = output["checks"]
        eventually(lambda: admin.active(DEMO2).get("message"), check["after"]["message"])
        assert (decided(admin), conditions(admin)) == (output["decisions"], output["conditions"])
        end_job(admin, "train")
        eventually(lambda: admin.listed(DEMO2), [f"{DEMO2}-{cluster}" for cluster in output["order"]])
        eventually(admin.clusters, [C3])
        later = [write for write in output["writes"] if write["when"] != "at once"]
        assert {(one["verb"], one["name"]) for one in later} == {
            ("apply", DEMO2),
            ("setCondition", DEMO2),
            ("delete", C2),
        }
        again = plan("-f", str(SAMPLES / STORY_3))
        assert (again.exit_code, again.stdout.splitlines()[0]) == (0, "Nothing changes.")


@pytest.mark.parametrize(
    ("name", "spec", "code", "expected"),
    [
        pytest.param("p", {"numberOfCluster": 3}, 2, "numberOfCluster", id="unknown field"),
        pytest.param("P_1", {}, 2, "P_1", id="name"),
        pytest.param("p", {"numberOfClusters": 1}, 1, "", id="accepted"),
    ],
)
def test_the_server_says_what_it_refuses_and_stores_nothing(
    name: str,
    spec: Object,
    code: int,
    expected: str,
    hub: Hub,
    admin: Driver,
    kubeconfig: Path,
    tmp_path: Path,
) -> None:
    plan = on_hub(kubeconfig)
    document = {"apiVersion": f"{OCM_GROUP}/v1beta1", "kind": "Placement", "spec": spec}
    text = yaml.safe_dump(document | {"metadata": {"name": name, "namespace": "kueue-system"}})
    done = plan("plan", "-f", "-", "--server-side", *default_settings(tmp_path), input=text)
    assert done.exit_code == code, done.output
    assert (done.stderr.startswith(f"Error: Placement kueue-system/{name}: "), expected in done.stderr) == (
        code == 2,
        True,
    )
    assert [one.method for one in hub.journal if one.method != "GET"][-1:] == ["PATCH"]
    assert admin.get(f"{OCM}/placements/{name}") is None


def test_a_dry_run_needs_the_rights_to_write(hub: Hub, kubeconfig: Path, tmp_path: Path) -> None:
    put(kubeconfig, [*fleet(), *sample("multikueue-setup-demo2.yaml")])
    rules = [rule("get list", OCM_GROUP, plural) for plural in MAY]
    rules += [rule("get list", KUEUE_GROUP, plural) for plural in OF_KUEUE]
    plan = on_hub(reader(hub, tmp_path, *rules))
    done = plan("plan", "-f", str(SAMPLES / STORY_3), "--server-side", *default_settings(tmp_path))
    assert done.exit_code == 2
    assert 'cannot patch resource "placements"' in done.stderr


def test_a_dry_run_needs_a_hub() -> None:
    done = run("plan", "-f", str(SAMPLES / STORY_3), "--server-side", "--from-dump", str(SAMPLES / STORY_3))
    assert (done.exit_code, "it needs a hub" in done.stderr) == (2, True)


MAY = (
    "placements",
    "placementdecisions",
    "managedclusters",
    "managedclustersets",
    "managedclustersetbindings",
    "addonplacementscores",
)
OF_KUEUE = ("admissionchecks", "multikueueconfigs", "multikueueclusters")


def test_rights_that_are_missing(hub: Hub, kubeconfig: Path, tmp_path: Path) -> None:
    """To Secrets, Workloads and queues."""
    put(kubeconfig, [*fleet(), *sample("multikueue-setup-demo2.yaml")])
    rules = [rule("get list", OCM_GROUP, plural) for plural in MAY]
    rules += [rule("get list", KUEUE_GROUP, plural) for plural in OF_KUEUE]
    plan = on_hub(reader(hub, tmp_path, *rules))
    done = plan("plan", "-f", str(SAMPLES / STORY_3), *default_settings(tmp_path))
    assert done.exit_code == 1, done.output
    missing, credentials, validated = done.stderr.splitlines()
    assert missing.startswith("missing rights: ask an admin to bind placement-ac's viewer roles to you")
    assert "the right to list secrets in namespace kueue-system" in missing
    unknown = "warning: the credentials of clusters are unknown: every cluster counts as having some"
    assert credentials.startswith(unknown)
    assert validated.startswith(NOT_VALIDATED)


def test_manifests_without_a_namespace_are_those_of_the_context(hub: Hub, tmp_path: Path) -> None:
    content = hub.kubeconfig()
    content["contexts"][0]["context"]["namespace"] = "team"
    (tmp_path / "hub").write_text(yaml.safe_dump(content))
    placement = {"apiVersion": f"{OCM_GROUP}/v1beta1", "kind": "Placement", "metadata": {"name": "p"}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "j-"}}
    manifests = json.dumps(placement | {"spec": {}}) + json.dumps(job | {"spec": {"template": {}}})
    run = on_hub(tmp_path / "hub")

    def places(*words: str) -> list[str]:
        answer = json.loads(run("plan", "-f", "-", "-o", "json", *words, input=manifests).stdout)
        return [one["namespace"] for one in (*answer["objects"], *answer["jobs"])]

    assert places() == ["team", "team"]
    assert places("-n", "kueue-system") == ["kueue-system", "default"]
