"""The table of `explain workload`: its clusters and plugins, as the documentation shows it."""

import io
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from rich.console import Console

from kubectl_placement.cli.explain_workload import placed_text, workload_texts
from kubectl_placement.explain.workload import WorkloadExplanation, explain_workload
from kubectl_placement.hub.dump_files import dump_of
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.jobs.new_job import new_job
from placement_ac.config.settings import Settings
from placement_ac.core.api import constants
from placement_ac.core.inputs.queue_facts import WorkerFacts
from tests.support.builders import (
    NOW,
    Raw,
    check,
    decision,
    managed_cluster,
    multikueue_check,
    our_objects,
    placement,
    secrets,
)
from tests.support.documents import ROOT
from tests.support.jobs_to_dispatch import DOMAIN, GPU, gpu_pods, queues, raw_job

P, MK = "placement-demo2", "multikueue-demo2"
NAMES = ("cluster1", "cluster2", "cluster3")
GPUS = dict(zip(NAMES, ("nvidia-tesla-t4", "nvidia-h100", "nvidia-h100"), strict=True))
SELECTOR, PREFERRED = f"{DOMAIN}/cluster-selector", f"{DOMAIN}/preferred-clusters"
BOTH = {P: "Ready", MK: "Pending"}


def view_of(*jobs: Raw, unconnected: str = "", selected: Sequence[str] = NAMES, **settings: Any) -> HubView:
    """Story 2 with three clusters; all are listed, and connected but for `unconnected`."""
    fleet = our_objects(*NAMES, of=P, owners=(P, MK))
    for obj in fleet:
        if obj["kind"] == "MultiKueueCluster":
            status = "False" if obj["metadata"]["name"] == f"{P}-{unconnected}" else "True"
            says = {"type": "Active", "status": status, "reason": "ClientConnectionFailed", "message": "no"}
            obj["status"] = {"conditions": [says]}
    local = an_queue("LocalQueue", "user-queue-demo2", {"clusterQueue": "cluster-queue-demo2"})
    strategy = {"admissionChecks": [{"name": name} for name in (P, MK)]}
    cluster_queue = an_queue(
        "ClusterQueue", "cluster-queue-demo2", {"namespaceSelector": {}, "admissionChecksStrategy": strategy}
    )
    ours = [check(P, P), multikueue_check(MK, P), placement(P, len(selected), namespace="kueue-system")]
    managed = [managed_cluster(name, labels={"accelerator": GPUS[name]}) for name in NAMES]
    decided = decision(*selected, of=P, namespace="kueue-system")
    keys = [
        secret | {"metadata": secret["metadata"] | {"namespace": "kueue-system"}}
        for secret in secrets(*NAMES)
    ]
    objects = [*ours, decided, *keys, *managed, *fleet, local, cluster_queue, *jobs]
    given = {"dispatcher": True, "step_size": 1, **settings}
    return HubView(dump_of(objects), Settings.model_validate(given), NOW)


def an_queue(kind: str, name: str, spec: Raw) -> Raw:
    namespace = {"namespace": "default"} if kind == "LocalQueue" else {}
    metadata = {"name": name, "uid": f"uid of {name}"} | namespace
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}


def a_job(name: str = "job-train-5c0de", **rest: Any) -> Raw:
    """A Workload with quota for five minutes."""
    return raw_job(name, queue="user-queue-demo2", since=NOW - timedelta(minutes=5), **(BOTH | rest))


def nominated_a_while_ago(job: Raw) -> Raw:
    entry = {
        "manager": constants.KUEUE_ADMISSION,
        "operation": "Apply",
        "subresource": "status",
        "time": "2026-08-01T11:56:00Z",
        "fieldsV1": {"f:status": {"f:nominatedClusterNames": {}}},
    }
    return job | {"metadata": job["metadata"] | {"managedFields": [entry]}}


def explained(job: Raw, view: HubView) -> WorkloadExplanation:
    return explain_workload(view, job)


