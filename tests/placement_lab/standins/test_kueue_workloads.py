"""
The stand-in for Kueue dispatches Workloads, as recorded in shared/kueue.

Each test names the recording that it follows. Kueue's times pass 20 times as fast here.
"""

from typing import Any

import pytest

from kubectl_placement.jobs.new_job import new_job
from placement_ac.core.api.constants import FINALIZER_IN_USE, LABEL_ORIGIN
from placement_ac.kube.client import Object
from placement_lab.standins.multikueue import PACES, KueueSettings, hub_job
from placement_lab.standins.multikueue.objects import is_condition_true, is_suspended
from tests.placement_lab.standins.workload_environment import (
    JOBS,
    SPEED,
    WORKLOADS,
    Staged,
    WorkloadEnvironment,
    config,
)
from tests.support.jobs_to_dispatch import GPU
from tests.support.kueue_objects import (
    admission_check,
    cluster_queue,
    kueue_object,
    local_queue,
    multikueue_config,
)
from tests.support.whatif import story_2


def test_dispatch_a_job_runs_on_one_worker(staged: Staged) -> None:
    stage = staged()
    stage.submit("demo2")
    stage.wait(lambda: stage.placed("demo2")[0])
    [worker] = [stage.placed("demo2")[0] or ""]
    stage.until_placed("demo2", worker)
    stage.until(lambda: stage.condition_line("demo2", "Admitted"), 'T:Admitted "The workload is admitted"')
    assert stage.checks("demo2") == {"multikueue": f'Ready "The workload was admitted on "{worker}""'}
    assert (
        stage.condition_line("demo2", "QuotaReserved")
        == 'T:QuotaReserved "Quota reserved in ClusterQueue cluster-queue"'
    )
    stage.until(lambda: stage.copies("demo2"), [worker])
    stage.until(lambda: is_suspended(stage.job("demo2") or {}), False)
    assert (stage.copy("demo2", worker) or {})["metadata"]["labels"][LABEL_ORIGIN] == "multikueue"
    assert stage.workload("demo2")["metadata"]["finalizers"] == [FINALIZER_IN_USE]
    assert stage.fleet.counter.counts_of("demo2") == {"maxCopies": 1, "starts": 1, "finished": False}


@pytest.mark.embedded("an API server refuses to change managedBy, which Kueue's webhook sets before")
def test_dispatch_a_new_job_is_suspended_and_managed_by_multikueue(staged: Staged) -> None:
    stage = staged(held=["worker1", "worker2", "worker3"])
    item = hub_job("plain", "default", "cluster-queue")
    del item["spec"]["suspend"], item["spec"]["managedBy"]
    stage.apply(item)
    stage.until_waiting("plain", "worker1", "worker2", "worker3")
    spec = (stage.job("plain") or {})["spec"]
    assert (spec["suspend"], spec["managedBy"]) == (True, "kueue.x-k8s.io/multikueue")


# a Job's Pods, its queue and the hub's quota


@pytest.mark.parametrize(
    ("counts", "pods", "succeeded"),
    [
        pytest.param({}, 1, 1, id="one"),
        pytest.param({"parallelism": 4}, 4, 4, id="no completions"),
        pytest.param({"parallelism": 8, "completions": 3}, 3, 3, id="fewer completions"),
        pytest.param({"completions": 3}, 1, 3, id="one after the other"),
    ],
)
def test_a_job_runs_no_more_pods_than_it_is_to_complete(
    staged: Staged, counts: dict[str, int], pods: int, succeeded: int
) -> None:
    """Kueue: `podsCount`; so does the Job controller."""
    stage = staged()
    item = hub_job("many", "default", "cluster-queue")
    del item["spec"]["parallelism"], item["spec"]["completions"]
    item["spec"] |= counts
    stage.apply(item)
    stage.wait(lambda: stage.placed("many")[0])
    [worker] = [stage.placed("many")[0] or ""]
    stage.until_runs("many", worker)
    assert [podset["count"] for podset in stage.workload("many")["spec"]["podSets"]] == [pods]
    running = stage.on(worker).get(JOBS, "many", "default") or {}
    assert (running["status"]["active"], running["status"]["ready"]) == (pods, pods)
    stage.wait(lambda: stage.fleet.finish("many"))
    stage.wait(lambda: is_condition_true(stage.job("many") or {}, "Complete"))
    assert (stage.job("many") or {})["status"]["succeeded"] == succeeded


def gpu_queue(quota: str, **spec: str) -> Object:
    resources = [{"name": name, "nominalQuota": most} for name, most in (("cpu", "8"), (GPU, quota))]
    group = {"coveredResources": ["cpu", GPU], "flavors": [{"name": "default", "resources": resources}]}
    return cluster_queue("gpus", "multikueue", resourceGroups=[group], **spec)


