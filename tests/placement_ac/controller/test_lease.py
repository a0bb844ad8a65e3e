"""Several replicas: one writes, the others are ready to; and a leader that wakes up late writes nothing."""

import asyncio
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from placement_ac.config.settings import Settings
from placement_ac.controller.lease import Lease
from placement_ac.core.inputs.kinds import KOPF_KINDS
from placement_ac.core.leader_election import LeaseDurations
from placement_ac.kube.login import Login
from placement_lab.demo.environment import ControllerThread
from placement_lab.hub import Hub, RecordedRequest
from placement_lab.short_waits import short_waits
from tests.support.accounts import kubeconfig_of
from tests.support.driver import CORE, NS, Driver, eventually
from tests.support.replicas import LEASE, LEASES, QUICK, Audit, Replica, occupy

soon = partial(eventually, seconds=25.0)
"""Processes begin slowly on a busy machine."""

Start = Callable[..., ControllerThread]
NAMES = ("one", "two")


@pytest.fixture
def start(hub: Hub, admin: Driver, tmp_path: Path) -> Iterator[Start]:
    """Starts a replica in this process: its user's name, and settings. There is a check p that selects a."""
    admin.check("p")
    admin.select("p", "a")
    admin.secrets_for("b", "c")
    with short_waits(), ExitStack() as opened:

        def start(name: str, **settings: Any) -> ControllerThread:
            at_once = {"mass_loss_grace": 0, "settle": 0}
            path = kubeconfig_of(hub, tmp_path / name, hub.add_user(name))
            found = Settings(kubeconfig=path, **at_once | settings)
            return opened.enter_context(ControllerThread(found))

        yield start


@pytest.fixture
def processes(hub: Hub, admin: Driver, tmp_path: Path) -> Iterator[tuple[Replica, Replica]]:
    """Two replicas, each in a process of its own: the one that leads, and the other one."""
    admin.check("p")
    admin.select("p", "a")
    admin.secrets_for("b", "c")
    one, two = (Replica(hub, tmp_path, name, **QUICK) for name in NAMES)
    with one, two:
        eventually(lambda: is_warm(hub, *NAMES), seconds=90)
        soon(lambda: admin.listed("p"), ["p-a"])
        yield (one, two) if leaders(hub)[-1] == "one" else (two, one)


def is_warm(hub: Hub, *names: str) -> bool:
    return all(map(audit(hub).is_warm, names))


def lease(admin: Driver) -> dict[str, Any]:
    return dict((admin.get(LEASE) or {}).get("spec") or {})


def audit(hub: Hub) -> Audit:
    return Audit(NAMES).read(tuple(hub.journal))


def leaders(hub: Hub) -> list[str]:
    return [name for _, name in audit(hub).terms]


def writers(hub: Hub, since: float) -> set[str]:
    return {name for at, name in audit(hub).writes if at >= since}


def test_the_second_stands_by_with_a_warm_world_and_takes_over_at_a_stop(
    hub: Hub, admin: Driver, start: Start
) -> None:
    one = start("one")
    soon(lambda: admin.listed("p"), ["p-a"])
    start("two")
    soon(lambda: is_warm(hub, "two"))
    admin.decide("p", "b")
    soon(lambda: admin.listed("p"), ["p-b"])
    since = len(hub.journal)
    one.stop()
    soon(lambda: leaders(hub), ["one", "two"])
    admin.decide("p", "c")
    soon(lambda: admin.listed("p"), ["p-c"])
    assert lease(admin)["leaseTransitions"] == 1
    listed = {one.path for one in hub.journal[since:] if one.user == "two" and "limit" in one.query}
    of_kopf = tuple(f"/{kind.plural}" for kind in KOPF_KINDS)  # these are listed now and then
    assert {path for path in listed if not path.endswith(of_kopf)} == set(), "it has a warm world"
    assert audit(hub).strays == []


def test_a_single_replica_needs_no_lease_when_so_configured(hub: Hub, admin: Driver, start: Start) -> None:
    start("one", leader_elect=False)
    soon(lambda: admin.listed("p"), ["p-a"])
    assert [request.path for request in hub.journal if request.path.startswith(LEASES)] == []


def test_a_release_is_noticed_though_the_watch_hangs(hub: Hub, admin: Driver, start: Start) -> None:
    one = start("one", **QUICK)
    soon(lambda: admin.listed("p"), ["p-a"])
    start("two", **QUICK)
    soon(lambda: is_warm(hub, "two"))
    hub.drop_watches("hang", "leases")
    one.stop()
    soon(lambda: leaders(hub)[-1], "two")


