"""
The stand-in for what OCM does about ManagedServiceAccounts and ClusterPermissions, on a hub and a worker.

What it has to do is told in the sources that `account_rules` and `permission_rules` name. Everything is
asked over HTTP: of the hub as an admin, of the worker with the token that came.
"""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Self

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
from placement_ac.core.kubeconfig.access import ClusterAccess
from placement_ac.kube.client import Object
from placement_ac.kube.login import Login
from placement_ac.lab.hub import Hub
from placement_ac.lab.hub.kinds import bundled
from placement_ac.lab.standins.cluster_agent import NAMESPACE, SERVICE_ACCOUNT
from placement_ac.lab.standins.cluster_permissions import ADDON, RBAC_KINDS, WORK, WORK_FINALIZER
from placement_ac.lab.standins.fleet import WorkerFleet
from placement_ac.lab.standins.kueue_jobs import JOB
from placement_ac.lab.standins.managed_service_accounts import AGENT_NAMESPACE
from placement_ac.lab.standins.ocm_addons import OcmAddons
from placement_ac.lab.standins.runner import StandIns
from tests.support.admin import Admin, login_to

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


class Stage(Admin):
    """An OCM hub with one managed cluster, and that cluster."""

    def __init__(self, hub: Hub, fleet: WorkerFleet) -> None:
        super().__init__(login_to(hub))
        self.fleet = fleet
        self.worker = Admin(fleet.login(W))
        self.ocm: OcmAddons

    def __enter__(self) -> Self:
        self.worker.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self.worker.__exit__()

    def make(self, login: Login, **options: Any) -> OcmAddons:
        self.ocm = self.fleet.ocm_addons(login, slack=0.0, **options)
        return self.ocm

    def join(self) -> None:
        self.apply(*self.fleet.managed_clusters())
        self.until(lambda: bool(self.get(ADDON.at("v1alpha1"), "managed-serviceaccount", W)), True)

    # -- what the hub tells

    def secret(self) -> Object | None:
        return self.get(SECRETS, NAME, W)

    def token(self) -> str:
        """The token on the hub; "" when there is none."""
        return decoded(self.secret(), "token")

    def account(self) -> Object:
        return self.get(ACCOUNTS, NAME, W) or {}

    def said(self) -> dict[str, str]:
        """The account's conditions: type, and reason with message where there is one."""
        return told(self.account())

    def permitted(self, name: str = NAME) -> dict[str, str]:
        return told(self.get(PERMISSIONS, name, W) or {})

    # -- what the worker says to a token

    def worker_says(self, token: str, resource: Resource = WORKLOADS, body: Object | None = None) -> int:
        """The HTTP status of a list (with `body`: a create) that comes with that token."""
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


def told(item: Object) -> dict[str, str]:
    conditions = (item.get("status") or {}).get("conditions") or ()
    return {one["type"]: f"{one['status']} {one['reason']} {one['message']}".strip() for one in conditions}


@contextmanager
def staged(crds: list[Object] | None = None, **options: Any) -> Iterator[Stage]:
    """A stage with CRDs of the hub and options of the stand-in; no cluster has joined."""
    with (
        Hub(crds=crds) as hub,
        WorkerFleet([W], shortest_token_seconds=1) as fleet,
        Stage(hub, fleet) as one,
        StandIns(lambda: login_to(hub), [lambda login: one.make(login, **options)]),
    ):
        yield one


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged() as one:
        one.join()
        yield one


REPORTED = {"SecretCreated": "True SecretCreated", "TokenReported": "True TokenReported"}
COMPLETE = "True AppliedManifestWorkComplete Apply manifest work complete"


def complete(stage: Stage, name: str = NAME) -> dict[str, str]:
    uid = (stage.get(PERMISSIONS, name, W) or {})["metadata"]["uid"]
    advice = f"kubectl -n {W} get ManifestWork {name}-{uid[:5]} -o yaml"
    return {
        "AppliedRBACManifestWork": (
            f"{COMPLETE}\nRun the following command to check the ManifestWork status:\n{advice}"
        )
    }


