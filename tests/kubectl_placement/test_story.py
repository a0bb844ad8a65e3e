"""The story of a job: what it waits for, its place in the queue, its Pods, and what happened to it."""

from datetime import datetime
from typing import Any

import pytest

from kubectl_placement.explain.workload import explain_workload
from kubectl_placement.hub.dump_files import dump_of
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.story.lines import Wanted, job_lines
from kubectl_placement.story.model import JobStory
from kubectl_placement.story.pods import PodRow, pods_there
from kubectl_placement.story.tell import tell_story
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import EVENT, GENERATED, SILENT, WORKLOAD
from tests.support.builders import NOW, Raw, an, check, multikueue_check, our_cluster
from tests.support.builders import condition as active

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
OTHER = "Workload namespace doesn't match ClusterQueue selector"
BY_HAND = (*CHECKS, multikueue_check("by-hand", "by-hand"))


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


def inactive(reason: str, message: str) -> Raw:
    """The ClusterQueue, which is not active."""
    return QUEUES[1] | {"status": {"conditions": [condition("Active", "False", reason, message)]}}


def view_of(
    *objects: Raw,
    queues: tuple[Raw, ...] = QUEUES,
    checks: tuple[Raw, ...] = CHECKS,
    settings: Settings | None = None,
) -> HubView:
    return HubView(dump_of([*objects, *queues, *checks, CLUSTER]), settings or Settings(), NOW)


def story_of(raw: Raw, *others: Raw, **hub: Any) -> JobStory:
    return tell_story(view_of(raw, *others, **hub), raw)


def row(situation: str, raw: Raw, sentence: str, fix: str = "", **hub: Any) -> Any:
    """A row of the table: `hub` is what differs on it."""
    return pytest.param(raw, hub, sentence, fix, id=situation)


def placed(*conditions: Raw, ours: Raw = READY, theirs: str = "Ready", **rest: Any) -> Raw:
    return job(
        "train", QUOTA, *conditions, checks=(ours, entry("mk", theirs)), clusterName="p-cluster1", **rest
    )


def unquoted(reason: str, message: str = "", **rest: Any) -> Raw:
    return job("train", condition("QuotaReserved", "False", reason, message), **rest)


def refused(why: str, written: str = "") -> Raw:
    """A job that no cluster fits, by the controller's answer."""
    raw = job("train", QUOTA, checks=(entry("check", "Pending", f"NoClusterFits: {why}"), PENDING))
    if written:
        raw["metadata"]["managedFields"] = [
            {"manager": "placement-ac", "time": written},
            {"manager": "kueue"},
        ]
    return raw


def deactivated(why: str) -> Raw:
    """One that Kueue has deactivated, as its check was Rejected: the entries are Pending again then."""
    message = f'The workload is deactivated due to AdmissionCheck in Rejected state: "mk" ({why})'
    return job(
        "train",
        condition("QuotaReserved", "False", "Deactivated", "The workload is deactivated"),
        condition("Evicted", "True", "DeactivatedDueToAdmissionCheck", message),
        checks=(READY, entry("mk", "Pending", "Reset to Pending after eviction. Previously: Rejected")),
        spec={"active": False},
    )


def tried_again(raw: Raw) -> Raw:
    """The same after somebody has run the command to start it again."""
    return raw | {"spec": raw["spec"] | {"active": True}}


UNSET, FOREIGN = (
    "The owner is not managed by Kueue: "
    f'Expecting spec.managedBy to be "kueue.x-k8s.io/multikueue" not "{manager}"'
    for manager in ("", "example.com/other")
)
NO_KIND = 'No multikueue adapter found for owner kind "example.com/v1, Kind=Odd"'
NO_MANAGER = "Kueue did not set spec.managedBy, and nobody can set it later"
CREATE = "kubectl delete job.batch train -n team, then create it again from its manifest"
LATE_QUEUE = {**QUEUES[0], "metadata": QUEUES[0]["metadata"] | {"creationTimestamp": LATER}}
START = (
    "to start it again: kubectl patch workloads.kueue.x-k8s.io job-train -n team --type merge"
    """ -p '{"spec":{"active":true}}'"""
)
NO_CONTROLLER = "ask an admin whether the controller runs (`kubectl placement status`)"
ROUND = "wait: Kueue's dispatcher Incremental sends it when its round of 5 minutes ends"
LOST = 'Evicted due to AdmissionCheck in Retry state: "mk" (Admitting remote no longer exists)'
OURS = Settings(dispatcher=True)
EVICTED = QUOTA, condition("Admitted"), condition("Evicted", "True", "AdmissionCheck", LOST)


