"""`doctor --workers`: each problem of a worker is reported alone, and its fix, pasted, repairs it."""

import asyncio
import base64
import json
import os
import socketserver
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubectl_placement.cli.doctor import command
from kubectl_placement.doctor.worker_inspection import AccessProblem, WorkerInspection, WorkerTarget
from kubectl_placement.doctor.worker_rules import READS, RULES
from kubectl_placement.readers.worker_inspector import CONCURRENT_WORKERS, WorkerInspector
from placement_ac.core.api.constants import SECRET as SECRETS
from placement_ac.core.inputs.fitness import WorkerRequirements
from placement_ac.core.inputs.rights import parse_release, policy_rules
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.kube.client import Client
from placement_ac.workers.connector import WorkerConnector
from placement_lab.hub import Hub
from placement_lab.standins import manifests
from placement_lab.standins.multikueue import copy_of, hub_job, workload_of
from tests.support import kueue
from tests.support.admin import Admin, login_to
from tests.support.crds import plain_crd, topology_crd
from tests.support.driver import CORE, NS, PROFILES, Driver
from tests.support.real_hub import HubMaker
from tests.support.shared import published_crds

Object = dict[str, Any]
CLUSTER = "cluster2"
TOKEN = "SeCrEt-of-the-account"
SAMPLES = manifests.samples() / "tas"
FRAMEWORKS = ["batch/job", "jobset.x-k8s.io/jobset"]
"""The job kinds that Kueue on the hub sends: `kueue.SHIPPED`."""
RBAC = "/apis/rbac.authorization.k8s.io/v1"
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
QUEUE = f"{KUEUE}/clusterqueues/cluster-queue-tas"
SECRET = f"{CORE}/namespaces/{NS}/secrets/multikueue-{CLUSTER}"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NS}/deployments/{kueue.MANAGER}"
TOPOLOGY = f"{KUEUE}/topologies/topology-tas"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JOBSETS = plain_crd("jobset.x-k8s.io", "JobSet", "v1alpha2")
EXTRA = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "LocalQueue",
    "metadata": {"name": "q", "namespace": "team"},
    "spec": {"clusterQueue": "cluster-queue-tas"},
}
TEAM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
ALL_OK = [(rule.check, "OK") for rule in RULES]


class Pair:
    """A hub and a worker, both set up as samples/tas says, and a folder for the commands."""

    def __init__(self, hub: Driver, worker: Driver, folder: Path) -> None:
        self.hub = hub
        self.worker = worker
        self.folder = folder
        self.stores: dict[str, Any] = {}

    def set_up(self) -> None:
        """Put up what a test may have broken; whatever it has put there beside that stays."""
        self.secret()
        self.grant("sender", *needed())
        self.grant("reader", *READS)
        with Admin(login_to(self.worker.hub)) as admin:
            admin.apply(JOBSETS, TEAM, *manifests.load(SAMPLES / "worker.yaml"), EXTRA, *kueue.installed())
        self.kueue_looks()

    def kueue_looks(self) -> None:
        """Write the conditions that the worker's Kueue would give ClusterQueues."""
        condition = {"type": "Active", "status": "True", "reason": "Ready", "message": ""}
        since = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
        for queue in self.worker.ask("GET", f"{KUEUE}/clusterqueues")["items"]:
            path = f"{KUEUE}/clusterqueues/{queue['metadata']['name']}/status"
            self.worker.ask("PATCH", path, {"status": {"conditions": [condition | since]}}, "merge")

    def doctor(self, *words: str) -> list[Object]:
        """Return its findings on workers."""
        given = [f"--kubeconfig={self.folder / 'hub.kubeconfig'}", "--workers", "-ojson", *words]
        done = CliRunner().invoke(command, given)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert TOKEN not in done.output
        assert self.worker.hub.token not in done.output
        found = [
            finding
            for finding in json.loads(done.stdout)["findings"]
            if finding["check"].startswith("worker-")
        ]
        assert {one["message"].partition(": ")[0] for one in found} == {CLUSTER}
        return found

    def levels(self) -> list[tuple[str, str]]:
        return [(one["check"], one["level"]) for one in self.doctor()]

    def paste(self, fix: str) -> None:
        """Run a fix in a shell, as an admin of both."""
        files = f"{self.folder / 'hub.kubeconfig'}:{self.folder / 'worker.kubeconfig'}"
        done = subprocess.run(
            ["/bin/bash", "-c", fix],
            env={"PATH": os.environ["PATH"], "KUBECONFIG": files, "HOME": str(self.folder)},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def grant(self, name: str, *granted: Object) -> None:
        """Let the account do that; nothing else of that name."""
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "limited"}
        named = {"metadata": {"name": name}}
        self.worker.try_("DELETE", f"{RBAC}/clusterroles/{name}")
        self.worker.ask("POST", f"{RBAC}/clusterroles", named | {"rules": list(granted)})
        self.worker.try_("POST", f"{RBAC}/clusterrolebindings", named | {"roleRef": role, "subjects": [user]})

    def secret(self, token: str = TOKEN) -> bytes:
        """Put the kubeconfig into its Secret, and return it."""
        content = self.worker.hub.kubeconfig()
        content["users"][0]["user"] = {"token": token}
        text = json.dumps(content).encode()
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"multikueue-{CLUSTER}"}}
        data = {"kubeconfig": base64.b64encode(text).decode()}
        self.hub.ask("PATCH", SECRET, body | {"data": data}, "apply", force="true")
        return text