def test_a_token_is_reported_as_the_agent_does(stage: Stage) -> None:
    stage.apply(account("10m"))
    stage.until(stage.said, REPORTED)
    made, secret = stage.account(), stage.secret() or {}
    assert secret["metadata"]["labels"] == {
        "authentication.open-cluster-management.io/is-managed-serviceaccount": "true"
    }
    assert secret["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "authentication.open-cluster-management.io/v1beta1",
            "kind": "ManagedServiceAccount",
            "name": NAME,
            "uid": made["metadata"]["uid"],
        }
    ]
    assert (secret["type"], sorted(secret["data"])) == ("Opaque", ["ca.crt", "token"])
    [cluster] = stage.fleet.hubs[W].kubeconfig()["clusters"]
    authority = base64.b64decode(cluster["cluster"]["certificate-authority-data"]).decode()
    assert decoded(secret, "ca.crt").strip() == authority.strip()
    assert made["status"]["tokenSecretRef"]["name"] == NAME
    assert stage.worker.get(SERVICE_ACCOUNT.at("v1"), NAME, AGENT_NAMESPACE)


def test_a_token_may_do_what_the_permission_says_and_nothing_else(stage: Stage) -> None:
    stage.apply(account())
    stage.until(stage.said, REPORTED)
    assert stage.worker_says(stage.token()) == 403
    stage.apply(permission(READ))
    stage.until(stage.permitted, complete(stage))
    token, one = stage.token(), {"metadata": {"name": "one", "namespace": "default"}}
    assert [stage.worker_says(token, kind) for kind in (WORKLOADS, JOBS, SECRETS)] == [200, 403, 403]
    assert stage.worker_says(token, WORKLOADS, one) == 403


def test_a_permission_that_changes_changes_the_rights(stage: Stage) -> None:
    stage.apply(account(), permission(READ))
    stage.until(lambda: stage.worker_says(stage.token()) if stage.token() else 0, 200)
    stage.apply(permission(JOBS_TOO))
    stage.until(lambda: stage.worker_says(stage.token(), JOBS), 200)
    assert stage.worker_says(stage.token()) == 403


def test_what_a_permission_does_not_name_any_more_goes(stage: Stage) -> None:
    stage.apply(account(), permission(READ))
    stage.until(lambda: bool(stage.worker.get(BINDING, NAME)), True)
    stage.apply(permission(READ, clusterRoleBinding={"subject": SUBJECT, "name": "another"}))
    stage.until(lambda: bool(stage.worker.get(BINDING, "another")), True)
    stage.until(lambda: stage.worker.get(BINDING, NAME), None)


def test_a_permission_that_goes_takes_its_rights_along(stage: Stage) -> None:
    stage.apply(account(), permission(READ))
    stage.until(lambda: stage.worker_says(stage.token()) if stage.token() else 0, 200)
    assert stage.list(WORKS)[0]["metadata"]["finalizers"] == [WORK_FINALIZER]
    stage.delete(PERMISSIONS, NAME, W)
    stage.until(lambda: stage.worker_says(stage.token()), 403)
    stage.until(lambda: len(stage.list(WORKS)), 0)
    assert [stage.worker.get(kind, NAME) for kind in (ROLE, BINDING)] == [None, None]


def test_a_permission_that_comes_too_early_is_left_at_that(stage: Stage) -> None:
    """Its controller does not follow accounts: only another change of it has it looked at again."""
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


def test_a_permission_is_looked_at_again_when_the_agent_tells_where_it_lives(stage: Stage) -> None:
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
def test_a_permission_that_cannot_be_carried_out_says_so(
    stage: Stage, asked: Object, said: dict[str, str]
) -> None:
    stage.apply(account(), asked)
    stage.until(lambda: stage.permitted(asked["metadata"]["name"]), said)


def test_where_no_cluster_is_managed_nothing_is_done() -> None:
    with staged() as stage:
        stage.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": W}})
        stage.apply(account(), permission(READ))
        why = "False FailedValidationNotInManagedClusterNamespace namespace value is not a managed cluster"
        stage.until(stage.permitted, {"Validation": why})
        assert (stage.secret(), stage.said()) == (None, {})
        stage.join()
        stage.until(stage.said, REPORTED)
        stage.until(stage.permitted, {"Validation": why} | complete(stage))


