"""Placements from several namespaces: which one counts, and what a namespace that cannot be read does."""

from typing import Any

import pytest

from placement_ac.lab.hub import Hub
from placement_ac.observability import logs
from tests.support.driver import Controllers, Driver, eventually

FORBIDDEN: dict[str, Any] = {"status": 403, "body": {"kind": "Status", "code": 403, "message": "not for you"}}


@pytest.fixture
def first(admin: Driver) -> Driver:
    return admin.in_namespace("first")


@pytest.fixture
def second(admin: Driver) -> Driver:
    return admin.in_namespace("second")


def test_a_check_follows_the_first_namespace_that_has_its_placement(
    admin: Driver, first: Driver, second: Driver, controllers: Controllers
) -> None:
    controllers.start(placement_namespace="first, second")
    for name in ("p", "q"):
        admin.check(name)
    eventually(
        lambda: admin.active("p").get("message"),
        ("correct spec.parameters.name, or create Placement first/p or second/p: it does not exist"),
    )
    admin.secrets_for("a", "b", "c")
    second.select("p", "b", "c")
    first.select("q", "c")
    eventually(lambda: (admin.listed("p"), admin.listed("q")), (["p-b", "p-c"], ["q-c"]))
    first.select("p", "a")
    eventually(lambda: admin.listed("p"), ["p-a"])
    second.decide("p", "c")
    second.decide("q", "a")  # beside no Placement
    first.ask("DELETE", f"{first.ocm}/placements/p")
    eventually(lambda: admin.listed("p"), ["p-c"])
    assert (admin.listed("q"), admin.reason("p"), admin.reason("q")) == (["q-c"], "Active", "Active")
    second.ask("DELETE", f"{second.ocm}/placements/p")
    eventually(lambda: admin.reason("p"), "PlacementNotFound")
    assert admin.listed("p") == ["p-c"]


def test_a_namespace_that_may_not_be_read_is_told_and_nothing_is_decided(
    hub: Hub, admin: Driver, first: Driver, controllers: Controllers, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.faults.add("GET", "/namespaces/second/placements$", times=10_000, **FORBIDDEN)
    logs.configure("text", "warning")
    admin.check("p")
    first.select("p", "a")
    since = len(hub.journal)
    controllers.start(placement_namespace="first,second")
    output = ""
    while "may not follow" not in output:
        output += eventually(lambda: capsys.readouterr().err)
    (line,) = [line for line in output.splitlines() if "may not follow" in line]
    for word in ("placements.cluster.open-cluster-management.io", "namespace=second", "not for you"):
        assert word in line
    assert admin.writes(since) == []
    hub.faults.clear()
    eventually(lambda: admin.reason("p"), "Active")


def test_a_right_that_is_lost_later_leaves_what_is_known(
    hub: Hub, admin: Driver, first: Driver, second: Driver, controllers: Controllers
) -> None:
    for name, ocm in (("p", first), ("q", second)):
        admin.check(name)
        ocm.select(name, "a")
    controllers.start(placement_namespace="first,second")
    eventually(lambda: admin.reason("p") + admin.reason("q"), "ActiveActive")
    hub.faults.add("GET", "/namespaces/second/", times=10_000, **FORBIDDEN)
    hub.drop_watches("close")
    first.decide("p", "a", "b")
    admin.secrets_for("b")
    eventually(lambda: admin.listed("p"), ["p-a", "p-b"])
    assert (admin.listed("q"), admin.reason("q")) == (["q-a"], "Active")
