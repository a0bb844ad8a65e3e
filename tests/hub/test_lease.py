"""Several replicas: one writes, the others are ready to; and a leader that wakes up late writes nothing."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from placement_ac.demo.stage import ControllerThread
from placement_ac.hub import Hub
from tests.hub.driver import Driver, eventually
from tests.hub.replicas import LEASE, LEASES, QUICK, Record, Replica, kubeconfig, record

pytestmark = pytest.mark.embedded("it reads the journal, and orders faults")

Start = Callable[..., ControllerThread]
NAMES = ("one", "two")
LISTED = {
    "admissionchecks",
    "addonplacementscores",
    "clusterprofiles",
    "managedclusters",
    "multikueueclusters",
    "multikueueconfigs",
    "placementdecisions",
    "placements",
    "secrets",
    "workloads",
}


@pytest.fixture
def start(hub: Hub, admin: Driver, tmp_path: Path) -> Iterator[Start]:
    """Starts a replica in this process: its user's name, and settings. There is a check p that selects a."""
    admin.check("p")
    admin.select("p", "a")
    admin.secrets_for("b", "c")
    with ExitStack() as opened:

        def start(name: str, **settings: Any) -> ControllerThread:
            at_once = {"cluster_retention": 0, "mass_loss_grace": 0, "reorder_margin": 0}
            found = ControllerThread(kubeconfig=kubeconfig(hub, tmp_path, name), **at_once | settings)
            return opened.enter_context(found)

        yield start


@pytest.fixture
def processes(hub: Hub, admin: Driver, tmp_path: Path) -> Iterator[tuple[Replica, Replica]]:
    """Two replicas, each in a process of its own; the first one leads."""
    admin.check("p")
    admin.select("p", "a")
    admin.secrets_for("b", "c")
    one, two = (Replica(hub, tmp_path, name, **QUICK) for name in NAMES)
    with one:
        eventually(lambda: admin.listed("p"), ["p-a"], seconds=30)
        with two:
            eventually(lambda: is_warm(hub, "two"), seconds=30)
            yield one, two


def is_warm(hub: Hub, name: str) -> bool:
    """Whether it has listed what it decides on, and follows it."""
    followed = {
        request.path.rsplit("/", 1)[1]
        for request in tuple(hub.journal)
        if request.user == name and request.method == "GET" and "limit" in request.query
    }
    return followed >= LISTED


def lease(admin: Driver) -> dict[str, Any]:
    return dict((admin.get(LEASE) or {}).get("spec") or {})


def told(hub: Hub) -> Record:
    return record(tuple(hub.journal), NAMES)


def leaders(hub: Hub) -> list[str]:
    return [name for _, name in told(hub).terms]


def writers(hub: Hub, since: float) -> set[str]:
    return {name for at, name in told(hub).writes if at >= since}


def test_the_second_stands_by_with_a_warm_world_and_takes_over_at_a_stop(
    hub: Hub, admin: Driver, start: Start
) -> None:
    one = start("one")
    eventually(lambda: admin.listed("p"), ["p-a"])
    start("two")
    eventually(lambda: is_warm(hub, "two"))
    admin.decide("p", "b")
    eventually(lambda: admin.listed("p"), ["p-b"])
    since = len(hub.journal)
    one.stop()
    eventually(lambda: leaders(hub), ["one", "two"])
    admin.decide("p", "c")
    eventually(lambda: admin.listed("p"), ["p-c"])
    assert lease(admin)["leaseTransitions"] == 1
    read = {
        request.path for request in hub.journal[since:] if request.user == "two" and "limit" in request.query
    }
    assert read == set(), "it has a warm world"
    assert told(hub).strays == ()


def test_who_is_alone_does_without_a_lease_when_told(hub: Hub, admin: Driver, start: Start) -> None:
    start("one", leader_elect=False)
    eventually(lambda: admin.listed("p"), ["p-a"])
    assert [request.path for request in hub.journal if request.path.startswith(LEASES)] == []


def test_a_release_is_noticed_though_the_watch_hangs(hub: Hub, admin: Driver, start: Start) -> None:
    one = start("one", **QUICK)
    eventually(lambda: admin.listed("p"), ["p-a"])
    start("two", **QUICK)
    eventually(lambda: is_warm(hub, "two"))
    hub.drop_watches("hang", "leases")
    one.stop()
    eventually(lambda: leaders(hub)[-1], "two")


def test_a_lease_that_is_deleted_is_made_anew_by_its_holder(hub: Hub, admin: Driver, start: Start) -> None:
    start("one", **QUICK)
    eventually(lambda: admin.listed("p"), ["p-a"])
    start("two", **QUICK)
    eventually(lambda: is_warm(hub, "two"))
    holder = lease(admin)["holderIdentity"]
    for _ in range(3):
        admin.ask("DELETE", LEASE)
        eventually(lambda: lease(admin).get("holderIdentity"), holder)
    admin.decide("p", "b")
    eventually(lambda: admin.listed("p"), ["p-b"])
    assert (told(hub).strays, leaders(hub)) == ((), ["one"])


