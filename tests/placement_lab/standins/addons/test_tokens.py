"""
The stand-in for OCM's ManagedServiceAccounts: tokens, their rotation, and when they end.

The modules `account_rules` and `permission_rules` name the sources of the expected behaviour. All requests
are HTTP: to the hub as an admin, to the worker with the reported token.
"""

import base64
import json
import time
from datetime import datetime

import pytest

from placement_ac.core.api.constants import (
    ACCOUNT,
    NAMESPACE,
)
from placement_ac.kube.client import Object
from placement_lab.hub.kinds import bundled
from placement_lab.standins.cluster_agent import SERVICE_ACCOUNT
from placement_lab.standins.fleet import WorkerFleet
from placement_lab.standins.managed_service_accounts import AGENT_NAMESPACE
from placement_lab.standins.runner import StandIns
from tests.placement_lab.standins.addons.environment import (
    ACCOUNTS,
    CLUSTERS,
    NAME,
    PERMISSIONS,
    PROFILES,
    READ,
    REPORTED,
    ROLE,
    SECRETS,
    SYNC,
    WORKS,
    AddonEnvironment,
    Staged,
    W,
    account,
    complete,
    decoded,
    permission,
)
from tests.support.admin import login_to
from tests.support.kueue_objects import namespace
from tests.support.real_hub import HubMaker


def test_a_token_is_reported_as_the_agent_does(stage: AddonEnvironment) -> None:
    stage.apply(account("10m"))
    stage.until(stage.account_says, REPORTED)
    managed_account, secret = stage.account(), stage.secret() or {}
    assert secret["metadata"]["labels"] == {
        "authentication.open-cluster-management.io/is-managed-serviceaccount": "true"
    }
    assert secret["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "authentication.open-cluster-management.io/v1beta1",
            "kind": "ManagedServiceAccount",
            "name": NAME,
            "uid": managed_account["metadata"]["uid"],
        }
    ]
    assert (secret["type"], sorted(secret["data"])) == ("Opaque", ["ca.crt", "token"])
    [cluster] = stage.fleet.hubs[W].kubeconfig()["clusters"]
    authority = base64.b64decode(cluster["cluster"]["certificate-authority-data"]).decode()
    assert decoded(secret, "ca.crt").strip() == authority.strip()
    assert managed_account["status"]["tokenSecretRef"]["name"] == NAME
    assert stage.worker.get(SERVICE_ACCOUNT.at("v1"), NAME, AGENT_NAMESPACE)


# rotation


def test_a_token_is_refreshed_after_four_fifths_of_its_lifetime(stage: AddonEnvironment) -> None:
    stage.apply(account("5s"), permission(READ))
    stage.until(stage.permission_says, complete(stage))
    first = stage.token()
    stage.until(lambda: stage.token() != first, True)
    left = expiry_of(first) - time.time()
    assert left < 2.0  # a fifth, plus the rounding of Kubernetes' times to whole seconds
    stage.until(lambda: stage.worker_says(first), 401)
    assert stage.worker_says(stage.token()) == 200
    stage.until(lambda: expiry_of(stage.token()), expiry(stage.account()))


def expiry_of(token: str) -> float:
    part = token.split(".")[1]
    return float(json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))["exp"])


def expiry(item: Object) -> float:
    return datetime.fromisoformat(item["status"]["expirationTimestamp"]).timestamp()


# changes by users


def put_token(stage: AddonEnvironment, token: str) -> None:
    data = {"token": base64.b64encode(token.encode()).decode()}
    stage.merge(SECRETS, NAME, {"data": data}, namespace=W)


def test_a_malformed_token_is_reported_and_replaced_only_with_a_new_secret(stage: AddonEnvironment) -> None:
    stage.create_account()
    put_token(stage, "broken")
    why = "failed to make a decision on token creation: invalid JWT token format"
    stage.until(stage.account_says, REPORTED | {"TokenReported": f"False TokenReportFailed {why}"})
    assert stage.token() == "broken"
    stage.delete(SECRETS, NAME, W)
    stage.until(stage.account_says, REPORTED)


def test_a_token_that_the_worker_rejects_is_replaced(stage: AddonEnvironment) -> None:
    stage.create_account()
    forged = stage.token()[:-8] + "AAAAAAAA"
    put_token(stage, forged)
    stage.until(lambda: stage.token() != forged, True)


