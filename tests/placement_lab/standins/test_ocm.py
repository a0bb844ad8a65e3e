"""The stand-in for OCM over HTTP on the embedded hub; what it writes when: scheduling/test_stand_in.py."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from placement_ac.kube.login import Login
from placement_lab.hub import Hub
from placement_lab.standins.ocm import Scheduler
from placement_lab.standins.runner import StandIns
from tests.support.driver import eventually
from tests.support.envtest import session_to
from tests.support.real_hub import HubMaker

OCM = "cluster.open-cluster-management.io"
SPACES = f"/apis/{OCM}/v1beta1/namespaces/ns"
DECISIONS, PLACEMENTS = f"{SPACES}/placementdecisions", f"{SPACES}/placements"
BINDINGS = f"/apis/{OCM}/v1beta2/namespaces/ns/managedclustersetbindings"
SCORES = f"/apis/{OCM}/v1alpha1/namespaces/{{}}/addonplacementscores"
MERGE = {"Content-Type": "application/merge-patch+json"}
BY_GPU = {
    "sortBy": "Score",
    "scoreRateLimit": "0s",
    "prioritizerPolicy": {
        "mode": "Exact",
        "configurations": [
            {
                "scoreCoordinate": {"type": "AddOn", "addOn": {"resourceName": "usage", "scoreName": "gpu"}},
                "weight": 1,
            }
        ],
    },
}


class Api:
    """Requests of a user to the hub."""

    def __init__(self, hub: Hub) -> None:
        self._url = hub.url
        self._session = session_to(hub)

    def __call__(self, method: str, path: str, body: Any = None, **headers: Any) -> dict[str, Any]:
        answer = self._session.request(method, self._url + path, json=body, timeout=10, **headers)
        assert answer.status_code < 300, f"{method} {path}: {answer.status_code} {answer.text}"
        return dict(answer.json())

    def patch(self, path: str, body: Any) -> None:
        self("PATCH", path, body, headers=MERGE)

    def decided(self) -> list[list[str]] | None:
        """Return the decided clusters by name of the decision; None for no decision or one without status."""
        items = self("GET", DECISIONS)["items"]
        if not items or any("status" not in item for item in items):
            return None
        items.sort(key=lambda one: one["metadata"]["name"])
        return [[entry["clusterName"] for entry in item["status"]["decisions"]] for item in items]


@pytest.fixture(params=[False], ids=["today"])
def write_scores(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def hub(a_hub: HubMaker, tmp_path: Path, write_scores: bool) -> Iterator[Hub]:
    """A hub with only the stand-in for OCM."""
    kubeconfig = tmp_path / "hub.kubeconfig"
    with a_hub() as hub:
        hub.write_kubeconfig(kubeconfig)

        def scheduler(login: Login) -> Scheduler:
            return Scheduler(login, write_scores=write_scores)

        with StandIns(kubeconfig, [scheduler]):
            yield hub


@pytest.fixture
def api(hub: Hub) -> Api:
    """Two clusters `a` and `b` in a set that is bound in `ns`, with scores 1 and 2."""
    api = Api(hub)
    for name in ("ns", "a", "b"):
        api("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    api("POST", f"/apis/{OCM}/v1beta2/managedclustersets", obj("v1beta2", "ManagedClusterSet", "all"))
    for name, gpu in (("a", 1), ("b", 2)):
        cluster = obj("v1", "ManagedCluster", name, labels={f"{OCM}/clusterset": "all"})
        api("POST", f"/apis/{OCM}/v1/managedclusters", cluster | {"spec": {"hubAcceptsClient": True}})
        api("POST", SCORES.format(name), obj("v1alpha1", "AddOnPlacementScore", "usage"))
        score(api, name, gpu)
    api("POST", BINDINGS, obj("v1beta2", "ManagedClusterSetBinding", "all") | {"spec": {"clusterSet": "all"}})
    return api


def obj(version: str, kind: str, name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": f"{OCM}/{version}", "kind": kind, "metadata": {"name": name, **metadata}}


def score(api: Api, cluster: str, gpu: int) -> None:
    status = {"status": {"scores": [{"name": "gpu", "value": gpu}]}}
    api.patch(SCORES.format(cluster) + "/usage/status", status)


def place(api: Api, **spec: Any) -> None:
    api("POST", PLACEMENTS, obj("v1beta1", "Placement", "p") | {"spec": spec})


def test_a_placement_is_decided_and_its_status_written(api: Api) -> None:
    place(api)
    eventually(api.decided, [["a", "b"]])
    eventually(lambda: "status" in api("GET", f"{PLACEMENTS}/p"))
    status = api("GET", f"{PLACEMENTS}/p")["status"]
    assert status["numberOfSelectedClusters"] == 2
    assert status["decisionGroups"] == [
        {"decisionGroupIndex": 0, "decisionGroupName": "", "decisions": ["p-decision-1"], "clusterCount": 2}
    ]
    owner = api("GET", f"{DECISIONS}/p-decision-1")["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Placement", "p", True)


@pytest.mark.parametrize("write_scores", [True], indirect=True, ids=["proposed"])
def test_the_proposed_change_sorts_by_score(api: Api) -> None:
    place(api, **BY_GPU)
    eventually(api.decided, [["b", "a"]])
    score(api, "b", 0)
    eventually(api.decided, [["a", "b"]])
    entries = api("GET", f"{DECISIONS}/p-decision-1")["status"]["decisions"]
    assert [entry.get("score") for entry in entries] == [1, None]


def test_decisions_continue_after_an_outage(api: Api, hub: Hub) -> None:
    place(api)
    eventually(api.decided, [["a", "b"]])
    with hub.outage():
        time.sleep(0.1)  # the stand-in retries meanwhile
    api.patch(f"/apis/{OCM}/v1/managedclusters/a", {"metadata": {"labels": {f"{OCM}/clusterset": None}}})
    eventually(api.decided, [["b"]])