def drawn(job: Raw, view: HubView, *, wide: bool = False) -> str:
    out = Console(file=io.StringIO(), width=250, highlight=False, no_color=True)
    for part in workload_texts(explained(job, view), NOW, wide=wide):
        out.print(part)
    assert isinstance(out.file, io.StringIO)
    return "\n".join(line.rstrip() for line in out.file.getvalue().splitlines())


def test_the_example_in_the_documentation_is_what_is_shown() -> None:
    asks = {SELECTOR: "accelerator in (nvidia-h100)", PREFERRED: "1:accelerator=nvidia-h100"}
    job = nominated_a_while_ago(a_job(annotations=asks, nominated=[f"{P}-cluster2"]))
    shown = drawn(job, view_of(job))
    assert f"$ placement-ac explain workload job-train-5c0de\n{shown}\n```" in (
        (ROOT / "docs" / "dispatch.md").read_text("utf-8")
    ), shown


def test_other_jobs_count_as_the_controller_counts_them() -> None:
    """With Spread, the job before it is nominated first: that leaves fewer points for the first cluster."""
    first, job = a_job("a-first"), a_job("job")
    view = view_of(first, job, dispatch_profile="spread")
    [choice] = explained(job, view).placements
    assert [(cluster.cluster, cluster.total) for cluster in choice.clusters] == [
        ("cluster2", 100.0),
        ("cluster3", 100.0),
        ("cluster1", 50.0),
    ]
    assert {one.meta.name: names for one, names in view.plan(P).nominations} == {
        "a-first": (f"{P}-cluster1",),
        "job": (f"{P}-cluster2",),
    }


def test_a_job_does_not_count_against_itself() -> None:
    """With Spread, the cluster to which it is nominated has as many points as before."""
    job = a_job(nominated=[f"{P}-cluster1"])
    [choice] = explained(job, view_of(job, dispatch_profile="spread")).placements
    assert [(cluster.cluster, cluster.total, cluster.nominated) for cluster in choice.clusters] == [
        ("cluster1", 100.0, True),
        ("cluster2", 100.0, False),
        ("cluster3", 100.0, False),
    ]


@pytest.mark.parametrize(
    ("nominated", "after"),
    [
        pytest.param([f"{P}-cluster2"], "", id="sent again"),
        pytest.param(
            [], "; if it is nominated nowhere for a minute, delete its finished copy there", id="not yet"
        ),
    ],
)
def test_a_copy_that_ended_out_of_sync_says_what_to_compare(nominated: list[str], after: str) -> None:
    job = a_job(nominated=nominated)
    why = f'Previously: … (Remote workload on worker cluster "{P}-cluster1" is out of sync with its user job)'
    job["status"]["conditions"].append({"type": "Evicted", "status": "False", "message": why})
    expected = (
        "compare the Job on cluster1 with the hub's: its copy there ended out of sync with it, because"
        f" something on that worker changes or deletes Jobs, such as a webhook; Kueue sends it again{after}"
    )
    assert expected in explained(job, view_of(job)).notes


def test_a_cluster_that_is_not_connected_says_why() -> None:
    job = a_job()
    view = view_of(job, unconnected="cluster1")
    [choice] = explained(job, view).placements
    why, first = "ClientConnectionFailed: no", choice.clusters[0]
    assert (first.cluster, first.state, first.why) == ("cluster1", "not connected", why)
    assert f"not connected  placement-demo2-cluster1  {why}" in drawn(job, view, wide=True)


def test_a_cluster_that_leaves_gets_no_job() -> None:
    runs, job = a_job("runs", cluster=f"{P}-cluster2"), a_job()
    [choice] = explained(job, view_of(runs, job, selected=("cluster1", "cluster3"))).placements
    assert [(cluster.cluster, cluster.state) for cluster in choice.clusters] == [
        ("cluster1", "eligible"),
        ("cluster3", "eligible"),
        ("cluster2", "leaving"),
    ]


