"""After each fault the world is right, nothing is lost, no job was touched, and the hub was not hammered."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.placement_ac.controller.faults.plays import (
    CLUSTERS,
    FAULTS,
    Fault,
    Scene,
    begin,
    comes_to_rest,
    end_well,
    nothing_is_lost,
    prepare,
)
from tests.support.driver import Driver
from tests.support.jobs import Play, soon
from tests.support.stage import shorten

pytestmark = pytest.mark.long


@pytest.fixture
def scene(play: Play, admin: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """The stage before the fault, times shortened; the controller runs."""
    shorten(monkeypatch, WATCH_SECONDS=1, WATCH_IDLE_SECONDS=2.0)
    stage = play(*CLUSTERS)
    scene = prepare(stage, tmp_path)
    monkeypatch.setattr("placement_ac.controller.session.utc_now", scene.clock)
    stage.controllers.start()
    begin(scene)
    yield scene
    scene.hub.faults.clear()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault(scene: Scene, fault: Fault) -> None:
    fault.before(scene)
    hub = scene.hub
    since = len(hub.journal)
    fault.play(scene, fault.lasts)
    soon(scene.world, fault.right)
    assert scene.asked(since) <= fault.asks
    hub.faults.clear()
    nothing_is_lost(scene)
    end_well(scene)
    assert comes_to_rest(scene, 0.5)
