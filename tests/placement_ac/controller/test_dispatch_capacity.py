"""With our dispatcher, jobs go where quota can be enough; with the profile headroom, where most is free."""

import io
import json
import time
from collections.abc import Iterator
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from placement_ac.observability import logs
from tests.support import commands
from tests.support.driver import KUEUE, Controllers, Driver
from tests.support.jobs import Stage, dispatched, soon
from tests.support.stage import shorten

GPU = "nvidia.com/gpu"
SIZES = {"a": "2", "b": "8", "c": "16"}
CLUSTER_QUEUES = f"{KUEUE}/v1beta2/clusterqueues"


FACTS_AGAIN = 0.5
"""Seconds after which a worker is asked again."""


@pytest.fixture
def stage(admin: Driver, controllers: Controllers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    shorten(monkeypatch, FACTS_AGAIN_SECONDS=FACTS_AGAIN)
    quotas = {name: {"default": {GPU: size}} for name, size in SIZES.items()}
    profile = {"dispatch_profile": "headroom"}
    with dispatched(admin, controllers, [*SIZES], quotas=quotas, controller=profile) as opened:
        yield opened


@pytest.fixture
def log(stage: Stage) -> Iterator[io.StringIO]:
    output = io.StringIO()
    with redirect_stderr(output):
        logs.configure("text", "info")
    yield output
    logs.configure("text", "error")


def entry(stage: Stage, job: str) -> tuple[str, str]:
    entries = (stage.workload(job).get("status") or {}).get("admissionChecks", ())
    return next(((one["state"], one["message"]) for one in entries if one["name"] == "p"), ("", ""))


def nominations(stage: Stage, job: str) -> list[list[str]]:
    return stage.nominations(job) if stage.workload(job) else []


def questions(stage: Stage) -> int:
    """How often the workers were asked for their ClusterQueues."""
    return sum(
        request.path == CLUSTER_QUEUES and request.user_agent.startswith("placement-ac")
        for hub in stage.fleet.hubs.values()
        for request in list(hub.journal)
    )


def test_a_job_goes_where_the_quota_can_be_enough(stage: Stage) -> None:
    stage.submit("large", requests={GPU: "16"})
    stage.until_runs("large", "c")
    assert stage.account("large")[:2] == (1, 1)
    assert stage.nominations("large") == [["p-c"]], "no other cluster was ever nominated"
    stage.submit("too-large", requests={GPU: "32"})
    asked = f"had too little quota: 32 {GPU} asked"
    why = ", ".join(f"1 {asked}, {size} at most (Capacity)" for size in SIZES.values())
    soon(lambda: entry(stage, "too-large"), ("Pending", f"NoClusterFits: 0/3 clusters fit: {why}"))
    stage.queue("elsewhere", "mk", "p")
    stage.submit("lost", "elsewhere", requests={GPU: "1"})
    why = "0/3 clusters fit: 3 had no LocalQueue default/elsewhere (Capacity)"
    soon(lambda: entry(stage, "lost"), ("Pending", f"NoClusterFits: {why}"))


@pytest.mark.long
def test_a_job_that_waits_runs_when_the_quota_grows_and_then_nobody_is_asked(stage: Stage) -> None:
    stage.submit("too-large", requests={GPU: "32"})
    soon(lambda: entry(stage, "too-large")[1].startswith("NoClusterFits"))
    with Driver(stage.fleet.hubs["a"]) as worker:
        path = f"{CLUSTER_QUEUES}/cluster-queue"
        spec = worker.ask("GET", path)["spec"]
        spec["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = "32"
        worker.ask("PATCH", path, {"spec": spec}, "merge")
    stage.until_runs("too-large", "a")
    asked = questions(stage)
    assert asked >= 2 * len(SIZES)
    time.sleep(1.5)  # what is tested: nobody is asked at rest
    assert questions(stage) == asked


def test_a_worker_that_refuses_is_logged_once_and_gets_jobs_nevertheless(
    stage: Stage, log: io.StringIO
) -> None:
    for hub in stage.fleet.hubs.values():
        hub.faults.add("GET", "/clusterqueues$", status=403, times=1000)
    stage.submit("one", requests={GPU: "16"})
    soon(lambda: nominations(stage, "one"), [["p-a"]])
    time.sleep(0.6)  # the next question is then a new one, unless answers are kept
    stage.submit("two", requests={GPU: "16"})
    soon(lambda: nominations(stage, "two"), [["p-a"]])
    soon(lambda: questions(stage), 3 * len(SIZES))  # and once for the identity of each worker
    logged = [line for line in log.getvalue().splitlines() if "cannot read a cluster's queues" in line]
    assert len(logged) == len(SIZES)
    assert all("does not let the account" in line for line in logged)


def output_of(stage: Stage, settings: Path, *command: str) -> str:
    settings.write_text("dispatch: {enabled: true}\n")
    options = [f"--kubeconfig={stage.controllers.kubeconfig}", f"--config={settings}"]
    done = commands.run(*command, *options, env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_job_that_waits_on_a_full_cluster_says_where_and_what_is_short(
    stage: Stage, tmp_path: Path
) -> None:
    stage.submit("first", requests={GPU: "16"})
    stage.until_runs("first", "c")
    stage.submit("second", requests={GPU: "16"})
    begins, short = "waits for c: at ", f"0 of 16 {GPU} free (16 used by 1 job); no other cluster fits"
    soon(lambda: entry(stage, "second")[1].startswith(begins) and entry(stage, "second")[1].endswith(short))
    state, message = entry(stage, "second")
    assert state == "Ready"
    settings = tmp_path / "settings.yaml"
    assert f"1 job {message}" in output_of(stage, settings, "status", "p")
    assert message in output_of(stage, settings, "explain", "workload/second")
    [check] = json.loads(output_of(stage, settings, "status", "p", "-o", "json"))["checks"]
    assert [job["why"] for job in check["jobs"]] == ["", message]
    stage.finish("first")
    stage.until_runs("second", "c")
    assert [entry(stage, "second")[1], stage.account("second")[:2]] == [message, (1, 1)]
    assert message not in output_of(stage, settings, "explain", "workload/second")
