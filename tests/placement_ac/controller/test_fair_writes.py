"""Writes of one team that hang keep no other team waiting."""

import time
from collections.abc import Callable
from typing import Final

import pytest

from placement_lab.hub import Hub
from tests.support.driver import Controllers, Driver, eventually
from tests.support.jobs import has_quota, managed, workloads_in

HANGING: Final = 60
HANG_SECONDS: Final = 6.0
WAIT_SECONDS: Final = 1.0
"""How long another team may wait."""


def seconds_until(ask: Callable[[], object], wanted: object) -> float:
    began = time.monotonic()
    eventually(ask, wanted, seconds=2 * HANG_SECONDS)
    return time.monotonic() - began


def state(admin: Driver, namespace: str, name: str, check: str) -> str:
    workload = admin.ask("GET", f"{workloads_in(namespace)}/{name}")
    return next(
        admission_check["state"]
        for admission_check in workload["status"]["admissionChecks"]
        if admission_check["name"] == check
    )


def hangs(hub: Hub, path: str) -> None:
    """Let a webhook hold each write of the controller to such a path."""
    hub.faults.add(("PATCH", "POST"), path, agent="placement-ac", delay=HANG_SECONDS, times=10**6)


@pytest.fixture
def teams(hub: Hub, admin: Driver, controllers: Controllers) -> Driver:
    """Two teams with a Placement each, p and q, and a namespace each; clusters a and b."""
    for team in ("team-p", "team-q"):
        admin.namespace(team)
    for name in ("p", "q"):
        admin.check(name)
        admin.select(name, "a")
    admin.secrets_for("b")
    managed(admin, "a", "b")
    return admin


def hanging_workloads(hub: Hub, admin: Driver) -> None:
    hangs(hub, "/namespaces/team-p/workloads")
    for number in range(HANGING):
        has_quota(admin, f"w{number}", "p", namespace="team-p")


def test_workloads_of_one_namespace(hub: Hub, teams: Driver, controllers: Controllers) -> None:
    """Those of another namespace are of the same Placement."""
    controllers.start()
    eventually(lambda: [teams.reason(name) for name in ("p", "q")], ["Active", "Active"])
    hanging_workloads(hub, teams)
    time.sleep(0.5)  # until as many hang as may
    has_quota(teams, "other", "p", namespace="team-q")
    assert seconds_until(lambda: state(teams, "team-q", "other", "p"), "Ready") <= WAIT_SECONDS
    teams.decide("q", "b")
    assert seconds_until(lambda: (teams.listed("q") or [""])[0], "q-b") <= WAIT_SECONDS


def test_placements(hub: Hub, teams: Driver, controllers: Controllers) -> None:
    for number in range(HANGING):
        teams.check(f"t{number}")
        teams.placement(f"t{number}")
    controllers.start()
    eventually(lambda: teams.reason("q"), "Active")
    hangs(hub, "/multikueueclusters/t")
    for number in range(HANGING):
        teams.decide(f"t{number}", "a")
    time.sleep(0.5)  # until as many hang as may
    teams.decide("q", "b")
    assert seconds_until(lambda: (teams.listed("q") or [""])[0], "q-b") <= WAIT_SECONDS