def test_rights_in_one_namespace_and_for_others_than_accounts(stage: Stage) -> None:
    someone = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}
    bound = {"namespace": "default", "roleRef": {"kind": "Role"}, "subjects": [SUBJECT, someone]}
    stage.apply(
        account(), permission(roles=[{"namespace": "default", "rules": [READ]}], roleBindings=[bound])
    )
    stage.until(stage.permitted, complete(stage))
    subjects = (stage.worker.get(RBAC_KINDS["RoleBinding"].at("v1"), NAME, "default") or {})["subjects"]
    assert subjects == [{"kind": "ServiceAccount", "namespace": AGENT_NAMESPACE, "name": NAME}, someone]
    status = (stage.get(PERMISSIONS, NAME, W) or {})["status"]["resourceStatus"]
    assert {kind: [one["name"] for one in made] for kind, made in status.items()} == {
        "roles": [NAME],
        "roleBindings": [NAME],
    }


# rotation


def test_a_refresh_brings_a_new_token_and_leaves_the_old_one_good(stage: Stage) -> None:
    stage.apply(account(), permission(READ))
    stage.until(stage.permitted, complete(stage))
    old = stage.token()
    stage.ocm.refresh(W)
    stage.until(lambda: stage.token() != old, True)
    assert [stage.worker_says(token) for token in (old, stage.token())] == [200, 200]


def test_a_token_is_refreshed_when_four_fifths_of_its_life_have_passed(stage: Stage) -> None:
    stage.apply(account("5s"), permission(READ))
    stage.until(stage.permitted, complete(stage))
    first = stage.token()
    stage.until(lambda: stage.token() != first, True)
    left = expiry_of(first) - time.time()
    assert left < 2.0  # a fifth, and what is lost as Kubernetes tells whole seconds
    stage.until(lambda: stage.worker_says(first), 401)
    assert stage.worker_says(stage.token()) == 200
    stage.until(lambda: expiry_of(stage.token()), expiry(stage.account()))


def expiry_of(token: str) -> float:
    part = token.split(".")[1]
    return float(json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))["exp"])


def expiry(item: Object) -> float:
    return datetime.fromisoformat(item["status"]["expirationTimestamp"]).timestamp()


def test_a_revoked_token_is_refused_and_another_one_comes(stage: Stage) -> None:
    stage.apply(account(), permission(READ))
    stage.until(stage.permitted, complete(stage))
    old = stage.token()
    stage.ocm.revoke(W)
    assert stage.worker_says(old) == 401
    stage.until(lambda: stage.token() != old, True)
    assert stage.worker_says(stage.token()) == 200


def test_agents_that_are_cut_off_answer_later(stage: Stage) -> None:
    stage.ocm.pause(W)
    stage.apply(account(), permission(READ))
    stage.until(lambda: len(stage.list(WORKS)), 1)
    assert (stage.secret(), stage.said()) == (None, {})
    stage.ocm.resume(W)
    stage.until(stage.said, REPORTED)
    stage.until(lambda: stage.worker_says(stage.token()), 200)


def test_a_worker_that_is_down_is_served_when_it_is_back(stage: Stage) -> None:
    stage.fleet.kill(W)
    stage.apply(account())
    stage.pause(0.1)
    assert stage.secret() is None
    stage.fleet.revive(W)
    stage.until(stage.said, REPORTED)


# what people do


def test_a_secret_that_was_deleted_comes_again(stage: Stage) -> None:
    stage.apply(account())
    stage.until(stage.said, REPORTED)
    before = stage.token()
    stage.delete(SECRETS, NAME, W)
    stage.until(lambda: stage.token() not in ("", before), True)


def put_token(stage: Stage, token: str) -> None:
    data = {"token": base64.b64encode(token.encode()).decode()}
    stage.merge(SECRETS, NAME, {"data": data}, namespace=W)


def test_a_token_that_is_none_is_told_and_mended_only_with_a_new_secret(stage: Stage) -> None:
    stage.apply(account())
    stage.until(stage.said, REPORTED)
    put_token(stage, "broken")
    why = "failed to make a decision on token creation: invalid JWT token format"
    stage.until(stage.said, REPORTED | {"TokenReported": f"False TokenReportFailed {why}"})
    assert stage.token() == "broken"
    stage.delete(SECRETS, NAME, W)
    stage.until(stage.said, REPORTED)


def test_a_token_that_the_worker_does_not_take_is_replaced(stage: Stage) -> None:
    stage.apply(account())
    stage.until(stage.said, REPORTED)
    forged = stage.token()[:-8] + "AAAAAAAA"
    put_token(stage, forged)
    stage.until(lambda: stage.token() != forged, True)