def test_a_lease_that_is_deleted_is_made_anew_by_its_holder(hub: Hub, admin: Driver, start: Start) -> None:
    start("one", **QUICK)
    soon(lambda: admin.listed("p"), ["p-a"])
    start("two", **QUICK)
    soon(lambda: is_warm(hub, "two"))
    holder = lease(admin)["holderIdentity"]
    for _ in range(3):
        admin.ask("DELETE", LEASE)
        soon(lambda: lease(admin).get("holderIdentity"), holder)
    admin.decide("p", "b")
    soon(lambda: admin.listed("p"), ["p-b"])
    assert (audit(hub).strays, leaders(hub)) == ([], ["one"])


def test_who_is_not_named_any_more_stops_and_waits_for_who_is(hub: Hub, admin: Driver, start: Start) -> None:
    start("one", **QUICK)
    soon(lambda: admin.listed("p"), ["p-a"])
    somebody = {"spec": {"holderIdentity": "somebody", "renewTime": "2026-01-01T00:00:00.000000Z"}}
    admin.ask("PATCH", LEASE, somebody, "merge")
    began = time.time()
    soon(lambda: readings(hub, "one", began) >= 2)  # so it knows the answer to the first
    since = time.time()
    admin.decide("p", "b")
    soon(lambda: admin.listed("p"), ["p-b"])
    claims = (r for r in hub.journal if r.path == LEASE and r.method == "PUT" and r.at > began)
    taken = min(claim.at for claim in claims if claim.status == 200)  # a renewal may have come too late
    assert taken - began >= 2.9, "somebody may still write"
    assert [at for at, _ in audit(hub).writes if since <= at < taken] == []
    assert lease(admin)["leaseTransitions"] == 1


def test_who_cannot_renew_stops_writing_and_goes_on_when_it_can(
    hub: Hub, admin: Driver, start: Start
) -> None:
    start("one", **QUICK)
    soon(lambda: admin.listed("p"), ["p-a"])
    start("two", **QUICK)
    soon(lambda: is_warm(hub, "two"))
    hub.faults.add(path=LEASES, status=500, times=10_000)
    renewed = max(request.at for request in hub.journal if request.path == LEASE and request.status == 200)
    soon(lambda: time.time() > renewed + 2.2)
    since = time.time()
    admin.decide("p", "b")
    soon(lambda: time.time() > renewed + 4)
    assert writers(hub, since) == set()
    hub.faults.clear()
    soon(lambda: admin.listed("p"), ["p-b"])
    assert audit(hub).strays == []


