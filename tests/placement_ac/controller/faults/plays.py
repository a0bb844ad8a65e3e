"""
Faults between the controller and the hub, played on a stage where jobs run.

Before each play, clusters a and b are selected and a job runs on a. The play has c come in a's place and b's
MultiKueueCluster go, so that each way of watching has news, and returns when time begins to be counted. Then
all must be right again: c and b listed, a drains under its job. A play sleeps as long as its fault lasts:
short in the tests.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import yaml

from placement_lab.hub import Hub
from placement_lab.hub.faults import WRITES
from tests.support.credentials import put, token_of
from tests.support.driver import OCM, Driver, Object, eventually
from tests.support.jobs import Stage, soon

OURS: Final = ("placement-ac", "kopf/")
"""How the User-Agents of the controller begin: its own, and kopf's."""
FOR_EVER: Final = 10**9
CLUSTERS: Final = ("a", "b", "c")
RIGHT: Final = {
    "configs": {"p": ["p-b", "p-c", "p-a"]},
    "clusters": ["p-a", "p-b", "p-c"],
    "conditions": {"p": ("True", "Active")},
}
"""c has come in a's place, and a drains."""
B_CAME_BACK: Final = RIGHT | {"configs": {"p": ["p-c", "p-b", "p-a"]}}
"""The same, where b was left out for a while: the order alone is no reason for a write."""


@dataclass
class Clock:
    """The controller's wall clock, which may be set."""

    ahead: timedelta = field(default_factory=timedelta)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@dataclass
class Scene:
    """The stage, and the ways to spoil it."""

    stage: Stage
    clock: Clock
    token: Path
    """The file that the controller reads its token from."""

    @property
    def hub(self) -> Hub:
        return self.stage.admin.hub

    @property
    def admin(self) -> Driver:
        return self.stage.admin

    def change(self) -> float:
        """Have c come in a's place, take b's MultiKueueCluster away by hand, and return when."""
        self.stage.select("c", "b")
        self.admin.ask("DELETE", self.admin.kueue("multikueueclusters", "p-b"))
        return time.monotonic()

    def world(self) -> Object:
        """The result of the controller's work."""
        kueue = self.admin.kueue
        configs = self.admin.ask("GET", kueue("multikueueconfigs"))["items"]
        checks = self.admin.ask("GET", kueue("admissionchecks"))["items"]
        ours = [c["metadata"]["name"] for c in checks if c["spec"]["controllerName"].endswith("/placement")]
        actives = {name: self.admin.active(name) for name in ours}
        return {
            "configs": {config["metadata"]["name"]: config["spec"]["clusters"] for config in configs},
            "clusters": self.admin.clusters(),
            "conditions": {name: (one.get("status"), one.get("reason")) for name, one in actives.items()},
        }

    def asked(self, since: int) -> int:
        """How many requests the controller has made, beside those for its Lease."""
        requests = list(self.hub.journal)[since:]
        return sum(
            request.user_agent.startswith(OURS) and "/leases" not in request.path for request in requests
        )


def prepare(stage: Stage, folder: Path) -> Scene:
    """Put Placement and decision there, and a kubeconfig whose token is read from a file."""
    token = folder / "token"
    token.write_text(stage.admin.hub.add_user("controller"))
    stage.controllers.kubeconfig = folder / "kubeconfig-with-a-file"
    write_kubeconfig(stage.admin.hub, token, stage.controllers.kubeconfig)
    stage.select("a")
    return Scene(stage, Clock(), token)


def write_kubeconfig(hub: Hub, token: Path, path: Path) -> None:
    content = hub.kubeconfig()
    content["users"][0]["user"] = {"tokenFile": str(token)}
    path.write_text(yaml.safe_dump(content))


def begin(scene: Scene) -> None:
    """With a controller that runs: let a job run on a, and select b as well."""
    scene.stage.submit("j")
    scene.stage.until_runs("j", "a")
    scene.stage.select("a", "b")
    scene.stage.until_listed("a", "b")


