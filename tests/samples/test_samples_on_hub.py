"""The set-ups under samples/, applied with kubectl as their README says: each check becomes Active."""

import base64
import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from kubectl_placement.cli.doctor import command as doctor
from kubectl_placement.doctor.worker_rules import READS
from placement_ac.config.settings import Settings
from placement_ac.core.inputs.identity import WorkerIdentity
from placement_ac.core.inputs.rights import parse_release, policy_rules
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.kube.login import Login
from placement_ac.workers.identity import IdentityReader
from placement_lab.demo.environment import ControllerThread
from placement_lab.hub import Hub
from placement_lab.short_waits import short_waits
from placement_lab.standins import manifests
from placement_lab.standins.kueue import MultiKueue
from placement_lab.standins.ocm import Scheduler
from placement_lab.standins.runner import StandIns
from tests.support import installation, kueue
from tests.support.admin import Admin, login_to
from tests.support.crds import NOT_RELEASED, all_strict_crds
from tests.support.driver import CORE, NS, PROFILES, Driver, Object, eventually
from tests.support.kueue_objects import namespace
from tests.support.real_hub import HubMaker

pytestmark = pytest.mark.long

SAMPLES = manifests.samples()
WORKERS = [
    str(file.relative_to(SAMPLES))
    for pattern in ("*/worker.yaml", "federations/worker-*.yaml")
    for file in sorted(SAMPLES.glob(pattern))
]
"""The objects of every set-up on the workers."""
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NS}/deployments/{kueue.MANAGER}"
CONFIG_MAP = f"{CORE}/namespaces/{NS}/configmaps/{kueue.CONFIG}"
CONTROLLER = f"/apis/apps/v1/namespaces/{installation.NAMESPACE}/deployments/{installation.NAME}"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
JOBSETS = [
    rule.as_dict()
    for rule in policy_rules(["jobset.x-k8s.io/jobset"], kueue=parse_release("0.20.0"))
    if "jobsets" in rule.resources
]
"""The manifest that Kueue needs on a worker for JobSets."""
SINCE = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
SPOKE = ["cluster1", "cluster2", "cluster3"]
MANAGED = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
PATCHES = ("external-frameworks", "federations")
"""Folders whose patches of the controller's Deployment can be combined."""


def settings_of(*folders: str) -> dict[str, str]:
    """The controller's settings as the patches in these folders set them."""
    files = (SAMPLES / folder / "controller-patch.yaml" for folder in folders)
    found = installation.environment_of  # one patch is one Deployment
    variables = {name: value for file in files for name, value in found(manifests.load(file)).items()}
    return {name.removeprefix("PLACEMENT_AC_").lower(): value for name, value in variables.items()}