def needed() -> list[Object]:
    """The rules that MultiKueue needs on the worker."""
    return [rule.as_dict() for rule in policy_rules(FRAMEWORKS, kueue=parse_release("0.20.0"))]


@pytest.fixture(scope="module")
def pair(a_hub: HubMaker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    crds = [*published_crds(), topology_crd(), JOBSETS]
    with ExitStack() as opened:
        hub, worker = (opened.enter_context(maker(crds=crds)) for maker in (a_hub, Hub))
        there = Pair(opened.enter_context(Driver(hub)), opened.enter_context(Driver(worker)), folder)
        hub.write_kubeconfig(folder / "hub.kubeconfig")
        config = worker.kubeconfig()
        config["contexts"][0]["name"] = CLUSTER
        config["contexts"][0]["context"] = {"cluster": CLUSTER, "user": CLUSTER}
        config["clusters"][0]["name"] = config["users"][0]["name"] = CLUSTER
        config.pop("current-context")
        (folder / "worker.kubeconfig").write_text(json.dumps(config))
        worker.add_user("limited", TOKEN, groups=())
        with Admin(login_to(hub)) as admin:
            home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}}
            admin.apply(home, TEAM, *manifests.load(SAMPLES / "hub.yaml"), EXTRA, *kueue.installed())
        with Admin(login_to(worker)) as admin:
            admin.apply(home)
        there.hub.decide("placement-tas", CLUSTER)
        (folder / f"{CLUSTER}.kubeconfig").write_bytes(there.secret())
        there.set_up()
        yield there


@pytest.fixture
def broken_pair(pair: Pair) -> Iterator[Pair]:
    """The pair, which is put up anew in the end."""
    yield pair
    pair.set_up()


@dataclass(frozen=True)
class Break:
    """`mends`: for a fix that cannot be run here, or not alone."""

    id: str
    how: Callable[[Pair], Any]
    check: str
    level: str
    message: str
    fix: str
    mends: Callable[[Pair], Any] | None = None


def queue_with(*flavors: str) -> Callable[[Pair], Any]:
    """Return what gives the worker's ClusterQueue these flavors."""

    def change(pair: Pair) -> None:
        spec = pair.worker.ask("GET", QUEUE)["spec"]
        [group] = spec["resourceGroups"]
        entries = [{"name": name, "resources": group["flavors"][0]["resources"]} for name in flavors]
        patch = {"spec": {"resourceGroups": [group | {"flavors": entries}]}}
        pair.worker.ask("PATCH", QUEUE, patch, "merge")

    return change


def without(path: str) -> Callable[[Pair], Any]:
    return lambda pair: pair.worker.ask("DELETE", path)


