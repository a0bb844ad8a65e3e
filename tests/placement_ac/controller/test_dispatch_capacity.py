"""With our dispatcher, jobs go where quota can be enough; with the profile headroom, where most is free."""

import io
import json
import time
from collections.abc import Iterator
from contextlib import redirect_stderr
from pathlib import Path

import pytest
from click.testing import CliRunner

from placement_ac.cli.main import main
from placement_ac.core.api.constants import ANNOTATION_DISPATCH_PROFILE
from placement_ac.observability import logs
from tests.support.driver import KUEUE, Controllers, Driver
from tests.support.jobs import Stage, dispatched, soon
from tests.support.stage import shorten

GPU = "nvidia.com/gpu"
SIZES = {"a": "2", "b": "8", "c": "16"}
CLUSTER_QUEUES = f"{KUEUE}/v1beta2/clusterqueues"


FACTS_AGAIN = 0.5
"""Seconds after which a worker is asked again."""


@pytest.fixture
def there(admin: Driver, controllers: Controllers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    shorten(monkeypatch, FACTS_AGAIN_SECONDS=FACTS_AGAIN)
    quotas = {name: {"default": {GPU: size}} for name, size in SIZES.items()}
    profile = {"dispatch_profile": "headroom"}
    with dispatched(admin, controllers, [*SIZES], quotas=quotas, controller=profile) as opened:
        yield opened


@pytest.fixture
def log(there: Stage) -> Iterator[io.StringIO]:
    output = io.StringIO()
    with redirect_stderr(output):
        logs.configure("text", "info")
    yield output
    logs.configure("text", "error")


def entry(there: Stage, job: str) -> tuple[str, str]:
    entries = (there.workload(job).get("status") or {}).get("admissionChecks", ())
    return next(((one["state"], one["message"]) for one in entries if one["name"] == "p"), ("", ""))


def nominations(there: Stage, job: str) -> list[list[str]]:
    return there.nominations(job) if there.workload(job) else []


def questions(there: Stage) -> int:
    """How often the workers were asked for their ClusterQueues."""
    return sum(
        request.path == CLUSTER_QUEUES and request.user_agent.startswith("placement-ac")
        for hub in there.fleet.hubs.values()
        for request in list(hub.journal)
    )


def test_a_job_goes_where_the_quota_can_be_enough(there: Stage) -> None:
    there.submit("large", requests={GPU: "16"})
    there.until_runs("large", "c")
    assert there.account("large")[:2] == (1, 1)
    assert there.nominations("large") == [["p-c"]], "no other cluster was ever nominated"
    there.submit("too-large", requests={GPU: "32"})
    asked = f"had too little quota: 32 {GPU} asked"
    why = ", ".join(f"1 {asked}, {size} at most (Capacity)" for size in SIZES.values())
    soon(lambda: entry(there, "too-large"), ("Pending", f"NoClusterFits: 0/3 clusters fit: {why}"))
    there.queue("elsewhere", "mk", "p")
    there.submit("lost", "elsewhere", requests={GPU: "1"})
    why = "0/3 clusters fit: 3 had no LocalQueue default/elsewhere (Capacity)"
    soon(lambda: entry(there, "lost"), ("Pending", f"NoClusterFits: {why}"))


@pytest.mark.long
def test_a_job_that_waits_runs_when_the_quota_grows_and_then_nobody_is_asked(there: Stage) -> None:
    there.submit("too-large", requests={GPU: "32"})
    soon(lambda: entry(there, "too-large")[1].startswith("NoClusterFits"))
    with Driver(there.fleet.hubs["a"]) as worker:
        path = f"{CLUSTER_QUEUES}/cluster-queue"
        spec = worker.ask("GET", path)["spec"]
        spec["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = "32"
        worker.ask("PATCH", path, {"spec": spec}, "merge")
    there.until_runs("too-large", "a")
    asked = questions(there)
    assert asked >= 2 * len(SIZES)
    time.sleep(1.5)  # what is tested: nobody is asked at rest
    assert questions(there) == asked


def test_a_worker_that_refuses_is_logged_once_and_gets_jobs_nevertheless(
    there: Stage, log: io.StringIO
) -> None:
    for hub in there.fleet.hubs.values():
        hub.faults.add("GET", "/clusterqueues$", status=403, times=1000)
    there.submit("one", requests={GPU: "16"})
    soon(lambda: nominations(there, "one"), [["p-a"]])
    time.sleep(0.6)  # the next question is then a new one, unless answers are kept
    there.submit("two", requests={GPU: "16"})
    soon(lambda: nominations(there, "two"), [["p-a"]])
    soon(lambda: questions(there), 2 * len(SIZES))
    logged = [line for line in log.getvalue().splitlines() if "cannot read a cluster's queues" in line]
    assert len(logged) == len(SIZES)
    assert all("does not let the account" in line for line in logged)


def test_a_worker_with_odd_numbers_is_logged_once_and_stops_nobody(there: Stage, log: io.StringIO) -> None:
    odd = {"metadata": {"name": "cluster-queue"}, "status": {"pendingWorkloads": -1}}
    answer = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueueList", "items": [odd]}
    there.fleet.hubs["a"].faults.add("GET", "/clusterqueues$", status=200, body=answer, times=1000)
    annotations = {ANNOTATION_DISPATCH_PROFILE: "Waiting=1"}
    path = there.admin.kueue("admissionchecks", "p")
    there.admin.ask("PATCH", path, {"metadata": {"annotations": annotations}}, "merge")
    there.submit("one", requests={GPU: "4"})
    soon(lambda: nominations(there, "one"), [["p-a"]])
    time.sleep(0.6)  # the next question is then a new one
    there.submit("two", requests={GPU: "4"})
    there.until_runs("two", "b")
    there.select("b", "c")
    soon(lambda: there.admin.listed("p"), ["p-b", "p-c"])
    logged = [line for line in log.getvalue().splitlines() if "cannot read a cluster's queues" in line]
    assert len(logged) == 1
    assert "correct a ClusterQueue there: status.pendingWorkloads: Input should be" in logged[0]


@pytest.mark.long
def test_a_job_waits_for_a_slow_answer_but_not_for_long(there: Stage) -> None:
    there.fleet.hubs["c"].faults.add("GET", "/clusterqueues$", delay=8.0)
    began = time.monotonic()
    there.submit("one", requests={GPU: "1"})
    soon(lambda: nominations(there, "one"), [["p-b"]])
    assert 2.0 <= time.monotonic() - began < 5.0


def test_with_headroom_jobs_go_where_most_is_free(there: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch, FACTS_WAIT_SECONDS=15.0)  # a busy machine answers late, and then the first gets it
    for name, gpus, cluster in (
        ("one", "4", "c"),
        ("two", "8", "c"),
        ("three", "6", "b"),
        ("four", "2", "c"),
    ):
        # An answer of the moment in which a job is placed counts the job twice, until the next one.
        time.sleep(FACTS_AGAIN)
        there.submit(name, requests={GPU: gpus})
        there.until_runs(name, cluster)
    assert [there.account(job)[:2] for job in there.jobs] == [(1, 1)] * 4


def asked_of(there: Stage, settings: Path, *command: str) -> str:
    settings.write_text("dispatcher: true\n")
    options = [f"--kubeconfig={there.controllers.kubeconfig}", f"--config={settings}"]
    done = CliRunner().invoke(main, [*command, *options], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_job_that_waits_on_a_full_cluster_says_where_and_what_is_short(
    there: Stage, tmp_path: Path
) -> None:
    there.submit("first", requests={GPU: "16"})
    there.until_runs("first", "c")
    there.submit("second", requests={GPU: "16"})
    begins, short = "waits for c: at ", f"0 of 16 {GPU} free (16 used by 1 job); no other cluster fits"
    soon(lambda: entry(there, "second")[1].startswith(begins) and entry(there, "second")[1].endswith(short))
    state, message = entry(there, "second")
    assert state == "Ready"
    settings = tmp_path / "settings.yaml"
    assert f"1 job {message}" in asked_of(there, settings, "status", "p")
    assert message in asked_of(there, settings, "explain", "workload/second")
    [check] = json.loads(asked_of(there, settings, "status", "p", "-o", "json"))["checks"]
    assert [job["why"] for job in check["jobs"]] == ["", message]
    there.finish("first")
    there.until_runs("second", "c")
    assert [entry(there, "second")[1], there.account("second")[:2]] == [message, (1, 1)]
    assert message not in asked_of(there, settings, "explain", "workload/second")
