"""Credentials that the controller has made: with OCM's and Kueue's stand-ins, and workers that judge them."""

import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack, redirect_stderr
from pathlib import Path

import pytest

from placement_ac.core.inputs.rights import required_rights
from placement_ac.observability import logs
from placement_lab.standins.manifests import load
from tests.support.admin import Admin, login_to
from tests.support.crds import strict_crds
from tests.support.credentials import ACCOUNTS, MANAGED, NAME, PERMISSIONS, Stage, open_stage, tokens_in
from tests.support.driver import CORE, NS, Controllers, Driver, Object
from tests.support.hub_client import CRDS
from tests.support.jobs import soon
from tests.support.real_hub import HubMaker
from tests.support.stage import shorten

Play = Callable[..., Stage]
SAMPLES = Path(__file__).parents[3] / "samples"


@pytest.fixture
def play(admin: Driver, controllers: Controllers) -> Iterator[Play]:
    """Sets the stage for these workers; whatever is played there, no token comes up in a log line."""
    log = io.StringIO()
    with redirect_stderr(log):
        logs.configure("text", "debug")
    with ExitStack() as opened:

        def start(*names: str, **options: object) -> Stage:
            return opened.enter_context(open_stage(admin, controllers, names, **options))

        yield start
        output = log.getvalue()
        print(output)  # noqa: T201  # pytest shows it when a test fails
        assert tokens_in(output, admin) == []
    logs.configure("text", "error")


@pytest.fixture
def selected(play: Play, admin: Driver) -> Stage:
    """Two workers that are selected and connected."""
    stage = play("a", "b")
    admin.check("p")
    admin.multikueue_check("mk", "p")
    admin.placement("p")
    stage.select("a", "b")
    stage.start()
    stage.until_connected("a", "b")
    return stage


def test_story_2_from_nothing_but_managed_clusters_and_its_manifests(play: Play, admin: Driver) -> None:
    stage = play("cluster1", "cluster2", "cluster3", others=["ocm"])
    for name in ("cluster2", "cluster3"):
        labels = {"metadata": {"labels": {"accelerator": "nvidia-tesla-t4"}}}
        admin.ask("PATCH", f"{MANAGED}/{name}", labels, "merge")
    with Admin(login_to(admin.hub)) as kubectl:
        kubectl.apply(*load(SAMPLES / "fleet" / "cluster-set.yaml"))
        for name in ("cluster1", "cluster2", "cluster3"):
            in_set = {"cluster.open-cluster-management.io/clusterset": "spoke"}
            admin.ask("PATCH", f"{MANAGED}/{name}", {"metadata": {"labels": in_set}}, "merge")
        kubectl.apply(
            *load(SAMPLES / "placement-demo2-1.yaml"), *load(SAMPLES / "multikueue-setup-demo2.yaml")
        )
    stage.start()
    soon(lambda: admin.listed("placement-demo2"), ["placement-demo2-cluster2", "placement-demo2-cluster3"])
    soon(stage.connected, ["placement-demo2-cluster2", "placement-demo2-cluster3"])
    soon(
        lambda: admin.active("placement-demo2").get("message"),
        "MultiKueueConfig and MultiKueueCluster generated",
    )
    assert stage.account("cluster1") is None, "no check selects it"
    assert stage.source("placement-demo2-cluster2") == {
        "kubeConfig": {"location": "placement-ac-cluster2", "locationType": "Secret"}
    }


def test_the_worker_takes_the_token_for_the_granted_rights_and_not_for_one_more(selected: Stage) -> None:
    token = selected.token_in_kubeconfig("a")
    granted = set(required_rights(("batch/job",), ()))
    kinds = {(right.group, right.resource, right.subresource) for right in granted} | {
        ("", "secrets", ""),
        ("", "pods", ""),
        ("", "namespaces", ""),
        ("jobset.x-k8s.io", "jobsets", ""),
        ("kueue.x-k8s.io", "clusterqueues", ""),
    }
    verbs = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    with Driver(selected.fleet.hubs["a"]) as worker:
        worker.session.headers["Authorization"] = f"Bearer {token}"
        may = {
            (group, resource, sub, verb)
            for group, resource, sub in kinds
            for verb in verbs
            if _may(worker, group, resource, sub, verb)
        }
        assert may == {tuple(right) for right in granted}
        assert worker.try_("GET", "/apis/kueue.x-k8s.io/v1beta2/workloads").status_code == 200
        assert worker.try_("GET", f"{CORE}/secrets").status_code == 403
        worker.session.headers["Authorization"] = f"Bearer {token[:-4]}AAAA"
        assert worker.try_("GET", "/apis/kueue.x-k8s.io/v1beta2/workloads").status_code == 401


