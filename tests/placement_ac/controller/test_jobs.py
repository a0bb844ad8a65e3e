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


def named(stage: Stage, job: str) -> str:
    """The job's Workload as events name it."""
    return f"default/{stage.workload(job)['metadata']['name']}"


# -- draining


def test_a_cluster_is_listed_until_its_job_has_finished(play: Play) -> None:
    stage = play("b", "c")
    stage.select("c")
    stage.controllers.start()
    stage.submit("j")
    stage.until_runs("j", "c")
    stage.select("b")
    stage.until_listed("b", "c")
    soon(stage.remark, "draining: c (Workloads run there)")

    stage.select("b", "c")  # selected again while it drains: it simply stays
    soon(stage.remark, "")
    stage.select("b")
    soon(stage.remark, "draining: c (Workloads run there)")
    assert stage.listed() == ["b", "c"]

    stage.finish("j")
    stage.until_listed("b")
    soon(stage.admin.clusters, ["p-b"])
    stage.until_finished("j")
    assert (stage.account("j"), stage.answers("j")) == ((1, 1, True), [ONLY_C])
    assert stage.writes("/multikueueclusters/p-c")[-1].method == "DELETE"


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        pytest.param({"removal_policy": "Immediate"}, "at once", id="immediate"),
        pytest.param({"drain_deadline": 1}, "as the deadline has passed", id="deadline"),
    ],
)
def test_a_job_is_sent_back_while_its_cluster_is_listed(play: Play, settings: Any, cause: str) -> None:
    stage = play("b", "c")
    stage.select("c")
    stage.controllers.start(waiting_grace=0, **settings)
    stage.submit("j")
    stage.until_runs("j", "c")
    stage.select("b")
    stage.until_runs("j", "b")
    stage.until_listed("b")
    expected_message = f"cluster c leaves {cause}; sent back: {named(stage, 'j')}"
    soon(stage.warnings, [("WorkloadsSentBack", expected_message)])
    expected_message = f"sent back from cluster c, which leaves {cause}; it starts again elsewhere"
    soon(lambda: stage.warnings("Workload"), [("SentBack", expected_message)])
    answers = stage.answers("j")
    assert (answers[:2], answers[-1]) == ([ONLY_C, LEAVES], ONLY_B)
    stage.finish("j")
    stage.until_finished("j")
    assert stage.account("j") == (1, 2, True)


# -- the gate


def test_a_job_that_only_waits_is_sent_back_and_goes_elsewhere(play: Play) -> None:
    stage = play("b", "c", held=["b", "c"])
    stage.select("c")
    stage.controllers.start(waiting_grace=0)
    stage.submit("j")
    stage.until_waits("j", "c")
    stage.select("b")
    soon(lambda: LEAVES in stage.answers("j"))
    stage.answers_late("c", 1.5)
    stage.submit("new")
    stage.until_listed("b")
    for job in ("j", "new"):
        stage.until_waits(job, "b")
    stage.fleet.release("b", "c")
    for job in ("j", "new"):
        stage.until_runs(job, "b")
        assert (stage.account(job), stage.copies(job)) == ((1, 1, False), ["b"])
    answers = stage.answers("j")
    assert (answers[0], answers[-1]) == (ONLY_C, ONLY_B)
    assert stage.answers("new") == [BEHIND, ONLY_B]


def test_a_job_that_is_placed_as_it_is_sent_back_stays_where_it_is(play: Play) -> None:
    stage = play("b", "c", held=["b", "c"])
    stage.select("c")
    stage.controllers.start(waiting_grace=2.5)
    stage.submit("j")
    stage.until_waits("j", "c")
    stage.select("b")
    stage.until_waits("j", "b", "c")
    soon(stage.remark, "draining: c (Workloads wait there)")
    stage.delay_next_write("j", 1.5)
    soon(stage.write_is_delayed)
    stage.fleet.release("c")
    stage.until_runs("j", "c")
    soon(lambda: stage.conflicts("j"), 1)
    soon(stage.remark, "draining: c (Workloads run there)")
    stage.finish("j")
    stage.until_finished("j")
    stage.until_listed("b")
    assert (stage.account("j"), stage.answers("j")) == ((1, 1, True), [ONLY_C])


@pytest.mark.parametrize("recorded", [False, True], ids=["never recorded", "recorded when Ready again"])
def test_a_copy_that_was_left_behind_is_found_before_the_cluster_goes(play: Play, recorded: bool) -> None:
    stage = play("b", "c", held=["b", "c"], settings=KueueSettings(nominates_admitted=recorded))
    stage.select("c")
    stage.controllers.start(waiting_grace=2.5)
    stage.kueue_looks_late(100)
    stage.kueue.slow_to_retry = True
    stage.submit("j")
    stage.until_waits("j", "c")
    stage.select("b")
    stage.until_waits("j", "b", "c")
    soon(lambda: stage.admin.reason("mk"), "Active")
    soon(stage.remark, "draining: c (Workloads wait there)")  # the last change on the hub for a while
    stage.fleet.release("c")
    soon(lambda: stage.has_quota_on("j", "c"))
    stage.fleet.hold("c")
    soon(lambda: LEAVES in stage.answers("j"))
    soon(lambda: stage.fleet.counter.running("j"), ["c"])
    assert (stage.placed("j"), stage.check_state("j")[0]) == ("", "Pending")
    stage.kueue_looks_late(0.1)
    stage.kueue.slow_to_retry = False
    if recorded:
        stage.until_runs("j", "c")
        soon(stage.remark, "draining: c (Workloads run there)")
        stage.finish("j")
        stage.until_finished("j")
    stage.until_listed("b")
    stage.fleet.release("b")
    if not recorded:
        stage.until_runs("j", "b")
    assert stage.account("j") == ((1, 1, True) if recorded else (1, 2, False))