def test_without_our_dispatcher_kueues_decides() -> None:
    says = "Kueue's dispatcher decides (--dispatcher is false) among, in the list's order: "
    job = a_job()
    assert f"{says}{', '.join(NAMES)}" in drawn(job, view_of(job, dispatcher=False))
    [choice] = new_job(view_of(dispatcher=False), a_manifest("Job")).placements
    assert placed_text(choice) == f"{says}{', '.join(NAMES)}"


def test_without_a_controller_nobody_claims_to_know_its_settings() -> None:
    job = a_job()
    shown = drawn(job, replace(view_of(job, dispatcher=False), settings_known=False))
    assert "--dispatcher" not in shown
    listed = "as no controller has published its settings; on the list: cluster1, cluster2, cluster3"
    assert f"who decides is unknown, {listed}" in shown


def refused_for_quota() -> Raw:
    """One of 24 GPUs that no cluster fits, by the controller, which has asked the workers."""
    job = a_job(pods=gpu_pods(24), **{P: "Pending"})
    [ours] = [entry for entry in job["status"]["admissionChecks"] if entry["name"] == P]
    ours["message"] = (
        f"NoClusterFits: 0/3 clusters fit: 3 had too little quota: 24 {GPU} asked, 8 at most (Capacity)"
    )
    return job


def test_quota_that_was_not_read_does_not_contradict_the_controller() -> None:
    """It has refused all: then no cluster is shown with points, as if it fitted."""
    job = refused_for_quota()
    view = view_of(job)
    shown = drawn(job, view)
    assert (
        "The controller has compared the workers' quota, which was not read here: --workers reads it" in shown
    )
    rows = [line.split()[1:5] for line in shown.splitlines() if line.startswith(NAMES)]
    assert rows == [["quota", "not", "read", "-"]] * 3
    here = queues((GPU, "all", 8), queue=("default", "user-queue-demo2"))
    read = drawn(job, view.with_queue_facts({f"{P}-{name}": WorkerFacts(here) for name in NAMES}))
    assert "not read" not in read
    assert read.count(f"had too little quota: 24 {GPU} asked, 8 at most (Capacity)") == 5


def a_manifest(kind: str, queue: str = "user-queue-demo2", **asks: str) -> Raw:
    """A Job or a Workload to be created; `asks`: annotations of its Pods."""
    pods = {"metadata": {"annotations": asks}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    if kind == "Job":
        metadata = {"generateName": "new-", "labels": {"kueue.x-k8s.io/queue-name": queue}}
        return {"apiVersion": "batch/v1", "kind": kind, "metadata": metadata, "spec": {"template": pods}}
    spec = {"queueName": queue, "podSets": [{"name": "main", "count": 1, "template": pods}]}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": {"name": "new"},
        "spec": spec,
    }


@pytest.mark.parametrize("kind", ["Job", "Workload"])
@pytest.mark.parametrize(
    ("queue", "asks", "goes"),
    [
        pytest.param("user-queue-demo2", {}, "cluster1, cluster2, cluster3, best first", id="anywhere"),
        pytest.param(
            "user-queue-demo2",
            {SELECTOR: "accelerator=nvidia-h100"},
            "cluster2, cluster3, best first",
            id="where there are such GPUs",
        ),
        pytest.param(
            "user-queue-demo2",
            {SELECTOR: "accelerator=b200"},
            "no cluster: 0/3 clusters fit: 3 didn't match accelerator=b200 (ClusterAffinity)",
            id="nowhere",
        ),
        pytest.param(
            "user-queue-demo",
            {},
            "create LocalQueue default/user-queue-demo: it does not exist; did you mean user-queue-demo2?",
            id="no such queue",
        ),
    ],
)
def test_where_a_new_job_would_go(kind: str, queue: str, asks: dict[str, str], goes: str) -> None:
    found = new_job(view_of(), a_manifest(kind, queue, **asks))
    assert [*map(placed_text, found.placements), *filter(None, [found.problem])] == [goes]


