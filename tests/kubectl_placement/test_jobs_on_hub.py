"""The commands about jobs, `plan` of a Job and `status` on a hub where our dispatcher has decided."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.placement_ac.controller.test_dispatch import ALL, SELECTOR, entry
from tests.support.commands import Run, run_with
from tests.support.driver import Controllers, Driver
from tests.support.jobs import Stage, dispatched, soon

NOWHERE = "0/3 clusters fit: 3 didn't match gpu=b200 (ClusterAffinity)"
NAMES = "kueue.x-k8s.io/multikueue-cluster-names"


@pytest.fixture
def there(admin: Driver, controllers: Controllers) -> Iterator[Stage]:
    """OCM selects a, b, c; c is held, so that a job that is nominated there waits."""
    with dispatched(admin, controllers, ALL, held=["c"], labels={"b": {"gpu": "h100"}}) as opened:
        yield opened


@pytest.fixture
def run(there: Stage, tmp_path: Path) -> Run:
    settings = tmp_path / "settings.yaml"
    settings.write_text("dispatch: {enabled: true, stepSize: 1}\n")
    hub = f"--kubeconfig={there.controllers.kubeconfig}"
    return run_with(hub, f"--config={settings}", env={"COLUMNS": "200"})


def answer(run: Run, *words: str) -> dict[str, Any]:
    done = run(*words, "-o", "json")
    assert done.exit_code == 0, done.output
    return dict(json.loads(done.stdout))


def explained(run: Run, *words: str) -> dict[str, Any]:
    return dict(answer(run, "explain", *words)["workload"])


def rows(found: dict[str, Any]) -> list[tuple[str, str, dict[str, float | None], bool]]:
    [choice] = found["placements"]
    return [
        (cluster["cluster"], cluster["filter"], cluster["points"], cluster["nominated"])
        for cluster in choice["clusters"]
    ]


ABSTAIN = ("Preferred", "Sticky", "Data")
"""The scores of the profile that say nothing about a job without wishes."""


def test_jobs_that_wait_are_explained_as_it_was_decided(there: Stage, run: Run) -> None:
    there.submit("named", annotations={NAMES: "c"})
    there.until_waits("named", "c")
    soon(lambda: there.nominated("named"), ["p-c"])
    for name in ("one", "two"):
        there.submit(name, annotations={SELECTOR: "gpu=b200"})
        soon(lambda name=name: entry(there, name), ("Pending", f"NoClusterFits: {NOWHERE}"))
    name = there.workload("named")["metadata"]["name"]
    found = explained(run, "workload", name, "-n", "default")
    assert rows(found) == [
        ("c", "", {"Placement": pytest.approx(100 / 3), **dict.fromkeys(ABSTAIN)}, True),
        ("a", "ClusterNames", {}, False),
        ("b", "ClusterNames", {}, False),
    ]
    assert [(check["check"], check["state"]) for check in found["checks"]] == [
        ("mk", "Pending"),
        ("p", "Ready"),
    ]
    assert (found["nominated"], found["placedOn"], found["owners"]) == (["p-c"], "", ["named"])
    assert found["nominatedSince"]
    for words in (["workload/named"], ["wl", "default/named"], ["workloads", f"default/{name}"]):
        assert explained(run, *words)["name"] == name
    table = run("explain", "workload", "named").stdout
    assert table.startswith("No controller is running")
    assert "Placement kueue-system/p (check p, profile ranked)" in table
    assert "PLACEMENT x1  TOTAL  NOMINATED" in table
    shown = answer(run, "job", "named")
    assert (shown["job"]["state"], shown["job"]["cluster"], shown["pods"]) == ("waiting", "", None)
    assert shown["job"]["waitsFor"].startswith("quota on c")
    assert shown["explanation"]["nominated"] == ["p-c"]

    found = explained(run, "workload", "one")
    assert [
        (cluster["filter"], cluster["reason"], cluster["total"])
        for cluster in found["placements"][0]["clusters"]
    ] == [("ClusterAffinity", "didn't match gpu=b200", None)] * 3
    assert found["placements"][0]["problem"] == NOWHERE
    assert answer(run, "job", "one")["job"]["waitsFor"].startswith(
        f"a cluster that fits it: {NOWHERE} (as of "
    )
    first, second, *_ = run("job", "one").stdout.splitlines()
    assert first.startswith("No controller is running: ")  # the test's own takes no Lease
    assert second.startswith("Job default/one: waiting for ")
    [check] = answer(run, "status")["checks"]
    assert check["unfit"] == [{"why": NOWHERE, "workloads": 2}]
    assert f"2 jobs fit no cluster: {NOWHERE}" in run("status").stdout

    listed = [(job["name"], job["state"]) for job in answer(run, "jobs")["jobs"]]
    assert listed == [("named", "waiting"), ("one", "waiting"), ("two", "waiting")]
    assert run("jobs", "-o", "name").stdout == "job/named\njob/one\njob/two\n"
    assert "No jobs found in namespace default" in run("jobs", "--state", "running").stderr


def test_the_story_of_a_job_from_its_queue_to_its_end(there: Stage, run: Run) -> None:
    there.submit("train", annotations={NAMES: "b"})
    there.until_runs("train", "b")
    for words in (["train"], ["job", "train"], ["job/train"], ["jobs.batch/train"]):
        assert answer(run, "job", *words)["job"]["name"] == "train"
    shown = answer(run, "job", "train")
    where = (shown["job"]["state"], shown["job"]["cluster"], shown["job"]["clusterObject"])
    assert where == ("running", "b", "p-b")
    steps = [step["what"] for step in shown["steps"]]
    assert {"Queued", "QuotaReserved", "Check p", "Placed"} <= {*steps}
    assert any(
        step["detail"].endswith("nominated to p-b") for step in shown["steps"]
    )  # the event, or the check
    assert steps.index("Queued") == 0
    assert all(step["time"] for step in shown["steps"])
    there.finish("train")
    there.until_finished("train")
    shown = answer(run, "job", "train")
    assert (shown["job"]["state"], shown["job"]["cluster"], shown["job"]["waitsFor"]) == (
        "succeeded",
        "b",
        "",
    )
    assert shown["steps"][-1]["what"] == "Finished"


JOB = f"""\
apiVersion: batch/v1
kind: Job
metadata:
  generateName: new-
  labels: {{kueue.x-k8s.io/queue-name: gated}}
  annotations: {{{SELECTOR}: gpu=x}}
spec:
  parallelism: 2
  template:
    metadata:
      annotations: {{{SELECTOR}: gpu=h100}}
    spec: {{containers: [{{name: c, image: i}}]}}
"""


def test_plan_says_where_a_job_would_go(run: Run, tmp_path: Path) -> None:
    """Each rule has its row in test_explain_workload.py."""
    (tmp_path / "job.yaml").write_text(JOB)
    done = run("plan", "-f", str(tmp_path / "job.yaml"))
    assert done.exit_code == 0, done.output
    assert "Job default/new-… goes to b, best first" in done.stdout
    assert f"note: move the annotation {SELECTOR} to the Pod template" in done.stdout
    [job] = answer(run, "plan", "-f", str(tmp_path / "job.yaml"))["jobs"]
    assert (job["kind"], job["namespace"], job["name"], job["queue"]) == ("Job", "default", "new-…", "gated")