# -- controllers come and go


def test_a_controller_goes_on_where_another_one_was_stopped(play: Play) -> None:
    stage = play("b", "c", held=["b"])
    stage.select("c")
    first = stage.controllers.start(waiting_grace=0)
    stage.submit("runs")
    stage.until_runs("runs", "c")
    stage.fleet.hold("c")
    stage.submit("waits")
    stage.until_waits("waits", "c")
    stage.select("b")
    stage.until_listed("b", "c")
    soon(stage.remark, "draining: c (Workloads run there)")
    first.stop()

    before = len(stage.admin.writes())
    second = stage.controllers.start(waiting_grace=0)
    stage.submit("new")
    soon(lambda: stage.check_state("new"), ONLY_B)
    assert len(stage.admin.writes()) == before + 1, "a restart alone writes nothing"

    stage.admin.hub.faults.add("PATCH", "/multikueueconfigs/p$", status=503, times=10_000)
    stage.finish("runs")
    soon(lambda: stage.refused("/multikueueconfigs/p"))
    assert (stage.check_state("waits")[0], stage.check_state("new")[0], stage.listed()) == (
        "Pending",
        "Pending",
        ["b", "c"],
    )
    second.stop()
    stage.admin.hub.faults.clear()

    stage.controllers.start(waiting_grace=0)
    stage.until_listed("b")
    stage.submit("last")
    for job in ("waits", "new", "last"):
        soon(lambda job=job: stage.check_state(job), ONLY_B)
    stage.fleet.release("b", "c")
    for job in ("waits", "new", "last"):
        stage.until_runs(job, "b")
        assert stage.account(job) == (1, 1, False)


# -- why a cluster leaves


def test_a_cluster_that_ocm_cannot_reach_stays_until_it_is_given_up(play: Play) -> None:
    stage = play("b", "c", held=["b"])
    stage.select("c")
    stage.controllers.start(waiting_grace=0)
    stage.submit("j")
    stage.until_runs("j", "c")
    stage.taint("c", UNREACHABLE)
    stage.select("b")
    soon(stage.remark, "draining: c (OCM cannot reach it)")
    assert stage.listed() == ["b", "c"]
    stage.taint("c")
    soon(stage.remark, "draining: c (Workloads run there)")
    assert (stage.listed(), stage.answers("j"), stage.warnings()) == (["b", "c"], [ONLY_C], [])
    stage.delete_managed("c")
    stage.until_listed("b")
    lost = f"ManagedCluster c is gone, and with it: {named(stage, 'j')}"
    soon(stage.warnings, [("ClusterLost", lost)])
    [(reason, expected_message)] = soon(lambda: stage.warnings("Workload"))
    assert (reason, "cluster c, where it was, is lost" in expected_message) == ("ClusterLost", True)


@pytest.mark.parametrize("closed", [False, True], ids=["from the start", "once the gate is closed"])
def test_a_worker_that_cannot_be_asked_stays_listed(play: Play, ask_again_soon: None, closed: bool) -> None:
    stage = play("b", "c", held=["b", "c"])
    stage.select("c")
    stage.controllers.start(waiting_grace=0)
    stage.submit("j")
    stage.until_waits("j", "c")
    if not closed:
        stage.fleet.kill("c")
    stage.select("b")
    if closed:
        soon(lambda: LEAVES in stage.answers("j"))
        stage.fleet.kill("c")
    soon(lambda: stage.is_out_of_reach("c"))
    stage.submit("new")
    soon(lambda: stage.check_state("new"), ONLY_B)  # the gate is open
    assert (stage.listed(), stage.is_out_of_reach("c")) == (["b", "c"], True)
    assert stage.check_state("j") == (HELD_BACK if closed else ONLY_C)
    stage.fleet.revive("c")
    stage.until_listed("b")
    soon(lambda: stage.copies("j"), ["b"])
    stage.fleet.release("b", "c")
    for job in ("j", "new"):
        stage.until_runs(job, "b")
        assert stage.account(job) == (1, 1, False)


@pytest.mark.embedded(
    "an API server refuses the startTime of the old copy while the hub's Job runs: it never ends"
)
def test_a_cluster_that_was_lost_with_its_job_is_left_to_kueue(play: Play) -> None:
    """Kueue starts it elsewhere and, once the cluster is back, lets the old copy win: if it is listed."""
    stage = play("b", "c", settings=KueueSettings(worker_lost_seconds=10))
    stage.select("c")
    stage.controllers.start(waiting_grace=0)
    stage.submit("j")
    stage.until_runs("j", "c")
    stage.jobs.remove("j")  # it will run twice, and not because of us
    stage.select("b", "c")
    stage.until_listed("b", "c")
    stage.fleet.kill("c")
    soon(lambda: stage.placed("j"), "p-b")  # it is Ready again though still Evicted, with quota
    stage.select("b")
    soon(lambda: stage.is_out_of_reach("c"))
    stage.fleet.revive("c")
    soon(lambda: stage.fleet.counter.running("j"), ["c"])
    stage.submit("new")
    soon(lambda: stage.placed("new"))
    assert stage.listed() == ["b", "c"]
    stage.finish("j")
    stage.until_finished("j")
    if stage.placed("new") == "p-c":
        stage.finish("new")
    stage.until_listed("b")
