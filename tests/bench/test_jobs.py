"""A tiny run of the bench of mixed jobs: the same jobs, with one copy each instead of five."""

from dataclasses import replace

import pytest

from bench.jobs import ALL_AT_ONCE, QUOTAS, arrivals, compare


def test_every_job_fits_a_worker_and_a_seed_gives_the_same_ones() -> None:
    jobs = arrivals(300, 1)
    assert jobs == arrivals(300, 1) != arrivals(300, 2)
    assert {job.gpus for job in jobs} == {1, 2, 4, 8}
    assert max(job.gpus for job in jobs) <= min(QUOTAS.values())


@pytest.mark.long
@pytest.mark.timeout(180)
def test_a_tiny_run_makes_one_copy_of_each_job() -> None:
    jobs = [replace(job, lasts=1.0) for job in arrivals(6, 1)]
    found = compare(jobs, "0.20")
    assert (found["ours"]["copiesPerJob"], found["allAtOnce"]["copiesPerJob"]) == (1.0, float(len(QUOTAS)))
    for one in (found["ours"], found["allAtOnce"]):
        assert one["kueue"] == "0.20"
        assert (one["jobs"], one["unfinished"], one["ranTwice"], one["startedAgain"]) == (6, 0, 0, 0)
    assert found["allAtOnce"]["dispatcher"] == ALL_AT_ONCE
