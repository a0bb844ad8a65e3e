"""
The stand-in for OCM's controllers of ManagedServiceAccounts and ClusterPermissions, on a hub and a worker.

The modules `account_rules` and `permission_rules` name the sources of the expected behaviour. All requests
are HTTP: to the hub as an admin, to the worker with the reported token.
"""

import base64
import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any

import pytest

from placement_ac.core.api.constants import (
    ACCOUNT,
    CLUSTER_PROFILE,
    LABEL_SYNC,
    MANAGED_CLUSTER,
    PERMISSION,
    SECRET,
    WORKLOAD,
    Resource,
)
from placement_ac.core.api.errors import ApiError
from placement_ac.core.kubeconfig.source import ClusterAccess
from placement_ac.kube.client import Object
from placement_ac.kube.login import Login
from placement_lab.hub import Hub
from placement_lab.hub.kinds import bundled
from placement_lab.standins.cluster_agent import NAMESPACE, SERVICE_ACCOUNT
from placement_lab.standins.cluster_permissions import ADDON, RBAC_KINDS, WORK, WORK_FINALIZER
from placement_lab.standins.fleet import WorkerFleet
from placement_lab.standins.kueue_jobs import JOB
from placement_lab.standins.managed_service_accounts import AGENT_NAMESPACE
from placement_lab.standins.ocm_addons import OcmAddons
from placement_lab.standins.runner import StandIns
from tests.support.admin import Admin, login_to
from tests.support.hub_and_worker import HubAndWorker
from tests.support.kueue_objects import namespace
from tests.support.real_hub import HubMaker

