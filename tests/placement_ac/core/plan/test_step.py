"""To how many clusters a job is nominated: by what is known of their room. Each job asks for 4 GPUs."""

from dataclasses import replace
from typing import Any

import pytest

from placement_ac.core.inputs.queue_facts import NO_WORKLOADS, WorkerFacts, WorkloadsThere
from placement_ac.core.inputs.state import PlacementPolicy, Plan, Since, SinceKind
from placement_ac.core.plan.plan import plan
from tests.support.decided import decided_inputs, nominated, ranked
from tests.support.jobs_to_dispatch import GPU, gpu_pods, queues, raw_job

POLICY = PlacementPolicy(loss_grace=0.0, dispatcher=True)
ROUND = Since(SinceKind.NOMINATION_ROUND, "Workload/job", 1)


def job(name: str = "job", *nominated_to: str) -> Any:
    return raw_job(name, pods=gpu_pods(4), nominated=nominated_to, check="Ready", mk="Pending")


def facts(
    what: str, age: float = 0.0, then: WorkloadsThere = NO_WORKLOADS, pending: int = 6, reserving: int = 0
) -> WorkerFacts:
    """A worker with 8 GPUs: `room`, `full`, room by what others `lend`, or `?`: it cannot be asked."""
    if what == "?":
        return WorkerFacts(problem="forbidden", age=age)
    waiting = frozenset(f"Workload/{name}" for name in ("job", "j0", "j1", "j2", "j3", "j4"))
    then = then._replace(waiting=waiting) if what != "room" else then
    used = (GPU, "f", 8, 0 if what == "room" else 8)
    [(queue, found)] = queues(used, pending=pending, reserving=reserving).items()
    if what == "lend":
        lent = [one._replace(borrowable=8000) for one in found.quotas[GPU]]
        found = replace(found, quotas={GPU: tuple(lent)}, cohort="all")
    return WorkerFacts({queue: found}, age=age, then=then)


def planned(
    *jobs: Any, known: str = "", off: str = "", policy: PlacementPolicy = POLICY, **clusters: WorkerFacts
) -> Plan:
    """`known`: of clusters a, b, c …, in the Placement's order; `off`: Kueue is not connected to these."""
    there = {f"p-{name}": facts(what) for name, what in zip("abcdef", known.split(), strict=False)}
    there |= {f"p-{name}": one for name, one in clusters.items()}
    seen = decided_inputs(ranked("".join(sorted(name[-1] for name in there))), *jobs, policy=policy, off=off)
    return plan(replace(seen, fleet=replace(seen.fleet, queue_facts=there)))


@pytest.mark.parametrize(
    ("known", "wanted"),
    [
        pytest.param("room room room room", "a", id="room: the best alone"),
        pytest.param("full room room", "b", id="the best that has room"),
        pytest.param("lend room full", "b", id="nominal quota before what others may reclaim"),
        pytest.param("full lend lend", "b", id="borrowed quota before none"),
        pytest.param("? ? room", "c", id="known room before what is unknown"),
        pytest.param("? ? ? ?", "abc", id="unknown: a step's worth"),
        pytest.param("full ? full ?", "bd", id="of those that may have room"),
        pytest.param("full full full", "a", id="all full: the first, for Kueue's queue and preemption"),
    ],
)
def test_a_new_job_goes_to_as_many_as_it_takes(known: str, wanted: str) -> None:
    assert nominated(planned(job(), known=known)) == {"job": tuple(f"p-{name}" for name in wanted)}


@pytest.mark.parametrize(
    ("waits_on", "known", "wanted"),
    [
        pytest.param("a", "full room room", "ab", id="it goes on at once, and stays where it is"),
        pytest.param("a", "full full lend", "ac", id="to what it can borrow, too"),
        pytest.param("a", "room room", None, id="it is about to start"),
        pytest.param("a", "full full", None, id="there is no room anywhere"),
        pytest.param("a", "full ?", None, id="it is unknown: the next round"),
        pytest.param("a", "? room", "ab", id="where it waits it is unknown, and there is room"),
        pytest.param("ab", "full room room", None, id="one of two has room"),
    ],
)
def test_a_job_that_waits_in_vain_goes_on_at_once(waits_on: str, known: str, wanted: str | None) -> None:
    names = [f"p-{name}" for name in waits_on]
    answer = nominated(planned(job("job", *names), known=known))
    assert answer == ({"job": tuple(f"p-{name}" for name in wanted)} if wanted else {})


@pytest.mark.parametrize("then", [NO_WORKLOADS, WorkloadsThere(waiting=frozenset({"Workload/job"}))])
def test_a_cluster_that_kueue_is_not_connected_to_is_not_known_to_have_room(then: WorkloadsThere) -> None:
    both = {"a": facts("room", then=then), "b": facts("room")}
    assert nominated(planned(job("job", "p-a"), off="a", **both)) == {"job": ("p-a", "p-b")}