# -- what must be true after each


def nothing_is_lost(scene: Scene) -> None:
    """A change of each kind is heard: a new check, Placement, decision; objects of ours that go."""
    scene.admin.check("new")
    scene.stage.select("b", placement="new")
    soon(lambda: scene.admin.reason("new"), "Active")
    scene.admin.ask("DELETE", scene.admin.kueue("multikueueconfigs", "new"))
    soon(lambda: scene.admin.listed("new"), ["new-b"])
    scene.admin.ask("DELETE", scene.admin.kueue("multikueueclusters", "new-b"))
    soon(lambda: "new-b" in scene.admin.clusters())
    scene.admin.ask("DELETE", scene.admin.kueue("admissionchecks", "new"))
    soon(lambda: "new-b" not in scene.admin.clusters())


def end_well(scene: Scene) -> None:
    """The job, which ran on a all the time, finishes; then a leaves."""
    stage = scene.stage
    stage.finish("j")
    soon(lambda: sorted(stage.listed()), ["b", "c"])
    soon(scene.admin.clusters, ["p-b", "p-c"])
    stage.until_finished("j")
    assert stage.account("j") == (1, 1, True)


def comes_to_rest(scene: Scene, seconds: float) -> bool:
    """Whether nothing is written any more, once the last condition has been set."""
    time.sleep(0.3)
    since = len(scene.hub.journal)
    time.sleep(seconds)
    return not any(path for _, path in scene.admin.writes(since) if "/leases/" not in path)


# -- the API server


def api_server_gone(scene: Scene, seconds: float) -> float:
    with scene.hub.outage():
        time.sleep(seconds)
    return scene.change()


def api_server_with_a_new_history(scene: Scene, seconds: float) -> float:
    with scene.hub.outage():
        scene.hub.forget_history()
        time.sleep(seconds)
    scene.hub.drop_watches("error-410")
    return scene.change()


def storm_of_500s(scene: Scene, seconds: float) -> float:
    return _storm(scene, seconds, status=500)


def answers_429_with_retry_after(scene: Scene, seconds: float) -> float:
    return _storm(scene, seconds, status=429, headers={"Retry-After": "1"})


def api_server_with_another_ca(scene: Scene, seconds: float) -> float:
    """Nobody trusts it until the new CA is on disk."""
    with scene.hub.outage():
        scene.hub.rotate_ca()
    scene.change()
    time.sleep(seconds)
    scene.hub.write_kubeconfig(scene.stage.kueue_kubeconfig)
    write_kubeconfig(scene.hub, scene.token, scene.stage.controllers.kubeconfig)
    return time.monotonic()


def _storm(scene: Scene, seconds: float, **fault: Any) -> float:
    scene.hub.faults.add(agent=OURS, times=FOR_EVER, **fault)
    scene.hub.drop_watches("close", agent=OURS)
    scene.change()
    time.sleep(seconds)
    scene.hub.faults.clear()
    return time.monotonic()


def slow_api_server(scene: Scene, seconds: float) -> float:
    scene.hub.faults.add(agent=OURS, times=FOR_EVER, delay=seconds)
    return scene.change()


def expired_token(scene: Scene, seconds: float) -> float:
    scene.hub.expire_token(scene.token.read_text())
    scene.hub.drop_watches("close", agent=OURS)
    scene.change()
    time.sleep(seconds)
    scene.token.write_text(scene.hub.add_user("controller"))
    return time.monotonic()


# -- the watches


def objects_that_vanished_in_a_gap(scene: Scene, seconds: float) -> float:
    """A check of ours with all that is its own, and the config of the other; only a list can tell."""
    scene.hub.drop_watches("hang", agent=OURS)
    scene.admin.ask("DELETE", scene.admin.kueue("multikueueconfigs", "p"))
    scene.admin.ask("DELETE", scene.admin.kueue("admissionchecks", "q"))
    scene.admin.ask("DELETE", f"{OCM}/placements/q")
    time.sleep(seconds)
    scene.hub.forget_history()
    began = scene.change()
    scene.hub.drop_watches("error-410", agent=OURS)
    return began