class Stage:
    """A hub with the fleet of samples/fleet, OCM, Kueue and the controller; one worker for all clusters."""

    def __init__(self, hub: Hub, worker: Hub, folder: Path) -> None:
        self.admin = Driver(hub)
        self.worker = Driver(worker)
        self.folder = folder
        self.homes = {hub: folder / "kubeconfig", worker: folder / "worker.kubeconfig"}
        for which, path in self.homes.items():
            which.write_kubeconfig(path)

    def kubectl(self, *words: str, hub: Hub | None = None) -> str:
        path = self.homes[hub or self.admin.hub]
        return installation.kubectl(*words, KUBECONFIG=str(path), HOME=str(self.folder))

    def apply_to_worker(self, *files: str) -> None:
        names = (f"--filename={SAMPLES / file}" for file in files)
        self.kubectl("apply", *names, hub=self.worker.hub)
        condition = {"type": "Active", "status": "True", "reason": "Ready", "message": "", **SINCE}
        for queue in self.worker.ask("GET", f"{KUEUE}/clusterqueues")["items"]:
            path = f"{KUEUE}/clusterqueues/{queue['metadata']['name']}/status"
            self.worker.ask("PATCH", path, {"status": {"conditions": [condition]}}, "merge")

    def kueue_is(self, *objects: Object) -> None:
        """Replace Kueue on the hub by these objects."""
        for path in (DEPLOYMENT, CONFIG_MAP):
            self.admin.try_("DELETE", path)
        with Admin(login_to(self.admin.hub)) as admin:
            admin.apply(*objects)

    def doctor(self) -> dict[str, list[Object]]:
        """The findings of `doctor` that are not OK, by check.

        Here one server is all clusters: they share a connection, and its quota counts for each of them, as if
        each had a worker of its own.
        """
        given = [f"--kubeconfig={self.homes[self.admin.hub]}", "--workers", "-ojson"]
        done = CliRunner().invoke(doctor, given)
        assert done.exit_code in (0, 2), done.output
        wrong: dict[str, list[Object]] = {}
        for finding in json.loads(done.stdout)["findings"]:
            if finding["level"] in ("WARN", "FAIL") and finding["check"] != "duplicate-clusters":
                wrong.setdefault(finding["check"], []).append(finding)
        return wrong

    def apply(self, *files: str) -> None:
        self.kubectl("apply", *(f"--filename={SAMPLES / file}" for file in files))

    def submit(self, folder: str, queue: str, *files: str) -> None:
        """Create jobs, which the hub stores unchanged."""
        for file in files:
            words = ("create", f"--filename={SAMPLES / folder / file}", "--output=json")
            assert json.loads(self.kubectl(*words))["metadata"]["labels"][QUEUE_LABEL] == queue

    def listed(self, placement: str) -> list[str]:
        return self.admin.listed(placement) or []

    def source(self, cluster: str) -> Object:
        """The clusterSource of a MultiKueueCluster."""
        found = self.admin.get(self.admin.kueue("multikueueclusters", cluster)) or {"spec": {}}
        return dict(found["spec"].get("clusterSource") or {})

    def active(self, plural: str, name: str) -> bool:
        conditions = (self.admin.get(self.admin.kueue(plural, name)) or {}).get("status", {})
        return any(
            (condition["type"], condition["status"]) == ("Active", "True")
            for condition in conditions.get("conditions") or ()
        )

    def until_it_works(self, name: str, *clusters: str) -> None:
        """Wait until the list has these clusters, and checks and queue are active."""
        eventually(lambda: self.listed(f"placement-{name}"), list(clusters))
        for check in (f"placement-{name}", f"multikueue-{name}"):
            eventually(lambda check=check: self.active("admissionchecks", check))
        eventually(lambda: self.active("clusterqueues", f"cluster-queue-{name}"))


