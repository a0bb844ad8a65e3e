"""Short calls that play the admin, OCM and Kueue on a hub over HTTP, and controllers on that hub."""

import base64
import copy
import json
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import requests

from placement_ac.config.settings import Settings
from placement_lab.demo.environment import ControllerThread
from placement_lab.hub import Hub
from placement_lab.short_waits import short_waits
from tests.support.builders import kubeconfig
from tests.support.envtest import session_to

T = TypeVar("T")
Object = dict[str, Any]

NS = "kueue-system"
CORE = "/api/v1"
KUEUE = "/apis/kueue.x-k8s.io"
OCM = f"/apis/cluster.open-cluster-management.io/v1beta1/namespaces/{NS}"
PROFILES = f"/apis/multicluster.x-k8s.io/v1alpha1/namespaces/{NS}/clusterprofiles"
SCORES = "/apis/cluster.open-cluster-management.io/v1alpha1/namespaces/{}/addonplacementscores"
PARAMETERS = {"apiGroup": "cluster.open-cluster-management.io", "kind": "Placement"}
KUBECONFIG = base64.b64encode(kubeconfig(server="https://127.0.0.1:1")).decode()
"""The content of a Secret: valid, but no server listens there."""
TYPES = {
    "merge": "application/merge-patch+json",
    "apply": "application/apply-patch+yaml",
    "json": "application/json-patch+json",
}


LOOKS_PER_SECOND: Final = 25
"""A quiet machine looks more often; on one where each look takes longer, so does what is waited for."""


def eventually(ask: Callable[[], T], wanted: Any = True, *, seconds: float = 8.0) -> T:
    """Return `ask()` once it equals `wanted` (default: is true); fail with the last answer in the end.

    The end comes after so many seconds, and not before as many looks as a quiet machine takes in them.
    """
    end, looks = time.monotonic() + seconds, 0
    while True:
        answer = ask()
        if answer == wanted or (wanted is True and answer):
            return answer
        looks += 1
        late = looks > seconds * LOOKS_PER_SECOND and time.monotonic() > end
        assert not late, f"still {answer!r}, not {wanted!r}"
        time.sleep(0.03)  # each look costs the hub and this process 5 ms of CPU


