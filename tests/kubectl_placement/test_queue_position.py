"""The position of a job in its queues, in Kueue's order."""

from datetime import timedelta
from typing import Any

import pytest

from kubectl_placement.jobs.queue_position import (
    QueuePosition,
    cluster_queue_position,
    local_queue_position,
)
from placement_ac.core.api.fields import format_time
from tests.kubectl_placement.test_explain_workload import a_job, an_queue, view_of
from tests.support.builders import NOW, Raw

CLUSTER_QUEUE = "cluster-queue-demo2"
OTHER = an_queue("LocalQueue", "other", {"clusterQueue": CLUSTER_QUEUE})


def waiting(name: str, before: float, *, queue: str = "user-queue-demo2", **spec: Any) -> Raw:
    """A Workload that was created so many seconds before NOW."""
    raw = a_job(name)
    raw["metadata"]["creationTimestamp"] = when(before)
    raw["spec"] |= {"queueName": queue} | spec
    return raw


def when(before: float) -> str:
    return format_time(NOW - timedelta(seconds=before))


def evicted(raw: Raw, reason: str, status: str, before: float) -> Raw:
    entry = {"type": "Evicted", "status": status, "reason": reason, "lastTransitionTime": when(before)}
    raw["status"]["conditions"].append(entry)
    return raw


def places(*jobs: Raw) -> dict[str, int | None]:
    """Job → its place in the ClusterQueue; None: it does not wait."""
    view = view_of(*jobs, OTHER)
    found = {job["metadata"]["name"]: cluster_queue_position(view, job) for job in jobs}
    return {name: one and one.place for name, one in found.items()}


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        pytest.param(
            [waiting("old", 900), waiting("new", 300), waiting("high", 60, priority=1)],
            {"high": 1, "old": 2, "new": 3},
            id="by priority, then by age",
        ),
        pytest.param(
            [waiting("here", 300), waiting("there", 900, queue="other")],
            {"there": 1, "here": 2},
            id="with the jobs of all its LocalQueues",
        ),
        pytest.param(
            [waiting("stopped", 900, active=False), waiting("job", 300)],
            {"stopped": None, "job": 1},
            id="not of one that is stopped",
        ),
        pytest.param(
            [a_job("runs", cluster="placement-demo2-cluster1"), waiting("job", 300)],
            {"runs": None, "job": 1},
            id="nor of one that runs",
        ),
        *(
            pytest.param(
                [evicted(waiting("evicted", 900), reason, status, 300), waiting("job", 600)],
                {"evicted": place, "job": 3 - place},
                id=case,
            )
            for reason, status, place, case in (
                ("AdmissionCheck", "True", 2, "a check has sent it back"),
                ("PodsReadyTimeout", "True", 2, "its Pods were not ready in time"),
                ("Preempted", "True", 1, "it was preempted"),
                ("AdmissionCheck", "False", 1, "it has had quota since"),
            )
        ),
    ],
)
def test_the_place_in_the_cluster_queue(jobs: list[Raw], expected: dict[str, int | None]) -> None:
    assert places(*jobs) == expected


def test_in_its_local_queue_only_its_own_jobs_count() -> None:
    job, other = waiting("job", 300), waiting("other", 900, queue="other")
    view = view_of(job, other, OTHER)
    assert local_queue_position(view, job) == QueuePosition("user-queue-demo2", 1, 1)
    assert cluster_queue_position(view, job) == QueuePosition(CLUSTER_QUEUE, 2, 2)


def test_a_queue_that_is_not_there_has_no_cluster_queue() -> None:
    job = waiting("job", 300, queue="gone")
    view = view_of(job)
    assert cluster_queue_position(view, job) is None
    assert local_queue_position(view, job) == QueuePosition("gone", 1, 1)