def test_jobs_that_look_at_the_same_room_count_each_other() -> None:
    answer = planned(*[job(f"j{number}") for number in range(5)], known="room room")
    wanted = {"j0": "p-a", "j1": "p-a", "j2": "p-b", "j3": "p-b", "j4": "p-a"}  # the last one waits
    assert nominated(answer) == {name: (cluster,) for name, cluster in wanted.items()}


def test_of_those_that_wait_as_many_go_on_as_there_is_room_for() -> None:
    answer = planned(*[job(f"j{number}", "p-a") for number in range(5)], known="full room")
    assert nominated(answer) == dict.fromkeys(("j0", "j1"), ("p-a", "p-b"))


def test_a_job_that_was_placed_since_the_answer_takes_its_room() -> None:
    runs = raw_job("runs", pods=gpu_pods(8), cluster="p-a", check="Ready", mk="Ready")
    both = {"a": facts("room", then=WorkloadsThere(waiting=frozenset({"Workload/job"}))), "b": facts("room")}
    assert nominated(planned(runs, job("job", "p-a"), **both)) == {"job": ("p-a", "p-b")}


@pytest.mark.parametrize(
    ("age", "asked"), [(0.9, ()), (1.0, ("p-a",)), (14.9, ("p-a",)), (15.0, ("p-a", "p-b"))]
)
def test_a_worker_where_other_jobs_run_is_asked_again_at_once(age: float, asked: tuple[str, ...]) -> None:
    before = WorkloadsThere(running=frozenset({"Workload/gone"}))
    both = {"a": facts("full", age, then=before), "b": facts("full", age)}
    assert planned(job("job", "p-a"), **both).ask_for_facts == asked


@pytest.mark.parametrize(
    ("pending", "reserving", "goes_on"),
    [
        pytest.param(0, 2, (), id="both have quota: the hub records it later"),
        pytest.param(1, 1, ("j1",), id="the one that came last waits"),
        pytest.param(2, 0, ("j0", "j1"), id="both wait, others have quota"),
        pytest.param(0, 0, (), id="their copies are not there yet"),
        pytest.param(1, 0, ("j0",), id="one waits, the other's copy is not there"),
        pytest.param(3, 9, ("j0", "j1"), id="jobs of others wait, too"),
    ],
)
def test_only_those_that_wait_for_quota_go_on(pending: int, reserving: int, goes_on: tuple[str, ...]) -> None:
    """200 jobs at once made 1.6 copies each: their own quota made the worker full."""
    both = {"a": facts("full", pending=pending, reserving=reserving), "b": facts("room")}
    answer = planned(*[job(f"j{number}", "p-a") for number in range(2)], **both)
    assert nominated(answer) == dict.fromkeys(goes_on, ("p-a", "p-b"))


@pytest.mark.parametrize(("pending", "reserving", "cluster"), [(0, 1, "p-a"), (1, 0, "p-a"), (0, 0, "p-b")])
def test_a_copy_that_is_not_there_yet_takes_its_room(pending: int, reserving: int, cluster: str) -> None:
    """4 of 8 GPUs are used. A job that waits for quota did not fit: others may."""
    there = WorkloadsThere(waiting=frozenset({"Workload/j0"}))
    used = queues((GPU, "f", 8, 4), pending=pending, reserving=reserving)
    both = {"a": WorkerFacts(used, then=there), "b": facts("room")}
    assert nominated(planned(job("j0", "p-a"), job(), **both)) == {"job": (cluster,)}


@pytest.mark.parametrize(("reserving", "cluster"), [(1, "p-a"), (0, "p-b")])
def test_quota_that_an_answer_counts_is_not_counted_again(reserving: int, cluster: str) -> None:
    """It waited on the hub when the worker was asked, and runs there now."""
    there = WorkloadsThere(waiting=frozenset({"Workload/runs"}))
    used = queues((GPU, "f", 8, 4), pending=1 - reserving, reserving=reserving)
    runs = raw_job("runs", pods=gpu_pods(4), cluster="p-a", check="Ready", mk="Ready")
    both = {"a": WorkerFacts(used, then=there), "b": facts("room")}
    assert nominated(planned(runs, job(), **both)) == {"job": (cluster,)}


@pytest.mark.parametrize(("then", "asked"), [(("job",), ()), ((), ("p-a",))])
def test_a_worker_where_other_jobs_wait_is_asked_again_at_once(
    then: tuple[str, ...], asked: tuple[str, ...]
) -> None:
    """Its answer says whether they have got quota."""
    before = WorkloadsThere(waiting=frozenset(f"Workload/{name}" for name in then))
    both = {"a": facts("room", 1.0, then=before), "b": facts("full", 1.0)}
    assert planned(job("job", "p-a"), **both).ask_for_facts == asked


def test_a_job_that_was_evicted_since_the_answer_comes_anew() -> None:
    """It ran there when the worker was asked, and is nominated there again."""
    there = WorkloadsThere(running=frozenset({"Workload/job"}))
    both = {"a": WorkerFacts(queues((GPU, "f", 8, 8), reserving=2), then=there), "b": facts("room")}
    assert nominated(planned(job("job", "p-a"), **both)) == {}
