"""kill -9 as a write arrives, before it is carried out or after: a fresh process ends in the same world."""

from pathlib import Path

import pytest

from tests.placement_ac.controller.faults.kills import END, Process, send_a_job_back
from tests.placement_ac.controller.faults.plays import comes_to_rest, prepare
from tests.support.driver import Driver
from tests.support.jobs import Play

pytestmark = pytest.mark.long


@pytest.mark.timeout(180)  # three processes start, on a machine that may be busy
@pytest.mark.parametrize(
    ("path", "number", "after"),
    [
        pytest.param("/multikueueconfigs/p$", 0, True, id="the config is made"),
        pytest.param("/workloads/.*/status$", 1, True, id="the job is sent back"),
        pytest.param("/multikueueclusters/p-a$", 1, False, id="the cluster is to be deleted"),
    ],
)
def test_kill_9(
    play: Play,
    admin: Driver,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    number: int,
    after: bool,
) -> None:
    monkeypatch.setattr("tests.support.jobs.LIMIT", 50.0)
    scene = prepare(play("a", "b"), tmp_path)
    with Process(scene.stage.controllers.kubeconfig) as process:
        process.kill_at(scene, number, path, after=after)
        assert send_a_job_back(scene) == END
        assert comes_to_rest(scene, 0.5)
    assert process.kills == 1
    assert scene.stage.account("j") == (1, 2, True)
