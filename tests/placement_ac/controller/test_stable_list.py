"""With our dispatcher, a change of mind writes no list; status and explain show which clusters stand by."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from placement_lab.standins.multikueue import KueueSettings
from tests.support import commands
from tests.support.driver import Controllers, Driver
from tests.support.jobs import Stage, open_stage, soon

EXTERNAL = "open-cluster-management.io/placement"
ALL = ["a", "b", "c"]


@pytest.fixture
def stage(admin: Driver, controllers: Controllers) -> Iterator[Stage]:
    with open_stage(admin, controllers, ALL, settings=KueueSettings(dispatcher=EXTERNAL)) as opened:
        opened.select(*ALL)
        controllers.start(dispatcher=True, unlist_after=3600)
        soon(opened.connected, 3)
        soon(lambda: admin.reason("p"), "Active")
        yield opened


def changes(stage: Stage) -> int:
    """How often the spec of the config has changed: Kueue reacts to nothing else."""
    found = stage.admin.get(stage.admin.kueue("multikueueconfigs", "p"))
    assert found
    return int(found["metadata"]["generation"])


def output_of(stage: Stage, settings: Path, *command: str) -> str:
    settings.write_text("dispatch: {enabled: true}\n")
    kubeconfig = f"--kubeconfig={stage.controllers.kubeconfig}"
    done = commands.run(*command, kubeconfig, f"--config={settings}")
    assert done.exit_code in (0, 2), done.output
    return done.stdout


def test_flips_change_no_list_and_jobs_follow_the_decision(stage: Stage) -> None:
    before = changes(stage)
    for number, best in enumerate("abcabc"):
        stage.select(best)
        soon(lambda best=best: f"standing by: {', '.join(sorted(set(ALL) - {best}))}" in stage.remark())
        stage.submit(f"j{number}")
        stage.until_runs(f"j{number}", best)
        stage.finish(f"j{number}")
    assert changes(stage) == before
    assert stage.listed() == ALL
    assert [stage.account(job)[:2] for job in stage.jobs] == [(1, 1)] * 6


def test_status_and_explain_show_which_clusters_stand_by(stage: Stage, tmp_path: Path) -> None:
    stage.select("a")
    soon(stage.remark, "listed, standing by: b, c")
    settings = tmp_path / "config.yaml"
    (check,) = json.loads(output_of(stage, settings, "status", "-o", "json"))["checks"]
    found = {row["name"]: row["state"] for row in check["clusters"]}
    assert found == {"a": "listed", "b": "standby", "c": "standby"}
    assert "stands by: no job is sent there" in output_of(stage, settings, "explain", "cluster/b")