@pytest.fixture(scope="module")
def there(a_hub: HubMaker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("hub")
    crds = [crd for crd in all_strict_crds() if crd["metadata"]["name"] != NOT_RELEASED]
    with ExitStack() as opened:
        hub, worker = (opened.enter_context(maker(crds=crds)) for maker in (a_hub, Hub))
        stage = Stage(hub, worker, folder)
        opened.enter_context(stage.admin)
        opened.enter_context(stage.worker)
        fleet = [one for one in manifests.load(SAMPLES / "fleet") if one["kind"] != "Secret"]
        with Admin(login_to(hub)) as admin:
            admin.apply(*fleet, *installation.rendered("default"), *kueue.installed())
        status = {"status": {"replicas": 2, "readyReplicas": 2}}
        stage.admin.ask("PATCH", f"{CONTROLLER}/status", status, "merge")
        patches = (SAMPLES / folder / "controller-patch.yaml" for folder in PATCHES)
        for patch in patches:
            words = ("patch", f"--patch-file={patch}", "-n", installation.NAMESPACE)
            stage.kubectl(*words, "deployment", installation.NAME)
        prepare(stage)

        def multikueue(login: Login) -> MultiKueue:
            return MultiKueue(login, cluster_profiles=True, access_providers=providers())

        opened.enter_context(StandIns(stage.homes[hub], [Scheduler, multikueue]))
        patched = opened.enter_context(pytest.MonkeyPatch.context())
        patched.setattr(IdentityReader, "read", plays_another_one)
        opened.enter_context(short_waits())
        settings = Settings(kubeconfig=stage.homes[hub], settle=0, **settings_of(*PATCHES))
        opened.enter_context(ControllerThread(settings))
        yield stage


async def plays_another_one(_: IdentityReader, source: CredentialSource, now: datetime) -> WorkerIdentity:
    """The identity of a worker for each Secret: here one server is all clusters."""
    return WorkerIdentity(source.version, now, namespace=source.name)


def prepare(there: Stage) -> None:
    """Set up the worker, and create its kubeconfig with the account of worker-rights.yaml on the hub."""
    home = namespace(NS)
    with Admin(login_to(there.worker.hub)) as admin:
        admin.apply(home, *kueue.installed(), *reader([*READS, *JOBSETS]))
    there.apply_to_worker("external-frameworks/worker-rights.yaml", *WORKERS)
    path = f"{CORE}/namespaces/{NS}/serviceaccounts/multikueue/token"
    config = there.worker.hub.kubeconfig()
    config["users"][0]["user"] = {"token": there.worker.ask("POST", path, {"spec": {}})["status"]["token"]}
    text = base64.b64encode(json.dumps(config).encode()).decode()
    for cluster in SPOKE:
        there.admin.secret(f"multikueue-{cluster}", value=text)


def reader(allowed: Iterable[Object]) -> list[Object]:
    """The objects that grant the account of worker-rights.yaml these permissions as well."""
    name = {"metadata": {"name": "reader"}}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"}
    subject = {"kind": "ServiceAccount", "name": "multikueue", "namespace": NS}
    version = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    return [
        version | name | {"kind": "ClusterRole", "rules": list(allowed)},
        version | name | {"kind": "ClusterRoleBinding", "roleRef": role, "subjects": [subject]},
    ]


def providers() -> list[str]:
    """The access providers of both configurations of Kueue."""
    files = (
        SAMPLES / "cluster-profile" / folder / "kueue-config.yaml" for folder in ("ocm", "secret-reader")
    )
    configs = [yaml.safe_load(item["data"][kueue.KEY]) for file in files for item in manifests.load(file)]
    return [p["name"] for c in configs for p in c["multiKueue"]["clusterProfile"]["accessProviders"]]


@pytest.mark.parametrize(
    ("folder", "name", "jobs"),
    [
        pytest.param("jobset", "jobset", ["jobset.yaml"], id="JobSet"),
        pytest.param("tas", "tas", ["job.yaml"], id="topology-aware scheduling"),
    ],
)
def test_every_cluster_of_the_set_is_listed(there: Stage, folder: str, name: str, jobs: list[str]) -> None:
    there.apply(f"{folder}/hub.yaml")
    there.until_it_works(name, *SPOKE)
    there.submit(folder, f"user-queue-{name}", *jobs)
    assert there.doctor() == {}


def test_jobs_of_external_frameworks(there: Stage, tmp_path: Path) -> None:
    there.kueue_is(*kueue.kustomized(SAMPLES / "external-frameworks", tmp_path))
    there.apply("external-frameworks/hub.yaml")
    there.until_it_works("external", *SPOKE)
    there.submit("external-frameworks", "user-queue-external", "pipelinerun.yaml", "workflow.yaml")
    assert there.doctor() == {}

    there.kubectl("delete", "clusterrole", "multikueue", hub=there.worker.hub)
    assert there.doctor().keys() == {"worker-rights"}
    there.apply_to_worker("external-frameworks/worker-rights.yaml")
    assert there.doctor() == {}


@pytest.fixture
def by_profile(there: Stage) -> Iterator[Stage]:
    """Delete the Secrets of cluster1 and cluster2, and restore them at the end."""
    paths = [f"{CORE}/namespaces/{NS}/secrets/multikueue-{cluster}" for cluster in SPOKE[:2]]
    secrets = [there.admin.ask("GET", path) for path in paths]
    yield there
    for path, secret in zip(paths, secrets, strict=True):
        body = {key: secret[key] for key in ("apiVersion", "kind", "data")}
        named = {"metadata": {"name": secret["metadata"]["name"]}}
        there.admin.ask("PATCH", path, body | named, "apply", force="true")
    eventually(lambda: there.source("cluster1").keys(), {"kubeConfig"})
    there.kueue_is(*kueue.installed())


def test_a_cluster_is_reached_by_the_access_provider_of_ocm(by_profile: Stage, tmp_path: Path) -> None:
    there = by_profile
    there.kueue_is(*kueue.kustomized(SAMPLES / "cluster-profile" / "ocm", tmp_path))
    there.apply("cluster-profile/hub.yaml")
    there.admin.ask("DELETE", f"{CORE}/namespaces/{NS}/secrets/multikueue-cluster1")
    eventually(lambda: there.source("cluster1"), {"clusterProfileRef": {"name": "cluster1"}})
    there.until_it_works("profiles", *SPOKE)
    assert levels(there.doctor()) == {"worker-access": "WARN"}  # no plugin here

    [plugins] = there.admin.ask("GET", DEPLOYMENT)["spec"]["template"]["spec"]["initContainers"]
    assert plugins["name"] == "cp-creds"
    there.kueue_is(*[one for one in kueue.installed() if one["kind"] == "Deployment"], config(there))
    assert levels(there.doctor()) == {"worker-access": "WARN"}


def levels(wrong: dict[str, list[Object]]) -> dict[str, str]:
    return {check: found[0]["level"] for check, found in wrong.items()}


def config(there: Stage) -> Object:
    """Kueue's current configuration."""
    found = there.admin.ask("GET", CONFIG_MAP)
    metadata = {key: found["metadata"][key] for key in ("name", "namespace")}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": found["data"]}


def test_a_cluster_is_reached_by_the_reader_of_secrets(by_profile: Stage, tmp_path: Path) -> None:
    there = by_profile
    there.kueue_is(*kueue.kustomized(SAMPLES / "cluster-profile" / "secret-reader", tmp_path))
    there.apply("cluster-profile/hub.yaml")
    for path in (f"{PROFILES}/cluster2", f"{CORE}/namespaces/{NS}/secrets/multikueue-cluster2"):
        there.admin.ask("DELETE", path)
    file = "cluster-profile/secret-reader/cluster2.yaml"
    there.apply(file, "cluster-profile/secret-reader/cluster2-token.yaml")
    words = ("--server-side", "--subresource=status", "--field-manager=by-hand")
    there.kubectl("apply", *words, f"--filename={SAMPLES / file}")
    eventually(lambda: there.source("cluster2"), {"clusterProfileRef": {"name": "cluster2"}})
    there.until_it_works("profiles", *SPOKE)
    assert levels(there.doctor()) == {"worker-access": "WARN"}  # no plugin here


def test_a_cluster_that_is_in_two_federations_has_one_connection(there: Stage) -> None:
    label = ("label", "--overwrite", "managedcluster")
    there.kubectl(*label, "cluster1", "cluster2", "region=eu")
    there.kubectl(*label, "cluster2", "cluster3", "accelerator=nvidia-tesla-t4")
    there.apply("federations/cluster-sets.yaml", "federations/eu.yaml", "federations/gpu.yaml")
    there.until_it_works("eu", "cluster1", "cluster2")
    there.until_it_works("gpu", "cluster2", "cluster3")
    assert there.admin.clusters() == SPOKE
    there.submit("federations", "user-queue-eu", "job-eu.yaml")
    assert there.doctor() == {}

    there.kubectl("delete", "localqueue", "-n", "team-gpu", "user-queue-gpu", hub=there.worker.hub)
    found = [one["message"].partition(":")[0] for one in there.doctor()["worker-queues"]]
    assert found == [", ".join(SPOKE[1:])]
    there.apply_to_worker("federations/worker-gpu.yaml")
    assert there.doctor() == {}
