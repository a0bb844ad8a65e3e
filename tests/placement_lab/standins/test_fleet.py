"""The fleet of the samples on the embedded hub, with its status, and the reactions of the stand-ins."""

import base64
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    MANAGED_CLUSTER,
    MULTIKUEUE_CLUSTER,
    PLACEMENT_DECISION,
    PLACEMENT_SCORE,
    SECRET,
)
from placement_ac.core.api.errors import LoginFailed
from placement_ac.kube.login import Login
from placement_lab.hub import Hub
from placement_lab.standins import manifests
from placement_lab.standins.kueue import MultiKueue
from placement_lab.standins.manifests import ManifestError
from placement_lab.standins.runner import StandIns
from tests.support.admin import Admin
from tests.support.kueue_objects import namespace
from tests.support.real_hub import HubMaker


@pytest.fixture
def kubeconfig(a_hub: HubMaker, tmp_path: Path) -> Iterator[Path]:
    with a_hub() as hub:
        hub.write_kubeconfig(tmp_path / "kubeconfig")
        yield tmp_path / "kubeconfig"


@pytest.fixture
def admin(kubeconfig: Path) -> Iterator[Admin]:
    with Admin(Login(kubeconfig)) as one:
        yield one


def fleet() -> list[Any]:
    return manifests.load(manifests.samples() / "fleet")


def test_the_fleet_is_applied_with_its_status(admin: Admin) -> None:
    given = fleet()
    landed = admin.apply(*given)
    assert [item["metadata"]["name"] for item in landed] == [item["metadata"]["name"] for item in given]
    assert [item.get("status") for item in landed if item["kind"] not in ("Namespace", "Secret")] == [
        item.get("status") for item in given if item["kind"] not in ("Namespace", "Secret")
    ]


def test_applying_twice_changes_nothing(admin: Admin) -> None:
    admin.apply(*fleet())
    before = admin.apply(*fleet())  # now an API server names a manager of the Namespace, with nothing in it
    assert admin.apply(*fleet()) == before


def test_scores_come_from_the_file(admin: Admin) -> None:
    admin.apply(*fleet())
    score = admin.get(PLACEMENT_SCORE.at("v1alpha1"), "resource-usage-score", "cluster2")
    assert score is not None
    assert {"name": "gpuClusterAvailable", "value": -70} in score["status"]["scores"]


def test_string_data_is_stored_as_data(admin: Admin) -> None:
    admin.apply(*fleet())
    secret = admin.get(SECRET.at("v1"), "multikueue-cluster3", "kueue-system")
    assert secret is not None
    assert b"https://cluster3.example.com:6443" in base64.b64decode(secret["data"]["kubeconfig"])
    assert "stringData" not in secret


def test_an_object_without_name_is_created_each_time(admin: Admin) -> None:
    item = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"generateName": "each-", "namespace": "default"},
    }
    [first, second, _] = admin.apply(item, item, namespace("default"))
    assert first["metadata"]["name"] != second["metadata"]["name"]


@pytest.mark.parametrize(
    ("version", "kind"), [("example.com/v1", "Nothing"), ("v1", "Nothing")], ids=["group", "kind"]
)
def test_an_unserved_kind_is_named(admin: Admin, version: str, kind: str) -> None:
    with pytest.raises(ManifestError, match=f"does not serve {kind} in {version}"):
        admin.apply({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}})


