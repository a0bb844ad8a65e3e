"""The capacity of workers as pure data: sums, jobs that came and left, steps, and documents."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from placement_ac.core.api import decode
from placement_ac.core.api.objects import Workload
from placement_ac.core.capacity_report.compute import WorkerState, capacity_report
from placement_ac.core.capacity_report.document import TOO_LARGE, BadDocument, documents, read_report
from placement_ac.core.capacity_report.model import Amounts, CapacityReport, ClusterCapacity, Supply
from placement_ac.core.capacity_report.since import came_since, left_since
from placement_ac.core.inputs.queue_facts import WorkerFacts, WorkloadsThere, worker_facts
from tests.support.builders import NOW
from tests.support.capacity import GPU, cluster_queue, local_queue

GPUS = (GPU,)
F = Supply("f", GPU)


def job(uid: str, gpus: int, queue: str = "q", placed: timedelta | None = None) -> Workload:
    """A Workload of a queue in `team`; `placed`: how long after NOW its check was Ready."""
    container = {"name": "c", "resources": {"requests": {GPU: str(gpus)}}}
    podset = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
    raw: dict[str, Any] = {
        "metadata": {"name": uid, "namespace": "team", "uid": uid},
        "spec": {"queueName": queue, "podSets": [podset]},
    }
    if placed is not None:
        entry = {"name": "mk", "state": "Ready", "lastTransitionTime": (NOW + placed).isoformat()}
        raw["status"] = {"clusterName": "p-a", "admissionChecks": [entry]}
    return decode.workload_with_job(raw)


def worker(*queues: dict[str, Any], reserving: int = 0, **then: set[str]) -> WorkerFacts:
    """A worker whose ClusterQueues have LocalQueues of their names, each with a second one."""
    names = [queue["metadata"]["name"] for queue in queues]
    local = [local_queue(name, name) for name in names] + [local_queue(f"{name}2", name) for name in names]
    facts = worker_facts(local, queues)
    known = {key: replace(queue, reserving=reserving) for key, queue in facts.queues.items()}
    there = WorkloadsThere(frozenset(then.get("running", ())), frozenset(then.get("waiting", ())))
    return replace(facts, queues=known, then=there)


def a_queue(name: str = "q", nominal: int = 8, reserved: int = 0, **spec: Any) -> dict[str, Any]:
    status = {"flavorsReservation": [{"name": "f", "resources": [{"name": GPU, "total": str(reserved)}]}]}
    return cluster_queue(name, {"f": {GPU: str(nominal)}}, **spec) | {"status": status}


def of(facts: WorkerFacts, **jobs: Any) -> ClusterCapacity:
    state = WorkerState("a", ("p",), facts.known, NOW, **jobs)
    return capacity_report([state], GPUS).clusters[0]


def gpus(amounts: Amounts) -> tuple[int | None, ...]:
    return tuple(None if one is None else one // 1000 for one in amounts)


@pytest.mark.parametrize(
    ("queues", "jobs", "wanted"),
    [
        ([a_queue(reserved=3)], {}, (8, 3, 0, 0, 5, 5)),
        ([a_queue(reserved=3)], {"waiting": (job("w", 4),)}, (8, 3, 4, 0, 5, 1)),
        ([a_queue(reserved=3)], {"waiting": (job("w", 9),)}, (8, 3, 9, 0, 5, 0)),
        ([a_queue(reserved=3)], {"waiting": None}, (8, 3, None, 0, 5, 5)),
        ([a_queue(reserved=3)], {"came": (job("c", 2),)}, (8, 5, 0, 0, 3, 3)),
        ([a_queue(reserved=3)], {"left": (job("l", 2),)}, (8, 1, 0, 0, 7, 7)),
        ([a_queue(reserved=3, stopPolicy="Hold")], {}, (8, 3, 0, 0, 0, 0)),
        ([a_queue(reserved=3, cohortName="all")], {}, (8, 3, 0, None, 5, 5)),
        (
            [a_queue("q", 8, 10, cohortName="all"), a_queue("r", 8, 0, cohortName="all")],
            {},
            (16, 10, 0, None, 6, 6),
        ),
        ([a_queue("q", 8, 10), a_queue("r", 8, 0)], {}, (16, 10, 0, 0, 8, 8)),
        ([a_queue("q", 8, 3), a_queue("r", 4, 1)], {}, (12, 4, 0, 0, 8, 5)),
        ([a_queue("q", 8, 3)], {"waiting": (job("w", 1, "elsewhere"),)}, (8, 3, 0, 0, 5, 5)),
    ],
    ids=[
        "jobs use some",
        "what waits comes first",
        "what waits does not fit",
        "what waits is unknown",
        "a job came",
        "a job left",
        "a queue on hold has nothing free",
        "a cohort lends",
        "what is borrowed is not free elsewhere in the cohort",
        "a queue that uses too much takes nothing from others without a cohort",
        "queues are added up, each once",
        "a job of no queue there",
    ],
)
def test_sums_of_a_cluster(
    queues: list[dict[str, Any]], jobs: dict[str, Any], wanted: tuple[int | None, ...]
) -> None:
    assert gpus(of(worker(*queues), **jobs).quota[F]) == wanted


def test_a_cluster_that_is_not_known_counts_for_nothing() -> None:
    states = [
        WorkerState("b", problem="broken"),
        WorkerState("a", queues=worker(a_queue()).known, read_at=NOW),
    ]
    report = capacity_report(states, GPUS)
    assert [(one.name, one.known, one.problem) for one in report.clusters] == [
        ("a", True, ""),
        ("b", False, "broken"),
    ]
    assert gpus(report.totals()[GPU]) == (8, 0, 0, 0, 8, 8)


def test_a_job_that_waits_for_two_clusters_counts_once_in_the_total() -> None:
    states = [
        WorkerState(name, queues=worker(a_queue()).known, read_at=NOW, waiting=(job("w", 2),))
        for name in "ab"
    ]
    report = capacity_report(states, GPUS)
    assert [gpus(one.quota[F])[2] for one in report.clusters] == [2, 2]
    assert gpus(report.totals()[GPU])[2] == 2


SOON, LATE = timedelta(seconds=1), timedelta(seconds=60)


@pytest.mark.parametrize(
    ("facts", "running", "came"),
    [
        (worker(a_queue(), running={"r"}, reserving=1), [job("r", 1, placed=-LATE)], []),
        (worker(a_queue()), [job("n", 1, placed=SOON)], ["n"]),
        (worker(a_queue(), waiting={"n"}), [job("n", 1, placed=SOON)], ["n"]),
        (worker(a_queue(), waiting={"n"}, reserving=1), [job("n", 1, placed=SOON)], []),
        (worker(a_queue(), waiting={"n"}, reserving=1), [job("n", 1, placed=LATE)], ["n"]),
        (
            worker(a_queue(), waiting={"m", "n"}, reserving=1),
            [job("n", 1, placed=SOON), job("m", 1, placed=2 * SOON)],
            ["m"],
        ),
    ],
    ids=[
        "it ran then",
        "it came",
        "it waited then",
        "the worker had admitted it, and the hub did not know yet",
        "it came long after, so another hub's has the quota",
        "one of two had been admitted",
    ],
)
def test_jobs_that_came(facts: WorkerFacts, running: list[Workload], came: list[str]) -> None:
    counted = {one.meta.uid: one for one in running if one.meta.uid in facts.then.running}
    assert [one.meta.uid for one in came_since(facts, counted, running, NOW)] == came


def test_a_job_that_had_ended_on_the_worker_does_not_leave_twice() -> None:
    one, other = job("o", 1), job("p", 2)
    counted = {"o": one, "p": other}
    assert list(left_since(worker(a_queue(), reserving=2), counted, [one, other])) == [one, other]
    assert list(left_since(worker(a_queue(), reserving=1), counted, [one, other])) == [other]


def a_report(used: int = 0, cpu: int = 0, **cluster: Any) -> CapacityReport:
    quota = {F: Amounts(8000, used), Supply("f", "cpu"): Amounts(100_000, cpu)}
    given = {"name": "a", "placements": ("p",), "read_at": NOW, "quota": quota} | cluster
    queue = of(worker(a_queue())).queues[0]
    return CapacityReport((ClusterCapacity(queues=(replace(queue, quota=quota),), **given),), GPUS, {})


@pytest.mark.parametrize(
    ("after", "differs"),
    [
        (a_report(), False),
        (a_report(used=999), False),
        (a_report(used=1000), True),
        (a_report(cpu=4_999), False),
        (a_report(cpu=5_000), True),
        (a_report(read_at=NOW + LATE), False),
        (a_report(problem="broken"), True),
        (a_report(name="b"), True),
        (a_report(placements=("p", "q")), True),
        (CapacityReport((), GPUS), True),
    ],
    ids=[
        "the same",
        "less than a GPU",
        "a GPU",
        "less than a twentieth of the CPU",
        "a twentieth of the CPU",
        "newer",
        "a problem",
        "another cluster",
        "another Placement",
        "no cluster",
    ],
)
def test_a_step(after: CapacityReport, differs: bool) -> None:
    assert (a_report().steps != after.steps) == differs


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it: Invalid JSON"),
        ("[]", "it: Input should be an object"),
        ('{"version": 1}', "version: Input should be 2"),
        ('{"version": 2, "clusters": [{"name": "a", "quota": [["f"]]}]}', "clusters.0.quota.0"),
    ],
    ids=["empty", "a list", "of another version", "a row that is too short"],
)
def test_a_document_of_somebody_else(text: str, problem: str) -> None:
    with pytest.raises(BadDocument, match=problem.replace(".", r"\.")):
        read_report(text)


def test_200_clusters_of_ten_queues_fit() -> None:
    amounts = {GPU: "8", "cpu": "128", "memory": "2Ti"}
    queues = [cluster_queue(f"team-{n}-queue", {"a100": amounts, "h100": {GPU: "8"}}) for n in range(10)]
    facts = worker(*queues)
    states = [
        WorkerState(f"cluster-{n:03}", ("placement-demo",), facts.known, NOW, waiting=()) for n in range(200)
    ]
    report = capacity_report(states, GPUS)
    clusters, details = documents(report)
    assert read_report(details) == report, "nothing is left out"
    assert read_report(clusters) == replace(
        report, clusters=tuple(replace(cluster, queues=()) for cluster in report.clusters)
    )


def test_a_document_that_is_too_large_only_says_so() -> None:
    names = [f"{n:04}-{'x' * 250}" for n in range(4000)]
    report = CapacityReport(tuple(ClusterCapacity("a", queues=()) for _ in range(2)), GPUS, {})
    queues = tuple(replace(of(worker(a_queue())).queues[0], name=name) for name in names)
    large = replace(report, clusters=(replace(report.clusters[0], queues=queues),))
    clusters, details = documents(large)
    assert read_report(clusters).clusters == (ClusterCapacity("a"),)
    assert read_report(details) == CapacityReport(note=TOO_LARGE)
