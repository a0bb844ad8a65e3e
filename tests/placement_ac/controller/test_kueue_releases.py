"""The rights on a worker are those that the release of the hub's Kueue needs."""

import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack, redirect_stderr

import pytest

from placement_ac.core.api.kueue_gates import KUEUE_CONFIG_KEY, KUEUE_CONFIG_MAP
from placement_ac.core.inputs import rights
from placement_ac.observability import logs
from tests.support.credentials import Stage, open_stage, put, token_of
from tests.support.driver import KUEUE, NS, Controllers, Driver
from tests.support.hub_client import CRDS, crd
from tests.support.jobs import soon
from tests.support.stage import shorten

DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NS}/deployments"
MANAGER = "kueue-controller-manager"
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
UNKNOWN = (
    "the release of the hub's Kueue is not known: what any release needs on a worker counts;"
    " allow to get its Deployment, or set kueue-version"
)
QUOTA, PREEMPTION = "MultiKueueManagerQuotaAutomation", "MultiKueueOrchestratedPreemption"
CLUSTER_PROFILES = ("clusterprofiles.multicluster.x-k8s.io",)
Play = Callable[[], Stage]


@pytest.fixture
def play(admin: Driver, controllers: Controllers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Play]:
    """Sets the stage with the worker a, which is selected; the hub has Deployments."""
    shorten(monkeypatch, REDISCOVERY_SECONDS=0.3, MISSING_GRACE_SECONDS=0.0)
    admin.namespace(NS)
    if admin.get(DEPLOYMENTS) is None:  # a real API server has the kind
        admin.ask("POST", CRDS, crd("Deployment", ANYTHING, group="apps"))
    with ExitStack() as opened:

        def start() -> Stage:
            stage = opened.enter_context(open_stage(admin, controllers, ["a"]))
            admin.check("p")
            admin.placement("p")
            stage.select("a")
            return stage

        yield start


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    output = io.StringIO()
    with redirect_stderr(output):
        logs.configure("text", "info")
    yield output
    logs.configure("text", "error")


def deploy(admin: Driver, tag: str, *args: str) -> None:
    """Roll out Kueue with this image, and these arguments."""
    containers = [
        {"name": "proxy", "image": "proxy:v1.2.3"},
        {"name": "manager", "image": f"registry.k8s.io/kueue/kueue:{tag}", "args": [*args]},
    ]
    labels = {"app": MANAGER}
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    body = {"metadata": {"name": MANAGER}, "spec": spec}
    path = f"{DEPLOYMENTS}/{MANAGER}"
    admin.ask("PATCH", path, {"apiVersion": "apps/v1", "kind": "Deployment"} | body, "apply", force="true")


def granted(stage: Stage) -> object:
    return (stage.permission("a") or {"spec": {"clusterRole": {}}})["spec"]["clusterRole"].get("rules")


