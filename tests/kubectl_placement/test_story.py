"""The story of a job: what it waits for, its place in the queue, its Pods, and what happened to it."""

from datetime import datetime
from typing import Any

import pytest

from kubectl_placement.hub.dump_files import dump_of
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.story.lines import Wanted, job_lines
from kubectl_placement.story.model import JobStory
from kubectl_placement.story.pods import PodRow, pods_there
from kubectl_placement.story.tell import tell_story
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import EVENT, WORKLOAD
from tests.support.builders import NOW, Raw, an, check, multikueue_check, our_cluster

CLUSTER = our_cluster("cluster1", "p", owners=("check", "mk"))
CHECKS = (check("check", "p"), multikueue_check("mk", "p"))
BEFORE = "2026-08-01T11:50:00Z"
LATER = "2026-08-01T11:55:00Z"
NOBODY = "placement-ac nominates none for MultiKueueConfig by-hand, which is not of a Placement"
FULL = "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu"


def queue(kind: str, name: str, **spec: Any) -> Raw:
    namespace = {"namespace": "team"} if kind == "LocalQueue" else {}
    metadata = {"name": name} | namespace
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}


QUEUES = (queue("LocalQueue", "gpus", clusterQueue="all"), queue("ClusterQueue", "all"))


def condition(
    kind: str, status: str = "True", reason: str = "x", message: str = "", when: str = LATER
) -> Raw:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": when}


def entry(name: str, state: str, message: str = "", when: str = LATER) -> Raw:
    return {"name": name, "state": state, "message": message, "lastTransitionTime": when}


QUOTA = condition("QuotaReserved")
READY, PENDING = entry("check", "Ready"), entry("mk", "Pending")


