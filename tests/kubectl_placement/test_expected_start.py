"""When a job that waits starts, as `explain workload` says it, and why nothing is said."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import pytest

from kubectl_placement.jobs.expected_start import (
    NOT_READ,
    StartReport,
    expected_start,
    expected_start_text,
    interval_text,
    start_report,
)
from kubectl_placement.story.tell import tell_story
from placement_ac.core.api.decode import workload_with_job
from placement_ac.core.expected_start.model import Interval, Unknown
from placement_ac.core.expected_start.position import order_of
from placement_ac.core.inputs.queue_facts import WorkerFacts
from tests.kubectl_placement.test_explain_workload import MK, NAMES, P, a_job, view_of
from tests.support.builders import NOW, Raw
from tests.support.jobs_to_dispatch import GPU, gpu_pods, queues

LOCAL: Final = ("default", "user-queue-demo2")
FIRST: Final = f"{P}-cluster1"
BOTH: Final = {P: "Ready", MK: "Ready"}


def at(raw: Raw, created: float, *, placed: float | None = None, ended: float | None = None) -> Raw:
    """Set the times of a Workload; each is so many seconds before NOW."""
    raw["metadata"]["creationTimestamp"] = when(created)
    for check in raw["status"]["admissionChecks"] if placed is not None else ():
        check["lastTransitionTime"] = when(placed)
    if ended is not None:
        raw["status"]["conditions"][-1] |= {"status": "True", "lastTransitionTime": when(ended)}
    return raw


def when(before: float) -> str:
    return (NOW - timedelta(seconds=before)).strftime("%Y-%m-%dT%H:%M:%SZ")


def finished(number: int, seconds: float = 600) -> list[Raw]:
    """So many jobs that took so long on cluster1."""
    names = (f"ended-{one}" for one in range(number))
    jobs = (a_job(name, cluster=FIRST, pods=gpu_pods(4), **BOTH) for name in names)
    return [at(job, 9000, placed=8000, ended=8000 - seconds) for job in jobs]


def running(age: float = 420, gpus: int = 8) -> Raw:
    return at(a_job("runs", cluster=FIRST, pods=gpu_pods(gpus), **BOTH), 1000, placed=age)


def waiting(name: str = "waits", gpus: int = 4, created: float = 300, **rest: Any) -> Raw:
    return at(a_job(name, pods=gpu_pods(gpus), **({"nominated": [FIRST]} | rest)), created)


def known(gpus: int = 8, reserved: int = 8, **rest: Any) -> dict[str, WorkerFacts]:
    """The queues of the three workers; only the first has quota."""
    none = queues((GPU, "gpu", 0), queue=LOCAL)
    facts = {f"{P}-{name}": WorkerFacts(none) for name in NAMES[1:]}
    return {FIRST: WorkerFacts(queues((GPU, "gpu", gpus, reserved), queue=LOCAL, **rest)), **facts}


def start(
    *others: Raw, job: Raw | None = None, facts: Mapping[str, WorkerFacts] | None = None, **settings: Any
) -> Any:
    job = job or waiting()
    view = view_of(job, *others, **settings)
    return expected_start(view.with_queue_facts(known() if facts is None else facts), job)


def test_a_job_starts_when_the_one_that_runs_has_ended() -> None:
    """Jobs take ten minutes, and the one that runs has run for seven."""
    found = start(*finished(40), running())
    assert isinstance(found, Interval)
    assert (round(found.p50_seconds), round(found.p90_seconds)) == (181, 183)


def test_one_that_is_before_it_takes_its_time_first() -> None:
    found = start(
        *finished(40), running(), waiting("before", 8, created=900), job=waiting(gpus=8, created=300)
    )
    assert isinstance(found, Interval)
    assert round(found.p50_seconds) == 781


def test_with_free_quota_it_starts_now() -> None:
    found = start(facts=known(reserved=0))
    assert found == Interval(1.0, 3.0, 0.0)


def test_the_part_of_others_is_not_free_and_nobody_knows_when_it_is() -> None:
    found = start(*finished(40), facts=known(reserved=6))
    assert isinstance(found, Unknown)


def unknown_worker() -> dict[str, WorkerFacts]:
    return known() | {FIRST: WorkerFacts(problem="it does not answer")}


def old() -> dict[str, WorkerFacts]:
    return {name: replace(facts, age=3600.0) for name, facts in known().items()}


@pytest.mark.parametrize(
    ("others", "how", "why"),
    [
        pytest.param(
            finished(9),
            {},
            "fewer than 10 jobs of LocalQueue default/user-queue-demo2 have finished",
            id="too few have finished",
        ),
        pytest.param(
            [],
            {"facts": unknown_worker()},
            f"the quota of {FIRST} is not known",
            id="a worker that does not answer",
        ),
        pytest.param(
            [], {"facts": old()}, f"the quota of {FIRST} is not known", id="an answer of an hour ago"
        ),
        pytest.param(
            [],
            {"job": waiting(gpus=9)},
            "no queue for which it waits ever has so much quota free",
            id="it is too large for the cluster where it waits",
        ),
        pytest.param([], {"job": waiting(gpus=9, nominated=[])}, "0/3 clusters fit: ", id="it fits nowhere"),
        pytest.param([], {"job": waiting(active=False)}, "it is not active", id="somebody has stopped it"),
        pytest.param(
            [],
            {"facts": known(active=False)},
            "ClusterQueue cluster-queue of cluster cluster1 or its LocalQueue is on hold, or not ready",
            id="the queue is on hold",
        ),
        pytest.param(
            [],
            {"facts": known(cohort="all")},
            "ClusterQueue cluster-queue of cluster cluster1 shares quota with others, in cohort all",
            id="the queue is in a cohort",
        ),
        pytest.param(
            [],
            {"facts": known(pending=3)},
            "2 jobs that are not of this hub wait in ClusterQueue cluster-queue of cluster cluster1",
            id="others wait there",
        ),
        pytest.param(
            [],
            {"unconnected": "cluster1"},
            "the clusters for which it waits leave, or Kueue is not connected to them",
            id="the cluster is not connected",
        ),
        pytest.param(
            [],
            {"dispatcher": False},
            "Kueue's own dispatcher decides, so the quota of the workers is not known",
            id="Kueue's dispatcher decides",
        ),
    ],
)
def test_why_nothing_is_said(others: list[Raw], how: dict[str, Any], why: str) -> None:
    found = start(running(), *others, **how)
    assert isinstance(found, Unknown), found
    assert found.why.startswith(why)


def test_jobs_of_higher_priority_that_preempt_make_it_unknown() -> None:
    above = waiting("above")
    above["spec"]["priority"] = 10
    found = start(*finished(40), running(), above, facts=known(preempts=True))
    assert found == Unknown(
        "jobs of higher priority preempt others in ClusterQueue cluster-queue of cluster cluster1"
    )


def test_a_job_that_waits_on_the_hub_needs_the_quota_of_the_hub_first() -> None:
    job = waiting(quota=False, nominated=[])
    found = start(*finished(40), running(), job=job)
    assert isinstance(found, Interval)
    assert round(found.p50_seconds) == 181


def test_without_the_workers_it_is_said_how_to_read_them() -> None:
    job = waiting()
    assert expected_start(view_of(job), job) == Unknown(NOT_READ)


def test_when_the_time_is_over_it_is_said_what_to_do() -> None:
    job = waiting()
    view = view_of(job, *finished(40), running()).with_queue_facts(known())
    report = start_report(view, job, spent=lambda: 1.0)
    assert report
    text = expected_start_text(report)
    assert text.startswith("expected start: unknown: ask again when fewer jobs wait: those before it ")
    assert text.endswith("cannot all be simulated within 8 s, position 1 of 1 in queue")


@pytest.mark.parametrize(
    "job", [pytest.param(running(), id="it runs"), pytest.param(finished(1)[0], id="it has finished")]
)
def test_of_a_job_that_does_not_wait_nothing_is_said(job: Raw) -> None:
    assert start_report(view_of(job), job) is None


def test_the_position_is_by_priority_and_then_by_age() -> None:
    first, job, last = (
        waiting(name, created=created) for name, created in (("a", 900), ("b", 600), ("c", 300))
    )
    last["spec"]["priority"] = 1
    view = view_of(first, job, last, running())
    places = {one["metadata"]["name"]: start_report(view, one) for one in (first, job, last)}
    assert {name: (found.position, found.waiting) for name, found in places.items() if found} == {
        "c": (1, 3),
        "a": (2, 3),
        "b": (3, 3),
    }


@pytest.mark.parametrize(
    ("reason", "status", "position"),
    [
        pytest.param("AdmissionCheck", "True", 2, id="a check has sent it back"),
        pytest.param("PodsReadyTimeout", "True", 2, id="its Pods were not ready in time"),
        pytest.param("Preempted", "True", 1, id="it was preempted"),
        pytest.param("AdmissionCheck", "False", 1, id="it has had quota since"),
    ],
)
def test_a_job_that_was_evicted_waits_from_then_on(reason: str, status: str, position: int) -> None:
    evicted, job = waiting("evicted", created=900), waiting("job", created=600)
    evicted["status"]["conditions"].append(
        {"type": "Evicted", "status": status, "reason": reason, "lastTransitionTime": when(300)}
    )
    view = view_of(evicted, job)
    report = start_report(view, evicted)
    assert report
    assert report.position == position
    place = tell_story(view, evicted).position
    assert place
    assert place.place == position
    assert order_of(workload_with_job(evicted), NOW)[1] == (-300 if position == 2 else -900)


@pytest.mark.parametrize(
    ("p50", "p90", "text"),
    [
        pytest.param(1, 3, "in 1 to 3 s", id="seconds"),
        pytest.param(3, 3, "in 3 s", id="one number"),
        pytest.param(200, 710, "in 4 to 12 min", id="minutes"),
        pytest.param(30, 200, "in 1 to 4 min", id="the unit of the later one"),
        pytest.param(7000, 9000, "in 2 to 3 h", id="hours"),
        pytest.param(90_000, 250_000, "in 2 to 3 d", id="days"),
    ],
)
def test_an_interval_in_words(p50: float, p90: float, text: str) -> None:
    assert interval_text(Interval(p50, p90)) == text


@pytest.mark.parametrize(
    ("report", "text"),
    [
        pytest.param(
            StartReport(200.0, 710.0, "", 3, 17),
            "expected start: in 4 to 12 min (p50…p90), position 3 of 17 in queue",
            id="an interval",
        ),
        pytest.param(
            StartReport(None, None, "it fits nowhere", 1, 1),
            "expected start: unknown: it fits nowhere, position 1 of 1 in queue",
            id="why not",
        ),
        pytest.param(
            StartReport(None, None, "it is not active", None, 0),
            "expected start: unknown: it is not active",
            id="in no queue",
        ),
    ],
)
def test_the_line(report: StartReport, text: str) -> None:
    assert expected_start_text(report) == text