@pytest.mark.parametrize(
    ("raw", "hub", "sentence", "fix"),
    [
        row("Kueue has not considered it", job(), "waiting: its turn in ClusterQueue all"),
        row("it has no quota", unquoted("Pending", FULL), f"waiting: quota in ClusterQueue all: {FULL}"),
        row(
            "its queue does not select the namespace",
            unquoted("Pending", OTHER),
            f"waiting: quota in ClusterQueue all: {OTHER}",
            "ask an admin to select namespace team in spec.namespaceSelector of ClusterQueue all",
        ),
        row(
            "it backs off",
            unquoted("x", requeueState={"count": 2, "requeueAt": LATER}),
            f"waiting: the end of its backoff at {LATER}, after 2 evictions",
        ),
        # -- queues
        row(
            "it names no queue",
            job(spec={"queueName": ""}),
            "waiting: a queue: it names none",
            "set the label kueue.x-k8s.io/queue-name of the job",
        ),
        row(
            "its LocalQueue does not exist",
            unquoted("Suspended", "ClusterQueue gpu is inactive", spec={"queueName": "gpu"}),
            "waiting: LocalQueue team/gpu, which does not exist",
            "create LocalQueue team/gpu, or name another one in the job; did you mean gpus?",
        ),
        row(
            "its ClusterQueue does not exist, which Kueue calls inactive",
            unquoted("Suspended", "ClusterQueue all is inactive"),
            "waiting: ClusterQueue all, which does not exist",
            "ask an admin to create ClusterQueue all",
            queues=(QUEUES[0], queue("ClusterQueue", "other")),
        ),
        row(
            "its LocalQueue is stopped",
            job(),
            "waiting: LocalQueue team/gpus, which is stopped (stopPolicy Hold)",
            "ask an admin to set stopPolicy None in LocalQueue team/gpus",
            queues=(queue("LocalQueue", "gpus", clusterQueue="all", stopPolicy="Hold"), QUEUES[1]),
        ),
        row(
            "its ClusterQueue is stopped",
            job(),
            "waiting: ClusterQueue all, which is stopped (stopPolicy HoldAndDrain)",
            "ask an admin to set stopPolicy None in ClusterQueue all",
            queues=(QUEUES[0], queue("ClusterQueue", "all", stopPolicy="HoldAndDrain")),
        ),
        row(
            "its ClusterQueue is not active",
            job(),
            "waiting: ClusterQueue all, which is not active: no flavor",
            "ask an admin to correct ClusterQueue all",
            queues=(QUEUES[0], inactive("x", "no flavor")),
        ),
        row(
            "a check of its ClusterQueue is not active",
            job(),
            "waiting: ClusterQueue all, which is not active: inactive AdmissionCheck(s): check",
            "ask an admin to make the checks Active: `kubectl placement status` says why they are not",
            queues=(QUEUES[0], inactive("AdmissionCheckInactive", "inactive AdmissionCheck(s): check")),
        ),
        row("LocalQueues cannot be read", job(), "waiting: its turn in LocalQueue gpus", queues=(QUEUES[1],)),
        row(
            "ClusterQueues cannot be read",
            unquoted("Suspended", "ClusterQueue all is inactive"),
            "waiting: quota in ClusterQueue all: ClusterQueue all is inactive",
            queues=(QUEUES[0],),
        ),
        # -- checks
        row("it has quota alone", job("train", QUOTA), "waiting: Kueue to set its checks"),
        row(
            "its check is not answered",
            job("train", QUOTA, checks=(entry("check", "Pending"), PENDING)),
            "waiting: check check (placement-ac)",
            NO_CONTROLLER,
        ),
        row(
            "the gate holds it",
            job("train", QUOTA, checks=(entry("check", "Pending", "waits: cluster2 leaves"), PENDING)),
            "waiting: check check (placement-ac): waits: cluster2 leaves",
        ),
        row(
            "it fits nowhere",
            refused("0/3 clusters fit: 3 didn't match gpu=b200 (ClusterAffinity)", LATER),
            "waiting: a cluster that fits it: 0/3 clusters fit: 3 didn't match gpu=b200 (ClusterAffinity)"
            f" (as of {LATER})",
            "change what the job asks for",
        ),
        row(
            "no cluster has its queue",
            refused("0/2 clusters fit: 2 had no LocalQueue team/gpus (Capacity)"),
            "waiting: a cluster that fits it: 0/2 clusters fit: 2 had no LocalQueue team/gpus (Capacity)",
            "ask an admin to create LocalQueue team/gpus on those clusters",
        ),
        row(
            "one has no queue, the others too little quota",
            refused(
                "0/3 clusters fit: 2 had too little quota: 8 cpu asked, 4 at most (Capacity),"
                " 1 had no ClusterQueue all for LocalQueue team/gpus (Capacity)"
            ),
            "waiting: a cluster that fits it: 0/3 clusters fit: 2 had too little quota: 8 cpu asked, 4"
            " at most (Capacity), 1 had no ClusterQueue all for LocalQueue team/gpus (Capacity)",
            "ask an admin to create ClusterQueue all on those clusters; "
            "or ask for less, or ask an admin for more quota on the clusters",
        ),
        row(
            "it is sent back",
            job("train", QUOTA, checks=(entry("check", "Retry", "cluster a is leaving"), PENDING)),
            "waiting: Kueue to evict it and try again: cluster a is leaving",
        ),
        row(
            "it is ready and nominated nowhere",
            job("train", QUOTA, checks=(READY, PENDING)),
            "waiting: a cluster: it is nominated to none yet",
        ),
        row(
            "Kueue nominates for a list by hand",
            job("train", QUOTA, checks=(entry("by-hand", "Pending"),)),
            "waiting: a cluster: it is nominated to none yet",
            checks=BY_HAND,
        ),
        row(
            "nobody nominates for a list by hand",
            job("train", QUOTA, checks=(entry("by-hand", "Pending"),)),
            f"waiting: a cluster: {NOBODY}",
            "ask an admin to create a Placement and an AdmissionCheck for it",
            checks=BY_HAND,
            settings=OURS,
        ),
        # -- clusters
        row(
            "it waits on a cluster",
            job("train", QUOTA, checks=(READY, PENDING), nominatedClusterNames=["p-cluster1"]),
            "waiting: quota on cluster1",
        ),
        row(
            "it waits on a cluster, and checks cannot be read",
            job("train", QUOTA, checks=(READY, PENDING), nominatedClusterNames=["p-cluster1"]),
            "waiting: quota on cluster1",
            checks=(),
        ),
        row(
            "a listed cluster hangs",
            job("train", QUOTA, checks=(READY, PENDING), nominatedClusterNames=["p-cluster1"]),
            f"waiting: cluster cluster2: {SILENT}",
            "wait: it starts elsewhere when Kueue has noticed",
            checks=(
                check("check", "p", active=active(message=f"{GENERATED}; cluster2: {SILENT}")),
                CHECKS[1],
            ),
        ),
        row(
            "its cluster is full",
            job(
                "train",
                QUOTA,
                checks=(entry("check", "Ready", "waits for cluster1: 8 nvidia.com/gpu are used"), PENDING),
                nominatedClusterNames=["p-cluster1"],
            ),
            "waiting: quota on cluster1: 8 nvidia.com/gpu are used",
        ),
        row("it runs", placed(), "running on cluster1: "),
        row(
            "it runs, and our check still says where it has waited",
            placed(ours=entry("check", "Ready", "waits for cluster1: 8 nvidia.com/gpu are used")),
            "running on cluster1: ",
        ),
        row(
            "its Pods start",
            placed(condition("PodsReady", "False", "WaitForStart", "Not all pods are ready or succeeded")),
            "running on cluster1: its Pods on cluster1: Not all pods are ready or succeeded",
        ),
        row(
            "it is being evicted from its cluster",
            placed(condition("Evicted", "True", "AdmissionCheck", "lost")),
            "running on cluster1: Kueue to end its eviction: lost",
        ),
        row(
            "it is sent back from its cluster",
            placed(ours=entry("check", "Retry", "cluster1 is leaving")),
            "running on cluster1: Kueue to evict it and try again: cluster1 is leaving",
        ),
        row(
            "it was evicted, and Incremental has a round to end",
            job("train", *EVICTED, checks=(READY, entry("mk", "Pending"))),
            f"waiting: a cluster to be sent to again: no cluster has it. {LOST}",
            ROUND,
        ),
        row(
            "it was evicted, and our dispatcher sends it",
            job("train", *EVICTED, checks=(READY, entry("mk", "Pending"))),
            f"waiting: a cluster to be sent to again: no cluster has it. {LOST}",
            settings=OURS,
        ),
        row(
            "it runs on the hub, and is evicted there",
            job("train", *EVICTED, checks=(entry("check", "Pending"),)),
            f"running: Kueue to end its eviction: {LOST}",
        ),
        # -- jobs that nobody starts
        row(
            "somebody has stopped it",
            job("train", spec={"active": False}),
            "stopped: somebody to start it again",
            START,
        ),
        row(
            "a check rejects it",
            job("train", QUOTA, checks=(entry("check", "Rejected", "no licence"), PENDING)),
            "waiting: Kueue to stop it: check check (placement-ac) has rejected it: no licence",
        ),
        row(
            "a check has rejected it",
            job(
                "train",
                condition("Evicted", "True", "DeactivatedDueToAdmissionCheck", "a check is false"),
                checks=(READY, entry("mk", "Rejected")),
                spec={"active": False},
            ),
            "stopped: somebody to start it again: check mk (Kueue (MultiKueue)) has rejected it",
            START,
        ),
        row(
            "Kueue has stopped it",
            job(
                "train",
                condition("Evicted", "True", "DeactivatedDueToRequeuingLimitExceeded", "too many tries"),
                spec={"active": False},
            ),
            "stopped: somebody to start it again: too many tries",
            START,
        ),
        row(
            "it was made before its LocalQueue",
            deactivated(UNSET),
            f"stopped: somebody to create it again, as Kueue never starts it: {UNSET}",
            f"{CREATE}: it is older than LocalQueue team/gpus, so {NO_MANAGER}",
            queues=(LATE_QUEUE, QUEUES[1]),
        ),
        row(
            "it has no managedBy, and its queue is old or unknown",
            deactivated(UNSET),
            f"stopped: somebody to create it again, as Kueue never starts it: {UNSET}",
            f"{CREATE}: as of a job that is older than its LocalQueue, {NO_MANAGER}",
        ),
        row(
            "the same, and somebody has set active: true",
            tried_again(deactivated(UNSET)),
            f"waiting: somebody to create it again, as Kueue never starts it: {UNSET}",
            f"{CREATE}: as of a job that is older than its LocalQueue, {NO_MANAGER}",
        ),
        row(
            "another controller manages it",
            job("train", QUOTA, checks=(READY, entry("mk", "Rejected", FOREIGN))),
            f"waiting: somebody to create it again, as Kueue never starts it: {FOREIGN}",
            f"{CREATE} without spec.managedBy: Kueue sets it",
        ),
        row(
            "MultiKueue does not send its kind",
            deactivated(NO_KIND),
            f"stopped: somebody to create it again, as Kueue never starts it: {NO_KIND}",
            f"{CREATE} in a queue that sends no jobs to other clusters",
        ),
        row(
            "it has succeeded",
            job("train", QUOTA, condition("Finished", "True", "Succeeded"), clusterName="p-cluster1"),
            "succeeded on cluster1: ",
        ),
        row(
            "its status is malformed",
            unquoted("x", status_is="odd", nominatedClusterNames="all"),
            "waiting: its turn in ClusterQueue all",
        ),
    ],
)
def test_each_situation_has_its_sentence_and_its_next_step(
    raw: Raw, hub: dict[str, Any], sentence: str, fix: str
) -> None:
    line = story_of(raw, **hub).job
    where = f" on {line.cluster}" if line.cluster else ""
    assert (f"{line.state}{where}: {line.waits_for}", line.fix) == (sentence, fix)


@pytest.mark.parametrize(
    "raw", [deactivated(UNSET), tried_again(deactivated(UNSET))], ids=["stopped", "tried again"]
)
def test_a_job_that_never_starts_has_no_position_in_its_queue(raw: Raw) -> None:
    assert story_of(raw).position is None
    explained = explain_workload(view_of(raw), raw)
    assert explained.position is None
    assert f"Kueue never starts it: {UNSET}; {CREATE}" in explained.notes[0]


def test_a_queue_that_does_not_exist_is_not_called_inactive() -> None:
    raw = unquoted("Suspended", "ClusterQueue all is inactive")
    missing = explain_workload(view_of(raw, queues=(QUEUES[0], queue("ClusterQueue", "other"))), raw)
    assert missing.notes == ("create ClusterQueue all: it does not exist",)
    unread = explain_workload(view_of(raw, queues=(QUEUES[0],)), raw)
    assert unread.notes[0] == "Kueue gives it no quota on the hub: ClusterQueue all is inactive"


def test_the_steps_of_a_job_that_runs_do_not_say_where_it_waits() -> None:
    raw = placed(ours=entry("check", "Ready", "waits for cluster1: 8 nvidia.com/gpu are used"))
    assert "waits for" not in str(story_of(raw).steps)


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
