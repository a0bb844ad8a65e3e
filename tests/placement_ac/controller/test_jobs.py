"""No job is killed or run twice: clusters that leave under jobs, on a hub with Kueue's stand-in and workers.

After every test: no job had two copies, and no secret was printed.
"""

from typing import Any

import pytest

from placement_lab.standins.multikueue import KueueSettings
from tests.support.jobs import UNREACHABLE, Play, Stage, soon

LEAVES = ("Retry", "cluster c is leaving the Placement")
BEHIND = ("Pending", "waits: c is leaving: it takes a moment")
HELD_BACK = ("Pending", "waits until cluster c holds no copy of it")
ONLY_B = ("Ready", "1 of 1 selected clusters usable: b")
ONLY_C = ("Ready", "1 of 1 selected clusters usable: c")


def named(there: Stage, job: str) -> str:
    """The job's Workload as events name it."""
    return f"default/{there.workload(job)['metadata']['name']}"


# -- draining


def test_a_cluster_is_listed_until_its_job_has_finished(play: Play) -> None:
    there = play("b", "c")
    there.select("c")
    there.controllers.start(cluster_retention=1)
    there.submit("j")
    there.until_runs("j", "c")
    there.select("b")
    there.until_listed("b", "c")
    soon(there.remark, "draining: c (Workloads run there)")

    there.select("b", "c")  # selected again while it drains: it simply stays
    soon(there.remark, "")
    there.select("b")
    soon(there.remark, "draining: c (Workloads run there)")
    assert there.listed() == ["b", "c"]

    there.finish("j")
    there.until_listed("b")
    soon(there.admin.clusters, ["p-b"])
    there.until_finished("j")
    assert (there.account("j"), there.answers("j")) == ((1, 1, True), [ONLY_C])
    [gone] = there.writes("/multikueueclusters/p-c")[-1:]
    assert (gone.method, gone.at - there.config_writes()[-1].at > 0.5) == ("DELETE", True)


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        pytest.param({"removal_policy": "Immediate"}, "at once", id="immediate"),
        pytest.param({"drain_deadline": 1}, "as the deadline has passed", id="deadline"),
    ],
)
def test_a_job_is_sent_back_while_its_cluster_is_listed(play: Play, settings: Any, cause: str) -> None:
    there = play("b", "c")
    there.select("c")
    there.controllers.start(waiting_grace=0, **settings)
    there.submit("j")
    there.until_runs("j", "c")
    there.select("b")
    there.until_runs("j", "b")
    there.until_listed("b")
    expected_message = f"cluster c leaves {cause}; sent back: {named(there, 'j')}"
    soon(there.warnings, [("WorkloadsSentBack", expected_message)])
    expected_message = f"sent back from cluster c, which leaves {cause}; it starts again elsewhere"
    soon(lambda: there.warnings("Workload"), [("SentBack", expected_message)])
    answers = there.answers("j")
    assert (answers[:2], answers[-1]) == ([ONLY_C, LEAVES], ONLY_B)
    there.finish("j")
    there.until_finished("j")
    assert there.account("j") == (1, 2, True)


# -- the gate


def test_a_job_that_only_waits_is_sent_back_and_goes_elsewhere(play: Play) -> None:
    there = play("b", "c", held=["b", "c"])
    there.select("c")
    there.controllers.start(waiting_grace=0)
    there.submit("j")
    there.until_waits("j", "c")
    there.select("b")
    soon(lambda: LEAVES in there.answers("j"))
    there.answers_late("c", 1.5)
    there.submit("new")
    there.until_listed("b")
    for job in ("j", "new"):
        there.until_waits(job, "b")
    there.fleet.release("b", "c")
    for job in ("j", "new"):
        there.until_runs(job, "b")
        assert (there.account(job), there.copies(job)) == ((1, 1, False), ["b"])
    answers = there.answers("j")
    assert (answers[0], answers[-1]) == (ONLY_C, ONLY_B)
    assert there.answers("new") == [BEHIND, ONLY_B]


def test_a_job_that_is_placed_as_it_is_sent_back_stays_where_it_is(play: Play) -> None:
    there = play("b", "c", held=["b", "c"])
    there.select("c")
    there.controllers.start(waiting_grace=2.5)
    there.submit("j")
    there.until_waits("j", "c")
    there.select("b")
    there.until_waits("j", "b", "c")
    soon(there.remark, "draining: c (Workloads wait there)")
    there.delay_next_write("j", 1.5)
    soon(there.write_is_delayed)
    there.fleet.release("c")
    there.until_runs("j", "c")
    soon(lambda: there.conflicts("j"), 1)
    soon(there.remark, "draining: c (Workloads run there)")
    there.finish("j")
    there.until_finished("j")
    there.until_listed("b")
    assert (there.account("j"), there.answers("j")) == ((1, 1, True), [ONLY_C])


@pytest.mark.parametrize("recorded", [False, True], ids=["never recorded", "recorded when Ready again"])
def test_a_copy_that_was_left_behind_is_found_before_the_cluster_goes(play: Play, recorded: bool) -> None:
    there = play("b", "c", held=["b", "c"], settings=KueueSettings(nominates_admitted=recorded))
    there.select("c")
    there.controllers.start(waiting_grace=2.5)
    there.kueue_looks_late(100)
    there.kueue.slow_to_retry = True
    there.submit("j")
    there.until_waits("j", "c")
    there.select("b")
    there.until_waits("j", "b", "c")
    soon(lambda: there.admin.reason("mk"), "Active")
    soon(there.remark, "draining: c (Workloads wait there)")  # the last change on the hub for a while
    there.fleet.release("c")
    soon(lambda: there.has_quota_on("j", "c"))
    there.fleet.hold("c")
    soon(lambda: LEAVES in there.answers("j"))
    soon(lambda: there.fleet.counter.running("j"), ["c"])
    assert (there.placed("j"), there.check_state("j")[0]) == ("", "Pending")
    there.kueue_looks_late(0.1)
    there.kueue.slow_to_retry = False
    if recorded:
        there.until_runs("j", "c")
        soon(there.remark, "draining: c (Workloads run there)")
        there.finish("j")
        there.until_finished("j")
    there.until_listed("b")
    there.fleet.release("b")
    if not recorded:
        there.until_runs("j", "b")
    assert there.account("j") == ((1, 1, True) if recorded else (1, 2, False))


