"""A hub with the stand-in for OCM's add-ons, and a worker where tokens are tried."""

import base64
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from placement_ac.core.api.constants import (
    ACCOUNT,
    ADDON,
    CLUSTER_PROFILE,
    JOB,
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
from placement_lab.standins.cluster_permissions import RBAC_KINDS, WORK
from placement_lab.standins.fleet import WorkerFleet
from placement_lab.standins.ocm_addons import OcmAddons
from tests.support.admin import Admin
from tests.support.hub_and_worker import HubAndWorker

W = "w1"
NAME = "placement-ac"
SECRETS, ACCOUNTS, PERMISSIONS = SECRET.at("v1"), ACCOUNT.at("v1beta1"), PERMISSION.at("v1alpha1")
WORKS, CLUSTERS, PROFILES = WORK.at("v1"), MANAGED_CLUSTER.at("v1"), CLUSTER_PROFILE.at("v1alpha1")
WORKLOADS, JOBS = WORKLOAD.at("v1beta2"), JOB.at("v1")
SUBJECT = {"apiGroup": ACCOUNT.group, "kind": ACCOUNT.kind, "name": NAME}
READ = {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads"], "verbs": ["get", "list", "watch"]}
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

    def create_account(self) -> None:
        """Create the account and wait for its token."""
        self.apply(account())
        self.until(self.account_says, REPORTED)

    # -- reading the hub

    def secret(self) -> Object | None:
        return self.get(SECRETS, NAME, W)

    def token(self) -> str:
        """The token on the hub; "" when there is none."""
        return decoded(self.secret(), "token")

    def account(self) -> Object:
        return self.get(ACCOUNTS, NAME, W) or {}

    def account_says(self) -> dict[str, str]:
        """The account's conditions by type: status, reason and message."""
        return conditions_of(self.account())

    def permission_says(self, name: str = NAME) -> dict[str, str]:
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