def inactive(reason: str) -> Callable[[Pair], Any]:
    condition = {
        "type": "Active",
        "status": "False",
        "reason": reason,
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {"status": {"conditions": [condition]}}
    return lambda pair: pair.worker.ask("PATCH", f"{QUEUE}/status", status, "merge")


def plain_flavor(labels: Object) -> Callable[[Pair], Any]:
    """Return what makes a flavor without a Topology, alone in the queue, as an admin does: by kubectl."""
    flavor = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "plain"},
        "spec": {"nodeLabels": labels, "tolerations": [TOLERATION]},
    }

    def change(pair: Pair) -> None:
        pair.worker.try_("DELETE", f"{KUEUE}/resourceflavors/plain")
        pair.paste(f"kubectl --context {CLUSTER} apply -f - <<'EOF'\n{json.dumps(flavor)}\nEOF")
        queue_with("plain")(pair)

    return change


def namesake(*, quota: bool) -> Callable[[Pair], Any]:
    """Return what makes a job of the hub wait for the worker, where a Job of somebody else has its name."""
    job = hub_job("train", "team", "q")
    nominated = {"nominatedClusterNames": [f"placement-tas-{CLUSTER}"]}
    reserved = {"type": "QuotaReserved", "status": str(quota), "reason": "QuotaReserved", "message": ""}
    reserved["lastTransitionTime"] = "2026-01-01T00:00:00Z"

    def change(pair: Pair) -> None:
        with Admin(login_to(pair.hub.hub)) as admin:
            [made] = admin.apply(job)
            waiting = workload_of(job | {"metadata": made["metadata"]})
            admin.apply(waiting | {"status": nominated})
        with Admin(login_to(pair.worker.hub)) as admin:
            admin.apply(job, copy_of(waiting, "multikueue") | {"status": {"conditions": [reserved]}})

    return change


