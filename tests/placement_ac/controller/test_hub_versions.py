"""Hubs of different ages: Kueue's API in every version, CRDs that come later, other namespaces."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from placement_ac.observability import logs
from placement_lab.hub import Hub, RecordedRequest
from tests.support.crds import strict_crds, with_kueue_in
from tests.support.driver import KUBECONFIG, Controllers, Driver, Object, eventually, owner_reference
from tests.support.real_hub import HubMaker
from tests.support.stage import shorten

KUEUE_GROUP = "/apis/kueue.x-k8s.io"
SCHEMAS = "/openapi/v3/apis/kueue.x-k8s.io/v1beta2"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MULTIKUEUE = ("multikueueconfigs.kueue.x-k8s.io", "multikueueclusters.kueue.x-k8s.io")


def kueue_of(version: str) -> list[Object]:
    """CRDs as if Kueue served that version alone."""
    return with_kueue_in(strict_crds(), version)


def _set_cap(crds: list[Object], most: int) -> list[Object]:
    for crd in crds:
        if crd["metadata"]["name"] == MULTIKUEUE[0]:
            for version in crd["spec"]["versions"]:
                spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
                spec["properties"]["clusters"]["maxItems"] = most
    return crds


def test_an_older_version_of_kueue_gets_its_own_fields(a_hub: HubMaker, tmp_path: Path) -> None:
    with a_hub(crds=kueue_of("v1beta1")) as hub, Driver(hub, "v1beta1") as admin:
        admin.namespace("kueue-system")
        admin.check("p")
        admin.select("p", "a")
        hub.write_kubeconfig(tmp_path / "kubeconfig")
        with Controllers(tmp_path / "kubeconfig") as controllers:
            controllers.start()
            eventually(lambda: admin.reason("p"), "Active")
        cluster = admin.get(admin.kueue("multikueueclusters", "p-a")) or {}
        assert cluster["spec"] == {"kubeConfig": {"location": "multikueue-a", "locationType": "Secret"}}
        assert cluster["metadata"]["ownerReferences"][0]["apiVersion"] == "kueue.x-k8s.io/v1beta1"
        assert admin.listed("p") == ["p-a"]


def test_the_cap_is_the_one_of_the_served_schema(a_hub: HubMaker, tmp_path: Path) -> None:
    with a_hub(crds=_set_cap(kueue_of("v1beta1"), 10)) as hub, Driver(hub, "v1beta1") as admin:
        admin.namespace("kueue-system")
        admin.check("p")
        names = [f"c{number:02}" for number in range(12)]
        admin.select("p", *names)
        hub.write_kubeconfig(tmp_path / "kubeconfig")
        with Controllers(tmp_path / "kubeconfig") as controllers:
            controllers.start()
            eventually(lambda: admin.reason("p"), "SomeClustersUnusable")
        assert admin.listed("p") == [f"p-{name}" for name in names[:10]]
        assert admin.active("p")["message"].endswith("2 beyond the 10 clusters that Kueue takes: c10, c11")


def test_crds_that_are_not_installed_yet_are_waited_for(
    a_hub: HubMaker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crds = strict_crds()
    with a_hub(crds=[]) as hub, Driver(hub) as admin:
        admin.namespace("kueue-system")
        hub.write_kubeconfig(tmp_path / "kubeconfig")
        logs.configure("json", "info")
        with Controllers(tmp_path / "kubeconfig") as controllers:
            controllers.start()
            eventually(lambda: "waiting for CRDs" in (output := capsys.readouterr().err) and output)
            for crd in crds:
                admin.ask("POST", CRDS, crd)
            admin.check("p")
            admin.select("p", "a")
            eventually(lambda: admin.reason("p"), "Active", seconds=15)


@pytest.mark.parametrize(
    ("is_running", "seconds"),
    [
        pytest.param(False, 4.0, id="at the start"),  # it asks again after 2 s anyway
        pytest.param(True, 2.0, id="while it works"),
    ],
)
def test_discovery_waits_as_long_as_the_api_server_asks(
    hub: Hub,
    admin: Driver,
    controllers: Controllers,
    monkeypatch: pytest.MonkeyPatch,
    is_running: bool,
    seconds: float,
) -> None:
    shorten(monkeypatch, REDISCOVERY_SECONDS=0.2)
    admin.check("p")
    admin.select("p", "a")
    if is_running:
        controllers.start()
        eventually(lambda: admin.reason("p"), "Active")
    refuse(hub, KUEUE_GROUP, 429, seconds)
    if not is_running:
        controllers.start()
    assert until_served(hub, KUEUE_GROUP) >= seconds


@pytest.mark.long
def test_the_next_session_begins_when_the_api_server_allows(
    hub: Hub, admin: Driver, controllers: Controllers
) -> None:
    """The session ends, as the schema of MultiKueueConfigs cannot be read; kopf takes 5 s for that."""
    admin.check("p")
    admin.select("p", "a")
    refuse(hub, SCHEMAS, 503, 7.0)
    controllers.start()
    assert until_served(hub, SCHEMAS) >= 7.0


def refuse(hub: Hub, path: str, status: int, seconds: float) -> None:
    """Refuse one request of the controller, and ask it to wait."""
    wait = {"Retry-After": f"{seconds:g}"}
    hub.faults.add("GET", f"^{path}$", agent="placement-ac", status=status, headers=wait)


def until_served(hub: Hub, path: str) -> float:
    """Return the seconds from the request that is refused to the next one for the same path."""

    def asked() -> list[RecordedRequest]:
        ours = [r for r in tuple(hub.journal) if r.path == path and r.user_agent == "placement-ac"]
        return list(itertools.dropwhile(lambda request: request.status == 200, ours))

    eventually(lambda: len(asked()) > 1, seconds=30)
    refused, served, *_ = asked()
    assert (refused.status >= 400, served.status) == (True, 200)
    return served.at - refused.at


def test_a_hub_without_cluster_profiles_and_scores_will_do(a_hub: HubMaker, tmp_path: Path) -> None:
    optional = ("clusterprofiles", "addonplacementscores")
    crds = [crd for crd in strict_crds() if not crd["metadata"]["name"].startswith(optional)]
    with a_hub(crds=crds) as hub, Driver(hub) as admin:
        admin.namespace("kueue-system")
        admin.check("p")
        admin.select("p", "b", "a")
        hub.write_kubeconfig(tmp_path / "kubeconfig")
        with Controllers(tmp_path / "kubeconfig") as controllers:
            controllers.start()
            eventually(lambda: admin.listed("p"), ["p-a", "p-b"])


def test_placements_and_kueue_may_live_in_other_namespaces(
    hub: Hub, admin: Driver, controllers: Controllers
) -> None:
    for name in ("teams", "kueue"):
        admin.namespace(name)
    admin.check("p")
    admin.select("p", "a")  # in kueue-system, where nobody looks

    def post(path: str, body: dict[str, Any]) -> None:
        admin.ask("POST", path, body)

    group = "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/teams"
    labels = {"cluster.open-cluster-management.io/placement": "p"}
    api = {"apiVersion": "cluster.open-cluster-management.io/v1beta1"}
    controllers.start(placement_namespace="teams", kueue_namespace="kueue")
    eventually(lambda: admin.reason("p"), "PlacementNotFound")
    assert admin.active("p")["message"] == (
        "correct spec.parameters.name, or create Placement teams/p: it does not exist"
    )
    post(f"{group}/placements", api | {"kind": "Placement", "metadata": {"name": "p"}, "spec": {}})
    owner = owner_reference(admin.ask("GET", f"{group}/placements/p"))
    metadata = {"name": "p-decision-1", "labels": labels, "ownerReferences": [owner]}
    decision = {"kind": "PlacementDecision", "metadata": metadata}
    post(f"{group}/placementdecisions", api | decision)
    status = {"status": {"decisions": [{"clusterName": "b", "reason": ""}]}}
    admin.ask("PATCH", f"{group}/placementdecisions/p-decision-1/status", status, "merge")
    eventually(lambda: admin.reason("p"), "NoClusterUsable")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "multikueue-b"}}
    post("/api/v1/namespaces/kueue/secrets", secret | {"data": {"kubeconfig": KUBECONFIG}})
    eventually(lambda: admin.listed("p"), ["p-b"])


def test_a_discovery_that_misses_a_kind_for_once_takes_nothing_away(
    hub: Hub, admin: Driver, controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placement_ac.controller.session.REDISCOVERY_SECONDS", 0.3)
    admin.check("p")
    admin.placement("p")
    admin.decide("p", "a")
    admin.profile("a", accessProviders=[{"name": "ocm", "cluster": {"server": "https://a"}}])
    controllers.start()
    eventually(lambda: admin.reason("p"), "Active")
    # The journal has a request when it has been answered.
    eventually(lambda: ("PATCH", admin.kueue("admissionchecks", "p", "status")) in admin.writes(0))
    since = len(hub.journal)
    hub.faults.add("GET", r"^/apis/multicluster\.x-k8s\.io$", status=404, times=3)

    def lists() -> int:
        asked = [r for r in hub.journal[since:] if r.path.endswith("/clusterprofiles") and "limit" in r.query]
        return len(asked)

    eventually(lists, seconds=20)  # the session has begun anew
    admin.check("sentinel")
    eventually(lambda: admin.reason("sentinel"), "PlacementNotFound")
    assert admin.writes(since) == [("PATCH", admin.kueue("admissionchecks", "sentinel", "status"))]
    assert (admin.listed("p"), admin.reason("p")) == (["p-a"], "Active")
