"""The manifests of `config/`, applied with kubectl, and the controller under exactly that ServiceAccount.

Each mode makes all of its requests to a hub; every permission must be necessary.
"""

import base64
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from placement_ac.config.load import PREFIX, load
from placement_ac.core.api.constants import DONE
from placement_lab.hub import RecordedRequest, rbac_rules
from placement_lab.hub.request_attributes import RequestAttributes, attributes_of
from placement_lab.standins.fleet import WorkerFleet
from tests.placement_ac.controller.test_rival_writers import again_and_again, undone_events
from tests.support import installation
from tests.support.accounts import account_kubeconfig
from tests.support.builders import authority, encoded, jwt, kubeconfig
from tests.support.capacity_providers import create, reported, serve
from tests.support.driver import CORE, KUEUE, NS, OCM, Controllers, Driver, Object
from tests.support.installation import NAME, NAMESPACE, ROOT, kubectl
from tests.support.jobs import MANAGED, managed, soon

pytestmark = pytest.mark.long

ACCOUNT = f"system:serviceaccount:{NAMESPACE}:{NAME}"
STORY = ("samples/placement-demo2-1.yaml", "samples/multikueue-setup-demo2.yaml")
P = "placement-demo2"
"""Story 2's Placement, its check and its MultiKueueConfig."""
WORKLOADS = f"{KUEUE}/v1beta2/namespaces/default/workloads"
AT_ONCE = {"mass_loss_grace": 0.0, "settle": 0.0}
HERE = {"metrics_bind_address": "", "health_probe_bind_address": ""}
"""An address on which no other server listens."""
EVERYBODY = (
    *rbac_rules.DEFAULT_CLUSTER_ROLES["system:discovery"],
    *rbac_rules.DEFAULT_CLUSTER_ROLES["system:basic-user"],
)
RBAC = "/apis/rbac.authorization.k8s.io/v1"
SINCE = "2026-01-01T00:00:00Z"


class Installed:
    """An overlay applied to a hub, and the environment of its Pod."""

    def __init__(self, admin: Driver, folder: Path, overlay: str) -> None:
        self.admin, self.hub = admin, admin.hub
        self._folder = folder
        self.objects = installation.rendered(overlay)
        self._began = len(self.hub.journal)
        self._environment = {"KUBECONFIG": str(folder / "admin"), "HOME": str(folder)}
        self.hub.write_kubeconfig(folder / "admin")
        self.kubectl("apply", "-k", str(installation.CONFIG / overlay))

    def kubectl(self, *words: str) -> str:
        return kubectl(*words, **self._environment)

    def controllers(self) -> Controllers:
        """Controllers that log in with the account's token and a CA file, as a Pod of the Deployment does."""
        return Controllers(account_kubeconfig(self.admin, self._folder))

    def config(self) -> str:
        """The mounted settings file, at another path."""
        return str(self._folder) + installation.flags_of(self.objects, self._folder)["config"]

    def environment(self) -> dict[str, str]:
        """The environment variables of the container, with unused addresses."""
        addresses = dict.fromkeys((f"{PREFIX}{name.upper()}" for name in HERE), "127.0.0.1:0")
        return installation.environment_of(self.objects) | addresses | IMAGE

    def settings(self) -> dict[str, Any]:
        """The settings of the Pods, with files at other paths and short waits."""
        environment = installation.environment_of(self.objects)
        found = load({"config": self.config()}, environment).settings.model_dump(exclude_unset=True)
        if providers := found.get("access_providers"):
            found["access_providers"] = self._folder / str(providers).lstrip("/")
        return {"leader_elect": True} | found | AT_ONCE | HERE

    # -- requests in the journal

    def requests(self) -> list[RecordedRequest]:
        return [one for one in list(self.hub.journal)[self._began :] if one.user == ACCOUNT]

    def refused(self) -> list[str]:
        return [
            f"{request.method} {request.path}" for request in self.requests() if request.status in (401, 403)
        ]

    def actions(self) -> set[RequestAttributes]:
        found = set()
        for request in self.requests():
            action = attributes_of(request.method, request.path, request.query)
            found.add(action)
            if (request.method, request.status) == ("PATCH", 201):  # an apply that makes the object is both
                found.add(replace(action, verb="create"))
        return found

    def needless(self, *roles: str) -> list[str]:
        """The unnecessary permissions of these roles: no request was allowed by one of them alone."""
        held = installation.grants(self.objects)
        alone = set()
        for action in self.actions():
            if any(rule.allows(action) for rule in EVERYBODY):
                continue
            by = [n for n, (_, where, rule) in enumerate(held) if _gives(where, rule, action)]
            alone |= {by[0]} if len(by) == 1 else set()
        return [
            f"{role} {where or '*'}: {rule}"
            for n, (role, where, rule) in enumerate(held)
            if role in roles and n not in alone
        ]

    # -- actions

    def story_2(self, *clusters: str) -> None:
        """Apply the manifests of Story 2, and decide as OCM does."""
        self.kubectl("apply", *(word for name in STORY for word in ("-f", str(ROOT / name))))
        self.decide(*clusters)

    def decide(self, *clusters: str) -> None:
        self.admin.decide(P, *clusters)
        self.admin.placement_says(P, len(clusters))

    def until(self, reason: str, *listed: str) -> None:
        soon(lambda: (self.refused(), self.admin.reason(P)), ([], reason))
        if listed:
            soon(lambda: self.admin.listed(P), [f"{P}-{cluster}" for cluster in listed])


