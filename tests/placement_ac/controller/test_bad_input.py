"""Bad input on a hub: each gets its clear message, blocks nobody else and deletes nothing.

Hubs with the CRDs of today refuse some of it; older ones did not, so the schemas are opened where need be.
"""

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from placement_ac.observability import logs
from placement_lab.hub import Hub
from tests.support.builders import kubeconfig
from tests.support.crds import strict_crds
from tests.support.driver import CORE, NS, OCM, PROFILES, Controllers, Driver, Object, eventually
from tests.support.real_hub import HubMaker

GENERATED = "MultiKueueConfig and MultiKueueCluster generated"
OPEN = ("placementdecisions.cluster.open-cluster-management.io", "clusterprofiles.multicluster.x-k8s.io")


def _open_status(crd: Object) -> Object:
    if crd["metadata"]["name"] in OPEN:
        for version in crd["spec"]["versions"]:
            schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            version["schema"]["openAPIV3Schema"]["properties"]["status"] = schema
    return crd


@pytest.fixture
def hub(a_hub: HubMaker) -> Iterator[Hub]:
    with a_hub(crds=[_open_status(crd) for crd in strict_crds()]) as hub:
        yield hub


@pytest.fixture
def good(admin: Driver) -> Driver:
    """A check, `good`, that must work whatever else there is; and one, `p`, that selects cluster a."""
    admin.check("good")
    admin.select("good", "g")
    admin.check("p")
    admin.placement("p")
    return admin


def _elsewhere(admin: Driver) -> None:
    admin.decide("p", "a")
    ref = {"kind": "Secret", "name": "kubeconfig", "namespace": "elsewhere"}
    admin.profile("a", credentials=[{"consumer": "kueue-admin", "accessRef": ref}])


def _missing(admin: Driver) -> None:
    admin.decide("p", "a")
    ref = {"kind": "Secret", "name": "kubeconfig", "namespace": NS}
    admin.profile("a", credentials=[{"consumer": "kueue-admin", "accessRef": ref}])


def _malformed_profile(admin: Driver) -> None:
    admin.decide("p", "a")
    admin.profile("a", credentials="none")


def _not_text(admin: Driver) -> None:
    admin.decide("p", "a")
    admin.secret("multikueue-a", value="/w==")


def _no_key(admin: Driver) -> None:
    admin.decide("p", "a")
    admin.secret("multikueue-a", key="value")


def _no_name(admin: Driver) -> None:
    admin.decide("p")
    admin.decision_status("p-decision-1", [{"clusterName": "", "reason": ""}])


def _malformed_decision(admin: Driver) -> None:
    admin.decide("p")
    patch = {"status": {"decisions": [{"clusterName": 7}]}}
    admin.ask("PATCH", f"{OCM}/placementdecisions/p-decision-1/status", patch, "merge")


@pytest.mark.parametrize(
    ("make", "reason", "expected_text"),
    [
        pytest.param(
            _elsewhere,
            "NoClusterUsable",
            "copy Secret elsewhere/kubeconfig to namespace kueue-system: "
            "ClusterProfile kueue-system/a names it, and Kueue reads no other namespace",
            id="Secret in another namespace",
        ),
        pytest.param(
            _missing,
            "NoClusterUsable",
            "create Secret kueue-system/kubeconfig with key kubeconfig: "
            "ClusterProfile kueue-system/a names it, and it does not exist",
            id="Secret that is not there",
        ),
        pytest.param(
            _malformed_profile,
            "NoClusterUsable",
            "fix ClusterProfile kueue-system/a: status.credentials: Input should be a valid list",
            id="malformed ClusterProfile",
        ),
        pytest.param(
            _not_text,
            "NoClusterUsable",
            "in Secret kueue-system/multikueue-a, put a kubeconfig: this is not YAML",
            id="non-UTF-8 Secret",
        ),
        pytest.param(
            _no_key,
            "NoClusterUsable",
            "in Secret kueue-system/multikueue-a, add key kubeconfig: it is missing",
            id="Secret without the key",
        ),
        pytest.param(
            _no_name,
            "NoClusterUsable",
            "1 of its entries has no clusterName; no selected cluster is usable: PlacementDecision kueue-",
            id="decision with an empty cluster name",
        ),
        pytest.param(
            _malformed_decision,
            "NoDecision",
            "PlacementDecision kueue-system/p-decision-1 status.decisions.0.clusterName: "
            "Input should be a valid string",
            id="malformed decision",
        ),
    ],
)
def test_bad_input_is_reported_and_blocks_no_other_check(
    good: Driver, controllers: Controllers, make: Callable[[Driver], None], reason: str, expected_text: str
) -> None:
    make(good)
    controllers.start()
    eventually(lambda: (good.reason("p"), good.reason("good")), (reason, "Active"))
    assert expected_text in good.active("p")["message"]
    assert good.listed("good") == ["good-g"]
    good.ask("DELETE", f"{CORE}/namespaces/{NS}/secrets/multikueue-g")
    good.secrets_for("g", "a" if not good.get(f"{CORE}/namespaces/{NS}/secrets/multikueue-a") else "b")
    eventually(lambda: good.reason("good"), "Active")


