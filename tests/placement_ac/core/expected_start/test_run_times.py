"""Run times: what is drawn from them, and which jobs they are taken from."""

import random
from datetime import timedelta
from typing import Any

import pytest

from placement_ac.core.api.decode import workload_with_job
from placement_ac.core.expected_start.history import (
    RUNS_KEPT,
    RunHistory,
    RunTimeBook,
    finished_run,
    lasting_run,
    size_of,
)
from placement_ac.core.expected_start.run_times import RunTimes
from tests.support.builders import NOW, Raw
from tests.support.jobs_to_dispatch import gpu_pods, job, raw_job


@pytest.mark.parametrize(
    ("finished", "running", "share", "age", "seconds"),
    [
        pytest.param([60] * 20, [], 0.5, 0, 60, id="equal jobs take as long as each of them"),
        pytest.param([60] * 20, [], 0.0, 0, 60, id="and not less"),
        pytest.param([60] * 20, [], 0.5, 45, 15, id="one that runs takes what is left"),
        pytest.param([10, 20, 30], [], 0.5, 0, 20, id="the median of three is the second"),
        pytest.param([10, 20, 30], [], 0.125, 0, 10, id="nothing is shorter than the shortest"),
        pytest.param([10, 20, 30], [], 0.5, 20, 10, id="of those that have run for 20 s, half end by 30 s"),
        pytest.param([0], [], 0.0, 0, 1, id="Kueue's times are whole seconds: nothing is shorter than one"),
    ],
)
def test_the_remaining_time_of_a_job(
    finished: list[float], running: list[float], share: float, age: float, seconds: float
) -> None:
    assert RunTimes(finished, running).remaining(share, age) == pytest.approx(seconds)


def test_jobs_that_still_run_make_the_others_longer() -> None:
    """Ten short ones have ended, ten have run for a minute already: not all are short."""
    alone, with_running = RunTimes([5] * 10), RunTimes([5] * 10, [60] * 10)
    assert alone.remaining(0.75) == 5
    assert with_running.remaining(0.75) > 60


def test_a_job_that_is_older_than_all_others_still_ends() -> None:
    times = RunTimes([10, 20, 30])
    assert 0 < times.remaining(0.5, 1000) < 100


@pytest.mark.parametrize("number", [10, 15, 100])
def test_nine_of_ten_new_jobs_end_before_nine_tenths(number: int) -> None:
    dice = random.Random(number)
    held = 0
    for _ in range(200):
        times = RunTimes([dice.expovariate(0.01) + 1 for _ in range(number)])
        held += sum(dice.expovariate(0.01) + 1 <= times.remaining(0.9) for _ in range(20))
    assert 0.88 < held / 4000 < 0.93


def test_the_remaining_time_falls_with_the_share_that_is_left() -> None:
    times = RunTimes([3, 8, 8, 20, 50], [10, 70])
    drawn = [times.remaining(share / 50, 5) for share in range(50)]
    assert drawn == sorted(drawn)
    assert [times.survival(at) for at in range(0, 200, 5)] == sorted(
        (times.survival(at) for at in range(0, 200, 5)), reverse=True
    )


# -- from Workloads


def ended(name: str = "a", *, began: float = 100, seconds: float = 60, gpus: int = 1, **rest: Any) -> Raw:
    """A Workload that was placed so many seconds before NOW, and that has finished."""
    since = NOW - timedelta(seconds=began)
    raw = raw_job(name, pods=gpu_pods(gpus), cluster="p-a", since=since, ours="Ready", theirs="Ready", **rest)
    raw["metadata"]["creationTimestamp"] = at(began + 10)
    for check in raw["status"]["admissionChecks"]:
        check["lastTransitionTime"] = at(began)
    finished = {"type": "Finished", "status": "True", "lastTransitionTime": at(began - seconds)}
    raw["status"]["conditions"][-1] = finished
    return raw


def at(before: float) -> str:
    return (NOW - timedelta(seconds=before)).strftime("%Y-%m-%dT%H:%M:%SZ")


def without_times(raw: Raw) -> Raw:
    for one in (*raw["status"]["conditions"], *raw["status"]["admissionChecks"]):
        one["lastTransitionTime"] = "yesterday"
    return raw


def never_placed(raw: Raw) -> Raw:
    del raw["status"]["clusterName"]
    return raw


@pytest.mark.parametrize(
    ("raw", "seconds"),
    [
        pytest.param(ended(seconds=60), 60, id="from when it was placed until it has finished"),
        pytest.param(never_placed(ended()), None, id="one that was never placed has not run"),
        pytest.param(without_times(ended()), None, id="without times, nothing is known"),
        pytest.param(raw_job(), None, id="one that waits has not run"),
        pytest.param(ended(began=50, seconds=-20), None, id="it cannot end before it begins"),
    ],
)
def test_the_run_of_a_workload(raw: Raw, seconds: float | None) -> None:
    run = finished_run(raw, workload_with_job(raw))
    assert (run.seconds if run else None) == seconds


def test_the_last_runs_are_kept_and_each_counts_once() -> None:
    history = RunHistory()
    for number in range(RUNS_KEPT + 5):
        raw = ended(f"job-{number}", began=10_000 - number)
        history.take(raw, workload_with_job(raw))
        history.take(raw, workload_with_job(raw))
    kept = [run.began for run in history]
    assert len(kept) == RUNS_KEPT
    assert min(kept) == NOW - timedelta(seconds=10_000 - 5)


def book(*numbers: tuple[int, int]) -> RunTimeBook:
    """Each of `numbers`: how many jobs of how many GPUs have run; they took as many minutes."""
    raws = [
        ended(f"j{gpus}-{n}", began=9000, seconds=60 * gpus, gpus=gpus)
        for number, gpus in numbers
        for n in range(number)
    ]
    runs = [run for raw in raws if (run := finished_run(raw, workload_with_job(raw)))]
    return RunTimeBook(runs, NOW, {})


@pytest.mark.parametrize(
    ("known", "gpus", "minutes"),
    [
        pytest.param([(15, 1), (15, 4)], 4, 4, id="those of its size"),
        pytest.param([(15, 1), (3, 4)], 4, 1, id="of its queue, if too few have its size"),
        pytest.param([(9, 1)], 1, None, id="nine runs say nothing"),
        pytest.param([(10, 1)], 8, 1, id="ten do"),
    ],
)
def test_the_run_times_for_a_job(known: list[tuple[int, int]], gpus: int, minutes: int | None) -> None:
    wanted = job(pods=gpu_pods(gpus))
    times = book(*known).of(("default", "user-queue"), wanted.job)
    assert (times.remaining(0.5) / 60 if times else None) == minutes


def test_sizes_within_a_factor_of_two_are_one_class() -> None:
    five, eight, nine = (size_of(job(pods=gpu_pods(number)).job) for number in (5, 8, 9))
    assert five == eight != nine


def test_a_workload_that_runs_has_a_run_without_an_end() -> None:
    raw = ended()
    raw["status"]["conditions"][-1]["status"] = "False"
    run = lasting_run(workload_with_job(raw))
    assert run is not None
    assert (run.seconds, run.cluster) == (None, "p-a")
