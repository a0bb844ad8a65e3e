"""
Clusters that keep failing get no new jobs, in virtual time: the real controller, and Kueue's stand-in.

A job fails in one of two ways: the Job itself fails, and its owner submits it again; or the worker's Kueue
evicts it (Pods not ready in time), and the hub's Kueue queues it again. A test plays hours, in half
a minute.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from placement_ac.core.failures.ends import Cause, End
from placement_ac.core.failures.memory import ENDS_LEAST, FailureMemory
from placement_ac.core.inputs.state import PlacementPolicy
from placement_ac.core.plan.plan import plan
from tests.support.builders import NOW
from tests.support.decided import decided_inputs, nominated, ranked, ready
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


def submissions(number: int, every: float = EVERY_SECONDS) -> list[tuple[float, int]]:
    return [(5.0 + every * at, at) for at in range(number)]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("how", "step_size"), [("fails", 1), ("evicts", 1), ("fails", 3)])
def test_a_black_hole_gets_ten_of_200_jobs_at_most(how: str, step_size: int) -> None:
    fleet = FailingClusters(CLUSTERS, replace(HEADROOM, step_size=step_size), broken={"c5": how})
    fleet.play(submissions(JOBS), 3 * HOUR)
    assert len(fleet.done) == JOBS
    assert 5 <= fleet.count("c5") <= 10
    assert "quarantined: c5 (7 of 7 jobs failed there; one job may try it from" in fleet.message


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("how", "sent"), [("fails", 700), ("evicts", 900)])
def test_without_the_setting_it_gets_hundreds(how: str, sent: int) -> None:
    fleet = FailingClusters(CLUSTERS, replace(HEADROOM, avoid_after_failure=0.0), broken={"c5": how})
    fleet.play(submissions(JOBS), 1.5 * HOUR)
    assert fleet.count("c5") > sent


@pytest.mark.timeout(300)
@pytest.mark.parametrize("step_size", [1, 3])
def test_a_recovered_cluster_comes_back_by_itself(step_size: int) -> None:
    fleet = FailingClusters(CLUSTERS, replace(HEADROOM, step_size=step_size), broken={"c5": "fails"})
    recovered = 20 * MINUTE
    fleet.play(submissions(JOBS), 2 * HOUR, (recovered, lambda: fleet.recover("c5")))
    assert len(fleet.done) == JOBS
    assert fleet.count("c5") - fleet.count("c5", recovered) <= 10
    assert fleet.count("c5", recovered) > 10
    assert fleet.events["ClusterReturned"] == 1
    assert "quarantined" not in fleet.message


@pytest.mark.timeout(300)
def test_jobs_that_wait_there_are_taken_back() -> None:
    """All come at once, so each cluster has a queue when the first jobs fail, and step 3 nominates thrice."""
    fleet = FailingClusters(CLUSTERS, replace(HEADROOM, step_size=3), broken={"c5": "fails"})
    fleet.play(submissions(JOBS, 0.01), 1.5 * HOUR)
    assert len(fleet.done) == JOBS
    in_two_minutes = fleet.count("c5") - fleet.count("c5", 2 * MINUTE)
    assert in_two_minutes <= 20  # a slot is filled again at once: eight, their eight successors, and a few
    assert fleet.count("c5", 2 * MINUTE) <= 4
    assert set(fleet.kueue.max_copies.values()) == {1}


@pytest.mark.timeout(300)
def test_jobs_that_fail_everywhere_quarantine_nobody() -> None:
    """A third of the jobs fails on every cluster, and their owners submit each of them four times."""
    fleet = FailingClusters(CLUSTERS, HEADROOM, bad_jobs=lambda number: number % 3 == 0, retries=3)
    fleet.play(submissions(90), HOUR)
    assert len(fleet.done) == 60
    assert fleet.events["ClusterQuarantined"] == 0


# -- the rules alone, over random ends


@st.composite
def ends(draw: st.DrawFn) -> tuple[str, list[End]]:
    """The broken cluster ("": none is), and the ends of jobs one after another; some fail everywhere.

    A sound job goes on until it is well, a bad one until it has failed on two clusters or more.
    """
    clusters = "abcdef"[: draw(st.integers(2, 6))]
    broken = draw(st.sampled_from(["", clusters[0]]))
    found: list[End] = []
    for number in range(draw(st.integers(1, 30))):
        is_bad = draw(st.booleans())
        visits = draw(st.permutations(clusters))
        for at, worker in enumerate(visits[: draw(st.integers(2, len(clusters)))] if is_bad else visits):
            fails = is_bad or worker == broken
            when = datetime(2026, 11, 26, tzinfo=UTC) + timedelta(seconds=10 * len(found))
            cause = Cause.FAILED_EARLY if fails else Cause.FINISHED
            found.append(
                End(when, worker, f"{number}-{at}", f"j{number}", cause, when - timedelta(seconds=10))
            )
            if not fails:
                break
    return broken, found


@given(ends())
@settings(max_examples=300, deadline=None, phases=[Phase.generate])
def test_only_a_broken_cluster_keeps_failing(story: tuple[str, list[End]]) -> None:
    broken, all_ends = story
    memory = FailureMemory(AVOID_SECONDS)
    for end in all_ends:
        memory.take(end)
    bad_jobs = {end.job for end in all_ends if end.is_bad} - {end.job for end in all_ends if end.is_good}
    against = [end for end in all_ends if end.worker == broken and end.job not in bad_jobs]
    failing = set(memory.failing(all_ends[-1].at))
    assert failing == ({broken} if len(against) >= ENDS_LEAST else set())


@given(
    clusters=st.integers(1, 6).map(lambda number: "abcdef"[:number]),
    quarantined=st.sets(st.sampled_from("abcdef")),
    off=st.sets(st.sampled_from("abcdef")),
    selected=st.sets(st.sampled_from("abcdef"), min_size=1),
)
@settings(max_examples=200, deadline=None, phases=[Phase.generate])
def test_a_quarantine_never_takes_the_last_cluster_from_a_job(
    clusters: str, quarantined: set[str], off: set[str], selected: set[str]
) -> None:
    job = ready()
    names = {"kueue.x-k8s.io/multikueue-cluster-names": ",".join(sorted(selected))}
    job["metadata"]["annotations"] = names
    policy = PlacementPolicy(dispatcher=True, step_size=20, retention=0.0, loss_grace=0.0)
    snapshot = decided_inputs(ranked(clusters), job, policy=policy, off=off.intersection(clusters))
    fleet = replace(snapshot.fleet, quarantined=dict.fromkeys(sorted(quarantined), "it fails"))
    usable = {f"p-{name}" for name in selected.intersection(clusters) - off}
    free = usable - {f"p-{name}" for name in quarantined}
    answer = nominated(plan(replace(snapshot, fleet=fleet)))
    assert set(answer.get("job", ())) == (free or usable)
    assert snapshot.now == NOW
