"""Credentials that the controller has made: with OCM's and Kueue's stand-ins, and workers that judge them."""

import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack, redirect_stderr
from pathlib import Path

import pytest

from placement_ac.core.inputs.rights import required_rights
from placement_ac.kube.login import Login
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


def test_provisioned_objects_are_labelled_and_owned_by_the_checks_that_use_them(selected: Stage) -> None:
    uids = {
        selected.admin.ask("GET", selected.admin.kueue("admissionchecks", n))["metadata"]["uid"]
        for n in ("p", "mk")
    }
    for made in (selected.account("a"), selected.permission("a"), selected.secret("a")):
        assert made is not None
        metadata = made["metadata"]
        assert metadata["labels"]["app.kubernetes.io/managed-by"] == NAME
        assert metadata["labels"]["open-cluster-management.io/cluster-name"] == "a"
        assert {owner["uid"] for owner in metadata["ownerReferences"]} == uids
        assert "finalizers" not in metadata or NAME not in str(metadata["finalizers"])


def test_a_new_token_is_in_the_kubeconfig_at_once_and_nothing_else_is_written(selected: Stage) -> None:
    before, written = selected.token_in_kubeconfig("a"), len(selected.admin.hub.journal)
    selected.ocm.refresh("a")
    selected.until_renewed("a", before)
    assert selected.admin.writes(written) == [("PATCH", f"{CORE}/namespaces/{NS}/secrets/placement-ac-a")]
    selected.until_connected("a", "b")


def test_a_second_start_writes_nothing(selected: Stage) -> None:
    selected.controllers.__exit__()
    written = len(selected.admin.hub.journal)
    selected.start()
    selected.admin.check("later")
    soon(lambda: selected.admin.reason("later"), "PlacementNotFound")
    assert {path for _, path in selected.admin.writes(written)} == {
        selected.admin.kueue("admissionchecks", "later", "status")
    }


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


def test_a_managed_cluster_that_is_deleted_leaves_nothing_behind(selected: Stage) -> None:
    selected.select("b")  # OCM decides without it
    selected.admin.ask("DELETE", f"{MANAGED}/a")
    soon(
        selected.ours,
        [
            "ClusterPermission b/placement-ac",
            "ManagedServiceAccount b/placement-ac",
            "MultiKueueCluster /p-b",
            "MultiKueueConfig /p",
            f"Secret {NS}/placement-ac-b",
        ],
    )


def test_a_managed_cluster_that_is_deleted_while_it_is_selected(selected: Stage) -> None:
    selected.admin.ask("DELETE", f"{MANAGED}/a")
    selected.select("b")
    soon(lambda: selected.account("a") is None and selected.permission("a") is None)
    soon(lambda: [check for check in selected.ours() if "/placement-ac-a" in check or " a/" in check], [])


@pytest.mark.embedded("a bare API server has no garbage collector")
def test_all_goes_with_the_last_check(selected: Stage) -> None:
    for name in ("p", "mk"):
        selected.admin.ask("DELETE", selected.admin.kueue("admissionchecks", name))
    soon(selected.ours, [])
    soon(lambda: selected.on_worker("a"), [])


def test_our_check_alone_may_go_without_the_jobs_losing_their_way(selected: Stage) -> None:
    selected.admin.ask("DELETE", selected.admin.kueue("admissionchecks", "p"))
    uid = selected.admin.ask("GET", selected.admin.kueue("admissionchecks", "mk"))["metadata"]["uid"]

    def owners() -> list[str]:
        account = selected.account("a") or {"metadata": {}}
        return [owner["uid"] for owner in account["metadata"].get("ownerReferences", ())]

    soon(owners, [uid])
    assert selected.secret("a") is not None
    selected.until_connected("a", "b")


def test_a_revoked_token_is_replaced(selected: Stage) -> None:
    before = selected.token_in_kubeconfig("a")
    selected.ocm.revoke("a")
    selected.until_renewed("a", before)
    selected.until_connected("a", "b")