JOB = "/apis/batch/v1/namespaces/team/jobs/train"
SAME_NAME = "it is another one of the same name"
TOLERATION = {"key": "spot", "operator": "Exists"}
PUT_SECRET = (
    "kubectl create secret generic -n kueue-system multikueue-cluster2"
    " --from-file=kubeconfig=cluster2.kubeconfig --dry-run=client -o yaml | kubectl apply -f -"
)
APPLY = "kubectl --context cluster2 apply -f - <<'EOF'\n"
LEFT = "the hub's ClusterQueue cluster-queue-tas leaves topology requests to the worker"
BREAKS = (
    Break(
        "the worker is away",
        lambda pair: pair.worker.hub.go_down(),
        "worker-access",
        "FAIL",
        f"the worker of Secret {NS}/multikueue-cluster2 cannot be reached: Connection refused: if it answers"
        " you, the address in the hub's credentials or the network between Kueue and it is wrong",
        "kubectl --context cluster2 get --raw /readyz",
        mends=lambda pair: pair.worker.hub.come_back(),
    ),
    Break(
        "its token has been taken back",
        lambda pair: pair.secret("of-yesterday"),
        "worker-access",
        "FAIL",
        f"the worker does not accept the credentials of Secret {NS}/multikueue-cluster2",
        PUT_SECRET,
    ),
    Break(
        "nobody has put credentials there",
        lambda pair: pair.hub.ask("DELETE", SECRET),
        "worker-access",
        "FAIL",
        "there are no usable credentials: create Secret ",
        PUT_SECRET,
    ),
    Break(
        "its Kueue is older",
        lambda pair: pair.worker.ask("PATCH", DEPLOYMENT, _image("0.18.6"), "merge"),
        "worker-kueue",
        "WARN",
        "Kueue 0.18.6 there is older than 0.20.0 on the hub",
        "kubectl --context cluster2 apply --server-side -f"
        " https://github.com/kubernetes-sigs/kueue/releases/download/v0.20.0/manifests.yaml",
        mends=Pair.set_up,
    ),
    Break(
        "a job kind is missing",
        without(f"{CRDS}/jobsets.jobset.x-k8s.io"),
        "worker-jobs",
        "FAIL",
        "install the CRDs of jobsets.v1alpha2.jobset.x-k8s.io (jobset.x-k8s.io/jobset) on the worker",
        "kubectl get crd jobsets.jobset.x-k8s.io -o yaml | kubectl --context cluster2 create -f -",
    ),
    *(
        Break(
            f"somebody's Job has the name of one that waits, {level}",
            namesake(quota=level == "FAIL"),
            "worker-same-names",
            level,
            f"rename or delete Job team/train there, or the hub's: {SAME_NAME}, and {end}",
            "kubectl --context cluster2 get jobs.batch -n team train -o yaml",
            mends=without(JOB),
        )
        for level, end in (
            ("FAIL", "the hub's has quota there, so it is sent nowhere else and never runs"),
            ("WARN", "the hub's never runs if it gets quota there"),
        )
    ),
    Break(
        "a right is missing",
        lambda pair: pair.grant("sender", *needed()[1:]),
        "worker-rights",
        "FAIL",
        "grant create, delete, get, patch, watch jobs.batch on the worker",
        APPLY + "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole",
    ),
    Break(
        "it may not be looked at",
        lambda pair: pair.grant("reader", READS[0]),
        "worker-reads",
        "WARN",
        f"unknown, because the account of Secret {NS}/multikueue-cluster2 may not read it: localqueues,"
        " clusterqueues, resourceflavors, topologies, the release of Kueue",
        APPLY + "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole",
    ),
    Break(
        "a namespace is missing",
        without(f"{CORE}/namespaces/team"),
        "worker-namespaces",
        "FAIL",
        "namespaces team are missing: their jobs cannot run there",
        APPLY + "apiVersion: v1\nkind: Namespace",
    ),
    Break(
        "a LocalQueue is missing",
        without(f"{KUEUE}/namespaces/team/localqueues/q"),
        "worker-queues",
        "FAIL",
        "LocalQueues team/q are missing: their jobs cannot run there",
        APPLY + "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue",
    ),
    Break(
        "a ClusterQueue is missing",
        without(QUEUE),
        "worker-cluster-queues",
        "FAIL",
        "LocalQueue default/user-queue-tas uses ClusterQueue cluster-queue-tas, which does not exist",
        APPLY + "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue",
    ),
    Break(
        "a ClusterQueue is stopped",
        inactive("Stopped"),
        "worker-cluster-queues",
        "FAIL",
        "ClusterQueue cluster-queue-tas is stopped",
        "kubectl --context cluster2 patch clusterqueue cluster-queue-tas --type=merge -p"
        """ '{"spec":{"stopPolicy":"None"}}\'""",
    ),
    Break(
        "a ClusterQueue is not active",
        inactive("CheckNotFoundOrInactive"),
        "worker-cluster-queues",
        "FAIL",
        "ClusterQueue cluster-queue-tas is not active (CheckNotFoundOrInactive)",
        "kubectl --context cluster2 describe clusterqueue cluster-queue-tas",
        mends=Pair.kueue_looks,
    ),
    Break(
        "a flavor is missing",
        queue_with("default-flavor-tas", "spot"),
        "worker-flavors",
        "FAIL",
        "ClusterQueue cluster-queue-tas names ResourceFlavor spot, which does not exist",
        APPLY + "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor",
    ),
    Break(
        "the Topology is missing",
        without(TOPOLOGY),
        "worker-topology",
        "FAIL",
        f"{LEFT}, and ResourceFlavor default-flavor-tas names Topology topology-tas, which does not exist",
        APPLY + "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Topology",
    ),
    *(
        Break(
            f"no flavor names a Topology, and its labels are {labels}",
            plain_flavor(labels),
            "worker-topology",
            "FAIL",
            f"{LEFT}, and no ResourceFlavor of ClusterQueue cluster-queue-tas names a Topology",
            'kubectl --context cluster2 patch resourceflavor plain --type=merge -p \'{"spec":{' + patch,
        )
        for labels, patch in (
            ({}, '"nodeLabels":{"cloud.provider.com/node-group":"tas"},"topologyName":"topology-tas"}}\''),
            ({"pool": "a"}, '"topologyName":"topology-tas"}}\''),
        )
    ),
)


def _image(version: str) -> Object:
    container = {"name": "manager", "image": f"registry.k8s.io/kueue/kueue:v{version}"}
    return {"spec": {"template": {"spec": {"containers": [container]}}}}