def test_kueue_connects_with_all_three_kinds_of_credentials(admin: Admin, kubeconfig: Path) -> None:
    """The test writes the controller's objects: every cluster becomes Active by the stand-in for Kueue."""
    admin.apply(*fleet(), *manifests.load(manifests.samples() / "multikueue-setup-demo1.yaml"))
    sources: dict[str, Any] = {
        "cluster1": {"clusterProfileRef": {"name": "cluster1"}},
        "cluster2": {"kubeConfig": {"locationType": "Secret", "location": "kueue-admin-cluster2-kubeconfig"}},
        "cluster3": {"kubeConfig": {"locationType": "Secret", "location": "multikueue-cluster3"}},
    }
    version = "kueue.x-k8s.io/v1beta2"
    admin.apply(
        *(
            {
                "apiVersion": version,
                "kind": "MultiKueueCluster",
                "metadata": {"name": f"placement-demo1-{name}"},
                "spec": {"clusterSource": source},
            }
            for name, source in sources.items()
        ),
        {
            "apiVersion": version,
            "kind": "MultiKueueConfig",
            "metadata": {"name": "placement-demo1"},
            "spec": {"clusters": [f"placement-demo1-{name}" for name in sources]},
        },
    )

    def conditions() -> list[Any]:
        found = [
            admin.get(ADMISSION_CHECK.at("v1beta2"), "multikueue-demo1"),
            *(admin.get(MULTIKUEUE_CLUSTER.at("v1beta2"), f"placement-demo1-{name}") for name in sources),
        ]
        return [(item or {}).get("status", {}).get("conditions", [{}])[0].get("message") for item in found]

    with StandIns(kubeconfig, ["kueue"]) as stand_ins:
        assert stand_ins.wait_synced(0)
        admin.until(conditions, ["The admission check is active", "Connected", "Connected", "Connected"])


def test_ocm_decides_the_samples_as_in_the_stories(admin: Admin, kubeconfig: Path) -> None:
    def decided(story: int) -> Any:
        found = admin.get(
            PLACEMENT_DECISION.at("v1beta1"), f"placement-demo{story}-decision-1", "kueue-system"
        )
        decisions = ((found or {}).get("status") or {}).get("decisions") or ()
        return [decision["clusterName"] for decision in decisions]

    def sample(name: str) -> list[Any]:
        return manifests.load(manifests.samples() / name)

    admin.apply(*fleet())
    with StandIns(kubeconfig, ["ocm", "kueue"]):
        admin.apply(*sample("multikueue-setup-demo1.yaml"))
        admin.until(lambda: decided(1), ["cluster1", "cluster2", "cluster3"])
        admin.apply(*sample("placement-demo2-1.yaml"), *sample("multikueue-setup-demo2.yaml"))
        for name in ("cluster2", "cluster3"):
            label = {"metadata": {"labels": {"accelerator": "nvidia-tesla-t4"}}}
            admin.merge(MANAGED_CLUSTER.at("v1"), name, label)
        admin.until(lambda: decided(2), ["cluster2", "cluster3"])
        admin.apply(*sample("placement-demo2-2.yaml"))
        admin.until(lambda: decided(2), ["cluster2"])
        better = {"status": {"scores": [{"name": "gpuClusterAvailable", "value": 90}]}}
        where = {"namespace": "cluster3", "subresource": "status"}
        admin.merge(PLACEMENT_SCORE.at("v1alpha1"), "resource-usage-score", better, **where)
        admin.until(lambda: decided(2), ["cluster3"])


def test_an_unknown_stand_in_is_rejected(kubeconfig: Path) -> None:
    with pytest.raises(ValueError, match="no stand-in is called 'slurm': known are kueue, ocm"):
        StandIns(kubeconfig, ["slurm"])


def test_without_a_kubeconfig_it_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(LoginFailed):
        StandIns(tmp_path / "gone", ["kueue"])


def test_stop_raises_the_error_of_a_stand_in(kubeconfig: Path) -> None:
    failed = threading.Event()

    class Broken(MultiKueue):
        async def reconcile(self, key: tuple[str, ...]) -> None:
            failed.set()
            raise RuntimeError(f"a mistake at {key}")

    with Admin(Login(kubeconfig)) as admin:
        admin.apply(*fleet(), *manifests.load(manifests.samples() / "multikueue-setup-demo1.yaml"))
    stand_ins = StandIns(lambda: Login(kubeconfig), [Broken])
    stand_ins.start()
    assert failed.wait(10)
    time.sleep(0.1)  # the error ends the stand-in a moment later; nothing public shows it
    with pytest.raises(ExceptionGroup):
        stand_ins.stop()
    stand_ins.stop()


def test_an_unreachable_hub_does_not_block_the_start(kubeconfig: Path) -> None:
    text = kubeconfig.read_text()
    with Hub() as gone:
        gone.write_kubeconfig(kubeconfig)
    stand_ins = StandIns(kubeconfig, ["kueue"])
    stand_ins.start(timeout=0.1)
    assert not stand_ins.wait_synced(0)
    stand_ins.stop()
    kubeconfig.write_text(text)
