"""The stand-in for Kueue when the hub serves other versions, serves CRDs late, or is away for a while."""

from pathlib import Path
from typing import Any

import pytest

from placement_ac.core.api.constants import ADMISSION_CHECK, MULTIKUEUE_CLUSTER, SECRET, Kind
from placement_ac.kube.client import Object
from placement_ac.kube.login import Login
from placement_lab.standins.kueue import CLUSTER_QUEUE, MultiKueue
from placement_lab.standins.runner import StandIns
from tests.placement_lab.standins.kueue_environment import (
    V,
    check,
    cluster,
    config,
    kubeconfig,
    queue,
    secret,
)
from tests.support.admin import Admin
from tests.support.crds import strict_crds, with_kueue_in
from tests.support.kueue_objects import kueue_object, namespace
from tests.support.real_hub import HubMaker

# Faults and API versions.


def reason(admin: Admin, kind: Kind = MULTIKUEUE_CLUSTER, name: str = "w", version: str = V) -> str | None:
    """The reason of an object's only condition."""
    conditions = ((admin.get(kind.at(version), name) or {}).get("status") or {}).get("conditions", ())
    [found] = [condition["reason"] for condition in conditions] or [None]
    return found


def old(item: Object) -> Object:
    return item | {"apiVersion": "kueue.x-k8s.io/v1beta1"}


def test_a_hub_that_serves_only_v1beta1(a_hub: HubMaker, tmp_path: Path) -> None:
    with a_hub(crds=with_kueue_in(strict_crds(), "v1beta1")) as hub:
        hub.write_kubeconfig(tmp_path / "kubeconfig")
        with StandIns(tmp_path / "kubeconfig", [MultiKueue]), Admin(Login(tmp_path / "kubeconfig")) as admin:
            old_queue = queue()
            old_queue["spec"] |= {"admissionChecks": ["acd"]}
            del old_queue["spec"]["admissionChecksStrategy"]
            by_secret = cluster("w")
            by_secret["spec"] = by_secret["spec"]["clusterSource"]
            admin.apply(namespace("kueue-system"), secret("w", kubeconfig()))
            admin.apply(
                *map(
                    old,
                    (kueue_object("ResourceFlavor", "default"), check(), old_queue, by_secret, config("w")),
                )
            )

            kinds = ((MULTIKUEUE_CLUSTER, "w"), (ADMISSION_CHECK, "acd"), (CLUSTER_QUEUE, "cqd"))
            admin.until(
                lambda: [reason(admin, kind, name, "v1beta1") for kind, name in kinds],
                ["Active", "Active", "Ready"],
            )


def test_crds_installed_later_are_discovered(a_hub: HubMaker, tmp_path: Path) -> None:
    with a_hub(crds=[]) as hub:
        hub.write_kubeconfig(tmp_path / "kubeconfig")
        stand_ins = StandIns(tmp_path / "kubeconfig", [MultiKueue])
        stand_ins.start(timeout=0.2)
        try:
            assert not stand_ins.wait_synced(0)
            with Admin(Login(tmp_path / "kubeconfig")) as admin:
                admin.apply(namespace("kueue-system"), *strict_crds())
                assert stand_ins.wait_synced(10)
                admin.apply(secret("w", kubeconfig()), cluster("w"))
                admin.until(lambda: reason(admin), "Active")
        finally:
            stand_ins.stop()


@pytest.mark.parametrize("how", ["close", "garbage", "error-410", "error-500", "outage", "forgotten"])
def test_changes_during_an_outage_are_noticed(a_hub: HubMaker, tmp_path: Path, how: Any) -> None:
    with a_hub() as hub:
        hub.write_kubeconfig(tmp_path / "kubeconfig")
        with StandIns(tmp_path / "kubeconfig", [MultiKueue]), Admin(Login(tmp_path / "kubeconfig")) as admin:
            admin.apply(namespace("kueue-system"), secret("w", kubeconfig()), cluster("w"), cluster("v"))
            admin.until(lambda: reason(admin), "Active")
            if how == "outage":
                with hub.outage():
                    admin.pause(0.1)
            elif how == "forgotten":
                hub.forget_history()
                hub.drop_watches()
            else:
                hub.drop_watches(how)
            admin.delete(SECRET.at("v1"), "w", "kueue-system")
            admin.until(lambda: reason(admin), "BadKubeConfig")