@pytest.mark.usefixtures("admin")
async def test_a_term_that_ended_while_it_was_asleep_is_reported_before_the_next_one_begins(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of the Lease goes on while the machine sleeps, that of the event loop does not."""
    clock = time.clock_gettime

    def now(which: int) -> float:
        """It falls asleep when the hub has refused a renewal, and hears of that twelve seconds later."""
        return clock(which) + 12.0 * any(r.method == "PUT" and r.status == 409 for r in hub.journal)

    monkeypatch.setattr(time, "clock_gettime", now)
    audit: list[bool] = []
    login = Login(kubeconfig_of(hub, tmp_path / "one", hub.add_user("one")))
    lease = Lease(
        login, LeaseDurations(15.0, 10.0, 0.1), namespace=NS, name="placement-ac", on_change=audit.append
    )
    async with lease.run_election():
        await asyncio.to_thread(soon, lambda: audit, [True])
        hub.faults.add("PUT", "leases", status=409)
        await asyncio.to_thread(soon, lambda: audit[1:], [False, True])


@pytest.mark.usefixtures("admin")
async def test_the_election_goes_on_though_its_callback_fails(hub: Hub, tmp_path: Path) -> None:
    def fails(_: bool) -> None:
        raise RuntimeError

    login = Login(kubeconfig_of(hub, tmp_path / "one", hub.add_user("one")))
    lease = Lease(login, LeaseDurations(3.0, 2.0, 0.1), namespace=NS, name="placement-ac", on_change=fails)
    async with lease.run_election():
        await asyncio.to_thread(soon, lambda: renewals(hub) > 3)
        assert lease.leading


async def test_a_new_leader_is_an_event_on_the_lease_as_client_go_posts_it(
    hub: Hub, admin: Driver, tmp_path: Path
) -> None:
    """One for each term; renewals post none."""
    holders = []
    for name in NAMES:
        login = Login(kubeconfig_of(hub, tmp_path / name, hub.add_user(name)))
        durations = LeaseDurations(3.0, 2.0, 0.1)
        term = Lease(login, durations, namespace=NS, name="placement-ac", on_change=lambda _: None)
        before = renewals(hub)
        async with term.run_election():
            await asyncio.to_thread(soon, partial(renewed_since, hub, before))
            holders.append(lease(admin)["holderIdentity"])
    events = admin.ask("GET", f"{CORE}/namespaces/{NS}/events")["items"]
    found = [event for event in events if event["reason"] == "LeaderElection"]
    assert {event["message"] for event in found} == {f"{holder} became leader" for holder in holders}
    assert len(found) == len(NAMES)
    about = {key: found[0]["involvedObject"][key] for key in ("kind", "namespace", "name")}
    assert about == {"kind": "Lease", "namespace": NS, "name": "placement-ac"}
    assert (found[0]["source"], found[0]["type"]) == ({"component": "placement-ac"}, "Normal")


def renewed_since(hub: Hub, before: int) -> bool:
    return renewals(hub) > before + 3


def renewals(hub: Hub) -> int:
    return sum(request.method == "PUT" for request in tuple(hub.journal))


@pytest.mark.parametrize("path", [LEASE, LEASES], ids=["read", "watched"])
def test_the_lease_is_asked_for_again_when_the_api_server_allows(
    hub: Hub, admin: Driver, start: Start, path: str
) -> None:
    hub.faults.add("GET", f"{path}$", status=429, headers={"Retry-After": "2"})
    start("one", **QUICK)

    def asked() -> list[RecordedRequest]:
        return [r for r in tuple(hub.journal) if r.path == path and r.method == "GET"]

    soon(lambda: admin.listed("p"), ["p-a"])
    soon(lambda: len(asked()) > 1)
    refused, served, *_ = asked()
    assert (refused.status, served.at - refused.at >= 2.0) == (429, True)


@pytest.mark.long
@pytest.mark.timeout(200)
def test_a_leader_that_wakes_up_late_writes_nothing_and_one_that_is_killed_is_replaced(
    hub: Hub, admin: Driver, processes: tuple[Replica, Replica]
) -> None:
    """It sleeps amid its writes, with more to write: the list, and what was decided meanwhile.

    It is long, as it starts two processes and waits for three terms of the Lease to end.
    """
    leader, other = processes
    for decided, meanwhile, late in (("b", "c", "a"), ("c", "a", "b")):
        hub.faults.add("PATCH", "multikueueclusters", delay=0.5)
        admin.decide("p", decided)
        soon(lambda: hub.faults.all_met)
        leader.send(signal.SIGSTOP)
        soon(lambda: leaders(hub)[-1], other.name)
        admin.decide("p", meanwhile)
        soon(lambda: admin.listed("p"), [f"p-{meanwhile}"])
        since = time.time()
        leader.send(signal.SIGCONT)
        soon(lambda woken=leader.name, since=since: has_looked(hub, woken, since))
        admin.decide("p", late)
        soon(lambda: (admin.listed("p"), admin.clusters()), ([f"p-{late}"], [f"p-{late}"]))
        assert (writers(hub, since), audit(hub).strays) == ({other.name}, [])
        leader, other = other, leader
    leader.kill()
    renewed = max(r.at for r in hub.journal if r.user == leader.name and r.path == LEASE)
    admin.decide("p", "a", "b")
    soon(lambda: admin.listed("p"), ["p-a", "p-b"])
    taken, name = audit(hub).terms[-1]
    assert (name, taken - renewed >= 3, audit(hub).strays) == (other.name, True, [])


def readings(hub: Hub, name: str, since: float) -> int:
    """How often it has read the Lease; a renewal that is refused tells it nothing yet."""
    asked = (r for r in tuple(hub.journal) if r.user == name and r.path == LEASE and r.at > since)
    return sum(request.method == "GET" and "watch" not in request.query for request in asked)


def has_looked(hub: Hub, name: str, since: float) -> bool:
    """Whether it has asked who leads, and so has woken up."""
    return any(r.user == name and r.path == LEASE and r.at > since for r in tuple(hub.journal))


def test_who_may_write_the_lease_stops_nobody_for_ever(hub: Hub, admin: Driver, start: Start) -> None:
    for name in NAMES:
        start(name, **QUICK)
    soon(lambda: is_warm(hub, *NAMES))
    soon(lambda: admin.listed("p"), ["p-a"])
    occupy(admin)
    soon(lambda: lease(admin)["holderIdentity"] != "nobody")
    assert audit(hub).strays == []
    admin.decide("p", "b")
    soon(lambda: admin.listed("p"), ["p-b"])
