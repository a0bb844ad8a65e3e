"""`job` reads the Pods of a job on its cluster as the caller, or says what gives access there."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kubectl_placement.access.stage import JobStage, job_stage
from tests.support.driver import eventually


@pytest.fixture
def there(tmp_path: Path) -> Iterator[JobStage]:
    with job_stage(tmp_path) as stage:
        yield stage


def story_of(there: JobStage) -> Any:
    done = there.run("job", "train", "-o", "json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_the_pods_of_a_job_are_those_on_its_cluster(there: JobStage) -> None:
    names = there.job("train", "b", count=2)
    pods = story_of(there)["pods"]
    assert (pods["cluster"], pods["problem"]) == ("b", "")
    rows = [(pod["name"], pod["phase"], pod["ready"], pod["restarts"], pod["node"]) for pod in pods["pods"]]
    assert rows == [(names[0], "Running", "1/1", 0, "node-1"), (names[1], "Running", "1/1", 0, "node-2")]
    assert pods["pods"][0]["event"].startswith("Started: ")
    text = there.run("job", "train").stdout
    assert text.startswith("Job default/train: running on b")
    assert "\nPods on b\nNAME" in text


def test_pods_that_cannot_be_read_are_unknown_and_each_method_is_named(there: JobStage) -> None:
    there.job("train", "a")
    there.write_kubeconfig()
    story = story_of(there)
    assert (story["job"]["state"], story["job"]["cluster"]) == ("running", "a")
    assert story["pods"]["pods"] == []
    assert story["pods"]["problem"].startswith("fix one of these access methods to cluster a")
    lines = there.run("job", "train").stdout.splitlines()
    [begin] = [number for number, line in enumerate(lines) if line.startswith("Pods on a: unknown: fix one")]
    assert lines[begin + 1].startswith("  1. kubeconfig: ")


def test_no_secret_is_read(there: JobStage) -> None:
    there.job("train", "a")
    begin = len(there.hub.journal)
    story_of(there)
    assert there.run("jobs").exit_code == 0
    asked = [one.path for one in list(there.hub.journal)[begin:]]
    assert [path for path in asked if "/secrets" in path] == []
    assert any(path.endswith("/workloads") for path in asked)


def test_a_job_that_leaves_its_cluster_is_followed(there: JobStage) -> None:
    there.job("train", "a")
    eventually(lambda: story_of(there)["pods"]["cluster"], "a")
    there.place("train", None)
    assert (story_of(there)["job"]["state"], story_of(there)["pods"]) == ("waiting", None)
