"""`placement-ac adopt` on a hub on which the Go kueue-addon was at work: what is written, and what is not."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from placement_ac.core.api.constants import (
    ACCOUNT,
    ADDON_FINALIZER,
    ANNOTATION_ADOPT,
    MANAGED_CLUSTER,
    PERMISSION,
)
from placement_lab.hub import Hub
from tests.support import commands
from tests.support.builders import authority, encoded, jwt
from tests.support.crds import strict_crds
from tests.support.driver import CORE, NS, Controllers, Driver, eventually
from tests.support.hub_client import CRDS, crd
from tests.support.hub_line import run_and_take_hub_line
from tests.support.real_hub import HubMaker

RBAC = {"apiGroup": "authentication.open-cluster-management.io", "kind": "ManagedServiceAccount"}
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEPLOYMENTS = "/apis/apps/v1/namespaces/addons/deployments"
SECRETS = f"{CORE}/namespaces/{NS}/secrets"
HANDED_OVER = [
    "Secret kueue-system/multikueue-a handed over",
    "ClusterPermission a/multikueue handed over",
    "ManagedServiceAccount a/multikueue handed over",
]
OF_CHECK = [
    "AdmissionCheck p finalizer removed",
    "MultiKueueCluster a handed over",
    "MultiKueueConfig p handed over",
]
Adopt = Callable[..., Result]


@pytest.fixture
def adopt(hub: Hub, tmp_path: Path) -> Adopt:
    hub.write_kubeconfig(tmp_path / "admin")
    words = ["adopt", "--kubeconfig", str(tmp_path / "admin")]
    return lambda *more: run_and_take_hub_line([*words, *more])


def objects_of(kind: Any, cluster: str, name: str = "", version: str = "") -> str:
    return kind.at(version or kind.versions[0]).path(cluster, name)


class Addon:
    """The objects that the Go kueue-addon leaves on a hub."""

    def __init__(self, admin: Driver) -> None:
        self.admin = admin

    def credentials(self, *clusters: str) -> None:
        for cluster in clusters:
            self.admin.namespace(cluster)
            self._make(ACCOUNT, cluster, {"rotation": {"enabled": True, "validity": "8640h0m0s"}})
            binding = {"subject": RBAC | {"name": "multikueue"}}
            rule = {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"]}
            spec = {"clusterRole": {"rules": [rule]}, "clusterRoleBinding": binding}
            self._make(PERMISSION, cluster, spec)
            self.admin.secrets_for(cluster)

    def _make(self, kind: Any, cluster: str, spec: Any) -> None:
        body = {"metadata": {"name": "multikueue", "namespace": cluster}, "spec": spec}
        body |= {"apiVersion": kind.at(kind.versions[0]).api_version, "kind": kind.kind}
        self.admin.ask("POST", objects_of(kind, cluster), body)

    def check(self, name: str = "p", *clusters: str) -> None:
        """A check of ours with the addon's finalizer, its list and what it lists."""
        self.admin.check(name)
        path = self.admin.kueue("admissionchecks", name)
        self.admin.ask("PATCH", path, {"metadata": {"finalizers": [ADDON_FINALIZER, "x.io/kept"]}}, "merge")
        for cluster in clusters:
            if not self.admin.get(self.admin.kueue("multikueueclusters", cluster)):
                self.admin.cluster(cluster, f"multikueue-{cluster}")
        self.admin.config(name, *clusters)

    def deployed(self, replicas: int | None, name: str = "kueue-addon-controller", pods: int = 0) -> None:
        """The addon's Deployment; the embedded hub has the kind from here on, a real one has it anyway."""
        self.admin.namespace("addons")
        if self.admin.get(DEPLOYMENTS) is None:
            self.admin.try_("POST", CRDS, crd("Deployment", ANYTHING, group="apps"))
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec: Any = {"selector": {"matchLabels": labels}, "template": template}
        spec |= {} if replicas is None else {"replicas": replicas}
        status = {"status": {"replicas": pods}}
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
        eventually(lambda: self.admin.try_("POST", DEPLOYMENTS, body | status).status_code, 201)
        self.admin.try_(
            "PATCH", f"{DEPLOYMENTS}/{name}/status", status, "merge"
        )  # a kind with that subresource


@pytest.fixture
def addon(admin: Driver) -> Addon:
    made = Addon(admin)
    made.credentials("a")
    return made


def writes(hub: Hub, since: int) -> list[str]:
    return [r.method for r in hub.journal[since:] if r.method not in ("GET", "HEAD")]


