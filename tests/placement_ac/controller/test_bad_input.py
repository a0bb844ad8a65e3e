"""Bad input on a hub: each gets its clear message, blocks nobody else and deletes nothing.

Hubs with the CRDs of today refuse some of it; older ones did not, so the schemas are opened where need be.
"""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from placement_ac.observability import logs
from placement_lab.hub import Hub
from tests.support.builders import kubeconfig
from tests.support.crds import strict_crds
from tests.support.driver import CORE, NS, OCM, PROFILES, Controllers, Driver, Object, eventually
from tests.support.real_hub import HubMaker

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


def test_bad_input_is_reported_and_blocks_no_other_check(good: Driver, controllers: Controllers) -> None:
    """A ClusterProfile and a decision that cannot be read; all else is in tests of the core."""
    good.decide("p")
    patch = {"status": {"decisions": [{"clusterName": 7}]}}
    good.ask("PATCH", f"{OCM}/placementdecisions/p-decision-1/status", patch, "merge")
    good.check("q")
    good.placement("q")
    good.decide("q", "a")
    good.profile("a", credentials="none")
    controllers.start()
    wanted = {
        "p": (
            "NoDecision",
            "kueue-system/p-decision-1 status.decisions.0.clusterName: Input should be a valid string",
        ),
        "q": (
            "NoClusterUsable",
            "fix ClusterProfile kueue-system/a: status.credentials: Input should be a valid list",
        ),
    }
    for check, (reason, text) in wanted.items():
        eventually(lambda check=check: good.reason(check), reason)
        assert text in good.active(check)["message"]
    eventually(lambda: good.reason("good"), "Active")
    assert good.listed("good") == ["good-g"]
    good.ask("DELETE", f"{CORE}/namespaces/{NS}/secrets/multikueue-g")
    good.secrets_for("g")
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
