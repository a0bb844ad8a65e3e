"""The counter of job runs: what follows from a change on another worker is counted after it."""

import time
from contextlib import ExitStack
from typing import Any

from placement_ac.core.api.constants import JOB
from placement_lab.standins.fleet import JobCounts, WorkerFleet
from tests.support.admin import Admin

JOBS = JOB.at("v1")
A, B = "a", "b"


def job(*, suspended: bool = False) -> dict[str, Any]:
    pod = {"containers": [{"name": "main", "image": "example.com/x"}], "restartPolicy": "Never"}
    spec = {"suspend": suspended, "template": {"spec": pod}}
    return {"metadata": {"name": "x", "namespace": "default"}, "spec": spec}


def move(a: Admin, b: Admin) -> None:
    a.delete(JOBS, "x", "default")
    b.create(JOBS, job())


def test_a_job_that_moves_from_a_worker_that_was_away_runs_once_at_a_time() -> None:
    with ExitStack() as opened:
        fleet = opened.enter_context(WorkerFleet((A, B)))
        a, b = (opened.enter_context(Admin(fleet.login(name))) for name in (A, B))
        a.create(JOBS, job())
        assert fleet.counter.running("x") == [A]
        fleet.kill(A)
        time.sleep(2.0)  # whoever watches over HTTP waits half a second between tries now
        fleet.revive(A)
        move(a, b)
        assert fleet.counter.running("x") == [B]
        assert fleet.counter.counts_of("x") == JobCounts(maxCopies=1, starts=2, finished=False)


def test_two_that_run_at_one_time_are_counted_and_a_suspended_one_is_not() -> None:
    with ExitStack() as opened:
        fleet = opened.enter_context(WorkerFleet((A, B)))
        a, b = (opened.enter_context(Admin(fleet.login(name))) for name in (A, B))
        a.create(JOBS, job())
        b.create(JOBS, job(suspended=True))
        assert fleet.counter.counts_of("x") == JobCounts(maxCopies=1, starts=1, finished=False)
        fleet.kill(A)
        b.merge(JOBS, "x", {"spec": {"suspend": False}}, namespace="default")
        assert fleet.counter.running("x") == [A, B]
        assert fleet.counter.counts_of("x") == JobCounts(maxCopies=2, starts=2, finished=False)
