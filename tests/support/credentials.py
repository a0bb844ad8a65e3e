"""A stage for credentials: a hub, workers that check tokens and permissions, stand-ins for OCM and Kueue.

The hub has no Secrets yet. A worker has the name of its managed cluster; Kueue's times pass 10 times as
fast, and OCM's agent reacts at once.
"""

import base64
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from placement_ac.core.api.constants import MANAGED_CLUSTER
from placement_ac.core.kubeconfig.read import read_kubeconfig
from placement_ac.core.kubeconfig.source import ClusterAccess
from placement_ac.core.kubeconfig.write import write_kubeconfig
from placement_ac.kube.login import Login
from placement_lab.standins.fleet import WorkerFleet
from placement_lab.standins.kueue_manager import Kueue
from placement_lab.standins.ocm_addons import OcmAddons
from placement_lab.standins.runner import StandInFactory, StandIns
from tests.support import jobs
from tests.support.admin import login_to
from tests.support.driver import CORE, NS, Controllers, Driver, Object
from tests.support.jobs import SPEED, soon

ACCOUNTS = "/apis/authentication.open-cluster-management.io/v1beta1"
PERMISSIONS = "/apis/rbac.open-cluster-management.io/v1alpha1"
MANAGED = MANAGED_CLUSTER.at("v1").path()
NAME = "placement-ac"


class Stage:
    """Reads and changes the objects. The check and its Placement are called p."""

    def __init__(self, admin: Driver, controllers: Controllers, fleet: WorkerFleet) -> None:
        self.admin = admin
        self.controllers = controllers
        self.fleet = fleet
        self.ocm: OcmAddons
        self.kueue: Kueue

    def make_ocm(self, login: Login) -> OcmAddons:
        self.ocm = self.fleet.ocm_addons(login, slack=0.0)
        return self.ocm

    def make_kueue(self, login: Login) -> Kueue:
        self.kueue = Kueue(login, speed=SPEED)
        return self.kueue

    def start(self, **settings: Any) -> Any:
        """Start a controller that provisions credentials."""
        provision = {"credentials_provision": "managed-serviceaccount", "frameworks": "batch/job"}
        return self.controllers.start(**provision | settings)

    def select(self, *clusters: str, placement: str = "p") -> None:
        self.admin.decide(placement, *clusters)
        self.admin.placement_says(placement, len(clusters))

    # -- reading

    def account(self, cluster: str, name: str = NAME) -> Object | None:
        return self.admin.get(f"{ACCOUNTS}/namespaces/{cluster}/managedserviceaccounts/{name}")

    def permission(self, cluster: str, name: str = NAME) -> Object | None:
        return self.admin.get(f"{PERMISSIONS}/namespaces/{cluster}/clusterpermissions/{name}")

    def reported(self, cluster: str, name: str = NAME) -> Object | None:
        """The Secret in which OCM reports the token."""
        return self.admin.get(f"{CORE}/namespaces/{cluster}/secrets/{name}")

    def secret(self, cluster: str, name: str = NAME) -> Object | None:
        """The Secret with the kubeconfig."""
        return self.admin.get(f"{CORE}/namespaces/{NS}/secrets/{name}-{cluster}")

    def token(self, cluster: str) -> str:
        """The token in the Secret that OCM reports; "" when there is none."""
        data = (self.reported(cluster) or {}).get("data") or {}
        return base64.b64decode(data.get("token", "")).decode()

    def access(self, cluster: str, name: str = NAME) -> ClusterAccess | None:
        """The access that our kubeconfig gives; None when it is missing or Kueue could not use it."""
        secret = self.secret(cluster, name)
        found = read_kubeconfig(base64.b64decode(secret["data"]["kubeconfig"])) if secret else None
        return found if isinstance(found, ClusterAccess) else None

    def token_in_kubeconfig(self, cluster: str) -> str:
        access = self.access(cluster)
        return access.token if access else ""

    def connected(self) -> list[str]:
        """The MultiKueueClusters that Kueue reports as connected."""
        items = self.admin.ask("GET", self.admin.kueue("multikueueclusters"))["items"]
        conditions = ((item, c) for item in items for c in (item.get("status") or {}).get("conditions") or ())
        return sorted(
            i["metadata"]["name"] for i, c in conditions if (c["type"], c["status"]) == ("Active", "True")
        )

    def source(self, name: str) -> Object:
        """The clusterSource of a MultiKueueCluster."""
        found = self.admin.get(self.admin.kueue("multikueueclusters", name)) or {"spec": {}}
        return found["spec"].get("clusterSource") or {}

    def ours(self) -> list[str]:
        """The existing objects that the controller provisioned: kind namespace/name."""
        return sorted(
            f"{item_kind} {item['metadata'].get('namespace', '')}/{item['metadata']['name']}"
            for item_kind, path in (
                ("MultiKueueConfig", self.admin.kueue("multikueueconfigs")),
                ("MultiKueueCluster", self.admin.kueue("multikueueclusters")),
                ("Secret", f"{CORE}/secrets"),
                ("ManagedServiceAccount", f"{ACCOUNTS}/managedserviceaccounts"),
                ("ClusterPermission", f"{PERMISSIONS}/clusterpermissions"),
            )
            for item in self.admin.ask("GET", path)["items"]
            if (item["metadata"].get("labels") or {}).get("app.kubernetes.io/managed-by") == NAME
        )

    def on_worker(self, cluster: str) -> list[str]:
        """The ServiceAccounts and ClusterRoles that OCM has created on a worker for the controller."""
        with Driver(self.fleet.hubs[cluster]) as worker:
            paths = (f"{CORE}/serviceaccounts", "/apis/rbac.authorization.k8s.io/v1/clusterroles")
            items = [item for path in paths for item in worker.ask("GET", path)["items"]]
        return sorted(i["metadata"]["name"] for i in items if i["metadata"]["name"] in (NAME, "multikueue"))

    def until_connected(self, *clusters: str) -> None:
        soon(self.connected, [f"p-{cluster}" for cluster in clusters])

    def until_renewed(self, cluster: str, before: str) -> None:
        """Wait until OCM has reported another token than `before` and our kubeconfig contains it."""
        soon(lambda: self.token(cluster) not in ("", before))
        self.until_current(cluster)

    def until_current(self, cluster: str) -> None:
        """Wait until our kubeconfig contains the token that OCM reported last."""
        soon(lambda: self.token(cluster) != "" and self.token(cluster) == self.token_in_kubeconfig(cluster))


