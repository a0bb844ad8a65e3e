"""The maintenance of a cluster on a hub with Kueue's stand-in and workers, with each dispatcher."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from placement_ac.core.api.constants import OUR_CONTROLLER
from placement_lab.standins.multikueue import KueueSettings
from tests.support.driver import Controllers, Driver
from tests.support.jobs import Stage, dispatched, open_stage, soon

ALL = ["a", "b"]


def at(seconds: float, *, force: bool = False) -> str:
    """The annotation of a maintenance that begins so many seconds from now; whole seconds, rounded down."""
    return f"{datetime.now(UTC) + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}" + ",force" * force


def announce(stage: Stage, value: str | None) -> None:
    """Announce the maintenance of a, and wait until the controller has taken it in."""
    stage.announce("a", value)
    soon(lambda: ("maintenance" in stage.remark()) is (value is not None))


@pytest.fixture
def ours(admin: Driver, controllers: Controllers) -> Iterator[Stage]:
    """With our dispatcher, which prefers a."""
    with dispatched(admin, controllers, ALL) as stage:
        yield stage


@pytest.fixture
def kueues(admin: Driver, controllers: Controllers) -> Iterator[Stage]:
    """With Kueue's own dispatcher, on a and b; b gives no quota."""
    with open_stage(admin, controllers, ALL, held=["b"]) as stage:
        stage.select(*ALL)
        controllers.start()
        soon(stage.connected, 2)
        soon(lambda: admin.reason("p"), "Active")
        yield stage


def once(stage: Stage) -> None:
    assert {job: stage.account(job)[:2] for job in stage.jobs} == dict.fromkeys(stage.jobs, (1, 1))


def test_at_the_hour_none_comes_any_more_and_what_runs_goes_on(ours: Stage) -> None:
    ours.submit("runs")
    ours.until_runs("runs", "a")
    announce(ours, at(2))
    soon(lambda: "in maintenance since" in ours.remark())
    ours.submit("after", max_seconds=1)
    ours.until_runs("after", "b")
    assert "draining: a (Workloads run there)" in ours.remark()
    ours.finish("runs")
    ours.until_listed("b")
    announce(ours, None)
    ours.until_listed("a", "b")
    ours.submit("again")
    ours.until_runs("again", "a")
    once(ours)


def test_by_force_the_rest_starts_once_elsewhere_though_the_controller_restarts(
    admin: Driver, controllers: Controllers
) -> None:
    settings = KueueSettings(dispatcher=OUR_CONTROLLER)
    with open_stage(admin, controllers, ALL, settings=settings) as stage:
        stage.select(*ALL)
        with controllers(dispatcher=True, step_size=1):
            stage.submit("runs")
            stage.until_runs("runs", "a")
            announce(stage, at(2, force=True))
        with controllers(dispatcher=True, step_size=1):
            stage.until_runs("runs", "b")
        copies, starts, _ = stage.account("runs")
        assert (copies, starts) == (1, 2)
        sent = [event["message"] for event in admin.events("Workload") if event["reason"] == "SentBack"]
        assert sent == ["sent back from cluster a, which leaves for maintenance; it starts again elsewhere"]


def test_with_kueues_dispatcher_it_drains_at_the_hour(kueues: Stage, admin: Driver) -> None:
    kueues.submit("runs")
    kueues.until_runs("runs", "a")
    announce(kueues, at(2))
    soon(lambda: "draining: a (Workloads run there)" in kueues.remark())
    assert kueues.listed() == ["b", "a"]
    kueues.finish("runs")
    kueues.until_listed("b")
    kueues.submit("waits")
    kueues.until_waits("waits", "b")
    announce(kueues, None)
    kueues.until_runs("waits", "a")
    once(kueues)
    reasons = [event["reason"] for event in admin.events()]
    assert reasons.count("ClusterMaintenance") == reasons.count("ClusterDraining") == 1
    assert "ClusterUnusable" not in reasons


def test_with_kueues_dispatcher_force_sends_back_through_the_gate(kueues: Stage) -> None:
    kueues.submit("runs")
    kueues.until_runs("runs", "a")
    announce(kueues, at(0, force=True))
    kueues.until_listed("b")
    kueues.until_waits("runs", "b")
    kueues.fleet.release("b")
    kueues.until_runs("runs", "b")
    assert kueues.account("runs")[:2] == (1, 2)