W = "w1"
NAME = "placement-ac"
SECRETS, ACCOUNTS, PERMISSIONS = SECRET.at("v1"), ACCOUNT.at("v1beta1"), PERMISSION.at("v1alpha1")
WORKS, CLUSTERS, PROFILES = WORK.at("v1"), MANAGED_CLUSTER.at("v1"), CLUSTER_PROFILE.at("v1alpha1")
WORKLOADS, JOBS = WORKLOAD.at("v1beta2"), JOB.at("v1")
SUBJECT = {"apiGroup": ACCOUNT.group, "kind": ACCOUNT.kind, "name": NAME}
READ = {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads"], "verbs": ["get", "list", "watch"]}
JOBS_TOO = {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list"]}
SYNC = {LABEL_SYNC: "true"}
ROLE, BINDING = RBAC_KINDS["ClusterRole"].at("v1"), RBAC_KINDS["ClusterRoleBinding"].at("v1")


def account(validity: str = "24h0m0s", version: str = "v1beta1", **labels: str) -> Object:
    return {
        "apiVersion": ACCOUNT.at(version).api_version,
        "kind": ACCOUNT.kind,
        "metadata": {"name": NAME, "namespace": W, "labels": labels},
        "spec": {"rotation": {"enabled": True, "validity": validity}},
    }


def permission(*rules: Object, name: str = NAME, **spec: Any) -> Object:
    asked = (
        {"clusterRole": {"rules": list(rules)}, "clusterRoleBinding": {"subject": SUBJECT}} if rules else {}
    )
    return {
        "apiVersion": PERMISSIONS.api_version,
        "kind": PERMISSION.kind,
        "metadata": {"name": name, "namespace": W},
        "spec": asked | spec,
    }


class AddonEnvironment(HubAndWorker):
    """A hub with the stand-in for OCM's add-ons, and one managed cluster."""

    def __init__(self, hub: Hub, fleet: WorkerFleet) -> None:
        super().__init__(hub, fleet)
        self.ocm: OcmAddons

    def make(self, login: Login, **options: Any) -> OcmAddons:
        self.ocm = self.fleet.ocm_addons(login, slack=0.0, **options)
        return self.ocm

    def join(self) -> None:
        self.apply(*self.fleet.managed_clusters())
        self.until(lambda: bool(self.get(ADDON.at("v1alpha1"), "managed-serviceaccount", W)), True)

    # -- reading the hub

    def secret(self) -> Object | None:
        return self.get(SECRETS, NAME, W)

    def token(self) -> str:
        """The token on the hub; "" when there is none."""
        return decoded(self.secret(), "token")

    def account(self) -> Object:
        return self.get(ACCOUNTS, NAME, W) or {}

    def said(self) -> dict[str, str]:
        """The account's conditions by type: status, reason and message."""
        return conditions_of(self.account())

    def permitted(self, name: str = NAME) -> dict[str, str]:
        return conditions_of(self.get(PERMISSIONS, name, W) or {})

    # -- requests to the worker

    def worker_says(self, token: str, resource: Resource = WORKLOADS, body: Object | None = None) -> int:
        """The HTTP status of a list (with `body`: a create) with that token."""
        with Admin(Login(access=self.access(token))) as holder:
            try:
                if body:
                    holder.create(resource, body)
                else:
                    holder.list(resource)
            except ApiError as error:
                return error.status
        return 200

    def access(self, token: str) -> ClusterAccess:
        [cluster] = self.fleet.hubs[W].kubeconfig()["clusters"]
        server, authority = (cluster["cluster"][key] for key in ("server", "certificate-authority-data"))
        return ClusterAccess(server=server, token=token, authority=base64.b64decode(authority).decode())


def decoded(secret: Object | None, key: str) -> str:
    return base64.b64decode(((secret or {}).get("data") or {}).get(key, "")).decode()


def conditions_of(item: Object) -> dict[str, str]:
    conditions = (item.get("status") or {}).get("conditions") or ()
    return {
        condition["type"]: f"{condition['status']} {condition['reason']} {condition['message']}".strip()
        for condition in conditions
    }


Staged = Callable[..., AbstractContextManager[AddonEnvironment]]


@pytest.fixture
def staged(a_hub: HubMaker) -> Staged:
    """Starts a stage with CRDs of the hub and options of the stand-in; no cluster has joined yet."""

    @contextmanager
    def start(crds: list[Object] | None = None, **options: Any) -> Iterator[AddonEnvironment]:
        with (
            a_hub(crds=crds) as hub,
            WorkerFleet([W], shortest_token_seconds=1) as fleet,
            AddonEnvironment(hub, fleet) as one,
            StandIns(lambda: login_to(hub), [lambda login: one.make(login, **options)]),
        ):
            yield one

    return start


@pytest.fixture
def stage(staged: Staged) -> Iterator[AddonEnvironment]:
    with staged() as one:
        one.join()
        yield one


REPORTED = {"SecretCreated": "True SecretCreated", "TokenReported": "True TokenReported"}
COMPLETE = "True AppliedManifestWorkComplete Apply manifest work complete"


def complete(stage: AddonEnvironment, name: str = NAME) -> dict[str, str]:
    uid = (stage.get(PERMISSIONS, name, W) or {})["metadata"]["uid"]
    advice = f"kubectl -n {W} get ManifestWork {name}-{uid[:5]} -o yaml"
    return {
        "AppliedRBACManifestWork": (
            f"{COMPLETE}\nRun the following command to check the ManifestWork status:\n{advice}"
        )
    }


def test_a_token_is_reported_as_the_agent_does(stage: AddonEnvironment) -> None:
    stage.apply(account("10m"))
    stage.until(stage.said, REPORTED)
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


def test_a_token_has_only_the_granted_permissions(stage: AddonEnvironment) -> None:
    stage.apply(account())
    stage.until(stage.said, REPORTED)
    assert stage.worker_says(stage.token()) == 403
    stage.apply(permission(READ))
    stage.until(stage.permitted, complete(stage))
    token, one = stage.token(), {"metadata": {"name": "one", "namespace": "default"}}
    assert [stage.worker_says(token, kind) for kind in (WORKLOADS, JOBS, SECRETS)] == [200, 403, 403]
    assert stage.worker_says(token, WORKLOADS, one) == 403


def test_changing_a_permission_changes_the_rbac_objects(stage: AddonEnvironment) -> None:
    stage.apply(account(), permission(READ))
    stage.until(lambda: stage.worker_says(stage.token()) if stage.token() else 0, 200)
    stage.apply(permission(JOBS_TOO))
    stage.until(lambda: stage.worker_says(stage.token(), JOBS), 200)
    assert stage.worker_says(stage.token()) == 403


def test_objects_removed_from_a_permission_are_deleted(stage: AddonEnvironment) -> None:
    stage.apply(account(), permission(READ))
    stage.until(lambda: bool(stage.worker.get(BINDING, NAME)), True)
    stage.apply(permission(READ, clusterRoleBinding={"subject": SUBJECT, "name": "another"}))
    stage.until(lambda: bool(stage.worker.get(BINDING, "another")), True)
    stage.until(lambda: stage.worker.get(BINDING, NAME), None)


def test_deleting_a_permission_deletes_its_rbac_objects(stage: AddonEnvironment) -> None:
    stage.apply(account(), permission(READ))
    stage.until(lambda: stage.worker_says(stage.token()) if stage.token() else 0, 200)
    assert stage.list(WORKS)[0]["metadata"]["finalizers"] == [WORK_FINALIZER]
    stage.delete(PERMISSIONS, NAME, W)
    stage.until(lambda: stage.worker_says(stage.token()), 403)
    stage.until(lambda: len(stage.list(WORKS)), 0)
    assert [stage.worker.get(kind, NAME) for kind in (ROLE, BINDING)] == [None, None]


def test_a_permission_created_too_early_is_not_retried(stage: AddonEnvironment) -> None:
    """Its controller does not watch accounts: only another change of the permission triggers a retry."""
    stage.apply(permission(READ))
    failure = (
        "False FailedBuildManifestWork"
        f' ManagedServiceAccount.authentication.open-cluster-management.io "{NAME}" not found'
    )
    stage.until(stage.permitted, {"AppliedRBACManifestWork": failure})
    stage.apply(account())
    stage.until(stage.said, REPORTED)
    stage.pause(0.2)
    assert stage.permitted() == {"AppliedRBACManifestWork": failure}
    assert stage.worker_says(stage.token()) == 403
    stage.merge(PERMISSIONS, NAME, {"metadata": {"annotations": {"look": "again"}}}, namespace=W)
    stage.until(stage.permitted, complete(stage))
    assert stage.worker_says(stage.token()) == 200


def test_a_permission_is_reconciled_when_the_agents_namespace_changes(stage: AddonEnvironment) -> None:
    stage.apply(permission(READ))
    stage.until(lambda: list(stage.permitted()), ["AppliedRBACManifestWork"])
    stage.apply(account())
    stage.until(stage.said, REPORTED)
    addon, elsewhere = ADDON.at("v1alpha1"), {"status": {"namespace": "elsewhere"}}
    stage.merge(addon, "managed-serviceaccount", elsewhere, namespace=W, subresource="status")
    stage.until(stage.permitted, complete(stage))
    subjects = [{"kind": "ServiceAccount", "namespace": "elsewhere", "name": NAME}]
    assert (stage.worker.get(BINDING, NAME) or {})["subjects"] == subjects


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        pytest.param(
            permission(name="none"),
            {"Validation": "False FailedValidationNoBindingsDefined no bindings defined"},
            id="no bindings",
        ),
        pytest.param(
            permission(READ, roles=[{"rules": [READ]}]),
            {
                "AppliedRBACManifestWork": "False FailedBuildManifestWork"
                " both Role Namespace and NamespaceSelector cannot be nil and empty"
            },
            id="a role without namespace",
        ),
    ],
)
def test_a_permission_that_cannot_be_applied_reports_it(
    stage: AddonEnvironment, asked: Object, said: dict[str, str]
) -> None:
    stage.apply(account(), asked)
    stage.until(lambda: stage.permitted(asked["metadata"]["name"]), said)


