"""
Clusters that keep failing get no new jobs, in virtual time: the real controller, and Kueue's stand-in.

A job fails in one of two ways: the Job itself fails, and its owner submits it again; or the worker's Kueue
evicts it (Pods not ready in time), and the hub's Kueue queues it again.
"""

from dataclasses import replace
from typing import Final

import pytest

from placement_ac.core.inputs.state import PlacementPolicy
from tests.support.failing_clusters import AVOID_SECONDS, MINUTE, FailingClusters

CLUSTERS: Final = ("c1", "c2", "c3", "c4", "c5")
JOBS: Final = 200
EVERY_SECONDS: Final = 18.0
"""Four clusters with room for eight jobs of ten minutes take one in 18.75 s: they are full, c5 is empty."""
HOUR: Final = 60 * MINUTE
HEADROOM: Final = PlacementPolicy(
    dispatcher=True,
    dispatch_profile="headroom",
    step_size=1,  # the emptiest alone is nominated: the black hole gets all that it can
    avoid_after_failure=AVOID_SECONDS,
    unlist_after=HOUR,
)
pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


def submissions(number: int, every: float = EVERY_SECONDS) -> list[tuple[float, int]]:
    return [(5.0 + every * at, at) for at in range(number)]


@pytest.mark.parametrize("how", ["fails", "evicts"])
def test_a_black_hole_gets_ten_of_200_jobs_at_most(how: str) -> None:
    fleet = FailingClusters(CLUSTERS, HEADROOM, broken={"c5": how})
    fleet.play(submissions(JOBS), 3 * HOUR)
    assert len(fleet.done) == JOBS
    assert 5 <= fleet.count("c5") <= 10
    assert "quarantined: c5 (7 of 7 jobs failed there; one job may try it from" in fleet.message


@pytest.mark.parametrize(("how", "sent"), [("fails", 700), ("evicts", 900)])
def test_without_the_setting_it_gets_hundreds(how: str, sent: int) -> None:
    fleet = FailingClusters(CLUSTERS, replace(HEADROOM, avoid_after_failure=0.0), broken={"c5": how})
    fleet.play(submissions(JOBS), 1.5 * HOUR)
    assert fleet.count("c5") > sent


@pytest.mark.parametrize("step_size", [1, 3])
def test_a_mended_cluster_comes_back_by_itself(step_size: int) -> None:
    fleet = FailingClusters(CLUSTERS, replace(HEADROOM, step_size=step_size), broken={"c5": "fails"})
    mended = 20 * MINUTE
    fleet.play(submissions(JOBS), 2 * HOUR, (mended, lambda: fleet.mend("c5")))
    assert len(fleet.done) == JOBS
    assert fleet.count("c5") - fleet.count("c5", mended) <= 10
    assert fleet.count("c5", mended) > 10
    assert fleet.events["ClusterReturned"] == 1
    assert "quarantined" not in fleet.message


def test_jobs_that_wait_there_are_taken_back() -> None:
    """All come at once, so each cluster has a queue when the first jobs fail, and step 3 nominates thrice."""
    fleet = FailingClusters(CLUSTERS, replace(HEADROOM, step_size=3), broken={"c5": "fails"})
    fleet.play(submissions(JOBS, 0.01), 1.5 * HOUR)
    assert len(fleet.done) == JOBS
    in_two_minutes = fleet.count("c5") - fleet.count("c5", 2 * MINUTE)
    assert in_two_minutes <= 24  # a slot is filled again at once: eight, their eight successors, and a few
    assert fleet.count("c5", 2 * MINUTE) <= 4
    assert set(fleet.kueue.max_copies.values()) == {1}