def test_a_cluster_that_may_never_give_quota_says_why_it_comes_last() -> None:
    job = a_job(pods=gpu_pods(8))
    here = "default", "user-queue-demo2"
    per_worker = {
        "cluster1": queues(("cpu", "all", 8), queue=here),
        "cluster2": queues((GPU, "all", 16), queue=here),
    }
    facts = {f"{P}-{name}": WorkerFacts(found) for name, found in per_worker.items()}
    view = view_of(job).with_queue_facts(facts)
    [choice] = explained(job, view).placements
    assert {cluster.cluster: (round(cluster.total or 0.0), cluster.doubt) for cluster in choice.clusters} == {
        "cluster2": (67, ""),
        "cluster3": (33, ""),
        "cluster1": (0, f"ClusterQueue cluster-queue has no quota of {GPU}"),
    }
    rows = [line for line in drawn(job, view).splitlines() if line.startswith("cluster1")]
    assert [f"comes last: ClusterQueue cluster-queue has no quota of {GPU}" in row for row in rows] == [True]


def test_a_workload_without_quota_is_ranked_as_well() -> None:
    job = a_job(quota=False, **{P: "Pending"})
    found = explained(job, view_of(job))
    assert (found.has_quota, found.quota_since, found.cluster_queue) == (False, None, "cluster-queue-demo2")
    assert [cluster.cluster for cluster in found.placements[0].clusters] == list(NAMES)


def test_a_resource_that_the_hub_does_not_name_is_never_given() -> None:
    job = a_job(quota=False, **{P: "Pending"})
    why = "resource ephemeral-storage unavailable in ClusterQueue"
    job["status"]["conditions"] = [{"type": "QuotaReserved", "status": "False", "message": why}]
    notes = explained(job, view_of(job)).notes
    assert f"Kueue gives it no quota on the hub: {why}" in notes
    assert [note for note in notes if note.startswith("it asks for ephemeral-storage, of which ClusterQueue")]


def test_without_checks_or_after_its_end_there_is_no_table() -> None:
    done, bare = a_job(finished=True), a_job()
    bare["status"]["admissionChecks"] = []
    lost = a_job() | {"spec": {"queueName": "user-queue"}}
    lost["status"] = {}
    view = view_of()
    expected = "create LocalQueue default/user-queue: it does not exist; did you mean user-queue-demo2?"
    assert [explained(one, view).notes for one in (done, bare, lost)] == [
        ("it has finished",),
        ("Kueue has not set its checks yet",),
        (expected,),
    ]
    assert f"({expected})" in drawn(lost, view)


@pytest.mark.parametrize("spec", [None, 5, {"template": 3}, {"template": {"spec": {"affinity": 4}}}])
def test_a_job_of_any_shape_is_previewed(spec: Any) -> None:
    labels = {"kueue.x-k8s.io/queue-name": "user-queue-demo2"}
    head: Raw = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "labels": labels}}
    [choice] = new_job(view_of(), head | {"spec": spec}).placements
    assert [one.cluster for one in choice.fitting] == list(NAMES)


def test_a_workload_of_any_shape_is_explained() -> None:
    entry = {"manager": constants.KUEUE_ADMISSION, "subresource": "status", "fieldsV1": 3}
    metadata = {"name": "w", "ownerReferences": 5, "managedFields": [entry]}
    raw: Raw = {"metadata": metadata, "spec": 3, "status": {"nominatedClusterNames": ["a"]}}
    found = explained(raw, view_of())
    assert (found.notes, found.nominated_since) == (("it names no LocalQueue",), None)


def test_a_check_that_is_refused_says_why_no_job_is_sent() -> None:
    job = a_job()
    view = view_of(job, placement_namespace=("elsewhere",))
    [choice] = explained(job, view).placements
    assert choice.problem.startswith("no job is sent to a cluster: PlacementNotFound: ")


def test_tolerations_that_are_not_read_are_noted() -> None:
    job = a_job(pods=({"spec": {"tolerations": [{"key": f"k{n}"} for n in range(257)]}},))
    too_many = "use fewer tolerations in a podSet: at most 256 are read, it has 257"
    note = f"{too_many}; meanwhile no taint keeps the job from a cluster"
    assert note in explained(job, view_of(job, job_taints=["team"])).notes
    assert note not in explained(job, view_of(job)).notes
