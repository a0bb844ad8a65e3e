"""`job` reads the Pods of a job on its cluster as the caller, or says what gives access there."""

import json
from typing import Any

from tests.kubectl_placement.access.stage import JobStage


def story_of(stage: JobStage) -> Any:
    done = stage.run("job", "train", "-o", "json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_the_pods_of_a_job_are_those_on_its_cluster(stage: JobStage) -> None:
    names = stage.job("train", "b", count=2)
    begin = len(stage.hub.journal)
    pods = story_of(stage)["pods"]
    assert (pods["cluster"], pods["problem"]) == ("b", "")
    rows = [(pod["name"], pod["phase"], pod["ready"], pod["restarts"], pod["node"]) for pod in pods["pods"]]
    assert rows == [(names[0], "Running", "1/1", 0, "node-1"), (names[1], "Running", "1/1", 0, "node-2")]
    assert pods["pods"][0]["event"].startswith("Started: ")
    text = stage.run("job", "train").stdout
    assert text.splitlines()[1].startswith("Job default/train: running on b")
    assert "\nPods on b\nNAME" in text
    assert stage.run("jobs").exit_code == 0
    asked = [one.path for one in list(stage.hub.journal)[begin:]]
    assert [path for path in asked if "/secrets" in path] == [], "no Secret is read"
    stage.place("train", None)
    assert (story_of(stage)["job"]["state"], story_of(stage)["pods"]) == ("waiting", None)


def test_pods_that_cannot_be_read_are_unknown_and_each_method_is_named(stage: JobStage) -> None:
    stage.job("train", "a")
    stage.write_kubeconfig()
    story = story_of(stage)
    assert (story["job"]["state"], story["job"]["cluster"]) == ("running", "a")
    assert story["pods"]["pods"] == []
    assert story["pods"]["problem"].startswith("fix one of these access methods to cluster a")
    lines = stage.run("job", "train").stdout.splitlines()
    [begin] = [number for number, line in enumerate(lines) if line.startswith("Pods on a: unknown: fix one")]
    assert lines[begin + 1].startswith("  1. kubeconfig: ")
