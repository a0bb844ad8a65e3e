"""`placement-ac hub --workers`: workers that run Jobs, registered on the hub and with credentials."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import (
    JOB,
    MANAGED_CLUSTER,
    MULTIKUEUE_CONFIG,
    OUR_CONTROLLER,
    SECRET,
)
from placement_ac.kube.login import Login
from placement_lab.cli.hub import command
from placement_lab.demo.environment import ControllerThread
from placement_lab.standins.kueue_jobs import end_of_sleep
from placement_lab.standins.manifests import load, samples
from placement_lab.standins.multikueue import ALL_AT_ONCE, INCREMENTAL
from tests.support import commands
from tests.support.admin import Admin
from tests.support.driver import Object, eventually

SETUP = samples() / "multikueue-setup-demo1.yaml"
JOBS = JOB.at("v1")
CLUSTERS = ["cluster1", "cluster2"]


def started(folder: Path, *words: str) -> tuple["subprocess.Popen[str]", Path]:
    """Run the command in a folder; return it when it is ready, and its kubeconfig."""
    run = subprocess.Popen(
        [sys.executable, "-m", "placement_ac", "hub", "--workers", "2", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    assert run.stdout.readline().startswith("The hub listens on ")
    return run, folder / "hub.kubeconfig"


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def end(run: "subprocess.Popen[str]", kubeconfig: Path) -> None:
    run.send_signal(signal.SIGTERM)
    run.communicate()
    assert (run.returncode, kubeconfig.exists()) == (0, False)


def job(name: str, seconds: float, gpus: int = 1) -> Object:
    [item] = load(samples() / "job-demo1.yaml")
    item["metadata"] = {"name": name, "namespace": "default", "labels": item["metadata"]["labels"]}
    [container] = item["spec"]["template"]["spec"]["containers"]
    asks = {"nvidia.com/gpu": gpus}
    container |= {"command": ["sleep", f"{seconds}s"], "resources": {"requests": asks, "limits": asks}}
    return item


def set_up(gpus: str) -> Iterator[Object]:
    """Yield the sample with these GPUs as the hub's quota: `large` holds three of them while it waits."""
    for item in load(SETUP):
        for group in item.get("spec", {}).get("resourceGroups", ()):
            [flavor] = group["flavors"]
            for resource in flavor["resources"]:
                resource["nominalQuota"] = gpus if "gpu" in resource["name"] else resource["nominalQuota"]
        yield item


def is_complete(admin: Admin, name: str) -> bool:
    found = admin.get(JOBS, name, "default") or {}
    return "completionTime" in (found.get("status") or {})


def test_jobs_run_on_the_workers_as_long_as_they_sleep_if_their_gpus_are_there(
    stack: ExitStack, tmp_path: Path
) -> None:
    """The workers are registered and have credentials, and our dispatcher counts their GPUs."""
    words = ("--gpus", "2", "--dispatcher-name", "open-cluster-management.io/placement")
    run, kubeconfig = started(tmp_path, *words)
    stack.callback(end, run, kubeconfig)
    settings = Settings(kubeconfig=kubeconfig, dispatcher=True, cluster_names="{cluster}")
    stack.enter_context(ControllerThread(settings))
    admin = stack.enter_context(Admin(Login(kubeconfig)))
    workers = [stack.enter_context(Admin(Login(kubeconfig, name))) for name in CLUSTERS]
    admin.apply(*set_up(gpus="8"))
    assert {
        cluster["metadata"]["name"]: cluster["status"]["allocatable"]["nvidia.com/gpu"]
        for cluster in admin.list(MANAGED_CLUSTER.at("v1"))
    } == dict.fromkeys(CLUSTERS, "2")
    secrets = [one["metadata"] for one in admin.list(SECRET.at("v1"))]
    assert [(secret["namespace"], secret["name"]) for secret in secrets] == [
        ("kueue-system", f"multikueue-{name}") for name in CLUSTERS
    ]
    for one in (job("large", 1, gpus=3), job("small", 1, gpus=2), job("long", 3600)):
        admin.create(JOBS, one)
    eventually(lambda: is_complete(admin, "small"), True, seconds=30)

    def on_workers() -> list[str]:
        return [one["metadata"]["name"] for worker in workers for one in worker.list(JOBS)]

    eventually(lambda: "long" in on_workers(), True)
    assert "large" not in on_workers()
    assert not any(is_complete(admin, name) for name in ("large", "long"))
    config = admin.get(MULTIKUEUE_CONFIG.at("v1beta2"), "placement-demo1")
    assert config is not None
    assert config["spec"]["clusters"] == CLUSTERS