@pytest.mark.parametrize("broken", BREAKS, ids=lambda broken: broken.id)
def test_each_problem_is_reported_and_its_fix_repairs_it(broken_pair: Pair, broken: Break) -> None:
    broken.how(broken_pair)
    [wrong] = [one for one in broken_pair.doctor() if one["level"] != "OK"]
    assert (wrong["check"], wrong["level"]) == (broken.check, broken.level)
    assert wrong["message"].startswith(f"{CLUSTER}: {broken.message}")
    assert wrong["fix"].startswith(broken.fix)
    if broken.mends:
        broken.mends(broken_pair)
    else:
        broken_pair.paste(wrong["fix"])
        broken_pair.kueue_looks()
    assert broken_pair.levels() == ALL_OK


def test_a_fix_keeps_the_fields_of_a_flavor(broken_pair: Pair) -> None:
    plain_flavor({"pool": "a"})(broken_pair)
    [wrong] = [one for one in broken_pair.doctor() if one["level"] != "OK"]
    broken_pair.paste(wrong["fix"])
    spec = broken_pair.worker.ask("GET", f"{KUEUE}/resourceflavors/plain")["spec"]
    assert spec == {"nodeLabels": {"pool": "a"}, "tolerations": [TOLERATION], "topologyName": "topology-tas"}


def test_every_rule_has_been_broken() -> None:
    assert {rule.check for rule in RULES} == {broken.check for broken in BREAKS}


def test_a_worker_without_kueue(pair: Pair) -> None:
    with Hub(crds=[plain_crd("example.com", "Thing")]) as empty, Driver(empty) as worker:
        empty.add_user("limited", TOKEN, groups=("system:masters",))
        content = Pair(pair.hub, worker, pair.folder)
        content.secret()
        found = {one["check"]: one for one in content.doctor() if one["level"] == "FAIL"}
    pair.secret()
    assert found["worker-kueue"]["message"] == "cluster2: install Kueue on the worker: it serves no Workloads"


def test_a_worker_behind_a_clusterprofile(broken_pair: Pair, tmp_path: Path) -> None:
    pair, v1 = broken_pair, "client.authentication.k8s.io/v1"
    [entry] = pair.worker.hub.kubeconfig()["clusters"]
    pair.hub.ask("DELETE", SECRET)
    pair.hub.profile(CLUSTER, accessProviders=[{"name": "ours", "cluster": entry["cluster"]}])
    asked = f"not inspected: no plugin is configured here for ClusterProfile {CLUSTER}"
    assert [one["message"].startswith(f"{CLUSTER}: {asked}") for one in pair.doctor()] == [True]

    credential = {"apiVersion": v1, "kind": "ExecCredential", "status": {"token": TOKEN}}
    (tmp_path / "plugin").write_text(f"#!/bin/sh\necho '{json.dumps(credential)}'\n")
    (tmp_path / "plugin").chmod(0o700)
    run = {"apiVersion": v1, "command": str(tmp_path / "plugin"), "interactiveMode": "Never"}
    providers = {"providers": [{"name": "ours", "execConfig": run}]}
    (tmp_path / "providers").write_text(json.dumps(providers))
    found = pair.doctor(f"--access-providers={tmp_path / 'providers'}")
    assert [(one["check"], one["level"]) for one in found] == ALL_OK
    entered = f"{CLUSTER}: it answers, with the credentials of ClusterProfile {NS}/{CLUSTER}"
    assert found[0]["message"] == entered

    (tmp_path / "plugin").write_text("#!/bin/sh\nexit 3\n")
    [wrong] = pair.doctor(f"--access-providers={tmp_path / 'providers'}")
    assert wrong["message"].startswith(f"{CLUSTER}: plugin {tmp_path / 'plugin'} ended with code 3")
    assert wrong["fix"] == f"kubectl get clusterprofile -n {NS} {CLUSTER} -o yaml"

    providers["providers"][0]["allowedServerSuffixes"] = [".example.com"]
    (tmp_path / "providers").write_text(json.dumps(providers))
    [wrong] = pair.doctor(f"--access-providers={tmp_path / 'providers'}")
    correct = f"in ClusterProfile {NS}/{CLUSTER}, correct the server of access provider ours, or add its host"
    assert wrong["message"].startswith(f"{CLUSTER}: {correct}")
    pair.hub.ask("DELETE", f"{PROFILES}/{CLUSTER}")