@contextmanager
def open_stage(
    admin: Driver,
    controllers: Controllers,
    workers: Sequence[str],
    *,
    others: Sequence[StandInFactory | str] = (),
) -> Iterator[Stage]:
    """Set up the stage with its ManagedClusters, without Placement and controller."""
    with ExitStack() as opened:
        fleet = opened.enter_context(WorkerFleet(workers, shortest_token_seconds=1))
        stage = Stage(admin, controllers, fleet)
        makers = [stage.make_ocm, stage.make_kueue, *others]
        opened.enter_context(StandIns(lambda: login_to(admin.hub), makers))
        for cluster in fleet.managed_clusters():
            status = {"status": cluster.pop("status")}
            admin.ask("POST", MANAGED, cluster)
            admin.ask("PATCH", f"{MANAGED}/{cluster['metadata']['name']}/status", status, "merge")
        yield stage


def tokens_in(text: str, *hubs: Driver) -> list[str]:
    """The tokens of all Secrets on these hubs that a text contains, plain or in base64."""
    found = []
    for driver in hubs:
        for secret in driver.ask("GET", f"{CORE}/secrets")["items"]:
            for value in (secret.get("data") or {}).values():
                found += [one for one in (value, *_tokens(base64.b64decode(value).decode())) if one in text]
    return found


def _tokens(text: str) -> list[str]:
    """The token itself, or the tokens in a kubeconfig."""
    if text.startswith("{"):
        return [user["user"].get("token", text) for user in json.loads(text)["users"]]
    return [text]


def token_of(worker: Driver, seconds: int) -> str:
    """Request a token of a ServiceAccount on a worker with that lifetime."""
    worker.try_("POST", f"{CORE}/namespaces/default/serviceaccounts", {"metadata": {"name": "k"}})
    spec = {"spec": {"expirationSeconds": seconds}}
    answer = worker.ask("POST", f"{CORE}/namespaces/default/serviceaccounts/k/token", spec)
    return str(answer["status"]["token"])


def put(stage: Stage | jobs.Stage, cluster: str, token: str) -> None:
    """Write a Secret with a kubeconfig of another owner."""
    [entry] = stage.fleet.hubs[cluster].kubeconfig()["clusters"]
    authority = base64.b64decode(entry["cluster"]["certificate-authority-data"])
    content = write_kubeconfig(entry["cluster"]["server"], authority, token, cluster)
    assert isinstance(content, bytes)
    data = {"kubeconfig": base64.b64encode(content).decode()}
    path = f"{CORE}/namespaces/{NS}/secrets"
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"multikueue-{cluster}"}, "data": data}
    if stage.admin.get(f"{path}/multikueue-{cluster}"):
        stage.admin.ask("PATCH", f"{path}/multikueue-{cluster}", {"data": data}, "merge")
    else:
        stage.admin.ask("POST", path, body)