def test_without_a_managed_cluster_nothing_happens(staged: Staged) -> None:
    with staged() as stage:
        stage.apply(namespace(W))
        stage.apply(account(), permission(READ))
        why = "False FailedValidationNotInManagedClusterNamespace namespace value is not a managed cluster"
        stage.until(stage.permitted, {"Validation": why})
        assert (stage.secret(), stage.said()) == (None, {})
        stage.join()
        stage.until(stage.said, REPORTED)
        stage.until(stage.permitted, {"Validation": why} | complete(stage))


def test_permissions_in_one_namespace_and_for_other_subjects(stage: AddonEnvironment) -> None:
    someone = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}
    bound = {"namespace": "default", "roleRef": {"kind": "Role"}, "subjects": [SUBJECT, someone]}
    stage.apply(
        account(), permission(roles=[{"namespace": "default", "rules": [READ]}], roleBindings=[bound])
    )
    stage.until(stage.permitted, complete(stage))
    subjects = (stage.worker.get(RBAC_KINDS["RoleBinding"].at("v1"), NAME, "default") or {})["subjects"]
    assert subjects == [{"kind": "ServiceAccount", "namespace": AGENT_NAMESPACE, "name": NAME}, someone]
    status = (stage.get(PERMISSIONS, NAME, W) or {})["status"]["resourceStatus"]
    assert {kind: [item["name"] for item in items] for kind, items in status.items()} == {
        "roles": [NAME],
        "roleBindings": [NAME],
    }