def test_doctor_lists_the_checks_of_workers() -> None:
    done = CliRunner().invoke(command, ["--list", "-ojson"])
    assert [one["check"] for one in json.loads(done.stdout)][-len(RULES) :] == [rule.check for rule in RULES]


def test_nothing_is_written_to_hub_or_worker(pair: Pair) -> None:
    for driver in (pair.hub, pair.worker):
        driver.hub.journal.clear()
    assert pair.levels() == ALL_OK
    reviews = ("selfsubjectaccessreviews", "selfsubjectreviews")
    for driver in (pair.hub, pair.worker):
        asked = [r for r in driver.hub.journal if r.method != "GET" and not r.path.endswith(reviews)]
        assert asked == []


def test_eight_workers_are_inspected_at_once(pair: Pair) -> None:
    with shutting_when(CONCURRENT_WORKERS) as (port, most):
        targets = [target_at(pair, f"c{number}", port) for number in range(CONCURRENT_WORKERS + 4)]
        visits = asyncio.run(visited(pair.hub, targets))
    assert [(visit.target, visit.access_problem) for visit in visits] == [
        (target, AccessProblem.UNREACHABLE) for target in targets
    ]
    assert max(most) == CONCURRENT_WORKERS


def test_a_worker_that_never_answers(pair: Pair) -> None:
    with shutting_when(2) as (port, _):
        [visit] = asyncio.run(visited(pair.hub, [target_at(pair, "c", port)], seconds=0.3))
    assert visit.access_problem is AccessProblem.UNREACHABLE


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("$", []),
        ("$", {"versions": 7}),
        ("/v1beta2$", {"resources": [7]}),
        ("/v1beta2/topologies$", {"items": 7}),
    ],
)
def test_a_malformed_answer_of_a_worker_is_reported(pair: Pair, path: str, answer: Any) -> None:
    pair.worker.hub.faults.add("GET", f"^/apis/kueue.x-k8s.io{path}", status=200, body=answer)
    source = CredentialSource("Secret", f"multikueue-{CLUSTER}")
    [visit] = asyncio.run(visited(pair.hub, [WorkerTarget(CLUSTER, source)]))
    assert visit.access_problem is AccessProblem.UNREACHABLE
    assert visit.problem


async def visited(
    hub: Driver, targets: list[WorkerTarget], seconds: float = 5.0
) -> tuple[WorkerInspection, ...]:
    async with Client(login_to(hub.hub)) as client:
        entrance = WorkerConnector(client, SECRETS.at("v1"), NS, timeout=seconds)
        return await WorkerInspector(entrance, WorkerRequirements("v1beta2"), NS).inspect(targets)


def target_at(pair: Pair, name: str, port: int) -> WorkerTarget:
    """A worker at that port, with its Secret on the hub."""
    content = pair.worker.hub.kubeconfig()
    content["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    secret = f"at-{port}-{name}"
    pair.hub.secret(secret, value=base64.b64encode(json.dumps(content).encode()).decode())
    return WorkerTarget(name, CredentialSource("Secret", secret))


@contextmanager
def shutting_when(wanted: int) -> Iterator[tuple[int, list[int]]]:
    """A server that says nothing, and closes its connections once there were so many at a time.

    Yields its port, and how many there were whenever one came.
    """
    most: list[int] = []
    open_now: set[Any] = set()
    enough = threading.Event()

    class Silent(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            open_now.add(self)
            most.append(len(open_now))
            if len(open_now) == wanted:
                enough.set()
            enough.wait(20)
            open_now.discard(self)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 32

    with Server(("127.0.0.1", 0), Silent) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], most
        enough.set()
        server.shutdown()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--workers", "--cluster", "cluster9"), "use one of the clusters cluster2: no check has cluster9"),
        (("--cluster", "cluster2"), "use --cluster only with --workers"),
        (("--workers", "--timeout", "soon"), "use a duration like 90s, 5m or 1h30m"),
        (("--workers", "--from-dump", "-"), "it needs a hub"),
    ],
)
def test_wrong_words(pair: Pair, words: tuple[str, ...], expected: str) -> None:
    done = CliRunner().invoke(command, [f"--kubeconfig={pair.folder / 'hub.kubeconfig'}", *words], input="")
    assert (done.exit_code, expected in done.output) == (2, True), done.output
