"""Credentials that OCM copies to ClusterProfiles: no Secret of ours, and the ways there and back."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from placement_ac.core.api.constants import LABEL_CLUSTER, LABEL_MANAGER, LABEL_SYNC, OCM_MANAGER
from tests.support.credentials import Stage, open_stage
from tests.support.driver import CORE, NS, PROFILES, Controllers, Driver, Object
from tests.support.jobs import soon

BY_PROFILE = {"clusterProfileRef": {"name": "a"}}
BY_SECRET = {"kubeConfig": {"location": "placement-ac-a", "locationType": "Secret"}}


@pytest.fixture
def stage(admin: Driver, controllers: Controllers) -> Iterator[Stage]:
    with open_stage(admin, controllers, ["a"]) as stage:
        admin.check("p")
        admin.multikueue_check("mk", "p")
        admin.placement("p")
        stage.select("a")
        yield stage


def add_profile(admin: Driver, server: str = "https://a") -> None:
    """As OCM makes it, with another provider beside OCM's."""
    offers = [{"name": "other"}, {"name": OCM_MANAGER, "cluster": {"server": server}}]
    admin.profile("a", accessProviders=offers)
    labels = {LABEL_MANAGER: OCM_MANAGER, LABEL_CLUSTER: "a"}
    admin.ask("PATCH", f"{PROFILES}/a", {"metadata": {"labels": labels}}, "merge")


def copied(stage: Stage) -> bool:
    """Whether OCM's copy of the token is in Kueue's namespace."""
    return stage.admin.get(f"{CORE}/namespaces/{NS}/secrets/a-placement-ac") is not None


def is_synced(stage: Stage) -> bool:
    account = stage.account("a")
    return account is not None and account["metadata"]["labels"].get(LABEL_SYNC) == "true"


NOT_ALLOWED = (
    f"in ClusterProfile {NS}/a, correct the server of access provider {OCM_MANAGER}, or add its host to "
    "allowedServerSuffixes in the file --access-providers: it is not allowed there; "
    "no selected cluster is usable: a"
)


def allows(folder: Path, suffix: str) -> Path:
    """A file of access providers."""
    run = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/plugin"}
    provider = {"name": OCM_MANAGER, "execConfig": run, "allowedServerSuffixes": [suffix]}
    (folder / "providers.json").write_text(json.dumps({"providers": [provider]}))
    return folder / "providers.json"


def offer_at(server: str) -> dict[str, list[Object]]:
    return {"accessProviders": [{"name": OCM_MANAGER, "cluster": {"server": server}}]}


def test_a_server_that_is_not_allowed_is_reported(
    admin: Driver, controllers: Controllers, tmp_path: Path
) -> None:
    admin.check("p")
    admin.placement("p")
    admin.decide("p", "a")
    admin.profile("a", **offer_at("https://a.evil.test"))
    controllers.start(access_providers=allows(tmp_path, ".example.com"))
    soon(lambda: NOT_ALLOWED in admin.active("p").get("message", ""))
    assert admin.get(admin.kueue("multikueueclusters", "p-a")) is None
    status = {"status": offer_at("https://a.example.com")}
    admin.ask("PATCH", f"{PROFILES}/a/status", status, "merge")
    soon(lambda: admin.listed("p"), ["p-a"])


def test_no_secret_of_ours_is_written(stage: Stage, admin: Driver) -> None:
    stage.start(credentials_form="cluster-profile")
    soon(lambda: "the ClusterProfile of a" in admin.active("p").get("message", ""))
    add_profile(admin)
    soon(lambda: stage.source("p-a"), BY_PROFILE)
    assert (is_synced(stage), copied(stage), stage.secret("a")) == (True, True, None)
    assert not [path for _, path in admin.writes() if "/secrets" in path]
    stage.select()
    soon(lambda: stage.account("a") is None and stage.permission("a") is None and not copied(stage))


def test_there_and_back(stage: Stage, admin: Driver) -> None:
    """At no time does the MultiKueueCluster stand on what is not there."""
    add_profile(admin)
    only_made = {"credentials": "profile-secret,secret"}
    first = stage.start(**only_made)
    stage.until_connected("a")
    assert stage.source("p-a") == BY_SECRET
    first.stop()

    second = stage.start(credentials_form="cluster-profile")
    soon(lambda: stage.source("p-a"), BY_PROFILE)
    assert copied(stage)
    soon(lambda: stage.secret("a") is None)
    second.stop()

    stage.start()  # with the way access-provider: the ClusterProfile is ours, not found
    soon(lambda: stage.source("p-a"), BY_SECRET)
    stage.until_connected("a")
    soon(lambda: not is_synced(stage) and not copied(stage))
    assert stage.account("a") is not None