def test_with_integrations_the_token_may_get_one_configmap_and_no_other(play: Play, admin: Driver) -> None:
    stage = play("a")
    stage.fleet.enable_integrations("a", "batch/job")
    admin.check("p")
    admin.multikueue_check("mk", "p")
    admin.placement("p")
    stage.select("a")
    stage.start(dispatcher=True, look_for=("integrations",))
    stage.until_connected("a")
    path = f"{CORE}/namespaces/{NS}/configmaps"
    with Driver(stage.fleet.hubs["a"]) as worker:
        worker.session.headers["Authorization"] = f"Bearer {stage.token_in_kubeconfig('a')}"
        paths = (f"{path}/kueue-manager-config", f"{path}/another", path)
        assert [worker.try_("GET", one).status_code for one in paths] == [200, 403, 403]


def _may(worker: Driver, group: str, resource: str, subresource: str, verb: str) -> bool:
    wish = {"group": group, "resource": resource, "subresource": subresource, "verb": verb}
    body: Object = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": wish},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    return bool(worker.ask("POST", path, body)["status"]["allowed"])


@pytest.mark.embedded("a bare API server has no garbage collector")
def test_a_cluster_that_is_selected_no_more_leaves_nothing_behind(selected: Stage) -> None:
    written = len(selected.admin.hub.journal)
    selected.select("b")
    soon(lambda: selected.account("a") is None and selected.permission("a") is None)
    soon(lambda: selected.on_worker("a"), [])
    assert selected.ours() == [
        "ClusterPermission b/placement-ac",
        f"ManagedServiceAccount b/{NAME}",
        "MultiKueueCluster /p-b",
        "MultiKueueConfig /p",
        f"Secret {NS}/placement-ac-b",
    ]
    deleted = [
        path.rsplit("/", 2)[-2:] for method, path in selected.admin.writes(written) if method == "DELETE"
    ]
    assert deleted == [
        ["multikueueclusters", "p-a"],
        ["secrets", "placement-ac-a"],
        ["managedserviceaccounts", NAME],
        ["clusterpermissions", NAME],
    ]
    selected.select("a", "b")
    selected.until_connected("a", "b")


@pytest.mark.embedded("a bare API server has no garbage collector")
def test_all_goes_with_the_last_check(selected: Stage) -> None:
    for name in ("p", "mk"):
        selected.admin.ask("DELETE", selected.admin.kueue("admissionchecks", name))
    soon(selected.ours, [])
    soon(lambda: selected.on_worker("a"), [])


def test_provisioned_objects_that_are_deleted_by_hand_come_again(selected: Stage) -> None:
    for path in (
        f"{ACCOUNTS}/namespaces/a/managedserviceaccounts/placement-ac",
        f"{PERMISSIONS}/namespaces/a/clusterpermissions/placement-ac",
        f"{CORE}/namespaces/a/secrets/placement-ac",
        f"{CORE}/namespaces/{NS}/secrets/placement-ac-a",
    ):
        before = selected.admin.ask("GET", path)
        selected.admin.ask("DELETE", path)
        soon(lambda path=path, before=before: uid(selected.admin.get(path) or before) != uid(before))
        selected.until_current("a")
        soon(lambda: selected.on_worker("a"), [NAME, NAME])
        selected.until_connected("a", "b")


def uid(obj: Object) -> str:
    return str(obj["metadata"]["uid"])


def _old_only(crds: list[Object]) -> list[Object]:
    for crd in crds:
        if crd["metadata"]["name"].startswith("managedserviceaccounts."):
            crd["spec"]["versions"] = [
                v | {"storage": True} for v in crd["spec"]["versions"] if v["name"] == "v1alpha1"
            ]
    return crds


def test_a_hub_with_the_old_version_of_accounts_alone(a_hub: HubMaker, tmp_path: Path) -> None:
    with a_hub(crds=_old_only(strict_crds())) as hub, Driver(hub) as admin:
        admin.namespace(NS)
        hub.write_kubeconfig(tmp_path / "kubeconfig")
        with (
            Controllers(tmp_path / "kubeconfig") as controllers,
            open_stage(admin, controllers, ["a"]) as stage,
        ):
            admin.check("p")
            admin.placement("p")
            stage.select("a")
            stage.start()
            stage.until_connected("a")


def test_addons_that_are_installed_later_are_noticed(
    a_hub: HubMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice a minute; here every 0.3 s."""
    shorten(monkeypatch, REDISCOVERY_SECONDS=0.3)
    is_later = {crd["metadata"]["name"]: "managedserviceaccounts" in str(crd) for crd in strict_crds()}
    crds = [crd for crd in strict_crds() if not is_later[crd["metadata"]["name"]]]
    with a_hub(crds=crds) as hub, Driver(hub) as admin:
        admin.namespace(NS)
        admin.namespace("a")
        hub.write_kubeconfig(tmp_path / "kubeconfig")
        admin.check("p")
        admin.placement("p")
        admin.decide("p", "a")
        with Controllers(tmp_path / "kubeconfig") as controllers:
            controllers.start(credentials_provision="managed-serviceaccount")
            soon(lambda: "install OCM's addons" in admin.active("p").get("message", ""))
            for crd in strict_crds():
                if is_later[crd["metadata"]["name"]]:
                    admin.ask("POST", CRDS, crd)
            soon(lambda: "there is no ManagedCluster a" in admin.active("p")["message"])