# rotation


def test_a_refresh_creates_a_new_token_and_keeps_the_old_one_valid(stage: AddonEnvironment) -> None:
    stage.apply(account(), permission(READ))
    stage.until(stage.permitted, complete(stage))
    old = stage.token()
    stage.ocm.refresh(W)
    stage.until(lambda: stage.token() != old, True)
    assert [stage.worker_says(token) for token in (old, stage.token())] == [200, 200]


def test_a_token_is_refreshed_after_four_fifths_of_its_lifetime(stage: AddonEnvironment) -> None:
    stage.apply(account("5s"), permission(READ))
    stage.until(stage.permitted, complete(stage))
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


def test_a_revoked_token_is_rejected_and_replaced(stage: AddonEnvironment) -> None:
    stage.apply(account(), permission(READ))
    stage.until(stage.permitted, complete(stage))
    old = stage.token()
    stage.ocm.revoke(W)
    assert stage.worker_says(old) == 401
    stage.until(lambda: stage.token() != old, True)
    assert stage.worker_says(stage.token()) == 200


def test_paused_agents_act_after_they_resume(stage: AddonEnvironment) -> None:
    stage.ocm.pause(W)
    stage.apply(account(), permission(READ))
    stage.until(lambda: len(stage.list(WORKS)), 1)
    assert (stage.secret(), stage.said()) == (None, {})
    stage.ocm.resume(W)
    stage.until(stage.said, REPORTED)
    stage.until(lambda: stage.worker_says(stage.token()), 200)


def test_a_worker_is_reconciled_after_an_outage(stage: AddonEnvironment) -> None:
    stage.fleet.kill(W)
    stage.apply(account())
    stage.pause(0.1)
    assert stage.secret() is None
    stage.fleet.revive(W)
    stage.until(stage.said, REPORTED)


# changes by users


def test_a_deleted_secret_is_created_again(stage: AddonEnvironment) -> None:
    stage.apply(account())
    stage.until(stage.said, REPORTED)
    before = stage.token()
    stage.delete(SECRETS, NAME, W)
    stage.until(lambda: stage.token() not in ("", before), True)


def put_token(stage: AddonEnvironment, token: str) -> None:
    data = {"token": base64.b64encode(token.encode()).decode()}
    stage.merge(SECRETS, NAME, {"data": data}, namespace=W)


def test_a_malformed_token_is_reported_and_replaced_only_with_a_new_secret(stage: AddonEnvironment) -> None:
    stage.apply(account())
    stage.until(stage.said, REPORTED)
    put_token(stage, "broken")
    why = "failed to make a decision on token creation: invalid JWT token format"
    stage.until(stage.said, REPORTED | {"TokenReported": f"False TokenReportFailed {why}"})
    assert stage.token() == "broken"
    stage.delete(SECRETS, NAME, W)
    stage.until(stage.said, REPORTED)


def test_a_token_that_the_worker_rejects_is_replaced(stage: AddonEnvironment) -> None:
    stage.apply(account())
    stage.until(stage.said, REPORTED)
    forged = stage.token()[:-8] + "AAAAAAAA"
    put_token(stage, forged)
    stage.until(lambda: stage.token() != forged, True)


def test_a_failed_token_request_is_reported(stage: AddonEnvironment) -> None:
    stage.apply(account("500ms"))
    why = "failed to request token for service-account: TokenRequest.authentication.k8s.io"
    stage.until(
        lambda: stage.said().get("TokenReported", "").startswith(f"False TokenReportFailed {why}"), True
    )
    assert stage.secret() is None


def test_a_secret_holds_only_the_reported_data(stage: AddonEnvironment) -> None:
    stage.apply(account())
    stage.until(stage.said, REPORTED)
    stage.merge(SECRETS, NAME, {"data": {"more": "eA=="}}, namespace=W)
    stage.ocm.refresh(W)
    stage.until(lambda: sorted((stage.secret() or {})["data"]), ["ca.crt", "token"])