def test_all_is_handed_over_with_one_annotation_each_and_once(
    hub: Hub, addon: Addon, admin: Driver, adopt: Adopt
) -> None:
    addon.check("p", "a")
    before = {path: admin.ask("GET", path) for path in _paths(admin)}
    first = adopt()
    assert (first.exit_code, first.output.splitlines()) == (0, [*HANDED_OVER, *OF_CHECK])
    for path, was in before.items():
        now = admin.ask("GET", path)
        assert now["metadata"]["annotations"] == {ANNOTATION_ADOPT: "true"}
        assert {k: v for k, v in now.items() if k != "metadata"} == {
            k: v for k, v in was.items() if k != "metadata"
        }
    assert admin.ask("GET", admin.kueue("admissionchecks", "p"))["metadata"]["finalizers"] == ["x.io/kept"]
    since = len(hub.journal)
    again = adopt()
    assert (again.exit_code, again.output, writes(hub, since)) == (0, "nothing to hand over\n", [])


def _paths(admin: Driver) -> list[str]:
    return [
        objects_of(ACCOUNT, "a", "multikueue"),
        objects_of(PERMISSION, "a", "multikueue"),
        f"{SECRETS}/multikueue-a",
        admin.kueue("multikueueclusters", "a"),
        admin.kueue("multikueueconfigs", "p"),
    ]


def test_a_dry_run_prints_and_writes_nothing(hub: Hub, addon: Addon, adopt: Adopt) -> None:
    addon.check("p", "a")
    since = len(hub.journal)
    run = adopt("--dry-run")
    assert run.exit_code == 0
    assert run.output.splitlines() == [f"{output} (dry run)" for output in (*HANDED_OVER, *OF_CHECK)]
    assert writes(hub, since) == []


def test_single_clusters_are_handed_over_without_the_checks(addon: Addon, adopt: Adopt) -> None:
    addon.credentials("b", "c")
    addon.check("p", "a")
    run = adopt("b")
    assert run.output.splitlines() == [
        output.replace(" a/", " b/").replace("-a", "-b") for output in HANDED_OVER
    ]
    assert adopt("nobody").output == "nothing to hand over\n"


def test_missing_objects_and_those_of_other_owners_are_passed_over(
    addon: Addon, admin: Driver, adopt: Adopt
) -> None:
    admin.ask("DELETE", f"{SECRETS}/multikueue-a")
    admin.ask("DELETE", objects_of(PERMISSION, "a", "multikueue"))
    body = {"metadata": {"name": "another", "namespace": "a"}, "spec": {"rotation": {}}}
    body |= {"apiVersion": ACCOUNT.at("v1beta1").api_version, "kind": ACCOUNT.kind}
    admin.ask("POST", objects_of(ACCOUNT, "a"), body)
    admin.check("no-list")
    admin.bare_check("bare")
    admin.multikueue_check("kueues", "theirs")
    admin.config("theirs", "x")
    run = adopt()
    assert (run.exit_code, run.output) == (0, "ManagedServiceAccount a/multikueue handed over\n")


def test_it_goes_on_where_it_was_interrupted(hub: Hub, addon: Addon, admin: Driver, adopt: Adopt) -> None:
    forbidden = {"kind": "Status", "message": "you shall not", "reason": "Forbidden", "code": 403}
    hub.faults.add("PATCH", "clusterpermissions", status=403, body=forbidden)
    broken = adopt()
    assert (broken.exit_code, broken.output.splitlines()) == (1, [HANDED_OVER[0], "Error: you shall not"])
    account = admin.ask("GET", objects_of(ACCOUNT, "a", "multikueue"))
    assert "annotations" not in account["metadata"], "the account is last: with it, all is taken over"
    assert adopt().output.splitlines() == HANDED_OVER[1:]


@pytest.mark.parametrize("replicas", [1, None])
def test_an_addon_that_still_runs_is_refused(
    hub: Hub, addon: Addon, adopt: Adopt, replicas: int | None
) -> None:
    addon.deployed(replicas)
    since = len(hub.journal)
    run = adopt()
    assert (run.exit_code, writes(hub, since)) == (1, [])
    assert run.output == (
        "Error: run `kubectl scale deployment -n addons kueue-addon-controller --replicas=0` first: "
        "kueue-addon-controller still runs and would undo the handover\n"
    )
    assert adopt("--dry-run").exit_code == 1
    assert adopt("--force").output.splitlines() == HANDED_OVER


def test_one_that_is_scaled_to_nothing_is_not_in_the_way(addon: Addon, adopt: Adopt) -> None:
    addon.deployed(0)
    addon.deployed(1, "something-else")
    assert adopt().exit_code == 0


def test_one_whose_pods_are_still_ending_is_refused(addon: Addon, adopt: Adopt) -> None:
    addon.deployed(0, pods=1)
    assert adopt().exit_code == 1


