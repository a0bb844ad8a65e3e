"""How long Kueue's requests to a worker wait, by its release."""

import pytest

from placement_ac.core.api.constants import JOB, WORKLOAD
from placement_lab.standins.multikueue import PACES, WorkerRateLimiter

CLIENT_GO = (10 / 5, 10 / 5)
"""The wait of the 20th request for a Workload, then for a Job: 5 a second after 10, for each kind."""


@pytest.mark.parametrize(
    ("pace", "waits"),
    [
        ("0.16", CLIENT_GO),
        ("0.17", CLIENT_GO),
        ("0.18", CLIENT_GO),
        ("0.19", CLIENT_GO),
        ("0.19 without groupKindConcurrency", CLIENT_GO),
        ("0.20", (0.0, 0.0)),
    ],
)
def test_twenty_requests_for_workloads_then_twenty_for_jobs(pace: str, waits: tuple[float, float]) -> None:
    limiter = WorkerRateLimiter(PACES[pace])
    workloads = [limiter.reserve(WORKLOAD, 0.0) for _ in range(20)]
    jobs = [limiter.reserve(JOB, 0.0) for _ in range(20)]
    assert (workloads[-1], jobs[-1]) == pytest.approx(waits)


def test_from_0_20_on_all_kinds_share_a_bucket() -> None:
    limiter = WorkerRateLimiter(PACES["0.20"])
    for _ in range(1000):
        limiter.reserve(WORKLOAD, 0.0)
    assert limiter.reserve(JOB, 0.0) == pytest.approx(0.001)


def test_the_speed_of_the_stand_in_multiplies_the_rate() -> None:
    limiter = WorkerRateLimiter(PACES["0.19"], speed=20.0)
    assert [limiter.reserve(WORKLOAD, 0.0) for _ in range(20)][-1] == pytest.approx(10 / 100)


def test_the_workloads_reconciled_at_once() -> None:
    at_once = {name: pace.workloads_at_once for name, pace in PACES.items()}
    assert at_once == {
        "0.16": 5,
        "0.17": 5,
        "0.18": 5,
        "0.19": 10,
        "0.19 without groupKindConcurrency": 1,
        "0.20": 10,
    }
