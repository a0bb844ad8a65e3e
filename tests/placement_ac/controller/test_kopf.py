"""kopf is the frame: its handlers hear what changes, and whatever ends kopf, a new session begins."""

import ctypes
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from placement_ac.controller import manager
from placement_ac.controller.session import Session
from placement_ac.core.api.constants import ADMISSION_CHECK, PLACEMENT, Resource
from placement_lab.hub import Hub
from tests.support.driver import OCM, Controllers, Driver, eventually
from tests.support.replicas import Replica
from tests.support.stage import shorten

FOLLOWED = {ADMISSION_CHECK, PLACEMENT}


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Reports of kopf's handlers while the test runs: kind and kind of change ("": it was listed)."""
    found: list[tuple[str, str]] = []
    take_in = Session.event

    def event(self: Session, resource: Resource, change: str | None, obj: Mapping[str, Any]) -> None:
        found.append((resource.of.kind, change or ""))
        take_in(self, resource, change, obj)

    monkeypatch.setattr(Session, "event", event)
    return found


def test_kopf_hears_what_people_write(
    admin: Driver, controllers: Controllers, heard: list[tuple[str, str]]
) -> None:
    admin.check("p")
    admin.select("p", "a", "b")
    controllers.start()
    eventually(lambda: admin.listed("p"), ["p-a", "p-b"])
    eventually(lambda: {kind for kind, _ in heard}, {kind.kind for kind in FOLLOWED})
    heard.clear()
    admin.ask("DELETE", f"{OCM}/placements/p")
    eventually(lambda: admin.reason("p"), "PlacementNotFound")
    assert ("Placement", "DELETED") in heard


def test_kinds_in_other_namespaces_are_followed_there_alone(
    hub: Hub, admin: Driver, controllers: Controllers, heard: list[tuple[str, str]]
) -> None:
    """Placements are in one namespace, ClusterProfiles in Kueue's: there are two operators."""
    apps = admin.in_namespace("apps")
    admin.check("p")
    admin.secrets_for("a")
    apps.select("p", "a")
    controllers.start(placement_namespace="apps")
    eventually(lambda: admin.reason("p"), "Active")
    eventually(lambda: ("Placement", "") in heard)
    plurals = ("placements", "placementdecisions", "clusterprofiles")
    asked = {r.path for r in hub.journal if r.path.endswith(plurals)}
    assert {path.split("/namespaces/")[1] for path in asked} == {
        "apps/placements",
        "apps/placementdecisions",
        "kueue-system/clusterprofiles",
    }