def test_a_decision_that_turns_unreadable_takes_nothing_away(
    hub: Hub, good: Driver, controllers: Controllers
) -> None:
    good.secrets_for("a", "b")
    good.decide("p", "a", "b")
    controllers.start()
    eventually(lambda: good.listed("p"), ["p-a", "p-b"])
    patch: Any = {"status": {"decisions": "?"}}
    good.ask("PATCH", f"{OCM}/placementdecisions/p-decision-1/status", patch, "merge")
    eventually(lambda: good.reason("p"), "SomeClustersUnusable")
    assert "PlacementDecision kueue-system/p-decision-1" in good.active("p")["message"]
    assert good.listed("p") == ["p-a", "p-b"]


def test_no_secret_is_shown_to_anyone(
    good: Driver, controllers: Controllers, capfd: pytest.CaptureFixture[str]
) -> None:
    logs.configure("text", "debug")
    value = base64.b64encode(kubeconfig("top-secret")).decode()
    good.secret("multikueue-a", value=value)
    good.decide("p", "a")
    controllers.start()
    eventually(lambda: good.reason("p"), "Active")
    good.hub.drop_watches("garbage")
    good.decide("p")
    eventually(lambda: good.reason("p"), "NoClusterSelected", seconds=15)
    shown = capfd.readouterr()
    for text in (shown.out, shown.err, str(good.ask("GET", good.kueue("admissionchecks")))):
        assert "top-secret" not in text
        assert value not in text
        assert good.hub.token not in text


def test_a_decision_that_the_placement_does_not_own_is_ignored(
    admin: Driver, controllers: Controllers
) -> None:
    admin.check("p")
    admin.select("p", "a")
    admin.secrets_for("b")
    controllers.start()
    eventually(lambda: admin.listed("p"), ["p-a"])
    labels = {"cluster.open-cluster-management.io/placement": "p"}
    forged = {
        "apiVersion": "cluster.open-cluster-management.io/v1beta1",
        "kind": "PlacementDecision",
        "metadata": {"name": "forged", "labels": labels},
    }
    admin.ask("POST", f"{admin.ocm}/placementdecisions", forged)
    admin.decision_status("forged", [{"clusterName": "b", "reason": ""}])
    problem = "delete PlacementDecision kueue-system/forged: Placement p does not own it, so it is ignored"
    eventually(lambda: admin.active("p").get("message"), f"{GENERATED}; {problem}")
    assert (admin.listed("p"), admin.reason("p"), admin.clusters()) == (["p-a"], "Active", ["p-a"])


def test_a_profile_that_is_nested_too_deeply_hides_no_other(
    hub: Hub, admin: Driver, controllers: Controllers, capsys: pytest.CaptureFixture[str]
) -> None:
    """kube-apiserver takes 10,000 levels; the embedded hub does not, so the answer is made here."""
    logs.configure("text", "warning")
    admin.check("p")
    admin.placement("p")
    admin.decide("p", "a")
    admin.secrets_for("a")
    admin.profile("a")
    listed = admin.ask("GET", PROFILES)
    deep = listed["items"][0] | {"metadata": {"name": "deep", "namespace": NS}, "spec": "NESTED"}
    text = json.dumps(listed | {"items": [deep, *listed["items"]]})
    body = text.replace('"NESTED"', '{"a":' * 5_000 + "1" + "}" * 5_000).encode()
    hub.faults.add("GET", f"^{PROFILES}$", agent="placement-ac", status=200, body=body)
    controllers.start()
    eventually(lambda: admin.listed("p"), ["p-a"])
    logs.configure("text", "error")
    [line] = [line for line in capsys.readouterr().err.splitlines() if "nested too deeply" in line]
    assert f"names=['{NS}/deep']" in line
