"""`job` and `jobs` on a hub where our dispatcher has decided."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.placement_ac.controller.test_dispatch import ALL, SELECTOR, entry
from tests.support.commands import Run, run_with
from tests.support.driver import Controllers, Driver
from tests.support.jobs import Stage, dispatched, soon

NAMES = "kueue.x-k8s.io/multikueue-cluster-names"
NOWHERE = "0/3 clusters fit: 3 didn't match gpu=b200 (ClusterAffinity)"


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


def story(run: Run, *words: str) -> dict[str, Any]:
    done = run("job", *words, "-o", "json")
    assert done.exit_code == 0, done.output
    return dict(json.loads(done.stdout))


def test_the_story_of_a_job_from_its_queue_to_its_end(there: Stage, run: Run) -> None:
    there.submit("train", annotations={NAMES: "b"})
    there.until_runs("train", "b")
    for words in (["train"], ["job", "train"], ["job/train"], ["jobs.batch/train"]):
        assert story(run, *words)["job"]["name"] == "train"
    told = story(run, "train")
    assert (told["job"]["state"], told["job"]["cluster"], told["job"]["clusterObject"]) == (
        "running",
        "b",
        "p-b",
    )
    steps = [step["what"] for step in told["steps"]]
    assert [
        what for what in ("Queued", "QuotaReserved", "Check p", "Nominated", "Placed") if what not in steps
    ] == []
    assert steps.index("Queued") == 0
    assert all(step["time"] for step in told["steps"])
    there.finish("train")
    there.until_finished("train")
    told = story(run, "train")
    assert (told["job"]["state"], told["job"]["cluster"], told["job"]["waitsFor"]) == ("succeeded", "b", "")
    assert told["steps"][-1]["what"] == "Finished"


def test_a_job_that_waits_is_said_to_wait_and_for_what(there: Stage, run: Run) -> None:
    there.submit("named", annotations={NAMES: "c"})
    there.submit("nowhere", annotations={SELECTOR: "gpu=b200"})
    there.until_waits("named", "c")
    soon(lambda: there.nominated("named"), ["p-c"])
    soon(lambda: entry(there, "nowhere"), ("Pending", f"NoClusterFits: {NOWHERE}"))
    told = story(run, "named")
    assert (told["job"]["state"], told["job"]["cluster"]) == ("waiting", "")
    assert told["job"]["waitsFor"].startswith("quota on c")
    assert told["explanation"]["nominated"] == ["p-c"]
    assert told["pods"] is None
    told = story(run, "nowhere")
    assert told["job"]["waitsFor"] == f"a cluster that fits it: {NOWHERE}"
    text = run("job", "nowhere").stdout
    assert text.startswith("Job default/nowhere: waiting for ")
    assert "Placement kueue-system/p (check p, profile ranked)" in text
    listed = json.loads(run("jobs", "-o", "json").stdout)["jobs"]
    assert [(job["name"], job["state"]) for job in listed] == [("named", "waiting"), ("nowhere", "waiting")]
    assert run("jobs", "-o", "name").stdout == "job/named\njob/nowhere\n"
    assert "No jobs found in namespace default" in run("jobs", "--state", "running").stderr