@pytest.mark.parametrize("what", ["account", "permission", "reported", "secret"])
def test_provisioned_objects_that_are_deleted_by_hand_come_again(selected: Stage, what: str) -> None:
    paths = {
        "account": f"{ACCOUNTS}/namespaces/a/managedserviceaccounts/placement-ac",
        "permission": f"{PERMISSIONS}/namespaces/a/clusterpermissions/placement-ac",
        "reported": f"{CORE}/namespaces/a/secrets/placement-ac",
        "secret": f"{CORE}/namespaces/{NS}/secrets/placement-ac-a",
    }
    uid = selected.admin.ask("GET", paths[what])["metadata"]["uid"]
    selected.admin.ask("DELETE", paths[what])
    soon(lambda: (selected.admin.get(paths[what]) or {"metadata": {"uid": uid}})["metadata"]["uid"] != uid)
    selected.until_current("a")
    soon(lambda: selected.on_worker("a"), [NAME, NAME])
    selected.until_connected("a", "b")


def test_provisioned_objects_that_are_changed_by_hand_are_put_back(selected: Stage) -> None:
    path = f"{CORE}/namespaces/{NS}/secrets/placement-ac-a"
    selected.admin.ask("PATCH", path, {"data": {"kubeconfig": "e30="}}, "merge")
    selected.until_current("a")
    rules = {"spec": {"clusterRole": {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}}}
    grant = f"{PERMISSIONS}/namespaces/a/clusterpermissions/placement-ac"
    wanted = selected.admin.ask("GET", grant)["spec"]
    selected.admin.ask("PATCH", grant, rules, "merge")
    soon(lambda: selected.admin.ask("GET", grant)["spec"], wanted)


def test_a_cluster_without_an_agent_keeps_no_other_waiting(play: Play, admin: Driver) -> None:
    stage = play("a", "b")
    stage.ocm.pause("a")
    admin.check("p")
    admin.placement("p")
    stage.select("a", "b")
    stage.start()
    soon(lambda: admin.listed("p"), ["p-b"])
    soon(lambda: admin.reason("p"), "SomeClustersUnusable")
    soon(lambda: "a (wait, or enable OCM's addon managed-serviceaccount" in admin.active("p")["message"])
    stage.ocm.resume("a")
    stage.until_connected("a", "b")
    soon(lambda: admin.reason("p"), "Active")


def test_found_credentials_are_used_and_nothing_is_made(play: Play, admin: Driver) -> None:
    stage = play("a")
    secret = next(one for one in stage.fleet.secrets() if one["metadata"]["name"] == "multikueue-a")
    admin.ask("POST", f"{CORE}/namespaces/{NS}/secrets", secret)
    admin.check("p")
    admin.placement("p")
    stage.select("a")
    stage.start()
    stage.until_connected("a")
    assert stage.source("p-a")["kubeConfig"]["location"] == "multikueue-a"
    assert stage.account("a") is None
    admin.ask("DELETE", f"{CORE}/namespaces/{NS}/secrets/multikueue-a")
    soon(lambda: stage.source("p-a").get("kubeConfig", {}).get("location"), "placement-ac-a")
    stage.until_connected("a")
    admin.ask("POST", f"{CORE}/namespaces/{NS}/secrets", secret)
    soon(lambda: stage.source("p-a").get("kubeConfig", {}).get("location"), "multikueue-a")
    soon(
        lambda: [
            check for check in stage.ours() if "Secret" in check or "Account" in check or "Perm" in check
        ],
        [],
    )


def test_one_account_serves_all_placements(selected: Stage) -> None:
    selected.admin.check("q")
    selected.admin.placement("q")
    selected.select("a", placement="q")
    soon(selected.connected, ["p-a", "p-b", "q-a"])
    assert selected.source("q-a") == selected.source("p-a")
    selected.select("b")
    soon(selected.connected, ["p-b", "q-a"])
    assert selected.secret("a") is not None


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


def test_a_hub_without_accounts_says_so(a_hub: HubMaker, tmp_path: Path) -> None:
    crds = [crd for crd in strict_crds() if "managedserviceaccounts" not in crd["metadata"]["name"]]
    with a_hub(crds=crds) as hub, Driver(hub) as admin:
        admin.namespace(NS)
        hub.write_kubeconfig(tmp_path / "kubeconfig")
        admin.check("p")
        admin.placement("p")
        admin.decide("p", "a")
        with Controllers(tmp_path / "kubeconfig") as controllers:
            controllers.start(credentials_provision="managed-serviceaccount")
            soon(lambda: admin.reason("p"), "NoClusterUsable")
            assert "install OCM's addons" in admin.active("p")["message"]


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


def test_the_login_of_a_worker_shows_no_token(selected: Stage) -> None:
    access = selected.access("a")
    assert access is not None
    assert access.token not in repr(access)
    assert access.token not in repr(Login(access=access).__dict__.get("_access", access))
