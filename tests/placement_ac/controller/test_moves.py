"""Jobs that say that they may be moved, on a hub with Kueue's stand-in and workers; none ever runs twice."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from placement_ac.core.api.constants import ANNOTATION_MOVABLE, ANNOTATION_MOVES, MOVED, OUR_CONTROLLER
from placement_lab.standins.multikueue import KueueSettings
from placement_lab.standins.multikueue.objects import is_condition_true
from tests.support.driver import KUEUE, Controllers, Driver
from tests.support.jobs import Stage, dispatched, open_stage, soon
from tests.support.stage import KUEUE_IS_FAST, shorten

GPU = "nvidia.com/gpu"
SIZES = {"a": "2", "b": "8"}
SETTINGS: dict[str, Any] = {"dispatch_profile": "headroom", "moves": True, "move_after": 0.5}
MOVABLE = {"annotations": {ANNOTATION_MOVABLE: "true"}}
WHY = "moved from cluster a because b has room and is better; move 1 of 12 in this hour"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch, FACTS_AGAIN_SECONDS=0.3, IN_STEP_SECONDS=0.5, **KUEUE_IS_FAST)


@pytest.fixture
def stage(admin: Driver, controllers: Controllers, quick: None) -> Iterator[Stage]:
    """Cluster a has two GPUs, b eight; OCM has decided for a alone."""
    quotas = {name: {"default": {GPU: size}} for name, size in SIZES.items()}
    with dispatched(admin, controllers, [*SIZES], quotas=quotas, controller=SETTINGS) as opened:
        opened.select("a")
        opened.until_listed("a")
        yield opened


def runs_on_a(stage: Stage, job: str = "j", **template: Any) -> None:
    stage.submit(job, requests={GPU: "2"}, **(template or MOVABLE))
    stage.until_runs(job, "a")


def recorded(stage: Stage) -> list[list[str]]:
    """From where, whereto and why jobs were moved, by the record on the hub."""
    config = stage.admin.get(f"{KUEUE}/{stage.admin.v}/multikueueconfigs/p") or {}
    text = config["metadata"].get("annotations", {}).get(ANNOTATION_MOVES, "")
    return [entry.partition("=")[0].split(":")[2:] for entry in text.split(",") if entry]


def test_a_movable_job_moves_to_a_better_cluster_and_runs_once(stage: Stage, admin: Driver) -> None:
    runs_on_a(stage)
    stage.select("a", "b")
    stage.until_runs("j", "b")
    states = [state for state, message in stage.answers("j")]
    assert ("Retry", WHY) in stage.answers("j")
    assert (states.count("Retry"), states[-1]) == (1, "Ready")
    assert (stage.account("j"), stage.nominations("j")[-1]) == ((1, 2, False), ["p-b"])
    assert recorded(stage) == [["a", "b", "better"]]
    events = [event["message"] for event in admin.events("Workload") if event["reason"] == MOVED]
    assert events == [WHY]
    recorded_at = min(one.at for one in stage.config_writes() if ANNOTATION_MOVES in str(one.body))
    assert recorded_at < min(one.at for one in stage.writes("/status") if "Retry" in str(one.body))
    stage.finish("j")
    stage.until_finished("j")


def test_a_job_that_does_not_say_so_stays(stage: Stage) -> None:
    runs_on_a(stage, "stays", labels={"app": "x"})
    stage.select("a", "b")
    stage.submit("other", requests={GPU: "8"}, **MOVABLE)
    stage.until_runs("other", "b")
    stage.finish("other")
    stage.until_finished("other")
    assert (stage.account("stays"), stage.placed("stays"), recorded(stage)) == ((1, 1, False), "p-a", [])


def test_a_movable_job_leaves_a_cluster_that_drains(stage: Stage) -> None:
    runs_on_a(stage)
    stage.select("b")
    stage.until_runs("j", "b")
    assert (stage.account("j"), recorded(stage)) == ((1, 2, False), [["a", "b", "drain"]])


def has_left_a_copy(stage: Stage) -> None:
    """Kueue takes back a job that moves, and gives it quota so soon that its copy on cluster a runs on."""
    stage.kueue_looks_late(100)
    stage.kueue.slow_to_retry = True
    stage.select("a", "b")
    soon(lambda: ("Retry", WHY) in stage.answers("j"))
    # As long as the hub's Job counts active Pods, Kueue does not end an eviction.
    owner = stage.workload("j")["metadata"]["ownerReferences"][0]["name"]
    status = f"/apis/batch/v1/namespaces/default/jobs/{owner}/status"
    stage.admin.ask("PATCH", status, {"status": {"active": None, "ready": None}}, "merge")
    soon(lambda: is_condition_true(stage.workload("j"), "Evicted"), False)
    assert stage.fleet.counter.running("j") == ["a"]
    stage.kueue_looks_late(0.1)
    stage.kueue.slow_to_retry = False


def test_a_copy_that_kueue_leaves_behind_is_found_and_the_job_goes_on_there(stage: Stage) -> None:
    runs_on_a(stage)
    has_left_a_copy(stage)
    soon(lambda: stage.placed("j") != "")
    states = [state for state, _ in stage.answers("j")]
    assert (states.count("Retry"), stage.nominations("j")) == (1, [["p-a"], ["p-a"]])
    assert (stage.account("j"), stage.placed("j")) == ((1, 1, False), "p-a")


def test_a_new_leader_knows_how_much_of_the_budget_is_spent(
    admin: Driver, controllers: Controllers, quick: None
) -> None:
    quotas = {name: {"default": {GPU: size}} for name, size in {"a": "2", "b": "8", "c": "2"}.items()}
    ours = KueueSettings(dispatcher=OUR_CONTROLLER)
    settings = SETTINGS | {"moves_per_hour": 1, "dispatcher": True}
    with open_stage(admin, controllers, [*quotas], quotas=quotas, settings=ours) as stage:
        stage.select("a", "c")
        first = controllers.start(**settings)
        for job in ("j", "k"):
            stage.submit(job, requests={GPU: "2"}, **MOVABLE)
        soon(lambda: sorted(stage.placed(job) for job in ("j", "k")), ["p-a", "p-c"])
        stage.select("a", "b", "c")
        soon(lambda: len(recorded(stage)), 1)
        soon(lambda: "p-b" in [stage.placed(job) for job in ("j", "k")])
        first.stop()
        controllers.start(**settings)
        time.sleep(2.5)  # what is tested: nothing is moved
        assert len(recorded(stage)) == 1
        assert sorted(stage.account(job)[1] for job in ("j", "k")) == [1, 2]