def _gives(where: str, rule: rbac_rules.RbacRule, action: RequestAttributes) -> bool:
    return where in ("", action.namespace) and rule.allows(action)


Install = Callable[[str], Installed]


@pytest.fixture
def install(admin: Driver, tmp_path: Path) -> Install:
    """Applies an overlay."""
    return lambda overlay: Installed(admin, tmp_path, overlay)


def condition(kind: str) -> Object:
    one = {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": SINCE}
    return {"status": {"conditions": [one]}}


def connected(admin: Driver) -> None:
    """Report as Kueue does that every cluster is connected."""
    for name in admin.clusters():
        admin.ask("PATCH", admin.kueue("multikueueclusters", name, "status"), condition("Active"), "merge")


def workload_with_quota(admin: Driver) -> None:
    pod = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
    spec = {
        "queueName": "user-queue-demo2",
        "podSets": [{"name": "main", "count": 1, "template": {"spec": pod}}],
    }
    job = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": "w"}}
    admin.ask("POST", WORKLOADS, job | {"spec": spec})
    entries = [
        {"name": name, "state": "Pending", "message": "", "lastTransitionTime": SINCE}
        for name in (P, "multikueue-demo2")
    ]
    status = condition("QuotaReserved")["status"] | {"admissionChecks": entries}
    status["admission"] = {
        "clusterQueue": "cluster-queue-demo2",
        "podSetAssignments": [{"name": "main", "count": 1}],
    }
    admin.ask("PATCH", f"{WORKLOADS}/w/status", {"status": status}, "merge")


def answer(admin: Driver) -> str:
    """The state of our check on the Workload."""
    entries = admin.ask("GET", f"{WORKLOADS}/w")["status"]["admissionChecks"]
    return str(next(entry["state"] for entry in entries if entry["name"] == P))


# -- each mode


def test_default(admin: Driver, install: Install) -> None:
    """One cluster by Secret, one by ClusterProfile; a Workload gets an answer; both clusters are lost."""
    serve(admin)
    create(admin, placement=P)
    there = install("default")
    almost_over = jwt(issued=datetime.now(UTC) - timedelta(hours=23))  # which an event reports
    admin.secret("multikueue-a", value=encoded(kubeconfig(token=almost_over)))
    admin.profile("b", accessProviders=[{"name": "ocm"}])
    managed(admin, "a", "b")
    with there.controllers() as controllers:
        there.story_2("a", "b")
        workload_with_quota(admin)
        there.hub.faults.add("PATCH", "workloads/w/status", status=409)  # then the Workload is read again
        controllers.start(**there.settings())
        there.until("Active", "a", "b")
        soon(lambda: answer(admin), "Ready")
        soon(lambda: reported(admin)[0], "SourceUnavailable")
        connected(admin)
        there.decide()
        there.until("NoClusterSelected")
        soon(lambda: "cannot be asked" in admin.active(P)["message"])
        for name in ("a", "b"):
            admin.ask("DELETE", f"{MANAGED}/{name}")
        soon(admin.clusters, [])
        there.decide("a", "b")  # as at first: that event exists already
        soon(lambda: there.needless(NAME, f"{NAME}-placements"), [])
    assert there.refused() == []


def test_who_undoes_what_is_written_is_found_with_these_rights(admin: Driver, install: Install) -> None:
    """There is no right to get what is watched."""
    there = install("default")
    admin.secrets_for("a", "b")
    path = admin.kueue("multikueueconfigs", P)
    theirs = {"spec": {"clusters": ["theirs"]}}
    with there.controllers() as controllers:
        there.story_2("a", "b")
        controllers.start(**there.settings())
        there.until("Active", "a", "b")

        def edit() -> Object:
            return admin.ask("PATCH", path, theirs, "merge", fieldManager="edit")

        with again_and_again(there.hub, path, edit):
            edit()
            soon(lambda: undone_events(admin))
    assert undone_events(admin)[0].startswith("stop edit from undoing")
    assert there.refused() == []


def test_production(admin: Driver, install: Install) -> None:
    """A change of mind writes no list: only the nominations follow the decision."""
    there = install("overlays/production")
    admin.secrets_for("a", "b")
    managed(admin, "a", "b")
    with there.controllers() as controllers:
        there.story_2("a", "b")
        controllers.start(**there.settings() | {"unlist_after": None})
        there.until("Active")
        soon(lambda: admin.listed(P), ["a", "b"])
        connected(admin)
        config = admin.kueue("multikueueconfigs", P)
        before = admin.ask("GET", config)
        there.decide("b")
        soon(lambda: admin.active(P)["message"].partition("; ")[2], "listed, standing by: a")
        workload_with_quota(admin)
        soon(lambda: admin.ask("GET", f"{WORKLOADS}/w")["status"].get("nominatedClusterNames"), ["b"])
        assert admin.ask("GET", config) == before
    assert there.refused() == []


def test_placement_namespaces(admin: Driver, install: Install) -> None:
    """Story 2's Placement in one team's namespace, another in the other's."""
    for name in ("team-a", "team-b"):
        admin.namespace(name)
    there = install("overlays/placement-namespaces")
    admin.secrets_for("a", "b")
    with there.controllers() as controllers:
        there.kubectl("apply", "-f", str(ROOT / STORY[1]))
        admin.check("q")
        for name, placement, cluster in (("team-a", P, "a"), ("team-b", "q", "b")):
            team = admin.in_namespace(name)
            team.placement(placement)
            team.decide(placement, cluster)
        controllers.start(**there.settings())
        there.until("Active", "a")
        soon(lambda: admin.listed("q"), ["q-b"])
        soon(lambda: there.needless(f"{NAME}-placements"), [])
    assert there.refused() == []


def test_probe(admin: Driver, install: Install) -> None:
    there = install("overlays/probe")
    with WorkerFleet(["a"]) as fleet, there.controllers() as controllers:
        admin.secret("multikueue-a", value=base64.b64encode(fleet.kubeconfig("a")).decode())
        there.story_2("a")
        controllers.start(**there.settings() | {"frameworks": "batch/job"})
        there.until("Active", "a")
        soon(lambda: there.needless(f"{NAME}-probe"), [])
    assert there.refused() == []


def test_worker_setup(admin: Driver, install: Install) -> None:
    """A ManifestWork is written, changed and deleted; OCM reports that all of it is there."""
    there = install("overlays/worker-setup")
    a_cluster(admin)
    admin.secrets_for("w")
    path = "/apis/work.open-cluster-management.io/v1/namespaces/w/manifestworks/placement-ac-queues"

    def place(manifest: Object) -> Object:
        return {key: manifest["metadata"].get(key, "") for key in ("name", "namespace")}

    def ocm_applies() -> None:
        work = soon(lambda: admin.get(path))
        manifests = work["spec"]["workload"]["manifests"]
        true = {
            "status": "True",
            "reason": "Done",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        done = [true | {"type": one} for one in ("Applied", "Available")]
        states = [
            {"resourceMeta": {"ordinal": at, "kind": m["kind"], **place(m)}, "conditions": done}
            for at, m in enumerate(manifests)
        ]
        applied = done[0] | {"observedGeneration": work["metadata"]["generation"]}
        status = {"resourceStatus": {"manifests": states}, "conditions": [applied]}
        admin.ask("PATCH", f"{path}/status", {"status": status}, "merge")

    with there.controllers() as controllers:
        there.story_2("w")
        controllers.start(**there.settings())
        ocm_applies()
        there.until("Active", "w")
        there.decide()
        soon(lambda: admin.ask("GET", path)["metadata"]["generation"] == 2)  # LocalQueues with jobs stay
        ocm_applies()
        soon(lambda: admin.get(path), None)
        soon(lambda: there.needless(f"{NAME}-worker-setup"), [])
    assert there.refused() == []


def test_scores(admin: Driver, install: Install) -> None:
    """A score of a worker's queues is created, and written again."""
    there = install("overlays/scores")
    a_cluster(admin)
    with WorkerFleet(["w"], quotas={"w": {"f": {"nvidia.com/gpu": "4"}}}, queues=("q",)) as fleet:
        admin.secret("multikueue-w", value=base64.b64encode(fleet.kubeconfig("w")).decode())
        with there.controllers() as controllers:
            there.story_2("w")
            coordinate = {"type": "AddOn", "addOn": {"resourceName": NAME, "scoreName": "gpuFree"}}
            policy = {"prioritizerPolicy": {"configurations": [{"scoreCoordinate": coordinate}]}}
            admin.ask("PATCH", f"{OCM}/placements/{P}", {"spec": policy}, "merge")
            controllers.start(**there.settings())
            path = (
                f"/apis/cluster.open-cluster-management.io/v1alpha1/namespaces/w/addonplacementscores/{NAME}"
            )
            soon(lambda: bool((admin.get(path) or {}).get("status")))
            soon(lambda: there.needless(f"{NAME}-scores", f"{NAME}-capacity"), [])
    assert there.refused() == []


ACCOUNTS = "/apis/authentication.open-cluster-management.io/v1beta1/namespaces/w/managedserviceaccounts"
PERMISSIONS = "/apis/rbac.open-cluster-management.io/v1alpha1/namespaces/w/clusterpermissions"
GRANTS = (f"{ACCOUNTS}/{NAME}", f"{PERMISSIONS}/{NAME}")
SECRETS = f"{CORE}/namespaces/{{}}/secrets"
SECRET_PATH = f"{SECRETS.format(NS)}/{NAME}-w"


def test_provisioning(admin: Driver, install: Install) -> None:
    """Credentials are provisioned, renewed and deleted."""
    there = install("overlays/provisioning")
    a_cluster(admin)
    with there.controllers() as controllers:
        there.story_2("w")
        controllers.start(**there.settings())
        ocm_reports(admin, "one")
        there.until("Active", "w")
        before = admin.ask("GET", SECRET_PATH)["data"]
        ocm_reports(admin, "two")
        soon(lambda: (admin.get(SECRET_PATH) or {}).get("data") not in (before, None))
        there.decide()
        soon(lambda: [admin.get(path) for path in (SECRET_PATH, *GRANTS)], [None] * 3)
        soon(lambda: there.needless(f"{NAME}-provisioning", f"{NAME}-kubeconfigs"), [])
    assert there.refused() == []


def test_cluster_profile(admin: Driver, install: Install) -> None:
    """OCM creates the ClusterProfile and copies the token; the worker does not answer when it leaves."""
    there = install("overlays/cluster-profile")
    a_cluster(admin)
    admin.profile("w", accessProviders=[{"name": "open-cluster-management"}])
    with there.controllers() as controllers:
        there.story_2("w")
        controllers.start(**there.settings())
        ocm_reports(admin, "one")
        admin.secret(f"w-{NAME}", key="token", value=encoded("one"))
        there.until("Active", "w")
        source = admin.ask("GET", admin.kueue("multikueueclusters", f"{P}-w"))["spec"]["clusterSource"]
        assert source == {"clusterProfileRef": {"name": "w"}}
        ocm_reports(admin, "two")
        connected(admin)
        workload_with_quota(admin)
        soon(lambda: answer(admin), "Ready")
        there.decide()
        soon(lambda: "cannot be asked" in admin.active(P)["message"])
        admin.ask("DELETE", f"{MANAGED}/w")
        soon(lambda: [admin.get(path) for path in GRANTS], [None] * 2)
        soon(lambda: there.needless(f"{NAME}-provisioning", f"{NAME}-cluster-profile"), [])
    assert there.refused() == []


def a_cluster(admin: Driver) -> None:
    """A ManagedCluster with an address where no server answers."""
    admin.namespace("w")
    spec = {"managedClusterClientConfigs": [{"url": "https://127.0.0.1:1"}]}
    cluster = {"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster"}
    admin.ask("POST", MANAGED, cluster | {"metadata": {"name": "w"}, "spec": spec})


def ocm_reports(admin: Driver, token: str) -> None:
    """Report as OCM does that account and permission are in force, and write the token."""
    data = {"token": encoded(token), "ca.crt": encoded(authority())}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": NAME}, "data": data}
    if admin.try_("POST", SECRETS.format("w"), body).status_code == 409:
        admin.ask("PATCH", f"{SECRETS.format('w')}/{NAME}", {"data": data}, "merge")
    for path, done in zip(GRANTS, DONE, strict=True):
        soon(lambda path=path: admin.get(path))
        admin.ask("PATCH", f"{path}/status", condition(done), "merge")


# -- without a permission


def test_a_right_that_is_taken_away_is_missed(admin: Driver, install: Install) -> None:
    """Otherwise the tests above would show nothing."""
    there = install("default")
    admin.secrets_for("a")
    path = f"{RBAC}/namespaces/{NS}/roles/{NAME}"
    body = admin.ask("GET", path)
    for rule in body["rules"]:
        if "secrets" in rule["resources"]:
            rule["verbs"].remove("watch")
    admin.ask("PUT", path, body)
    with there.controllers() as controllers:
        there.story_2("a")
        controllers.start(**there.settings())
        soon(lambda: "GET /api/v1/namespaces/kueue-system/secrets" in there.refused())


# -- the process

IMAGE = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
"""The variables that the Dockerfile sets."""

WRITES = """
import os, sys

def report(event, args):
    if event == "open" and isinstance(args[0], str) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        os.write(2, f"writes to {args[0]}\\n".encode())

sys.addaudithook(report)
from placement_ac.__main__ import main
main()
"""


def test_the_process_needs_no_file_system_to_write_to(admin: Driver, install: Install) -> None:
    """The process runs as in the container: same arguments and environment, and a read-only root."""
    there = install("default")
    admin.secrets_for("a")
    with there.controllers() as account:
        there.story_2("a")
        environment = there.environment() | {"PLACEMENT_AC_KUBECONFIG": str(account.kubeconfig)}
        arguments = ["run", f"--config={there.config()}"]
        process = subprocess.Popen(
            [sys.executable, "-c", WRITES, *arguments], env=environment, stderr=subprocess.PIPE, text=True
        )
        try:
            there.until("Active", "a")
        finally:
            process.terminate()
            _, output = process.communicate(timeout=30)
    assert process.returncode == 0, output
    assert [line for line in output.splitlines() if line.startswith("writes to ")] == []