def configure(admin: Driver, text: str) -> None:
    """Write Kueue's configuration."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": KUEUE_CONFIG_MAP}}
    path = f"/api/v1/namespaces/{NS}/configmaps/{KUEUE_CONFIG_MAP}"
    admin.ask("PATCH", path, body | {"data": {KUEUE_CONFIG_KEY: text}}, "apply", force="true")


def needed(frameworks: tuple[str, ...], tag: str = "", *on: str, **gates: bool) -> list[object]:
    set_gates = dict.fromkeys(on, True) | gates
    rules = rights.policy_rules(frameworks, gates=set_gates, kueue=rights.parse_release(tag))
    return [rule.as_dict() for rule in rules]


def asked_for_deployments(admin: Driver) -> int:
    return sum(
        request.path.startswith(DEPLOYMENTS) and request.user_agent.startswith("placement-ac")
        for request in admin.hub.journal
    )


def listed(stage: Stage) -> tuple[object, object]:
    """How Kueue gets into the worker: what its MultiKueueCluster names, and which object that is."""
    found = stage.admin.get(stage.admin.kueue("multikueueclusters", "p-a")) or {"metadata": {}}
    return stage.source("p-a"), found["metadata"].get("uid")


JOB = ("batch/job",)


def test_another_release_of_kueue_changes_the_rights_and_moves_no_cluster(play: Play, admin: Driver) -> None:
    stage = play()
    deploy(admin, "v0.17.3")
    stage.start(credentials_probe=True)
    stage.until_connected("a")
    assert granted(stage) == needed(JOB, "0.17.3") != needed(JOB, "0.19.0")
    before = listed(stage)
    deploy(admin, "v0.19.0")
    soon(lambda: granted(stage), needed(JOB, "0.19.0"))
    assert (listed(stage), admin.listed("p")) == (before, ["p-a"])


def test_an_upgrade_to_0_20_moves_no_cluster_that_lacks_its_new_right_and_says_so(
    play: Play, admin: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(monkeypatch, GOOD_SECONDS=0.5, BAD_SECONDS=0.5)
    stage = play()
    with Driver(stage.fleet.hubs["a"]) as worker:
        token = token_of(worker, 3600)
        grant(worker, needed(JOB, "0.19.2"))
        put(stage, "a", token)
    deploy(admin, "v0.19.2")
    stage.start(credentials_probe=True, credentials_provision="none")
    stage.until_connected("a")
    soon(lambda: admin.active("p")["message"], "MultiKueueConfig and MultiKueueCluster generated")
    before = listed(stage)
    deploy(admin, "v0.20.0")
    lacks = "a: grant update workloads/status.kueue.x-k8s.io on the worker"
    soon(lambda: f"; {lacks}" in admin.active("p")["message"])
    assert (listed(stage), admin.listed("p"), admin.reason("p")) == (before, ["p-a"], "Active")
    soon(
        lambda: [event["reason"] for event in admin.events() if event["type"] == "Warning"], ["ClusterLacks"]
    )
    with Driver(stage.fleet.hubs["a"]) as worker:
        grant(worker, needed(JOB, "0.20.0"))
    soon(lambda: admin.active("p")["message"], "MultiKueueConfig and MultiKueueCluster generated")
    assert listed(stage) == before


def grant(worker: Driver, rules: list[object]) -> None:
    """Give the account of `token_of` exactly these rights."""
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    version = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "k"}}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "k"}
    subject = {"kind": "ServiceAccount", "namespace": "default", "name": "k"}
    for plural, body in (
        ("clusterroles", {"kind": "ClusterRole", "rules": rules}),
        ("clusterrolebindings", {"kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]}),
    ):
        worker.ask("PATCH", f"{rbac}/{plural}/k", version | body, "apply", force="true")


def test_a_release_and_gates_that_are_set_count_and_nothing_is_read(play: Play, admin: Driver) -> None:
    stage = play()
    deploy(admin, "v0.19.0")
    stage.start(kueue_version="0.18.3", kueue_feature_gates=f"{QUOTA}=true")
    stage.until_connected("a")
    assert granted(stage) == needed(JOB, "0.18.3", QUOTA) != needed(JOB, "0.18.3")
    assert asked_for_deployments(admin) == 0


def test_a_gate_in_the_configuration_changes_the_rights_and_moves_no_cluster(
    play: Play, admin: Driver, log: io.StringIO
) -> None:
    stage = play()
    deploy(admin, "v0.20.0")
    configure(admin, "featureGates: {}")
    stage.start()
    stage.until_connected("a")
    assert granted(stage) == needed(JOB, "0.20.0")
    before = listed(stage)
    configure(admin, f"featureGates: {{{QUOTA}: true}}")
    soon(lambda: granted(stage), needed(JOB, "0.20.0", QUOTA))
    for text, problem in (
        ("featureGates: [", f"its {KUEUE_CONFIG_KEY} is not YAML"),
        (f'featureGates: {{{QUOTA}: "true"}}', "its featureGates are not names with true or false"),
    ):
        configure(admin, text)
        restart(admin, log)
        assert problem in log.getvalue()
        assert granted(stage) == needed(JOB, "0.20.0", QUOTA), "Kueue runs as it was configured"
    configure(admin, "featureGates: {}")
    soon(lambda: granted(stage), needed(JOB, "0.20.0"))
    deploy(admin, "v0.20.0", f"--feature-gates={PREEMPTION}=false,{QUOTA}=true")
    soon(lambda: granted(stage), needed(JOB, "0.20.0", QUOTA, **{PREEMPTION: False}))
    assert (listed(stage), admin.listed("p")) == (before, ["p-a"])


def test_with_our_dispatcher_the_queues_of_workers_may_be_listed(play: Play, admin: Driver) -> None:
    stage = play()
    stage.start(kueue_version="0.19.0", dispatcher=True)
    stage.until_connected("a")
    ours = [one.rule.as_dict() for one in (rights.DISPATCHER, rights.FLAVORS)]
    assert granted(stage) == sorted([*needed(JOB, "0.19.0"), *ours], key=lambda rule: list(rule.values()))
    with Driver(stage.fleet.hubs["a"]) as worker:
        worker.session.headers["Authorization"] = f"Bearer {stage.token_in_kubeconfig('a')}"
        asked = [
            worker.try_(method, f"{KUEUE}/v1beta2/{plural}").status_code
            for method, plural in (
                ("GET", "clusterqueues"),
                ("GET", "localqueues"),
                ("DELETE", "clusterqueues"),
                ("GET", "resourceflavors"),
                ("GET", "workloads"),
                ("DELETE", "resourceflavors"),
            )
        ]
    assert asked == [200, 200, 403, 200, 200, 403]


def test_a_release_that_may_not_be_read_is_reported_once_and_found_later(
    play: Play, admin: Driver, log: io.StringIO
) -> None:
    stage = play()
    deploy(admin, "v0.17.3")
    forbidden = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"}
    admin.hub.faults.add("GET", DEPLOYMENTS, status=403, body=forbidden, times=1000)
    stage.start()
    stage.until_connected("a")
    assert granted(stage) == needed(JOB)
    restart(admin, log)
    assert granted(stage) == needed(JOB)
    admin.hub.faults.clear()
    soon(lambda: granted(stage), needed(JOB, "0.17.3"))
    assert log.getvalue().count(UNKNOWN) == 1


def test_a_release_that_was_known_is_not_forgotten(play: Play, admin: Driver, log: io.StringIO) -> None:
    stage = play()
    deploy(admin, "v0.17.3")
    stage.start()
    stage.until_connected("a")
    deploy(admin, "main")
    restart(admin, log)
    assert granted(stage) == needed(JOB, "0.17.3")


def restart(admin: Driver, log: io.StringIO) -> None:
    """Let the hub serve one kind less: the controller begins anew."""
    found = log.getvalue().count("found the hub")
    for name in ("addonplacementscores.cluster.open-cluster-management.io", *CLUSTER_PROFILES):
        if admin.get(f"{CRDS}/{name}"):
            admin.ask("DELETE", f"{CRDS}/{name}")
            break
    soon(lambda: log.getvalue().count("found the hub"), found + 1)
    seen = asked_for_deployments(admin)
    soon(lambda: asked_for_deployments(admin) > seen + 1)