def test_who_is_not_named_any_more_stops_and_waits_for_who_is(hub: Hub, admin: Driver, start: Start) -> None:
    start("one", **QUICK)
    eventually(lambda: admin.listed("p"), ["p-a"])
    somebody = {"spec": {"holderIdentity": "somebody", "renewTime": "2026-01-01T00:00:00.000000Z"}}
    admin.ask("PATCH", LEASE, somebody, "merge")
    began = time.time()
    eventually(lambda: has_looked(hub, "one", began))
    since = time.time()
    admin.decide("p", "b")
    eventually(lambda: admin.listed("p"), ["p-b"])
    taken = min(r.at for r in hub.journal if r.path == LEASE and r.method == "PUT" and r.at > began)
    assert taken - began >= 1.9, "somebody may still write"
    assert [at for at, _ in told(hub).writes if since <= at < taken] == []
    assert lease(admin)["leaseTransitions"] == 1


def test_who_cannot_renew_stops_writing_and_goes_on_when_it_can(
    hub: Hub, admin: Driver, start: Start
) -> None:
    start("one", **QUICK)
    eventually(lambda: admin.listed("p"), ["p-a"])
    start("two", **QUICK)
    eventually(lambda: is_warm(hub, "two"))
    hub.faults.add(path=LEASES, status=500, times=10_000)
    renewed = max(request.at for request in hub.journal if request.path == LEASE and request.status == 200)
    eventually(lambda: time.time() > renewed + 1.5)
    since = time.time()
    admin.decide("p", "b")
    eventually(lambda: time.time() > renewed + 3)
    assert writers(hub, since) == set()
    hub.faults.clear()
    eventually(lambda: admin.listed("p"), ["p-b"])
    assert told(hub).strays == ()


def test_who_comes_back_after_an_outage_leads_before_it_writes(hub: Hub, admin: Driver, start: Start) -> None:
    start("one", **QUICK)
    start("two", **QUICK)
    eventually(lambda: admin.listed("p"), ["p-a"])
    eventually(lambda: is_warm(hub, "one") and is_warm(hub, "two"))
    with hub.outage():
        began = time.time()
        eventually(lambda: time.time() > began + 2.5)
    admin.decide("p", "b")
    eventually(lambda: admin.listed("p"), ["p-b"], seconds=15)
    assert told(hub).strays == ()


def test_a_lease_that_cannot_be_read_ends_nothing(hub: Hub, admin: Driver, start: Start) -> None:
    garbage = {"metadata": {"name": "placement-ac", "resourceVersion": "1"}, "spec": ["x"]}
    hub.faults.add("GET", LEASE, status=200, body=garbage, times=2)
    hub.faults.add("GET", LEASE, status=200, body={"spec": 1}, times=2)
    start("one", **QUICK)
    eventually(lambda: admin.listed("p"), ["p-a"])


def test_after_a_crash_the_other_one_takes_over(
    hub: Hub, admin: Driver, processes: tuple[Replica, Replica]
) -> None:
    one, _ = processes
    one.send(signal.SIGKILL)
    admin.decide("p", "b")
    eventually(lambda: admin.listed("p"), ["p-b"], seconds=15)
    assert (leaders(hub), told(hub).strays) == (["one", "two"], ())
    renewed = max(r.at for r in hub.journal if r.user == "one" and r.path == LEASE and r.status == 200)
    [(_, _), (taken, _)] = told(hub).terms
    assert taken - renewed >= 2, "the Lease had to end first"


def test_a_leader_that_wakes_up_late_writes_nothing(
    hub: Hub, admin: Driver, processes: tuple[Replica, Replica]
) -> None:
    """It is stopped amid its writes, with more to write: the list, and what was decided meanwhile."""
    leader, other = processes
    for decided, meanwhile, late in (("b", "c", "a"), ("c", "a", "b")):
        hub.faults.add("PATCH", "multikueueclusters", delay=0.5)
        admin.decide("p", decided)
        eventually(lambda: hub.faults.all_met)
        leader.send(signal.SIGSTOP)
        eventually(lambda: leaders(hub)[-1], other.name, seconds=20)
        admin.decide("p", meanwhile)
        eventually(lambda: admin.listed("p"), [f"p-{meanwhile}"], seconds=20)
        since = time.time()
        leader.send(signal.SIGCONT)
        eventually(lambda woken=leader.name, since=since: has_looked(hub, woken, since), seconds=20)
        admin.decide("p", late)
        eventually(lambda: (admin.listed("p"), admin.clusters()), ([f"p-{late}"], [f"p-{late}"]), seconds=20)
        assert (writers(hub, since), told(hub).strays) == ({other.name}, ())
        leader, other = other, leader
    assert leader.runs
    assert other.runs


def has_looked(hub: Hub, name: str, since: float) -> bool:
    """Whether it has asked who leads, and so has woken up."""
    return any(r.user == name and r.path == LEASE and r.at > since for r in tuple(hub.journal))