def test_a_foreign_service_account_is_used_but_not_deleted(stage: AddonEnvironment) -> None:
    home = namespace(AGENT_NAMESPACE)
    metadata = {"name": NAME, "namespace": AGENT_NAMESPACE}
    stage.worker.apply(home, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    stage.apply(account())
    stage.until(stage.said, REPORTED)
    token = stage.token()
    stage.delete(ACCOUNTS, NAME, W)
    stage.until(stage.secret, None)
    stage.pause(0.1)
    assert stage.worker_says(token) == 403


def test_deleting_an_account_deletes_everything(stage: AddonEnvironment) -> None:
    stage.apply(account())
    stage.until(stage.said, REPORTED)
    token = stage.token()
    stage.delete(ACCOUNTS, NAME, W)
    stage.until(stage.secret, None)
    stage.until(lambda: stage.worker.get(SERVICE_ACCOUNT.at("v1"), NAME, AGENT_NAMESPACE), None)
    assert stage.worker_says(token) == 401


def test_the_namespace_of_a_deleted_cluster_stays(stage: AddonEnvironment) -> None:
    """As with OCM itself: objects of others stay, and a Secret with an invalid token."""
    stage.apply(account(), permission(READ))
    stage.until(stage.permitted, complete(stage))
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


def test_deleting_the_namespace_deletes_everything(staged: Staged) -> None:
    with staged(keep_namespace=False) as stage:
        stage.join()
        stage.apply(account(), permission(READ))
        stage.until(stage.permitted, complete(stage))
        stage.delete(CLUSTERS, W)
        stage.until(lambda: stage.get(NAMESPACE.at("v1"), W), None)
        left = [stage.get(kind, NAME, W) for kind in (ACCOUNTS, PERMISSIONS, SECRETS)]
        assert left == [None, None, None]
        stage.until(lambda: stage.worker.get(ROLE, NAME), None)


# versions of the API


def test_an_account_in_the_old_version_is_reconciled(stage: AddonEnvironment) -> None:
    stage.apply(account(version="v1alpha1"))
    stage.until(stage.said, REPORTED)


def test_a_hub_that_serves_only_the_old_version(staged: Staged) -> None:
    with staged(crds=only_the_old_version()) as stage:
        stage.join()
        stage.apply(account(version="v1alpha1"))
        stage.until(lambda: bool(stage.token()), True)
        [owner] = (stage.secret() or {})["metadata"]["ownerReferences"]
        assert owner["apiVersion"] == "authentication.open-cluster-management.io/v1alpha1"


def only_the_old_version() -> list[Object]:
    crds = bundled()
    [crd] = [one for one in crds if one["metadata"]["name"] == str(ACCOUNT)]
    [version] = [one for one in crd["spec"]["versions"] if one["name"] == "v1alpha1"]
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
    stage.until(stage.said, REPORTED)
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
    stage.until(stage.said, REPORTED)
    stage.pause(0.1)
    assert synced(stage) is None


# many clusters, restarts


def test_a_second_run_writes_nothing(a_hub: HubMaker) -> None:
    with a_hub() as hub, WorkerFleet([W]) as fleet, AddonEnvironment(hub, fleet) as stage:
        with StandIns(lambda: login_to(hub), [stage.make]):
            stage.join()
            stage.apply(account(), permission(READ))
            stage.until(stage.permitted, complete(stage))
            stage.until(stage.said, REPORTED)
        before = [stage.list(kind) for kind in (ACCOUNTS, PERMISSIONS, WORKS, SECRETS)]
        with StandIns(lambda: login_to(hub), [stage.make]):
            stage.pause(0.5)
        assert [stage.list(kind) for kind in (ACCOUNTS, PERMISSIONS, WORKS, SECRETS)] == before


def test_an_unreachable_cluster_does_not_delay_others(a_hub: HubMaker) -> None:
    names = ["w1", "w2"]
    with a_hub() as hub, WorkerFleet(names) as fleet, AddonEnvironment(hub, fleet) as stage:
        fleet.kill("w1")
        with StandIns(lambda: login_to(hub), [stage.make]):
            stage.apply(*fleet.managed_clusters())
            stage.until(lambda: bool(stage.get(NAMESPACE.at("v1"), "w2")), True)
            both = [account() | {"metadata": {"name": NAME, "namespace": name}} for name in names]
            stage.apply(*both)
            stage.until(lambda: bool(stage.get(SECRETS, NAME, "w2")), True)
            assert stage.secret() is None
