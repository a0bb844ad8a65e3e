"""Which workers are asked for the sake of a Workload, and what is said if their quota is unknown."""

from kubectl_placement.explain.workload import explain_workload
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.jobs.worker_quota import HEADROOM, NOT_ASKED, merged, workers_to_ask
from placement_ac.core.api.decode import workload_with_job
from placement_ac.core.dispatch.scores import SCORES
from placement_ac.core.inputs.queue_facts import NO_WORKLOADS, WorkerFacts, WorkloadsThere
from tests.kubectl_placement.test_explain_workload import NAMES, SELECTOR, P, a_job, view_of
from tests.support.builders import Raw
from tests.support.jobs_to_dispatch import gpu_pods

H100 = {SELECTOR: "accelerator=nvidia-h100"}


def asked(view: HubView, job: Raw) -> dict[str, WorkloadsThere]:
    """Cluster → the Workloads there."""
    found = workers_to_ask(view, workload_with_job(job))
    return {name.removeprefix(f"{P}-"): there for name, there in found.items()}


def those(running: str = "", waiting: str = "") -> WorkloadsThere:
    return WorkloadsThere(frozenset(running.split()), frozenset(waiting.split()))


def notes(view: HubView, job: Raw) -> tuple[str, ...]:
    return explain_workload(view, job).notes


def test_those_that_matter_are_asked_with_the_jobs_that_run_there() -> None:
    job = a_job("job", pods=gpu_pods(8), annotations=H100)
    runs = a_job("runs", pods=gpu_pods(8), cluster=f"{P}-cluster2")
    waits = a_job("waits", pods=gpu_pods(8), annotations=H100, nominated=[f"{P}-cluster3"])
    there = {
        "cluster2": those(running=runs["metadata"]["uid"]),
        "cluster3": those(waiting=waits["metadata"]["uid"]),
    }
    assert asked(view_of(job, runs, waits), job) == there
    anywhere = a_job("anywhere", pods=gpu_pods(8))
    assert asked(view_of(job, runs, waits, anywhere), job) == there | {"cluster1": NO_WORKLOADS}, (
        "it is before others"
    )
    assert asked(view_of(job, unconnected="cluster2"), job) == {"cluster3": NO_WORKLOADS}


def test_nobody_is_asked_for_a_job_without_requests_or_if_kueue_decides() -> None:
    bare, job = a_job("bare"), a_job("job", pods=gpu_pods(8))
    assert asked(view_of(bare), bare) == {}
    assert asked(view_of(job, dispatcher=False), job) == {}
    assert notes(view_of(bare), bare) == notes(view_of(job, dispatcher=False), job) == ()


def test_the_workloads_of_two_placements_on_one_worker_are_counted_together() -> None:
    found = merged([{"a": those("1", "3"), "b": NO_WORKLOADS}, {"a": those("2")}])
    assert found == {"a": those("1 2", "3"), "b": NO_WORKLOADS}


def test_a_dump_has_no_quota_and_only_scores_of_the_profile_are_named() -> None:
    job = a_job("job", pods=gpu_pods(8))
    dump = "a dump has no quota of the workers: Capacity"
    assert notes(view_of(job), job) == (f"{dump} abstains",)
    assert notes(view_of(job, dispatch_profile="headroom"), job) == (f"{dump} and {HEADROOM} abstain",)
    assert HEADROOM in SCORES


def test_the_same_problem_of_several_workers_is_one_note() -> None:
    job = a_job("job", pods=gpu_pods(8))
    down = {f"{P}-{name}": WorkerFacts(problem="it is down") for name in NAMES[:2]}
    assert notes(view_of(job).with_queue_facts(down), job) == (
        "the quota of cluster1, cluster2 is unknown: it is down",
        f"the quota of cluster3 is unknown: {NOT_ASKED}",
    )