def test_a_token_that_the_worker_will_not_make_is_told(stage: Stage) -> None:
    stage.apply(account("500ms"))
    why = "failed to request token for service-account: TokenRequest.authentication.k8s.io"
    stage.until(
        lambda: stage.said().get("TokenReported", "").startswith(f"False TokenReportFailed {why}"), True
    )
    assert stage.secret() is None


def test_a_secret_holds_what_was_reported_and_nothing_else(stage: Stage) -> None:
    stage.apply(account())
    stage.until(stage.said, REPORTED)
    stage.merge(SECRETS, NAME, {"data": {"more": "eA=="}}, namespace=W)
    stage.ocm.refresh(W)
    stage.until(lambda: sorted((stage.secret() or {})["data"]), ["ca.crt", "token"])


def test_a_service_account_of_somebody_else_is_used_but_not_deleted(stage: Stage) -> None:
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": AGENT_NAMESPACE}}
    metadata = {"name": NAME, "namespace": AGENT_NAMESPACE}
    stage.worker.apply(home, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    stage.apply(account())
    stage.until(stage.said, REPORTED)
    token = stage.token()
    stage.delete(ACCOUNTS, NAME, W)
    stage.until(stage.secret, None)
    stage.pause(0.1)
    assert stage.worker_says(token) == 403


def test_an_account_that_goes_takes_everything_along(stage: Stage) -> None:
    stage.apply(account())
    stage.until(stage.said, REPORTED)
    token = stage.token()
    stage.delete(ACCOUNTS, NAME, W)
    stage.until(stage.secret, None)
    stage.until(lambda: stage.worker.get(SERVICE_ACCOUNT.at("v1"), NAME, AGENT_NAMESPACE), None)
    assert stage.worker_says(token) == 401


def test_a_cluster_that_leaves_leaves_its_namespace(stage: Stage) -> None:
    """As with OCM itself: what others put there stays, a Secret with a dead token in it."""
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


def test_a_namespace_that_goes_takes_all_along() -> None:
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


def test_an_account_in_the_old_version_is_served(stage: Stage) -> None:
    stage.apply(account(version="v1alpha1"))
    stage.until(stage.said, REPORTED)


def test_a_hub_with_the_old_version_alone_is_served() -> None:
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


def synced(stage: Stage) -> Object | None:
    return stage.get(SECRETS, f"{W}-{NAME}", "kueue-system")


def test_the_token_is_copied_to_the_cluster_profile(stage: Stage) -> None:
    stage.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}}, profile())
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
def test_nothing_else_is_copied(stage: Stage, labels: dict[str, str], foreign: dict[str, str]) -> None:
    stage.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}})
    stage.apply(profile(**foreign), account(**labels))
    stage.until(stage.said, REPORTED)
    stage.pause(0.1)
    assert synced(stage) is None


# many, and again


def test_a_second_run_writes_nothing() -> None:
    with Hub() as hub, WorkerFleet([W]) as fleet, Stage(hub, fleet) as stage:
        with StandIns(lambda: login_to(hub), [stage.make]):
            stage.join()
            stage.apply(account(), permission(READ))
            stage.until(stage.permitted, complete(stage))
            stage.until(stage.said, REPORTED)
        before = [stage.list(kind) for kind in (ACCOUNTS, PERMISSIONS, WORKS, SECRETS)]
        with StandIns(lambda: login_to(hub), [stage.make]):
            stage.pause(0.5)
        assert [stage.list(kind) for kind in (ACCOUNTS, PERMISSIONS, WORKS, SECRETS)] == before


def test_one_cluster_that_is_down_keeps_no_other_waiting() -> None:
    names = ["w1", "w2"]
    with Hub() as hub, WorkerFleet(names) as fleet, Stage(hub, fleet) as stage:
        fleet.kill("w1")
        with StandIns(lambda: login_to(hub), [stage.make]):
            stage.apply(*fleet.managed_clusters())
            stage.until(lambda: bool(stage.get(NAMESPACE.at("v1"), "w2")), True)
            both = [account() | {"metadata": {"name": NAME, "namespace": name}} for name in names]
            stage.apply(*both)
            stage.until(lambda: bool(stage.get(SECRETS, NAME, "w2")), True)
            assert stage.secret() is None