def another_check(scene: Scene) -> None:
    """The one that vanishes."""
    scene.admin.check("q")
    scene.stage.select("b", placement="q")


def watch_that_hangs(scene: Scene, _: float) -> float:
    scene.hub.drop_watches("hang", agent=OURS)
    return scene.change()


def garbage_in_a_watch(scene: Scene, _: float) -> float:
    scene.hub.drop_watches("garbage", agent=OURS)
    return scene.change()


def events_twice_and_in_any_order(scene: Scene, seconds: float) -> float:
    chance = random.Random(5)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        scene.hub.repeat_history(chance, agent=OURS)
        time.sleep(0.2)
    began = scene.change()
    scene.hub.repeat_history(chance, agent=OURS)
    return began


# -- others


def storm_of_409s(scene: Scene, seconds: float) -> float:
    """Somebody else writes all the time to whatever we write to, and is always faster."""
    scene.hub.faults.add(WRITES, agent=OURS, times=FOR_EVER, status=409)
    with _rival(scene.hub):
        scene.change()
        time.sleep(seconds)
        scene.hub.faults.clear()
    return time.monotonic()


@contextmanager
def _rival(hub: Hub) -> Iterator[None]:
    done = threading.Event()

    def write() -> None:
        with Driver(hub) as driver:
            kinds = ("multikueueconfigs", "multikueueclusters", "admissionchecks")
            paths = [driver.kueue("multikueueconfigs", "p"), driver.kueue("multikueueclusters", "p-a")]
            paths += [driver.kueue(kinds[2], "p")]
            count = 0
            while not done.wait(0.02):
                count += 1
                patch = {"metadata": {"annotations": {"example.com/count": str(count)}}}
                driver.try_("PATCH", paths[count % len(paths)], patch, "merge")

    rival = threading.Thread(target=write, daemon=True)
    rival.start()
    try:
        yield
    finally:
        done.set()
        rival.join()


def clock_that_jumps(scene: Scene, seconds: float) -> float:
    """A day ahead, while a drains, so that b's token seems to have expired; then back behind where it was."""
    scene.clock.ahead = timedelta(days=1)
    scene.stage.select("c", "b")
    eventually(lambda: scene.admin.reason("p"), "SomeClustersUnusable", seconds=20)
    time.sleep(seconds)
    scene.clock.ahead = timedelta(days=-1)
    return time.monotonic()


def a_token_of_an_hour(scene: Scene) -> None:
    """Give b's kubeconfig a token of an hour."""
    with Driver(scene.stage.fleet.hubs["b"]) as worker:
        put(scene.stage, "b", token_of(worker, 3600))


@dataclass(frozen=True)
class Fault:
    """One play; `lasts`: for how many seconds."""

    play: Callable[[Scene, float], float]
    lasts: float
    asks: int
    """The most requests that the controller may make until all is right again."""
    before: Callable[[Scene], None] = lambda scene: None
    right: Object = field(default_factory=lambda: RIGHT)

    @property
    def name(self) -> str:
        return self.play.__name__


FAULTS: Final = (
    Fault(api_server_gone, 2, 120),
    Fault(api_server_with_a_new_history, 1, 120),
    Fault(objects_that_vanished_in_a_gap, 0, 120, another_check),
    Fault(watch_that_hangs, 0, 60),
    Fault(garbage_in_a_watch, 0, 120),
    Fault(answers_429_with_retry_after, 2, 120),
    Fault(storm_of_500s, 2, 300),
    Fault(slow_api_server, 0.5, 60),
    Fault(storm_of_409s, 2, 120),
    Fault(expired_token, 1, 200),
    Fault(api_server_with_another_ca, 1, 200),
    Fault(clock_that_jumps, 0, 60, a_token_of_an_hour, B_CAME_BACK),
    Fault(events_twice_and_in_any_order, 1, 60),
)
