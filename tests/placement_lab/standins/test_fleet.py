"""The fleet of the samples on the embedded hub, with its status, and the reactions of the stand-ins."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from placement_ac.core.api.errors import LoginFailed
from placement_ac.kube.login import Login
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


@pytest.mark.parametrize(
    ("version", "kind"), [("example.com/v1", "Nothing"), ("v1", "Nothing")], ids=["group", "kind"]
)
def test_an_unserved_kind_is_named(admin: Admin, version: str, kind: str) -> None:
    with pytest.raises(ManifestError, match=f"does not serve {kind} in {version}"):
        admin.apply({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}})


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


def test_an_object_without_name_is_created_each_time(admin: Admin) -> None:
    item = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"generateName": "each-", "namespace": "default"},
    }
    [first, second, _] = admin.apply(item, item, namespace("default"))
    assert first["metadata"]["name"] != second["metadata"]["name"]
