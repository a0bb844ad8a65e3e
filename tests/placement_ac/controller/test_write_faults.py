"""Faults between the controller and the hub: nothing is lost, and no server is overloaded."""

import base64
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from placement_lab.hub import Hub
from tests.support.builders import jwt, kubeconfig
from tests.support.driver import Controllers, Driver, eventually
from tests.support.replicas import LISTED
from tests.support.stage import shorten

CONFIGS = "multikueueconfigs"


@pytest.fixture
def running(hub: Hub, admin: Driver, controllers: Controllers) -> Driver:
    """A controller with one Active check, p, on clusters a and b; c has credentials too."""
    admin.check("p")
    admin.select("p", "a", "b")
    admin.secrets_for("c")
    controllers.start()
    eventually(lambda: admin.reason("p"), "Active")
    return admin


def asked_by_controller(hub: Hub, since: int) -> int:
    """Requests of the controller, its kopf included."""
    agents = ("placement-ac", "kopf/")
    return sum((request.user_agent or "").startswith(agents) for request in hub.journal[since:])


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({"status": 500}, id="500"),
        pytest.param({"hang_up": True, "after": True}, id="answer lost after the write"),
    ],
)
def test_a_write_that_fails_is_made_up_for(hub: Hub, running: Driver, fault: dict[str, Any]) -> None:
    since = len(hub.journal)
    hub.faults.add("PATCH", CONFIGS, times=3, **fault)
    running.decide("p", "a", "c")
    eventually(lambda: running.listed("p"), ["p-a", "p-c"], seconds=10)
    eventually(running.clusters, ["p-a", "p-c"])
    assert asked_by_controller(hub, since) < 30


def test_a_hub_that_is_not_there_yet_is_waited_for(hub: Hub, admin: Driver, controllers: Controllers) -> None:
    admin.check("p")
    admin.select("p", "a")
    with hub.outage():
        controllers.start()
        time.sleep(1)  # what is tested: it must not give up
    eventually(lambda: admin.reason("p"), "Active", seconds=15)


def test_nothing_is_decided_before_every_kind_has_been_listed(
    hub: Hub, admin: Driver, controllers: Controllers
) -> None:
    admin.check("p")
    admin.select("p", "a")
    since = len(hub.journal)
    hub.faults.add("GET", "addonplacementscores", status=503, times=3)
    controllers.start()
    eventually(lambda: admin.reason("p"), "Active", seconds=15)
    asked = hub.journal[since:]
    first_write = next(
        i for i, r in enumerate(asked) if r.method == "PATCH" and r.user_agent == "placement-ac"
    )
    listed = {
        r.path.rsplit("/", 1)[-1]
        for r in asked[:first_write]
        if r.method == "GET" and r.status == 200 and r.user_agent == "placement-ac" and "limit" in r.query
    }
    assert listed - {"capacityproviders"} == LISTED  # that one only where the hub serves it


def test_an_idle_controller_is_quiet(hub: Hub, running: Driver) -> None:
    eventually(lambda: [event["reason"] for event in running.events()], ["ClustersSelected"])

    def asked_in_two_seconds() -> int:
        since = len(hub.journal)
        time.sleep(2)  # what is tested: nothing happens, so nothing is asked
        return asked_by_controller(hub, since)

    eventually(lambda: asked_in_two_seconds() == 0)  # while kopf starts, its kinds are listed again


def test_credentials_are_judged_anew_when_the_clock_was_set(
    admin: Driver, controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else happens: no event comes that would be a reason to look."""
    shorten(monkeypatch, SETTLE_SECONDS=0.1, CHECK_INTERVAL_SECONDS=0.2)
    ahead = [timedelta()]
    monkeypatch.setattr("placement_ac.controller.session.utc_now", lambda: datetime.now(UTC) + ahead[0])
    good_for_an_hour = kubeconfig(jwt(issued=datetime.now(UTC), hours=1), server="https://127.0.0.1:1")
    admin.check("p")
    admin.secret("multikueue-a", value=base64.b64encode(good_for_an_hour).decode())
    admin.select("p", "a")
    controllers.start()
    eventually(lambda: admin.reason("p"), "Active")
    time.sleep(0.5)  # whatever is still to be looked at
    ahead[0] = timedelta(days=1)
    eventually(lambda: admin.reason("p"), "NoClusterUsable")
    time.sleep(0.5)  # as above
    ahead[0] = timedelta(days=-1)
    eventually(lambda: admin.reason("p"), "Active")
