"""
The stand-in's connection to a worker with a token of limited permissions.

Kueue's messages are in shared/kueue/broken-configuration.txt, "kubeconfig with a token that has no
rights". The worker is an embedded hub that enforces RBAC.
"""

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from placement_ac.core.api.constants import MULTIKUEUE_CLUSTER, WORKLOAD
from placement_ac.kube.client import Object
from placement_lab.standins.cluster_permissions import RBAC
from placement_lab.standins.fleet import WorkerFleet
from placement_lab.standins.kueue_manager import Kueue
from placement_lab.standins.multikueue import hub_job
from placement_lab.standins.runner import StandIns
from tests.support.admin import login_to
from tests.support.hub_and_worker import HubAndWorker
from tests.support.kueue_objects import admission_check, multikueue_config, namespace, queues
from tests.support.real_hub import HubMaker

W = "w1"
KUEUE = "kueue.x-k8s.io/v1beta2"
ROBOT = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}
FOLLOW = ["get", "list", "watch"]
ALL = [*FOLLOW, "create", "delete", "patch", "update"]
NO_RIGHT = (
    'workloads.kueue.x-k8s.io is forbidden: User "system:serviceaccount:default:robot" cannot {verb}'
    ' resource "workloads" in API group "kueue.x-k8s.io" at the cluster scope'
)
LONG = 0.01
"""At this speed Kueue retries after 500 s: an earlier change has another cause."""


def rules(*verbs: str) -> list[Object]:
    """A rule with `verbs` on Workloads and Jobs and their status."""
    return [
        {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads", "workloads/status"], "verbs": [*verbs]},
        {"apiGroups": ["batch"], "resources": ["jobs", "jobs/status"], "verbs": [*verbs]},
    ]


class RightsEnvironment(HubAndWorker):
    """A hub with Kueue, and a worker where the ServiceAccount `robot` has only the granted permissions."""

    def set_up(self, *verbs: str) -> None:
        """Create everything that Kueue needs on the hub; the token has the permissions `verbs`."""
        self.new_robot()
        self.grant(*verbs)
        self.apply(*(namespace(name) for name in ("kueue-system", "default")))
        self.hand_over(self.token())
        self.apply(multikueue_config("config", W), admission_check("mk", "config"))
        self.apply(*self.fleet.multikueue_clusters(), *queues("queue", "mk"))

    def new_robot(self) -> None:
        metadata = {"name": "robot", "namespace": "default"}
        self.worker.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})

    def grant(self, *verbs: str) -> None:
        role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "robot"}}
        reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "robot"}
        bound = {"kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [ROBOT]}
        self.worker.apply(role | {"rules": rules(*verbs) if verbs else []}, role | bound)

    def token(self) -> str:
        path = "/api/v1/namespaces/default/serviceaccounts/robot/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        return str(self.worker.request("POST", path, request)["status"]["token"])

    def hand_over(self, token: str) -> None:
        """Give Kueue the kubeconfig with that token."""
        kubeconfig = self.fleet.hubs[W].kubeconfig() | {
            "users": [{"name": "kubernetes-admin", "user": {"token": token}}]
        }
        data = {"kubeconfig": base64.b64encode(json.dumps(kubeconfig).encode()).decode()}
        [secret] = self.fleet.secrets()
        self.apply(secret | {"data": data})

    def says(self) -> str:
        """Kueue's condition on the worker, without the number of attempts."""
        item = self.get(MULTIKUEUE_CLUSTER.at("v1beta2"), W) or {}
        [condition] = (item.get("status") or {}).get("conditions") or [{}]
        message = condition.get("message", "").partition(";")[0]
        return f"{condition.get('reason', '')} | {message}"

    def copies(self) -> int:
        return len(self.worker.list(WORKLOAD.at("v1beta2")))


Staged = Callable[[float], AbstractContextManager[RightsEnvironment]]


@pytest.fixture
def staged(a_hub: HubMaker) -> Staged:
    """Starts a hub, a worker and Kueue at a speed."""

    @contextmanager
    def start(speed: float) -> Iterator[RightsEnvironment]:
        with (
            a_hub() as hub,
            WorkerFleet([W]) as fleet,
            RightsEnvironment(hub, fleet) as stage,
            StandIns(lambda: login_to(hub), [lambda login: Kueue(login, speed=speed)]),
        ):
            yield stage

    return start


@pytest.mark.parametrize(
    ("granted", "missing"),
    [
        pytest.param([], "watch", id="no right at all"),
        pytest.param(["get", "list"], "watch", id="no watch"),
        pytest.param(["get", "watch"], "list", id="no list"),
    ],
)
def test_a_token_without_permissions_is_reported_with_the_workers_message(
    staged: Staged, granted: list[str], missing: str
) -> None:
    with staged(20.0) as stage:
        stage.set_up(*granted)
        stage.until(stage.says, f"ClientConnectionFailed | {NO_RIGHT.format(verb=missing)}")
        stage.grant(*FOLLOW)
        stage.until(stage.says, "Active | Connected")


def test_a_forbidden_write_creates_nothing(staged: Staged) -> None:
    with staged(20.0) as stage:
        stage.set_up(*FOLLOW)
        stage.until(stage.says, "Active | Connected")
        stage.apply(hub_job("one", "default", "queue"))
        stage.until(lambda: len(stage.list(WORKLOAD.at("v1beta2"))), 1)
        stage.pause(0.5)
        assert stage.copies() == 0
        stage.grant(*ALL)
        stage.until(lambda: stage.fleet.counter.running("one"), [W])


def test_a_changed_secret_is_used_at_once(staged: Staged) -> None:
    with staged(LONG) as stage:
        stage.set_up(*FOLLOW)
        stage.until(stage.says, "Active | Connected")
        stage.hand_over("wrong")
        unknown = "failed to get server groups: the server has asked for the client to provide credentials"
        stage.until(stage.says, f"ClientConnectionFailed | {unknown}")
        stage.hand_over(stage.token())
        stage.until(stage.says, "Active | Connected")
