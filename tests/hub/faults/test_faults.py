"""After each fault the world is right, nothing is lost, no job was touched, and the hub was not hammered."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.conftest import shorten
from tests.hub.driver import Driver
from tests.hub.faults.plays import CLUSTERS, FAULTS, Fault, Scene, begin, prepare
from tests.hub.jobs import Play, soon


@pytest.fixture
def scene(play: Play, admin: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """The stage before the fault, times shortened; the controller runs."""
    shorten(monkeypatch, WATCH_SECONDS=1, SILENCE_SECONDS=2.0)
    there = play(*CLUSTERS)
    scene = prepare(there, tmp_path)
    monkeypatch.setattr("placement_ac.operator._now", scene.clock)
    there.controllers.start()
    begin(scene)
    yield scene
    scene.hub.faults.clear()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault(scene: Scene, fault: Fault) -> None:
    fault.before(scene)
    there, hub = scene.there, scene.hub
    since = len(hub.journal)
    fault.play(scene, fault.small)
    soon(scene.world, fault.right)
    assert scene.asked(since) <= fault.asks
    hub.faults.clear()
    nothing_is_lost(scene)
    there.finish("j")
    soon(lambda: sorted(there.listed()), ["b", "c"])
    soon(scene.admin.clusters, ["p-b", "p-c"])
    there.until_finished("j")
    assert there.account("j") == (1, 1, True)
    comes_to_rest(scene)


def nothing_is_lost(scene: Scene) -> None:
    """A change of each kind is heard: a new check, Placement, decision; objects of ours that go."""
    scene.admin.check("new")
    scene.there.select("b", placement="new")
    soon(lambda: scene.admin.reason("new"), "Active")
    scene.admin.ask("DELETE", scene.admin.kueue("multikueueconfigs", "new"))
    soon(lambda: scene.admin.listed("new"), ["new-b"])
    scene.admin.ask("DELETE", scene.admin.kueue("multikueueclusters", "new-b"))
    soon(lambda: "new-b" in scene.admin.clusters())
    scene.admin.ask("DELETE", scene.admin.kueue("admissionchecks", "new"))
    soon(lambda: "new-b" not in scene.admin.clusters())


def comes_to_rest(scene: Scene) -> None:
    since = len(scene.hub.journal)
    time.sleep(0.5)  # what is tested: nothing is written any more
    assert scene.admin.writes(since) == []