UNASSIGNED = "couldn't assign flavors to pod set main: "
TOO_LITTLE = (
    f"{UNASSIGNED}insufficient quota for {GPU} in flavor default, previously considered podsets requests (0) "
    "+ current podset request (8) > maximum capacity (4)"
)


@pytest.mark.embedded("an API server refuses to change managedBy, which Kueue's webhook sets before")
@pytest.mark.parametrize(
    ("queue", "requests", "message"),
    [
        pytest.param(gpu_queue("8"), {GPU: "8"}, "", id="room"),
        pytest.param(gpu_queue("4"), {GPU: "8"}, TOO_LITTLE, id="never room"),
        pytest.param(gpu_queue("4", cohortName="all"), {GPU: "8"}, "", id="its cohort may have it"),
        pytest.param(
            gpu_queue("8"),
            {"memory": "1Gi"},
            f"{UNASSIGNED}resource memory unavailable in ClusterQueue",
            id="a resource that it does not name",
        ),
    ],
)
def test_a_job_without_the_label_goes_to_the_queue_default_and_the_hubs_quota_counts(
    staged: Staged, queue: Object, requests: dict[str, str], message: str
) -> None:
    """The stand-in does what `plan` says of the same objects: it sends the job, or that goes nowhere."""
    stage = staged()
    stage.apply(kueue_object("ResourceFlavor", "default", {}))
    own = local_queue("default", "gpus")
    stage.apply(queue, own)
    item = hub_job("plain", "default", "", requests)
    del item["metadata"]["labels"], item["spec"]["suspend"], item["spec"]["managedBy"]
    checks = {"admissionChecks": [{"name": "placement-demo2"}, {"name": "multikueue-demo2"}]}
    hub = story_2(queue | {"spec": queue["spec"] | {"admissionChecksStrategy": checks}}, own)
    planned = new_job(hub, item)
    stage.apply(item)
    stage.wait(lambda: stage.workload("plain"))
    assert (planned.queue, stage.workload("plain")["spec"]["queueName"]) == ("default", "default")
    assert (stage.job("plain") or {})["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "default"
    if message:
        stage.until(lambda: stage.condition_line("plain", "QuotaReserved"), f'F:Pending "{message}"')
    else:
        stage.wait(lambda: stage.placed("plain")[0])
    assert bool([note for note in planned.notes if "quota" in note]) is bool(message), planned.notes


@pytest.mark.embedded("an API server refuses to change managedBy, which Kueue's webhook sets before")
def test_quota_of_the_hub_is_used_once(staged: Staged) -> None:
    stage = staged()
    stage.apply(kueue_object("ResourceFlavor", "default", {}))
    stage.apply(gpu_queue("8"), local_queue("gpus", "gpus"))
    stage.apply(hub_job("first", "default", "gpus", {GPU: "6"}))
    stage.wait(lambda: stage.placed("first")[0])
    stage.apply(hub_job("second", "default", "gpus", {GPU: "4"}))
    lacking = f"{UNASSIGNED}insufficient unused quota for {GPU} in flavor default, 2 more needed"
    stage.until(lambda: stage.condition_line("second", "QuotaReserved"), f'F:Pending "{lacking}"')
    stage.wait(lambda: stage.fleet.finish("first"))
    stage.wait(lambda: stage.placed("second")[0])


def test_a_job_that_is_finished_on_its_worker_is_finished_on_the_hub(staged: Staged) -> None:
    stage = staged()
    stage.submit("d0")
    stage.wait(lambda: stage.fleet.finish("d0"))
    stage.wait(lambda: is_condition_true(stage.workload("d0"), "Finished"))
    assert is_condition_true(stage.job("d0") or {}, "Complete")
    stage.until(lambda: stage.copies("d0"), [])
    assert stage.fleet.counter.counts_of("d0") == {"maxCopies": 1, "starts": 1, "finished": True}


@pytest.mark.embedded("a bare API server has no garbage collector")
def test_config_deleted_deleting_a_job_deletes_its_copies(staged: Staged) -> None:
    stage = staged()
    stage.submit("d1")
    stage.wait(lambda: stage.fleet.counter.running("d1"))
    stage.delete(JOBS, "d1", "default")
    stage.until_runs("d1")
    stage.until(lambda: (stage.workload("d1"), stage.copies("d1")), ({}, []))


# jobs that a worker removes


@pytest.mark.parametrize(
    ("ttl", "settings", "starts"),
    [
        pytest.param(
            *(0, {}, 2),
            id="it runs twice",
            marks=pytest.mark.embedded("behind a real API server the hub often sees the end in time"),
        ),
        pytest.param(0, {"clears_ttl": True}, 1, id="with the gate, it does not"),
        pytest.param(900, {}, 1, id="a time in which the hub sees the end"),
    ],
)
def test_a_finished_job_that_its_worker_removes_runs_again(
    staged: Staged, ttl: int, settings: Any, starts: int
) -> None:
    """By its code (issue 14734): the hub looks after its batch period, and finds neither Job nor copy."""
    batch = 2.0
    stage = staged(1, settings=KueueSettings(events_batch_seconds=batch * SPEED, **settings))
    job = hub_job("b1", "default", "cluster-queue")
    stage.apply(job | {"spec": job["spec"] | {"ttlSecondsAfterFinished": ttl}})
    stage.until(lambda: (stage.job("b1") or {}).get("status", {}).get("active"), 1)
    stage.pause(1.2 * batch)  # then it looks at nothing
    assert stage.fleet.finish("b1") == ["worker1"]
    if starts == 1:
        stage.wait(lambda: is_condition_true(stage.workload("b1"), "Finished"))
    else:
        stage.wait(lambda: "no longer exists" in (stage.condition_line("b1", "Evicted") or ""))
    stage.until(lambda: stage.fleet.counter.counts_of("b1")["starts"], starts)
    assert is_condition_true(stage.workload("b1"), "Finished") is (starts == 1)


# copies that do not run their Job


def test_a_copy_that_ends_while_its_pods_run_blocks_the_job(staged: Staged) -> None:
    """By its code (issue 14521): the hub's Job seems to have Pods, so quota and copy stay."""
    stage = staged(1)
    stage.submit("b1")
    stage.until(lambda: (stage.job("b1") or {}).get("status", {}).get("active"), 1)
    stage.fleet.end_copy("b1", "OutOfSync")
    stage.wait(lambda: is_condition_true(stage.workload("b1"), "Evicted"))
    stage.until_another_is_placed()
    assert (stage.placed("b1"), stage.fleet.counter.running("b1")) == ((None, []), [])
    assert is_condition_true(stage.workload("b1"), "QuotaReserved")
    stage.on("worker1").delete(WORKLOADS, stage.identity("b1")["name"], "default")
    stage.until_placed("b1", "worker1")


def test_a_copy_beside_a_foreign_job_takes_quota_and_never_runs(staged: Staged) -> None:
    stage = staged(2, held=["worker2"])
    stage.on("worker1").apply(hub_job("b1", "default", "user-queue"))
    stage.submit("b1")
    stage.wait(lambda: is_condition_true(stage.copy("b1", "worker1") or {}, "Admitted"))
    stage.until(lambda: stage.copies("b1"), ["worker1"])
    stage.fleet.release("worker2")
    stage.until_another_is_placed()
    assert stage.placed("b1") == (None, ["worker1", "worker2"])
    assert stage.fleet.counter.running("b1") == []
    stage.on("worker1").delete(JOBS, "b1", "default")
    stage.until_placed("b1", "worker1")


# flips.md: what a list write costs


def read_at(stage: WorkloadEnvironment) -> list[float]:
    """When Kueue has read a copy, sorted."""
    journals = [request for hub in stage.fleet.hubs.values() for request in hub.journal[:]]
    return sorted(r.at for r in journals if r.method == "GET" and "/workloads/job-" in r.path)


@pytest.mark.parametrize("throttled", [False, True])
def test_a_check_that_names_another_list_has_its_jobs_evicted(staged: Staged, throttled: bool) -> None:
    """The first copy runs on (seen on main ff69552e: evicted after 1.0 s)."""
    stage = staged(2, throttled=throttled)
    stage.submit("demo5")
    stage.wait(lambda: stage.placed("demo5")[0])
    first = stage.placed("demo5")[0] or ""
    stage.until_placed("demo5", first)
    stage.pause(1.0)  # then it looks at nothing
    (other,) = (name for name in stage.fleet.names if name != first)
    stage.apply(multikueue_config("other", other), admission_check("multikueue", "other"))
    stage.wait(lambda: "no longer exists" in (stage.condition_line("demo5", "Evicted") or ""))
    stage.wait(lambda: other in stage.fleet.counter.running("demo5"))
    assert set(stage.fleet.counter.running("demo5")) == {first, other}


@pytest.mark.parametrize("pace", ["0.18", "0.19 without groupKindConcurrency", "0.20"])
def test_after_a_list_write_as_many_workloads_are_read_at_once_as_the_release_does(
    staged: Staged, pace: str
) -> None:
    stage, at_once = staged(settings=KueueSettings(pace=PACES[pace])), PACES[pace].workloads_at_once
    names = [f"job{number}" for number in range(at_once + 1)]
    for name in names:
        stage.submit(name)
    stage.wait(lambda: all(stage.placed(name)[0] for name in names))
    for hub in stage.fleet.hubs.values():
        hub.faults.add("GET", "/workloads/job-", delay=1.0, times=1000)
    stage.kueue().throttled = True
    stage.apply(config(*reversed(stage.fleet.names)))
    stage.wait(lambda: len(read_at(stage)) > at_once)
    first, *_ = times = read_at(stage)
    assert sum(at < first + 0.8 for at in times) == at_once
