"""`get pods` and `events` of a job as its owner types them."""

import json
import re

import pytest

from placement_lab.hub import Hub
from tests.kubectl_placement.access.stage import JobStage
from tests.support import commands
from tests.support.accounts import kubeconfig_of
from tests.support.hub_client import Client
from tests.support.rights import ACCOUNTS, allow, rule, token_of


def words_of(table: str) -> list[list[str]]:
    return [re.split(r"\s{2,}", line.strip()) for line in table.splitlines()]


def test_the_pods_of_a_job(stage: JobStage) -> None:
    pods = stage.job(count=2)
    head, *rows = words_of(stage.run("get", "pods", "train").stdout)
    assert head == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "CLUSTER"]
    assert [row[:4] for row in rows] == [[pod, "1/1", "Running", "0"] for pod in pods]
    assert {row[5] for row in rows} == {"a"}
    wide = words_of(stage.run("get", "po", "job/train", "-o", "wide").stdout)
    assert [row[5:] for row in wide] == [
        ["IP", "NODE", "CLUSTER"],
        ["10.0.0.1", "node-1", "a"],
        ["10.0.0.1", "node-2", "a"],
    ]


def test_the_pods_as_kubectl_prints_them(stage: JobStage) -> None:
    [pod] = stage.job()
    found = json.loads(stage.run("get", "pods", "train", "-o", "json").stdout)
    assert (found["kind"], found["apiVersion"]) == ("List", "v1")
    assert [(one["kind"], one["metadata"]["name"]) for one in found["items"]] == [("Pod", pod)]
    assert stage.run("get", "pods", "train", "-o", "name").stdout == f"pod/{pod}\n"


def test_a_job_without_pods(stage: JobStage) -> None:
    stage.workload()
    stage.place("train", "p-a")
    done = stage.run("get", "pods", "train")
    text = "No resources found in default namespace on cluster a.\n"
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", text)


@pytest.mark.parametrize("words", ["get pods", "get services train", "get pods a b c"])
def test_other_words_are_refused(stage: JobStage, words: str) -> None:
    assert stage.run(*words.split()).exit_code == 2


def events(stage: JobStage, *words: str) -> list[tuple[str, str, str]]:
    """Cluster, reason and object of each event."""
    done = stage.run("events", "train", "-o", "json", *words)
    assert done.exit_code == 0, done.output
    return [
        (event["cluster"], event["reason"], event["object"]) for event in json.loads(done.stdout)["events"]
    ]


def on_hub(stage: JobStage, reason: str, kind: str, name: str, type_: str = "Normal", uid: str = "") -> None:
    """Write an event on the hub, as Kueue does."""
    write_event(stage.hub, reason, kind, name, type_, uid)


def write_event(hub: Hub, reason: str, kind: str, name: str, type_: str, uid: str) -> None:
    body = {
        "metadata": {"name": f"{name}.{reason.lower()}"},
        "involvedObject": {"kind": kind, "name": name, "namespace": "default", "uid": uid},
        "type": type_,
        "reason": reason,
        "message": f"{reason} of {name}",
        "lastTimestamp": "2026-11-26T10:00:00Z",
        "count": 3,
    }
    Client(hub).create("/api/v1/namespaces/default/events", body)


def test_the_events_of_a_job_on_the_hub_and_on_its_cluster(stage: JobStage) -> None:
    [pod] = stage.job()
    on_hub(stage, "QuotaReserved", "Workload", "job-train")
    on_hub(stage, "Suspended", "Job", "train", "Warning")
    on_hub(stage, "QuotaReserved", "Workload", "job-other")
    assert events(stage) == [
        ("hub", "Suspended", "job/train"),
        ("hub", "QuotaReserved", "workload/job-train"),
        ("a", "Started", f"pod/{pod}"),
    ]
    assert events(stage, "--types", "warning") == [("hub", "Suspended", "job/train")]
    head, first, *_ = words_of(stage.run("events", "train").stdout)
    assert head == ["LAST SEEN", "TYPE", "REASON", "OBJECT", "CLUSTER", "MESSAGE"]
    assert first[1:] == ["Warning", "Suspended", "job/train", "hub", "Suspended of train"]


JOB = "/apis/batch/v1/namespaces/default/jobs/train"
WORKLOAD = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads/job-train"


def uid_of(hub: Hub, path: str) -> str:
    return str(Client(hub).get(path)["metadata"]["uid"])


def test_the_events_of_an_earlier_job_of_that_name_are_not_shown(stage: JobStage) -> None:
    [pod] = stage.job()
    on_hub(stage, "Suspended", "Job", "train", uid="of-the-earlier-one")
    on_hub(stage, "Pending", "Workload", "job-train", uid="of-the-earlier-one")
    on_hub(stage, "Started", "Job", "train", uid=uid_of(stage.hub, JOB))
    on_hub(stage, "QuotaReserved", "Workload", "job-train", uid=uid_of(stage.hub, WORKLOAD))
    there = stage.fleet.hubs["a"]
    write_event(there, "BackoffLimitExceeded", "Job", "train", "Warning", "of-the-earlier-one")
    write_event(there, "SuccessfulCreate", "Job", "train", "Normal", uid_of(there, JOB))
    assert set(events(stage)) == {
        ("hub", "Started", "job/train"),
        ("hub", "QuotaReserved", "workload/job-train"),
        ("a", "SuccessfulCreate", "job/train"),
        ("a", "Started", f"pod/{pod}"),
    }


def test_without_a_way_to_the_cluster_the_hubs_events_are_shown(stage: JobStage) -> None:
    stage.job()
    on_hub(stage, "QuotaReserved", "Workload", "job-train")
    stage.write_kubeconfig()
    done = stage.run("events", "train", "-o", "json")
    assert done.exit_code == 0
    assert [event["reason"] for event in json.loads(done.stdout)["events"]] == ["QuotaReserved"]
    assert "fix one of these access methods to cluster a (MultiKueueCluster p-a)" in done.stderr


def test_a_part_that_may_not_be_read_is_named(stage: JobStage) -> None:
    stage.workload()
    owner = Client(stage.hub)
    owner.create(ACCOUNTS, {"metadata": {"name": "sa"}})
    allow(owner, rule("get list", "kueue.x-k8s.io", "workloads"))
    kubeconfig = kubeconfig_of(stage.hub, stage.kubeconfig.parent / "sa", token_of(owner))
    done = commands.run("events", "train", "--kubeconfig", str(kubeconfig))
    assert done.exit_code == 0
    right = "list events in namespace default (check: kubectl auth can-i list events -n default)"
    assert done.stderr.splitlines() == [
        f"missing right on the hub: {right}; its events are left out",
        "No events found in default namespace.",
    ]


def test_no_events(stage: JobStage) -> None:
    stage.workload()
    done = stage.run("events", "train")
    assert (done.exit_code, done.stderr) == (0, "No events found in default namespace.\n")
    assert stage.run("events", "train", "--types", "Odd").exit_code == 2