def test_the_missing_right_to_deployments_is_an_error(hub: Hub, addon: Addon, adopt: Adopt) -> None:
    forbidden = {"kind": "Status", "message": "you may not look", "reason": "Forbidden", "code": 403}
    hub.faults.add("GET", "deployments", status=403, body=forbidden)
    run = adopt()
    assert (run.exit_code, run.output) == (
        1,
        "Error: it is unknown whether kueue-addon-controller still runs: you may not look\n",
    )


def test_a_hub_that_does_not_answer_or_is_not_there(hub: Hub, adopt: Adopt, tmp_path: Path) -> None:
    hub.faults.add("GET", "deployments", status=503)
    assert adopt("--force").exit_code == 0
    assert adopt().exit_code == 1
    run = commands.run("adopt", "--kubeconfig", str(tmp_path / "none"))
    assert (run.exit_code, run.output) == (
        1,
        f"Error: cannot log in: there is no kubeconfig {tmp_path / 'none'}\n",
    )


def test_a_hub_without_ocms_accounts_has_its_lists_handed_over(a_hub: HubMaker, tmp_path: Path) -> None:
    crds = [crd for crd in strict_crds() if crd["spec"]["names"]["kind"] != ACCOUNT.kind]
    with a_hub(crds=crds) as bare, Driver(bare) as driver:
        if driver.get(f"/apis/{ACCOUNT.group}"):
            pytest.skip("the embedded hub brings the kind along")
        driver.namespace(NS)
        Addon(driver).check("p", "a")
        bare.write_kubeconfig(tmp_path / "bare")
        run = commands.run("adopt", "--kubeconfig", str(tmp_path / "bare"))
    assert re.fullmatch(r"Hub: https?://127\.0\.0\.1:\d+, context placement-ac-hub\n", run.stderr)
    assert run.stdout.splitlines() == OF_CHECK


# -- the controller takes it from there


def reports(admin: Driver, cluster: str, text: str) -> None:
    """OCM reports a token."""
    data = {"token": encoded(text), "ca.crt": encoded(authority())}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "multikueue"}, "data": data}
    admin.try_("DELETE", f"{CORE}/namespaces/{cluster}/secrets/multikueue")
    admin.ask("POST", f"{CORE}/namespaces/{cluster}/secrets", body)


def test_the_controller_takes_over_what_is_handed_over_and_no_cluster_is_dropped(
    hub: Hub, addon: Addon, admin: Driver, adopt: Adopt, controllers: Controllers
) -> None:
    cluster = {"spec": {"managedClusterClientConfigs": [{"url": "https://worker.example:6443"}]}}
    resource = MANAGED_CLUSTER.at("v1")
    kind = {"apiVersion": resource.api_version, "kind": resource.of.kind, "metadata": {"name": "a"}}
    admin.ask("POST", resource.path(), kind | cluster)
    addon.check("p", "a")
    admin.select("p", "a")
    token = jwt("addon", hours=2e5)
    reports(admin, "a", token)
    assert adopt().exit_code == 0
    since = len(hub.journal)
    controllers.start(credentials_provision="managed-serviceaccount", cluster_names="{cluster}")
    eventually(lambda: admin.reason("p"), "Active")
    assert admin.listed("p") == ["a"], "though OCM has not said yet that the account is in force"
    condition = {"type": "TokenReported", "status": "True", "reason": "TokenReported", "message": ""}
    condition["lastTransitionTime"] = "2026-08-01T12:00:00Z"
    account = objects_of(ACCOUNT, "a", "multikueue")
    admin.ask("PATCH", f"{account}/status", {"status": {"conditions": [condition]}}, "merge")

    def managed() -> list[str | None]:
        labels = [(admin.ask("GET", at)["metadata"].get("labels") or {}) for at in _paths(admin)]
        return [label.get("app.kubernetes.io/managed-by") for label in labels]

    eventually(managed, ["placement-ac"] * 5)
    assert admin.listed("p") == ["a"]
    source = admin.ask("GET", admin.kueue("multikueueclusters", "a"))["spec"]
    assert source == {"clusterSource": {"kubeConfig": {"location": "multikueue-a", "locationType": "Secret"}}}
    rules = admin.ask("GET", objects_of(PERMISSION, "a", "multikueue"))["spec"]["clusterRole"]["rules"]
    assert ["kueue.x-k8s.io"] in [rule["apiGroups"] for rule in rules]
    deleted = [r.path for r in hub.journal[since:] if r.method == "DELETE"]
    assert deleted == []
    assert not admin.get(objects_of(ACCOUNT, "a", "placement-ac")), "under the names that they have"