def job(
    name: str = "train",
    *conditions: Raw,
    checks: tuple[Raw, ...] = (),
    spec: Raw | None = None,
    **status: Any,
) -> Raw:
    """The Workload of Job `name` in namespace `team`."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": f"job {name}"}
    return an(
        WORKLOAD,
        f"job-{name}",
        "team",
        spec={"queueName": "gpus"} | (spec or {}),
        status={"conditions": list(conditions), "admissionChecks": list(checks)} | status,
        ownerReferences=[owner],
        creationTimestamp=BEFORE,
    )


def view_of(*objects: Raw, queues: tuple[Raw, ...] = QUEUES, checks: tuple[Raw, ...] = CHECKS) -> HubView:
    return HubView(dump_of([*objects, *queues, *checks, CLUSTER]), Settings(), NOW)


def story_of(raw: Raw, *others: Raw, **hub: Any) -> JobStory:
    return tell_story(view_of(raw, *others, **hub), raw)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(job(), "waiting: its turn in ClusterQueue all", id="one that Kueue has not considered"),
        pytest.param(
            job("train", condition("QuotaReserved", "False", "Pending", FULL)),
            f"waiting: quota in ClusterQueue all: {FULL}",
            id="one without quota",
        ),
        pytest.param(
            job("train", condition("QuotaReserved", "False"), requeueState={"count": 2, "requeueAt": LATER}),
            f"waiting: the end of its backoff at {LATER}, after 2 evictions",
            id="one that backs off",
        ),
        pytest.param(
            job(spec={"queueName": ""}), "waiting: a queue: it names none", id="one without a queue"
        ),
        pytest.param(
            job(spec={"queueName": "gpu"}),
            "waiting: LocalQueue team/gpu, which does not exist",
            id="one whose queue does not exist",
        ),
        pytest.param(job("train", QUOTA), "waiting: Kueue to set its checks", id="one with quota alone"),
        pytest.param(
            job("train", QUOTA, checks=(entry("check", "Pending"), PENDING)),
            "waiting: check check (placement-ac)",
            id="one whose check is not answered",
        ),
        pytest.param(
            job("train", QUOTA, checks=(entry("check", "Pending", "waits: cluster2 leaves"), PENDING)),
            "waiting: check check (placement-ac): waits: cluster2 leaves",
            id="one that the gate holds",
        ),
        pytest.param(
            job(
                "train", QUOTA, checks=(entry("check", "Pending", "NoClusterFits: 0/3 clusters fit"), PENDING)
            ),
            "waiting: a cluster that fits it: 0/3 clusters fit",
            id="one that fits nowhere",
        ),
        pytest.param(
            job("train", QUOTA, checks=(entry("check", "Retry", "cluster a is leaving"), PENDING)),
            "waiting: Kueue to evict it and try again: cluster a is leaving",
            id="one that is sent back",
        ),
        pytest.param(
            job("train", QUOTA, checks=(READY, PENDING)),
            "waiting: a cluster: it is nominated to none yet",
            id="one that is ready and nominated nowhere",
        ),
        pytest.param(
            job("train", QUOTA, checks=(READY, PENDING), nominatedClusterNames=["p-cluster1"]),
            "waiting: quota on cluster1",
            id="one that waits on a cluster",
        ),
        pytest.param(
            job(
                "train",
                QUOTA,
                checks=(entry("check", "Ready", "waits for cluster1: 8 nvidia.com/gpu are used"), PENDING),
                nominatedClusterNames=["p-cluster1"],
            ),
            "waiting: quota on cluster1: 8 nvidia.com/gpu are used",
            id="one on a cluster that is full",
        ),
        pytest.param(
            job(
                "train",
                QUOTA,
                condition("Evicted", "True", "AdmissionCheck", "lost"),
                checks=(READY, entry("mk", "Ready")),
                clusterName="p-cluster1",
            ),
            "running on cluster1: Kueue to end its eviction: lost",
            id="one that is being evicted from its cluster",
        ),
        pytest.param(
            job(
                "train",
                QUOTA,
                checks=(entry("check", "Retry", "cluster1 is leaving"), entry("mk", "Ready")),
                clusterName="p-cluster1",
            ),
            "running on cluster1: Kueue to evict it and try again: cluster1 is leaving",
            id="one that is sent back from its cluster",
        ),
        pytest.param(
            job("train", QUOTA, checks=(READY, entry("mk", "Ready")), clusterName="p-cluster1"),
            "running on cluster1: ",
            id="one that runs",
        ),
        pytest.param(
            job(
                "train",
                QUOTA,
                condition("PodsReady", "False", "WaitForStart", "Not all pods are ready or succeeded"),
                checks=(READY, entry("mk", "Ready")),
                clusterName="p-cluster1",
            ),
            "running on cluster1: its Pods on cluster1: Not all pods are ready or succeeded",
            id="one whose Pods start",
        ),
        pytest.param(
            job("train", spec={"active": False}),
            "stopped: somebody to start it again",
            id="one that somebody has stopped",
        ),
        pytest.param(
            job("train", QUOTA, checks=(READY, entry("mk", "Rejected", "not managed by Kueue"))),
            "waiting: Kueue to stop it: check mk (Kueue (MultiKueue)) has rejected it: not managed by Kueue",
            id="one that a check rejects",
        ),
        pytest.param(
            job(
                "train",
                condition("Evicted", "True", "DeactivatedDueToAdmissionCheck", "a check is false"),
                checks=(READY, entry("mk", "Rejected")),
                spec={"active": False},
            ),
            "stopped: somebody to start it again: check mk (Kueue (MultiKueue)) has rejected it",
            id="one that a check has rejected",
        ),
        pytest.param(
            job(
                "train",
                condition("Evicted", "True", "DeactivatedDueToRequeuingLimitExceeded", "too many tries"),
                spec={"active": False},
            ),
            "stopped: somebody to start it again: too many tries",
            id="one that Kueue has stopped",
        ),
        pytest.param(
            job("train", QUOTA, condition("Finished", "True", "Succeeded"), clusterName="p-cluster1"),
            "succeeded on cluster1: ",
            id="one that has succeeded",
        ),
        pytest.param(
            job("train", condition("QuotaReserved", "False"), status_is="odd", nominatedClusterNames="all"),
            "waiting: its turn in ClusterQueue all",
            id="one with a malformed status",
        ),
    ],
)
def test_the_state_of_a_job_and_what_it_waits_for(raw: Raw, expected: str) -> None:
    line = story_of(raw).job
    where = f" on {line.cluster}" if line.cluster else ""
    assert f"{line.state}{where}: {line.waits_for}" == expected


@pytest.mark.parametrize(
    ("dispatcher", "waits_for"),
    [
        (False, "a cluster: it is nominated to none yet"),
        (
            True,
            f"a cluster: {NOBODY}",
        ),
    ],
    ids=["Kueue nominates", "placement-ac nominates"],
)
def test_a_job_of_a_list_by_hand(dispatcher: bool, waits_for: str) -> None:
    raw = job("train", QUOTA, checks=(entry("by-hand", "Pending"),))
    objects = [raw, *QUEUES, *CHECKS, multikueue_check("by-hand", "by-hand")]
    view = HubView(dump_of(objects), Settings(dispatcher=dispatcher), NOW)
    assert tell_story(view, raw).job.waits_for == waits_for


def test_a_queue_that_does_not_select_the_namespace_has_its_fix() -> None:
    why = "Workload namespace doesn't match ClusterQueue selector"
    line = story_of(job("train", condition("QuotaReserved", "False", "Pending", why))).job
    assert line.waits_for == f"quota in ClusterQueue all: {why}"
    assert line.fix == "ask an admin to select namespace team in spec.namespaceSelector of ClusterQueue all"


def test_a_resource_that_no_queue_names_is_named_as_never_given() -> None:
    why = "couldn't assign flavors to pod set main: resource ephemeral-storage unavailable in ClusterQueue"
    line = story_of(job("train", condition("QuotaReserved", "False", "Pending", why))).job
    never = "ephemeral-storage, of which ClusterQueue all on the hub has no quota, so the job never runs"
    assert line.waits_for == never
    assert line.fix.startswith("do not ask for it, or ask an admin to name it in ClusterQueue all, or")


def test_a_slice_of_an_elastic_job_that_was_replaced_is_no_job_that_has_succeeded() -> None:
    old = job("train", QUOTA, condition("Finished", "True", "WorkloadSliceReplaced"))
    new = job("train", QUOTA, checks=(READY, entry("mk", "Ready")), clusterName="p-cluster1")
    new["metadata"]["name"] = "job-train-2"
    lines = job_lines(view_of(old, new))
    assert [(line.workload, line.state) for line in lines] == [("job-train-2", "running")]


@pytest.mark.parametrize(
    ("queues", "expected"),
    [
        pytest.param(
            (queue("LocalQueue", "gpus", clusterQueue="all", stopPolicy="Hold"), QUEUES[1]),
            "LocalQueue team/gpus, which is stopped (stopPolicy Hold)",
            id="a LocalQueue that is stopped",
        ),
        pytest.param(
            (QUEUES[0], queue("ClusterQueue", "all", stopPolicy="HoldAndDrain")),
            "ClusterQueue all, which is stopped (stopPolicy HoldAndDrain)",
            id="a ClusterQueue that is stopped",
        ),
        pytest.param(
            (QUEUES[0], queue("ClusterQueue", "other")),
            "ClusterQueue all, which does not exist",
            id="a ClusterQueue that does not exist",
        ),
        pytest.param(
            (
                QUEUES[0],
                QUEUES[1] | {"status": {"conditions": [condition("Active", "False", "x", "no flavor")]}},
            ),
            "ClusterQueue all, which is not active: no flavor",
            id="a ClusterQueue that is not active",
        ),
        pytest.param((QUEUES[1],), "its turn in LocalQueue gpus", id="LocalQueues that cannot be read"),
        pytest.param((QUEUES[0],), "its turn in ClusterQueue all", id="ClusterQueues that cannot be read"),
    ],
)
def test_a_queue_that_admits_nothing(queues: tuple[Raw, ...], expected: str) -> None:
    assert story_of(job(), queues=queues).job.waits_for == expected


def test_without_the_right_to_the_checks_a_nominated_job_still_waits_for_its_cluster() -> None:
    raw = job("train", QUOTA, checks=(READY, PENDING), nominatedClusterNames=["p-cluster1"])
    assert story_of(raw, checks=()).job.waits_for == "quota on cluster1"


def test_the_lists_of_jobs() -> None:
    here = job("runs", QUOTA, checks=(READY, entry("mk", "Ready")), clusterName="p-cluster1")
    over = job("over", condition("Finished", "True", "Failed"))
    view = view_of(here, over, job("waits"))

    def names(**wanted: Any) -> list[str]:
        return [line.name for line in job_lines(view, Wanted(**wanted))]

    assert names() == ["over", "runs", "waits"]
    assert names(states=("finished",)) == names(states=("failed",)) == ["over"]
    assert names(states=("running", "waiting")) == ["runs", "waits"]
    assert names(cluster="cluster1") == names(cluster="p-cluster1") == ["runs"]
    assert names(queue="other") == []
    assert job_lines(view, namespace="other") == ()


# -- what happened


def event(reason: str, message: str, when: str, about: Raw, by: str = "placement-ac", **rest: Any) -> Raw:
    meta = about["metadata"]
    involved = {"kind": "Workload", "namespace": "team", "name": meta["name"], "uid": meta["uid"]}
    body = {"involvedObject": involved, "reason": reason, "message": message, "lastTimestamp": when}
    return an(EVENT, f"{reason} of {meta['name']}", "team") | body | {"source": {"component": by}} | rest


def steps(raw: Raw, *events: Raw) -> list[tuple[str, str, str, float | None]]:
    return [(step.what, step.by, step.detail, step.after) for step in story_of(raw, *events).steps]


def test_a_job_that_was_sent_back_and_runs_again() -> None:
    message = "cluster cluster2 is leaving the Placement"
    says = f'Evicted due to AdmissionCheck in Retry state: "check" ({message})'
    raw = job(
        "train",
        condition("QuotaReserved", when="2026-08-01T11:55:10Z"),
        condition("Evicted", "False", "QuotaReserved", f"Previously: {says}", "2026-08-01T11:55:10Z"),
        checks=(
            entry("check", "Ready", "2 of 2 selected clusters usable", "2026-08-01T11:55:11Z"),
            entry("mk", "Ready", "", "2026-08-01T11:55:20Z"),
        ),
        clusterName="p-cluster1",
        schedulingStats={"evictions": [{"reason": "AdmissionCheck", "count": 2}]},
    )
    found = steps(
        raw,
        event("Nominated", "nominated to p-cluster1", "2026-08-01T11:55:12Z", raw),
        event("SentBack", message, "2026-08-01T11:55:00Z", raw),
        event(
            "QuotaReserved", "Quota reserved in all", "2026-08-01T11:55:11Z", raw, "kueue-workload-controller"
        ),
        event("SentBack", "another job", "2026-08-01T11:55:00Z", job("other")),
    )
    assert found == [
        ("Queued", "", "in LocalQueue gpus (ClusterQueue all)", None),
        ("SentBack", "placement-ac", message, 300.0),
        ("Evicted", "placement-ac", f"until then: {says} (2 evictions so far)", 10.0),
        ("QuotaReserved", "Kueue", "in ClusterQueue all", 0.0),
        ("Check check", "placement-ac", "Ready: 2 of 2 selected clusters usable", 1.0),
        ("Nominated", "placement-ac", "nominated to p-cluster1", 1.0),
        ("Placed", "Kueue", "on cluster1", 8.0),
    ]


def test_who_preempted_or_stopped_it() -> None:
    urgent = job("urgent")
    urgent["metadata"]["uid"] = "6d0c5d0e-1f2f"
    message = (
        "Preempted to accommodate a workload (UID: {}, JobUID: x) due to prioritization in the ClusterQueue"
    )
    message = message.format(urgent["metadata"]["uid"])
    raw = job(
        "train",
        condition("Preempted", "True", "InClusterQueue", message),
        condition("Evicted", "True", "Preempted", message),
    )
    found = {what: (by, detail) for what, by, detail, _ in steps(raw, urgent)}
    assert found["Preempted"] == ("Kueue", f"{message}: team/job-urgent")
    assert found["Evicted"] == ("Kueue", f"Preempted: {message}")
    stopped = job(spec={"active": False})
    written = {"manager": "kubectl-patch", "time": LATER, "fieldsV1": {"f:spec": {"f:active": {}}}}
    stopped["metadata"]["managedFields"] = [written, {"manager": "kueue", "fieldsV1": None}]
    story = story_of(stopped)
    assert (story.steps[-1].what, story.steps[-1].by) == ("Stopped", "kubectl-patch")
    assert story.job.since == datetime.fromisoformat(LATER)
    assert story.job.fix.endswith("""-n team --type merge -p '{"spec":{"active":true}}'""")


# -- Pods


def pod(name: str, phase: str = "Running", *statuses: Raw, **rest: Any) -> Raw:
    spec = {"containers": [{"name": "main"}], "nodeName": "node1"}
    status = {"phase": phase, "containerStatuses": list(statuses)} | rest
    return {"metadata": {"name": name, "uid": f"pod {name}"}, "spec": spec, "status": status}


def test_pods_say_why_they_do_not_run() -> None:
    waiting = {
        "ready": False,
        "restartCount": 0,
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}},
    }
    crashed = {"ready": False, "restartCount": 3, "state": {"terminated": {"exitCode": 1}}}
    unscheduled = condition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available")
    events = [
        {
            "involvedObject": {"uid": "pod b"},
            "reason": "Pulling",
            "message": "image x",
            "lastTimestamp": BEFORE,
        },
        {
            "involvedObject": {"uid": "pod b"},
            "reason": "Failed",
            "message": "x not found",
            "lastTimestamp": LATER,
        },
    ]
    pods = [
        pod("c", "Pending", conditions=[unscheduled]) | {"spec": {"containers": [{}]}},
        pod("a", "Running", {"ready": True, "restartCount": 1}),
        pod("b", "Pending", waiting),
        pod("d", "Running", crashed),
        {"metadata": {"name": "odd"}, "status": {"containerStatuses": [{"state": "up"}, 3]}},
    ]
    there = pods_there("cluster1", pods, events)
    assert there.pods == (
        PodRow("a", "Running", "1/1", 1, "node1"),
        PodRow("b", "Pending", "0/1", 0, "node1", "ImagePullBackOff: no such tag", "Failed: x not found"),
        PodRow("c", "Pending", "0/1", 0, "", "Unschedulable: 0/3 nodes are available"),
        PodRow("d", "Running", "0/1", 3, "node1", "Error: exit code 1"),
        PodRow("odd", "Unknown", "0/1", 0, ""),
    )
    raw = job("train", QUOTA, checks=(READY, entry("mk", "Ready")), clusterName="p-cluster1")
    line = tell_story(view_of(raw), raw, there).job
    assert line.waits_for == (
        "its Pods on cluster1: ImagePullBackOff: no such tag (b); "
        "Unschedulable: 0/3 nodes are available (c); Error: exit code 1 (d)"
    )


ENDED = {"ready": False, "restartCount": 0, "state": {"terminated": {"exitCode": 1}}}
RUNS = {"ready": True, "restartCount": 0, "state": {"running": {}}}


@pytest.mark.parametrize(
    ("pods", "waits_for"),
    [
        pytest.param(
            [pod("a", "Failed", ENDED), pod("b", "Running", RUNS)], "", id="another one runs in its place"
        ),
        pytest.param(
            [pod("a", "Failed", ENDED)],
            "its Pods on cluster1: Error: exit code 1 (a)",
            id="there is no other",
        ),
    ],
)
def test_a_job_does_not_wait_for_a_pod_that_has_failed(pods: list[Raw], waits_for: str) -> None:
    there = pods_there("cluster1", pods)
    assert [row.why for row in there.pods if row.phase == "Failed"] == ["Error: exit code 1"]
    raw = job("train", QUOTA, checks=(READY, entry("mk", "Ready")), clusterName="p-cluster1")
    assert tell_story(view_of(raw), raw, there).job.waits_for == waits_for


def test_a_job_that_is_sent_back_does_not_wait_for_its_pods() -> None:
    there = pods_there("cluster1", [pod("a", "Running", ENDED)])
    checks = entry("check", "Retry", "cluster1 is leaving"), entry("mk", "Ready")
    raw = job("train", QUOTA, checks=checks, clusterName="p-cluster1")
    line = tell_story(view_of(raw), raw, there).job
    assert line.waits_for == "Kueue to evict it and try again: cluster1 is leaving"