def free_port() -> int:
    """Return an unused port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Driver:
    """Calls on one hub; `v` is the version of Kueue's API that it speaks."""

    def __init__(self, hub: Hub, v: str = "v1beta2") -> None:
        self.hub = hub
        self.v = v
        self.ocm = OCM
        self.session = session_to(hub)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def in_namespace(self, name: str) -> "Driver":
        """Create a namespace and return a driver whose Placements are in it."""
        other = copy.copy(self)
        other.ocm = OCM.replace(NS, name)
        other.namespace(name)
        return other

    def ask(self, method: str, path: str, body: Any = None, form: str = "", **query: str) -> Object:
        """Send a request and return the JSON of the response; fails on 4xx and 5xx."""
        answer = self.try_(method, path, body, form, **query)
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text}"
        return dict(answer.json())

    def try_(
        self, method: str, path: str, body: Any = None, form: str = "", **query: str
    ) -> requests.Response:
        headers = {"Content-Type": TYPES.get(form, "application/json")}
        return self.session.request(
            method,
            self.hub.url + path,
            data=None if body is None else json.dumps(body),
            headers=headers,
            params={"fieldManager": "admin"} | query if method != "GET" else query,
            timeout=20,
        )

    def get(self, path: str) -> Object | None:
        answer = self.try_("GET", path)
        return None if answer.status_code == 404 else dict(answer.json())

    def kueue(self, plural: str, name: str = "", sub: str = "") -> str:
        return "/".join(part for part in (KUEUE, self.v, plural, name, sub) if part)

    # -- writing

    def namespace(self, name: str) -> None:
        self.try_("POST", f"{CORE}/namespaces", {"metadata": {"name": name}})

    def secret(self, name: str, key: str = "kubeconfig", value: str = KUBECONFIG) -> None:
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {key: value}}
        self.ask("POST", f"{CORE}/namespaces/{NS}/secrets", body)

    def secrets_for(self, *clusters: str) -> None:
        for cluster in clusters:
            self.secret(f"multikueue-{cluster}")

    def profile(self, cluster: str, **status: Any) -> None:
        """Create a ClusterProfile as OCM does."""
        body = {
            "apiVersion": "multicluster.x-k8s.io/v1alpha1",
            "kind": "ClusterProfile",
            "metadata": {"name": cluster},
            "spec": {"clusterManager": {"name": "open-cluster-management"}},
        }
        self.ask("POST", PROFILES, body)
        self.ask("PATCH", f"{PROFILES}/{cluster}/status", {"status": status}, "merge")

    def check(self, name: str, placement: str | None = None, **parameters: Any) -> Object:
        """Create an AdmissionCheck of ours; its Placement has the same name by default."""
        spec: Object = {"controllerName": "open-cluster-management.io/placement"}
        spec["parameters"] = PARAMETERS | {"name": placement or name} | parameters
        return self._kueue("AdmissionCheck", "admissionchecks", name, spec)

    def bare_check(self, name: str) -> Object:
        spec = {"controllerName": "open-cluster-management.io/placement"}
        return self._kueue("AdmissionCheck", "admissionchecks", name, spec)

    def multikueue_check(self, name: str, config: str) -> Object:
        parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": config}
        spec = {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}
        return self._kueue("AdmissionCheck", "admissionchecks", name, spec)

    def config(self, name: str, *clusters: str, **metadata: Any) -> Object:
        return self._kueue(
            "MultiKueueConfig", "multikueueconfigs", name, {"clusters": list(clusters)}, **metadata
        )

    def cluster(self, name: str, secret: str = "by-hand", **metadata: Any) -> Object:
        spec = {"clusterSource": {"kubeConfig": {"location": secret, "locationType": "Secret"}}}
        return self._kueue("MultiKueueCluster", "multikueueclusters", name, spec, **metadata)

    def _kueue(self, kind: str, plural: str, name: str, spec: Object, **metadata: Any) -> Object:
        body = {
            "apiVersion": f"kueue.x-k8s.io/{self.v}",
            "kind": kind,
            "metadata": {"name": name} | metadata,
            "spec": spec,
        }
        return self.ask("POST", self.kueue(plural), body)

    def placement(self, name: str, selected: int | None = None, **spec: Any) -> Object:
        created = self.ask("POST", f"{self.ocm}/placements", _ocm("Placement", name) | {"spec": spec})
        if selected is not None:
            self.placement_says(name, selected)
        return created

    def placement_says(self, name: str, selected: int, reason: str = "", message: str = "") -> None:
        """Write the Placement's status as OCM does, without groups."""
        condition = {
            "type": "PlacementSatisfied",
            "status": "False" if reason else "True",
            "reason": reason or "AllDecisionsScheduled",
            "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        status = {"numberOfSelectedClusters": selected, "conditions": [condition]}
        self.ask("PATCH", f"{self.ocm}/placements/{name}/status", {"status": status}, "merge")

    def decide(self, placement: str, *clusters: Any, index: int = 1, group: int = 0) -> None:
        """Write a PlacementDecision; a cluster is a name, or a (name, score)."""
        name = f"{placement}-decision-{index}"
        body = _ocm("PlacementDecision", name)
        body["metadata"]["labels"] = {
            "cluster.open-cluster-management.io/placement": placement,
            "cluster.open-cluster-management.io/decision-group-index": str(group),
        }
        if owner := self.get(f"{self.ocm}/placements/{placement}"):
            body["metadata"]["ownerReferences"] = [owner_reference(owner)]
        self.try_("POST", f"{self.ocm}/placementdecisions", body)
        self.decision_status(name, [_decided(cluster) for cluster in clusters])

    def lose_placement(self, name: str) -> None:
        """Delete a Placement, if it is there, and its decision, as a garbage collector does."""
        self.try_("DELETE", f"{self.ocm}/placements/{name}")
        self.try_("DELETE", f"{self.ocm}/placementdecisions/{name}-decision-1")

    def decision_status(self, name: str, decisions: Iterable[Object]) -> None:
        patch = {"status": {"decisions": list(decisions)}}
        self.ask("PATCH", f"{self.ocm}/placementdecisions/{name}/status", patch, "merge")

    def select(self, name: str, *clusters: Any) -> None:
        """Create everything that makes a check Active: Secrets, Placement, decision."""
        for cluster in clusters:
            named = cluster if isinstance(cluster, str) else cluster[0]
            if not self.get(f"{CORE}/namespaces/{NS}/secrets/multikueue-{named}"):
                self.secrets_for(named)
        self.placement(name)
        self.decide(name, *clusters)

    # -- reading

    def listed(self, config: str) -> list[str] | None:
        found = self.get(self.kueue("multikueueconfigs", config))
        return found and list(found["spec"]["clusters"])

    def clusters(self) -> list[str]:
        """The names of all MultiKueueClusters."""
        return [obj["metadata"]["name"] for obj in self.ask("GET", self.kueue("multikueueclusters"))["items"]]

    def active(self, check: str) -> Object:
        """The condition `Active` of an AdmissionCheck, {} when it has none."""
        found = self.get(self.kueue("admissionchecks", check)) or {}
        conditions = (found.get("status") or {}).get("conditions") or []
        return next((c for c in conditions if c["type"] == "Active"), {})

    def reason(self, check: str) -> str:
        return str(self.active(check).get("reason", ""))

    def writes(self, since: int = 0) -> list[tuple[str, str]]:
        """The writes of controllers from the journal, without events: (method, path)."""
        return [
            (request.method, request.path)
            for request in self.hub.journal[since:]
            if request.method in ("POST", "PUT", "PATCH", "DELETE") and request.user_agent == "placement-ac"
            if "/events" not in request.path
        ]

    def events(self, kind: str = "AdmissionCheck") -> list[Object]:
        """The Kubernetes events on objects of that kind, in the order in which they were first posted."""
        items = self.ask("GET", f"{CORE}/namespaces/default/events")["items"]
        named = {"apiVersion": "v1", "kind": "Event"}  # an API server leaves both out of its lists
        there = {
            item["metadata"]["name"]: named | item for item in items if item["involvedObject"]["kind"] == kind
        }
        posted = [
            r.body["metadata"]["name"]
            for r in list(self.hub.journal)
            if r.path.endswith("/events") and r.body
        ]
        return [there[name] for name in dict.fromkeys(posted) if name in there]


def owner_reference(owner: Object) -> Object:
    """Return a reference as OCM and Kueue set it, of the controller that has made an object."""
    named = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    identity = {key: owner["metadata"][key] for key in ("name", "uid")}
    return named | identity | {"controller": True, "blockOwnerDeletion": True}


def _ocm(kind: str, name: str) -> Object:
    return {
        "apiVersion": "cluster.open-cluster-management.io/v1beta1",
        "kind": kind,
        "metadata": {"name": name},
    }


def _decided(cluster: Any) -> Object:
    name, score = cluster if isinstance(cluster, tuple) else (cluster, 0)
    return {"clusterName": name, "reason": ""} | ({"score": score} if score else {})


class Controllers:
    """Starts controllers on one hub and stops all of them at the end of the test."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(short_waits())
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __call__(self, **settings: Any) -> ControllerThread:
        """Start a controller whose waits are zero by default: most tests check the final state.

        `waiting_grace` may be shorter than an admin may set it.
        """
        at_once: dict[str, Any] = {
            "settle": 0,
            "unlist_after": 0,
            "mass_loss_grace": 0,
            "leader_elect": False,
        }
        short = {name: settings.pop(name) for name in ("waiting_grace",) if name in settings}
        valid = Settings(kubeconfig=self.kubeconfig, **at_once | settings)
        return ControllerThread(valid.model_copy(update=short))

    def start(self, **settings: Any) -> ControllerThread:
        return self._stack.enter_context(self(**settings))