# -- controllers come and go


def test_a_controller_goes_on_where_another_one_was_stopped(play: Play) -> None:
    there = play("b", "c", held=["b"])
    there.select("c")
    first = there.controllers.start(waiting_grace=0)
    there.submit("runs")
    there.until_runs("runs", "c")
    there.fleet.hold("c")
    there.submit("waits")
    there.until_waits("waits", "c")
    there.select("b")
    there.until_listed("b", "c")
    soon(there.remark, "draining: c (Workloads run there)")
    first.stop()

    before = len(there.admin.writes())
    second = there.controllers.start(waiting_grace=0)
    there.submit("new")
    soon(lambda: there.check_state("new"), ONLY_B)
    assert len(there.admin.writes()) == before + 1, "a restart alone writes nothing"

    there.admin.hub.faults.add("PATCH", "/multikueueconfigs/p$", status=503, times=10_000)
    there.finish("runs")
    soon(lambda: there.refused("/multikueueconfigs/p"))
    assert (there.check_state("waits")[0], there.check_state("new")[0], there.listed()) == (
        "Pending",
        "Pending",
        ["b", "c"],
    )
    second.stop()
    there.admin.hub.faults.clear()

    there.controllers.start(waiting_grace=0)
    there.until_listed("b")
    there.submit("last")
    for job in ("waits", "new", "last"):
        soon(lambda job=job: there.check_state(job), ONLY_B)
    there.fleet.release("b", "c")
    for job in ("waits", "new", "last"):
        there.until_runs(job, "b")
        assert there.account(job) == (1, 1, False)


# -- why a cluster leaves


def test_a_cluster_that_ocm_cannot_reach_stays_until_it_is_given_up(play: Play) -> None:
    there = play("b", "c", held=["b"])
    there.select("c")
    there.controllers.start(waiting_grace=0)
    there.submit("j")
    there.until_runs("j", "c")
    there.taint("c", UNREACHABLE)
    there.select("b")
    soon(there.remark, "draining: c (OCM cannot reach it)")
    assert there.listed() == ["b", "c"]
    there.taint("c")
    soon(there.remark, "draining: c (Workloads run there)")
    assert (there.listed(), there.answers("j"), there.warnings()) == (["b", "c"], [ONLY_C], [])
    there.delete_managed("c")
    there.until_listed("b")
    lost = f"ManagedCluster c is gone, and with it: {named(there, 'j')}"
    soon(there.warnings, [("ClusterLost", lost)])
    [(reason, expected_message)] = soon(lambda: there.warnings("Workload"))
    assert (reason, "cluster c, where it was, is lost" in expected_message) == ("ClusterLost", True)


@pytest.mark.parametrize("closed", [False, True], ids=["from the start", "once the gate is closed"])
def test_a_worker_that_cannot_be_asked_stays_listed(play: Play, ask_again_soon: None, closed: bool) -> None:
    there = play("b", "c", held=["b", "c"])
    there.select("c")
    there.controllers.start(waiting_grace=0)
    there.submit("j")
    there.until_waits("j", "c")
    if not closed:
        there.fleet.kill("c")
    there.select("b")
    if closed:
        soon(lambda: LEAVES in there.answers("j"))
        there.fleet.kill("c")
    soon(lambda: there.is_out_of_reach("c"))
    there.submit("new")
    soon(lambda: there.check_state("new"), ONLY_B)  # the gate is open
    assert (there.listed(), there.is_out_of_reach("c")) == (["b", "c"], True)
    assert there.check_state("j") == (HELD_BACK if closed else ONLY_C)
    there.fleet.revive("c")
    there.until_listed("b")
    soon(lambda: there.copies("j"), ["b"])
    there.fleet.release("b", "c")
    for job in ("j", "new"):
        there.until_runs(job, "b")
        assert there.account(job) == (1, 1, False)


@pytest.mark.embedded(
    "an API server refuses the startTime of the old copy while the hub's Job runs: it never ends"
)
def test_a_cluster_that_was_lost_with_its_job_is_left_to_kueue(play: Play) -> None:
    """Kueue starts it elsewhere and, once the cluster is back, lets the old copy win: if it is listed."""
    there = play("b", "c", settings=KueueSettings(worker_lost_seconds=10))
    there.select("c")
    there.controllers.start(waiting_grace=0)
    there.submit("j")
    there.until_runs("j", "c")
    there.jobs.remove("j")  # it will run twice, and not because of us
    there.select("b", "c")
    there.until_listed("b", "c")
    there.fleet.kill("c")
    soon(lambda: there.placed("j"), "p-b")  # it is Ready again though still Evicted, with quota
    there.select("b")
    soon(lambda: there.is_out_of_reach("c"))
    there.fleet.revive("c")
    soon(lambda: there.fleet.counter.running("j"), ["c"])
    there.submit("new")
    soon(lambda: there.placed("new"))
    assert there.listed() == ["b", "c"]
    there.finish("j")
    there.until_finished("j")
    if there.placed("new") == "p-c":
        there.finish("new")
    there.until_listed("b")