def test_objects_that_vanished_while_kopf_was_away_are_noticed(
    hub: Hub, admin: Driver, controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(monkeypatch, KOPF_RELIST_SECONDS=1.0)
    admin.check("p")
    admin.select("p", "a")
    controllers.start()
    eventually(lambda: admin.reason("p"), "Active")
    hub.faults.add("GET", "/placements", status=500, times=3)  # so that the watch is away for a moment
    hub.forget_history()
    hub.drop_watches("error-410", "placements")
    admin.ask("DELETE", f"{OCM}/placements/p")
    eventually(lambda: admin.reason("p"), "PlacementNotFound")


@pytest.mark.parametrize("how", ["error-500", "garbage"])
def test_a_session_begins_anew_when_kopf_gives_up(
    hub: Hub, admin: Driver, controllers: Controllers, how: Any
) -> None:
    admin.check("p")
    admin.select("p", "a", "b")
    controllers.start()
    eventually(lambda: admin.listed("p"), ["p-a", "p-b"])
    hub.drop_watches(how, "placements")
    admin.ask("DELETE", f"{OCM}/placements/p")
    eventually(lambda: admin.reason("p"), "PlacementNotFound")


@pytest.mark.long
@pytest.mark.timeout(300)
def test_fifty_failed_watches_end_nothing(
    hub: Hub, admin: Driver, controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever watch of kopf's fails, in whatever way and at whatever moment, the controller goes on."""
    monkeypatch.setattr(manager, "RESTART_SECONDS", (0.01,))
    chance = random.Random(22)
    plurals = [kind.plural for kind in FOLLOWED]
    admin.check("p")
    admin.select("p", "a", "b")
    controllers.start()
    for turn in range(50):
        eventually(lambda: admin.reason("p"), "Active")
        how: Any = chance.choice(("error-500", "garbage", "error-410", "close"))
        hub.drop_watches(how, chance.choice((None, *plurals)))
        time.sleep(chance.uniform(0.0, 0.3))
        wanted = ["a"] if turn % 2 else ["a", "b"]
        admin.decide("p", *wanted)
        eventually(lambda: admin.listed("p"), [f"p-{name}" for name in wanted])  # asked at once


@pytest.mark.long
@pytest.mark.timeout(400)
def test_it_stops_within_three_seconds_at_any_of_fifty_moments(
    hub: Hub, admin: Driver, tmp_path: Path
) -> None:
    """From the first import to the middle of the work; before it has handlers, the signal ends it."""
    kubeconfig = tmp_path / "kubeconfig"
    hub.write_kubeconfig(kubeconfig)
    admin.check("p")
    admin.select("p", "a", "b")
    chance = random.Random(22)
    # A shell that runs the tests in the background has SIGINT ignored, until the controller has handlers.
    is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    signals = (signal.SIGTERM,) if is_ignored else (signal.SIGTERM, signal.SIGINT)
    took = []
    for _ in range(50):
        command = [sys.executable, "-m", "placement_ac", "run", "--kubeconfig", str(kubeconfig)]
        with subprocess.Popen([*command, "--log-level", "error"]) as process:
            time.sleep(chance.uniform(0.2, 3.5))
            admin.decide("p", chance.choice("ab"))
            process.send_signal(chance.choice(signals))
            began = time.monotonic()
            code = process.wait(20)
            took.append(time.monotonic() - began)
            assert code in (0, -signal.SIGTERM, -signal.SIGINT, 1, 130)
    assert max(took) < 3


def test_it_stops_within_three_seconds_while_the_api_server_hangs(
    hub: Hub, admin: Driver, tmp_path: Path
) -> None:
    """Whoever stops it reads which writes were cancelled."""
    admin.check("p")
    admin.select("p", "a")
    with (tmp_path / "log").open("wb") as log, Replica(hub, tmp_path, "one", log=log) as replica:
        eventually(lambda: admin.reason("p"), "Active", seconds=30)
        hub.faults.add(agent="placement-ac", delay=30, times=1000)
        admin.decide("p", "b")
        time.sleep(1)  # what is tested: the write is under way
        began = time.monotonic()
        replica.stop()
        assert time.monotonic() - began < 3
    assert "cancelled" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_before_there_is_a_controller_ends_it_with_a_line(number: signal.Signals) -> None:
    """In the middle of the imports."""
    code = (
        "import sys, time, placement_ac.__main__ as it\n"
        "sys.argv = ['placement-ac', 'run']\n"
        "it.import_module = lambda _: (print('importing', flush=True), time.sleep(20))\n"
        "it.main()"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "importing\n"
        process.send_signal(number)
        line = process.communicate(timeout=10)[1]
    assert (process.returncode, line) == (
        0,
        f"placement-ac: {number.name} before the controller has started\n",
    )


@pytest.mark.skipif(sys.platform != "linux", reason="needs tgkill, to choose the thread that gets the signal")
def test_a_signal_that_does_not_wake_the_main_thread_stops_it(
    hub: Hub, admin: Driver, tmp_path: Path
) -> None:
    """As one does that comes between the main thread's last look for signals and its wait."""
    kubeconfig = tmp_path / "kubeconfig"
    hub.write_kubeconfig(kubeconfig)
    admin.check("p")
    admin.select("p", "a", "b")
    with subprocess.Popen(
        [sys.executable, "-m", "placement_ac", "run", "--kubeconfig", str(kubeconfig), "--log-level", "error"]
    ) as process:
        try:
            eventually(lambda: admin.reason("p"), "Active", seconds=30)
            others = [int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()]
            others.remove(process.pid)
            assert others
            ctypes.CDLL(None).tgkill(process.pid, others[0], signal.SIGTERM)
            assert process.wait(3) == 0
        finally:
            process.kill()
