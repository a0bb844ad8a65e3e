"""Somebody else writes what the controller writes: no storm of writes, and an admin reads who it is."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from placement_lab.hub import Hub
from tests.support.driver import Controllers, Driver, eventually

WRITES = ("PATCH", "POST", "PUT", "DELETE")
UNDONE = "WritesUndone"
WHEN = "2026-08-01T12:00:00Z"
SECONDS = 4.0
"""No write happens for so long that an unlimited controller would write hundreds of times."""


@pytest.fixture
def running(admin: Driver, controllers: Controllers) -> Driver:
    admin.check("p")
    admin.select("p", "a", "b")
    controllers.start()
    eventually(lambda: admin.reason("p"), "Active")
    return admin


@contextmanager
def again_and_again(hub: Hub, path: str, ours: Any) -> Iterator[None]:
    """Do something whenever the controller has written an object whose path ends like that."""
    over = threading.Event()

    def rival() -> None:
        since = 0
        while not over.wait(0.005):
            if writes(hub, path, since):
                since = len(hub.journal)
                ours()

    thread = threading.Thread(target=rival)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def writes(hub: Hub, path: str = "", since: int = 0) -> int:
    """Return how often the controller has written."""
    return sum(
        request.user_agent == "placement-ac"
        and request.method in WRITES
        and path in request.path
        and "/leases" not in request.path
        and "/events" not in request.path
        for request in hub.journal[since:]
    )


def undone_events(admin: Driver) -> list[str]:
    return [event["message"] for event in admin.events() if event["reason"] == UNDONE]


def test_a_rival_that_resets_the_condition_is_reported_and_not_answered_without_an_end(
    hub: Hub, running: Driver
) -> None:
    """Jobs go on: their answers do not wait."""
    path = running.kueue("admissionchecks", "p", "status")
    theirs = {"type": "Active", "status": "False", "reason": "X", "message": "", "lastTransitionTime": WHEN}
    reset = {"status": {"conditions": [theirs]}}
    with again_and_again(hub, path, lambda: running.ask("PATCH", path, reset, "merge", fieldManager="rival")):
        running.ask("PATCH", path, reset, "merge", fieldManager="rival")
        eventually(lambda: undone_events(running))
        since = len(hub.journal)
        running.decide("p", "a")
        eventually(lambda: running.listed("p"), ["p-a"])
        time.sleep(SECONDS)  # what is tested: see there
        assert writes(hub, path, since) <= 1 + 6, (
            "the message changes with the decision, and is undone as well"
        )
    [message] = undone_events(running)
    assert message == (
        "stop rival from undoing what we write to AdmissionCheck p; until then we write it every 30 s"
    )


def test_two_installations_that_want_different_things(
    hub: Hub, admin: Driver, controllers: Controllers
) -> None:
    """Each has its own Lease, so both lead."""
    admin.check("p")
    admin.select("p", "a", "b")
    controllers.start(leader_elect=True, leader_elect_resource_name="one")
    controllers.start(leader_elect=True, leader_elect_resource_name="other", placement_namespace="elsewhere")
    eventually(lambda: any("stop another placement-ac from" in message for message in undone_events(admin)))
    since = len(hub.journal)
    time.sleep(SECONDS)  # what is tested: see there
    assert writes(hub, "", since) / SECONDS < 10