def test_doctor_finds_nothing_where_the_hub_has_the_quota_of_the_workers(
    stack: ExitStack, tmp_path: Path
) -> None:
    run, kubeconfig = started(tmp_path)
    stack.callback(end, run, kubeconfig)
    stack.enter_context(ControllerThread(Settings(kubeconfig=kubeconfig)))
    admin = stack.enter_context(Admin(Login(kubeconfig)))
    objects = load(SETUP)
    [queue] = [one for one in objects if one["kind"] == "ClusterQueue"]
    [flavor] = queue["spec"]["resourceGroups"][0]["flavors"]
    amounts = {"cpu": "32", "memory": "128Gi", "nvidia.com/gpu": "16"}
    flavor["resources"] = [{"name": name, "nominalQuota": amount} for name, amount in amounts.items()]
    admin.apply(*objects)

    def problems() -> object:
        words = ("doctor", "--workers", "--kubeconfig", str(kubeconfig), "-o", "json")
        document = json.loads(commands.run(*words).stdout)
        assert document["summary"]["skip"] >= 12
        return [one for one in document["findings"] if one["level"] not in ("OK", "SKIP")]

    eventually(problems, [], seconds=30)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        (["sleep", "30s"], 30.0),
        (["sleep", "1.5m"], 90.0),
        (["sleep", "2h"], 7200.0),
        (["sleep", "7"], 7.0),
        (["sleep"], None),
        (["sleep", "x"], None),
        (["sleep", "1", "2"], None),
        (["train", "30s"], None),
        ([], None),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
@pytest.mark.parametrize("field", ["command", "args"])
def test_when_a_job_ends(words: list[str], seconds: float | None, field: str) -> None:
    pod = {"spec": {"containers": [{"name": "c", field: words}]}}
    status = {"startTime": "1970-01-01T00:01:40Z"}
    end = end_of_sleep({"spec": {"template": pod}, "status": status})
    assert end == (None if seconds is None else 100 + seconds)
    assert end_of_sleep({"spec": {"template": pod}}) is None


@pytest.mark.parametrize(
    ("words", "dispatcher", "said"),
    [
        pytest.param([], ALL_AT_ONCE, "", id="the default"),
        pytest.param(["AllAtOnce"], ALL_AT_ONCE, "", id="its name"),
        pytest.param(["Incremental"], INCREMENTAL, "", id="Kueue's other one"),
        pytest.param([INCREMENTAL], INCREMENTAL, "", id="its whole name"),
        pytest.param([OUR_CONTROLLER], OUR_CONTROLLER, "", id="ours"),
        pytest.param(["example.com/a"], "example.com/a", "a dispatcher of yours has to", id="another"),
    ],
)
def test_the_dispatcher(
    words: list[str], dispatcher: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [part for name in words for part in ("--dispatcher-name", name)]
    assert command.make_context("hub", options).params["dispatcher"] == dispatcher
    warned = capsys.readouterr().err
    assert said in warned
    assert bool(warned) is bool(said)


def test_a_dispatcher_that_nobody_has(tmp_path: Path) -> None:
    run = commands.run("hub", f"--kubeconfig={tmp_path / 'k'}", "--dispatcher-name", "allatonce")
    assert run.exit_code == 2
    assert "'allatonce' is no dispatcher; known are AllAtOnce, Incremental, open-cluster" in run.output


def test_workers_need_both_stand_ins(tmp_path: Path) -> None:
    path = tmp_path / "hub.kubeconfig"
    run = commands.run("hub", f"--kubeconfig={path}", "--workers", "1", "--with", "ocm")
    assert (run.exit_code, path.exists()) == (2, False)
    assert "add --with ocm,kueue: without both, no Job reaches a worker" in run.output
