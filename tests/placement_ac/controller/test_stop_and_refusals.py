"""Findings of a reviewer: a stop while the API server hangs, tokens, changed names."""

import time
from pathlib import Path

import pytest
import yaml

from placement_ac.core.api.constants import ADMISSION_CHECK
from placement_ac.core.api.errors import Unavailable
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login
from placement_lab.hub import Hub
from tests.support.driver import OCM, Controllers, Driver, eventually, owner_reference


@pytest.mark.parametrize("path", ["/apis/kueue", "/openapi/v3"])
def test_it_stops_at_once_while_the_api_server_hangs(hub: Hub, controllers: Controllers, path: str) -> None:
    hub.faults.add("GET", path, delay=20, times=100)
    with controllers():
        time.sleep(1)  # what is tested: it is in the middle of asking
        began = time.monotonic()
    assert time.monotonic() - began < 10


def test_names_may_change_while_a_placement_is_missing(
    hub: Hub, admin: Driver, controllers: Controllers
) -> None:
    for name in ("p", "q"):
        admin.check(name)
        admin.select(name, "a")
    with controllers(cluster_names="{cluster}"):
        eventually(lambda: admin.reason("p") + admin.reason("q"), "ActiveActive")
    gone = admin.get(f"{OCM}/placements/q") or {}
    admin.lose_placement("q")
    controllers.start()
    eventually(lambda: admin.reason("q"), "PlacementNotFound")
    eventually(lambda: admin.listed("p"), ["p-a"])
    time.sleep(0.5)  # what is tested: q still lists it
    assert admin.listed("q") == ["a"]
    assert "a" in admin.clusters()
    admin.placement("q", **gone["spec"])
    admin.decide("q", "a")
    eventually(lambda: admin.listed("q"), ["q-a"])
    eventually(admin.clusters, ["p-a", "q-a"])


def test_a_multikueuecluster_that_is_missing_while_ocm_decides_is_put_back(
    hub: Hub, admin: Driver, controllers: Controllers
) -> None:
    admin.check("p")
    admin.select("p", "a")
    with controllers():
        eventually(lambda: admin.reason("p"), "Active")
    other = admin.placement("other")
    owners = {"metadata": {"ownerReferences": [owner_reference(other)]}}
    admin.ask("PATCH", f"{OCM}/placementdecisions/p-decision-1", owners, "merge")
    admin.ask("DELETE", admin.kueue("multikueueclusters", "p-a"))
    since = len(hub.journal)
    controllers.start()
    eventually(lambda: admin.reason("p"), "NoDecision")
    eventually(admin.clusters, ["p-a"])
    assert [r.path for r in hub.journal[since:] if r.status == 422] == []


@pytest.mark.parametrize("form", ["token", "tokenFile"])
async def test_a_token_that_was_renewed_on_disk_is_read_when_the_old_one_is_refused(
    hub: Hub, tmp_path: Path, form: str
) -> None:
    path, file = tmp_path / "kubeconfig", tmp_path / "token"

    def write(token: str) -> None:
        file.write_text(token)
        content = hub.kubeconfig()
        content["users"][0]["user"] = {"token": token} if form == "token" else {"tokenFile": str(file)}
        path.write_text(yaml.safe_dump(content))

    async def ask() -> None:
        checks = ADMISSION_CHECK.at("v1beta2")
        async with Client(Login(path)) as client:
            with pytest.raises(Unavailable):
                await client.list(checks)
            path.write_text("")  # as it may be read while it is written
            with pytest.raises(Unavailable):
                await client.list(checks)
            write(hub.token)
            assert (await client.list(checks)).items == ()

    write("expired")
    await ask()
