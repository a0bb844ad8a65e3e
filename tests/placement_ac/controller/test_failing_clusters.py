"""On a hub with Kueue's stand-in: a cluster that fails every job gets no new ones, and an admin decides."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from placement_ac.core.api.constants import OUR_CONTROLLER
from placement_lab.standins.multikueue import KueueSettings
from tests.placement_ac.observability.test_metrics_on_hub import OF_FAILURES, reads
from tests.support import commands
from tests.support.driver import Controllers, Driver, free_port
from tests.support.jobs import Stage, dispatched, open_stage, soon
from tests.support.monitoring import expressions, matches, selectors

ALL = ["a", "b", "c"]
SETTINGS = {"avoid_after_failure": 600}


@pytest.fixture
def stage(admin: Driver, controllers: Controllers) -> Iterator[Stage]:
    with dispatched(admin, controllers, ALL, controller=SETTINGS) as opened:
        opened.fleet.break_down("a", 0.1)
        yield opened


def submit(stage: Stage, name: str, number: int) -> None:
    """A job that asks for something of its own."""
    stage.submit(name, requests={"memory": f"{number}Mi"})


def failed(stage: Stage, name: str) -> bool:
    conditions = stage.status(name).get("conditions") or ()
    return any((one["type"], one["reason"]) == ("Finished", "Failed") for one in conditions)


def five_fail(stage: Stage) -> None:
    for number in range(5):
        submit(stage, f"f{number}", number)
        soon(lambda number=number: failed(stage, f"f{number}"))
        assert stage.placed(f"f{number}") == "p-a"


def test_metrics_alert_and_dashboard_find_it(admin: Driver, controllers: Controllers) -> None:
    read = reads(port := free_port())
    settings = SETTINGS | {"metrics_bind_address": f"127.0.0.1:{port}"}
    with dispatched(admin, controllers, ALL, controller=settings) as stage:
        stage.fleet.break_down("a", 0.1)
        five_fail(stage)
        soon(lambda: read().sum("cluster_quarantined", check="p", cluster="a"), 1.0)
        page = read()
    assert page.sum("cluster_quarantined") == 1.0
    assert page.sum("job_ends_total", cluster="a", cause="failed_early") == 5.0
    assert page.sum("cluster_reliability", check="p", cluster="a") == 0.0
    found = [
        (
            selector.name,
            any(one.name == selector.name and matches(selector, one.labels) for one in page.series),
        )
        for expression in expressions()
        for selector in selectors(expression.text)
        if selector.name in {metric.name for metric in OF_FAILURES}
    ]
    assert {name for name, _ in found} == {metric.name for metric in OF_FAILURES}
    assert all(is_there for _, is_there in found)


def test_a_restart_reads_it_from_the_hub(admin: Driver, controllers: Controllers) -> None:
    kueue = KueueSettings(dispatcher=OUR_CONTROLLER)
    with open_stage(admin, controllers, ALL, settings=kueue) as stage:
        stage.fleet.break_down("a", 0.1)
        stage.select(*ALL)
        with controllers(dispatcher=True, step_size=1, **SETTINGS):
            soon(stage.connected, len(ALL))
            five_fail(stage)
        controllers.start(dispatcher=True, step_size=1, **SETTINGS)
        submit(stage, "new", 5)
        stage.until_runs("new", "b")
        assert stage.remark().startswith("quarantined: a")


def test_a_job_whose_pods_do_not_start_there_goes_elsewhere(stage: Stage) -> None:
    stage.fleet.break_down("a", None)
    stage.submit("again")
    stage.until_runs("again", "a")
    soon(lambda: stage.fleet.evict("again", "PodsReadyTimeout"), ["a"])
    stage.until_runs("again", "b")


def test_the_commands_say_so(stage: Stage, tmp_path: Path) -> None:
    five_fail(stage)
    soon(lambda: "quarantined: a (5" in stage.remark())
    submit(stage, "new", 5)
    stage.until_runs("new", "b")
    (settings := tmp_path / "settings").write_text("dispatch: {enabled: true, avoidAfterFailure: 10m}\n")
    words = ("--kubeconfig", str(stage.controllers.kubeconfig), "--settings", str(settings))
    name = stage.workload("new")["metadata"]["name"]
    explained = commands.run("explain", "workload", name, *words).stdout
    [event] = [message for reason, message in stage.warnings() if reason == "ClusterQuarantined"]
    assert event.startswith("no new job of namespace default is sent to a: 5 of 5 jobs of namespace")
    assert "is quarantined: 5 of 5 jobs of namespace default failed there" in " ".join(explained.split())
    assert "(Quarantine)" in explained
    status = commands.run("status", *words, "-o", "json").stdout
    assert '"why": "quarantined: 5 of 5 jobs of namespace default failed there' in status