@pytest.mark.embedded("a bare API server has no garbage collector")
def test_a_foreign_service_account_is_used_but_not_deleted(stage: AddonEnvironment) -> None:
    home = namespace(AGENT_NAMESPACE)
    metadata = {"name": NAME, "namespace": AGENT_NAMESPACE}
    stage.worker.apply(home, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    stage.create_account()
    token = stage.token()
    stage.delete(ACCOUNTS, NAME, W)
    stage.until(stage.secret, None)
    stage.pause(0.1)
    assert stage.worker_says(token) == 403


@pytest.mark.embedded("a bare API server has no garbage collector")
def test_deleting_an_account_deletes_everything(stage: AddonEnvironment) -> None:
    stage.create_account()
    token = stage.token()
    stage.delete(ACCOUNTS, NAME, W)
    stage.until(stage.secret, None)
    stage.until(lambda: stage.worker.get(SERVICE_ACCOUNT.at("v1"), NAME, AGENT_NAMESPACE), None)
    assert stage.worker_says(token) == 401


def test_the_namespace_of_a_deleted_cluster_stays(stage: AddonEnvironment) -> None:
    """As with OCM itself: objects of others stay, and a Secret with an invalid token."""
    stage.apply(account(), permission(READ))
    stage.until(stage.permission_says, complete(stage))
    token = stage.token()
    stage.delete(CLUSTERS, W)
    stage.until(lambda: stage.worker_says(token), 401)
    stage.until(lambda: len(stage.list(WORKS)), 0)
    stage.until(lambda: stage.worker.get(ROLE, NAME), None)
    left = [stage.get(kind, NAME, W) for kind in (ACCOUNTS, PERMISSIONS, SECRETS)]
    assert [bool(item) for item in left] == [True, True, True]
    assert stage.get(NAMESPACE.at("v1"), W)
    stage.join()
    stage.until(lambda: stage.worker_says(stage.token()), 200)


# versions of the API


def test_a_hub_that_serves_only_the_old_version(staged: Staged) -> None:
    with staged(crds=only_the_old_version()) as stage:
        stage.join()
        stage.apply(account(version="v1alpha1"))
        stage.until(lambda: bool(stage.token()), True)
        [owner] = (stage.secret() or {})["metadata"]["ownerReferences"]
        assert owner["apiVersion"] == "authentication.open-cluster-management.io/v1alpha1"


def only_the_old_version() -> list[Object]:
    crds = bundled()
    [crd] = [crd for crd in crds if crd["metadata"]["name"] == str(ACCOUNT)]
    [version] = [version for version in crd["spec"]["versions"] if version["name"] == "v1alpha1"]
    crd["spec"]["versions"] = [version | {"storage": True}]
    return crds


# the credential syncer


def profile(**labels: str) -> Object:
    ours = {
        "x-k8s.io/cluster-manager": "open-cluster-management",
        "open-cluster-management.io/cluster-name": W,
    }
    return {
        "apiVersion": PROFILES.api_version,
        "kind": "ClusterProfile",
        "metadata": {"name": W, "namespace": "kueue-system", "labels": ours | labels},
        "spec": {"clusterManager": {"name": "open-cluster-management"}},
    }


def synced(stage: AddonEnvironment) -> Object | None:
    return stage.get(SECRETS, f"{W}-{NAME}", "kueue-system")


def test_the_token_is_copied_to_the_cluster_profile(stage: AddonEnvironment) -> None:
    stage.apply(namespace("kueue-system"), profile())
    stage.apply(account(**SYNC))
    stage.until(stage.account_says, REPORTED)
    stage.until(lambda: decoded(synced(stage), "token"), stage.token())
    metadata, owner = (synced(stage) or {})["metadata"], stage.get(PROFILES, W, "kueue-system") or {}
    assert metadata["labels"] == {"authentication.open-cluster-management.io/synced-from": f"{W}-{NAME}"}
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": PROFILES.api_version,
            "kind": "ClusterProfile",
            "name": W,
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
    ]
    old = stage.token()
    stage.ocm.refresh(W)
    stage.until(lambda: decoded(synced(stage), "token") not in ("", old), True)
    stage.until(lambda: decoded(synced(stage), "token"), stage.token())
    stage.delete(ACCOUNTS, NAME, W)
    stage.until(lambda: synced(stage), None)


@pytest.mark.parametrize(
    ("labels", "foreign"),
    [
        pytest.param({}, {}, id="the account is not marked"),
        pytest.param(SYNC, {"x-k8s.io/cluster-manager": "someone"}, id="the profile is another's"),
    ],
)
def test_only_labelled_accounts_are_copied(
    stage: AddonEnvironment, labels: dict[str, str], foreign: dict[str, str]
) -> None:
    stage.apply(namespace("kueue-system"))
    stage.apply(profile(**foreign), account(**labels))
    stage.until(stage.account_says, REPORTED)
    stage.pause(0.1)
    assert synced(stage) is None


# many clusters, restarts


def test_a_second_run_writes_nothing(a_hub: HubMaker) -> None:
    with a_hub() as hub, WorkerFleet([W]) as fleet, AddonEnvironment(hub, fleet) as stage:
        with StandIns(lambda: login_to(hub), [stage.make]):
            stage.join()
            stage.apply(account(), permission(READ))
            stage.until(stage.permission_says, complete(stage))
            stage.until(stage.account_says, REPORTED)
        before = [stage.list(kind) for kind in (ACCOUNTS, PERMISSIONS, WORKS, SECRETS)]
        with StandIns(lambda: login_to(hub), [stage.make]):
            stage.pause(0.5)
        assert [stage.list(kind) for kind in (ACCOUNTS, PERMISSIONS, WORKS, SECRETS)] == before
