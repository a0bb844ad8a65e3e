"""Placements from several namespaces: which one counts, and what a namespace that cannot be read does."""

from functools import partial
from typing import Any

import pytest

from placement_ac.core.api.constants import ANNOTATION_PLACEMENT, ANNOTATION_PLACEMENT_NAMESPACE, GENERATED
from placement_ac.observability import logs
from placement_lab.hub import Hub
from tests.support.driver import Controllers, Driver, eventually
from tests.support.jobs import WORKLOADS, has_quota

FORBIDDEN: dict[str, Any] = {"status": 403, "body": {"kind": "Status", "code": 403, "message": "not for you"}}


NOT_USED = (
    "rename Placement first/p, or annotate the check with placement-ac.open-cluster-management.io/"
    "placement-namespace: it is ignored, because second/p is in use"
)
BOTH = {"placement_namespace": "first,second"}


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
    eventually(lambda: admin.active("p").get("message"), f"{GENERATED}; {NOT_USED}")
    assert admin.listed("p") == ["p-b", "p-c"], "the one in use stays in use"
    second.decide("p", "c")
    second.decide("q", "a")  # beside no Placement
    eventually(lambda: admin.listed("p"), ["p-c"])
    first.ask("DELETE", f"{first.ocm}/placements/p")
    assert (admin.listed("q"), admin.reason("p"), admin.reason("q")) == (["q-c"], "Active", "Active")
    second.ask("DELETE", f"{second.ocm}/placements/p")
    eventually(lambda: admin.reason("p"), "PlacementNotFound")
    assert admin.listed("p") == ["p-c"]


@pytest.fixture
def taken_over(admin: Driver, first: Driver, second: Driver) -> Driver:
    """A check that uses second/p, before first/p is created."""
    admin.check("p")
    admin.secrets_for("a", "b")
    second.select("p", "b")
    return first


def recorded(admin: Driver) -> str | None:
    metadata = admin.ask("GET", admin.kueue("multikueueconfigs", "p"))["metadata"]
    return (metadata.get("annotations") or {}).get(ANNOTATION_PLACEMENT)


def test_the_placement_in_use_stays_in_use_over_a_restart(
    admin: Driver, second: Driver, taken_over: Driver, controllers: Controllers
) -> None:
    with controllers(**BOTH):
        eventually(lambda: admin.reason("p"), "Active")
    uid = second.ask("GET", f"{second.ocm}/placements/p")["metadata"]["uid"]
    assert recorded(admin) == f"second/{uid}"
    taken_over.select("p", "a")
    with controllers(**BOTH):
        eventually(lambda: NOT_USED in admin.active("p").get("message", ""))
        assert admin.listed("p") == ["p-b"]
        second.ask("DELETE", f"{second.ocm}/placements/p")
        eventually(lambda: admin.listed("p"), ["p-a"])


def without_record(admin: Driver) -> None:
    """Leave the MultiKueueConfig as the version before made it."""
    path = admin.kueue("multikueueconfigs", "p")
    admin.ask("PATCH", path, {"metadata": {"annotations": {ANNOTATION_PLACEMENT: None}}}, "merge")


def test_an_upgrade_writes_nothing_and_a_second_placement_makes_it_record_the_first(
    admin: Driver, taken_over: Driver, controllers: Controllers
) -> None:
    with controllers(**BOTH):
        eventually(lambda: admin.reason("p"), "Active")
    without_record(admin)
    since = len(admin.hub.journal)
    with controllers(**BOTH):
        admin.check("q")
        eventually(lambda: admin.reason("q"), "PlacementNotFound")
        assert {path for _, path in admin.writes(since)} == {admin.kueue("admissionchecks", "q", "status")}
        taken_over.select("p", "a")
        eventually(lambda: (recorded(admin) or "").startswith("second/"))
        assert admin.listed("p") == ["p-b"]


def test_a_check_names_the_namespace_of_its_placement(
    admin: Driver, taken_over: Driver, controllers: Controllers
) -> None:
    taken_over.select("p", "a")
    annotate = partial(annotated, admin)
    annotate("second")
    controllers.start(**BOTH)
    eventually(lambda: (admin.listed("p"), admin.active("p").get("message")), (["p-b"], GENERATED))
    annotate("first")
    eventually(lambda: admin.listed("p"), ["p-a"])
    annotate("third")
    eventually(lambda: admin.reason("p"), "PlacementNotFound")
    assert admin.active("p")["message"] == (
        "correct the annotation placement-ac.open-cluster-management.io/placement-namespace, or add third to "
        "--placement-namespace: Placement third/p is not watched"
    )
    assert admin.listed("p") == ["p-a"]


def test_a_check_that_names_another_namespace_sends_no_job_to_the_clusters_of_the_one_in_use(
    admin: Driver, taken_over: Driver, controllers: Controllers
) -> None:
    taken_over.select("p", "a")
    admin.check("other", "p")
    annotated(admin, "second")
    controllers.start(**BOTH)
    eventually(lambda: (admin.reason("p"), admin.reason("other")), ("Active", "Active"))
    annotated(admin, "first", "other")
    eventually(lambda: admin.reason("other"), "BadParameters")
    why = (
        "correct the annotation placement-ac.open-cluster-management.io/placement-namespace: all checks of "
        "one Placement's name share its MultiKueueConfig, and second/p is in use"
    )
    assert (admin.active("other")["status"], admin.active("other")["message"]) == ("False", why)
    assert (admin.listed("p"), admin.active("p")["message"]) == (["p-b"], GENERATED)
    names = ("p", "other")
    for name in names:
        has_quota(admin, name, name)
    eventually(
        lambda: [states_of(admin, name) for name in names],
        [
            {"p": ("Ready", "1 of 1 selected clusters usable: b")},
            {"other": ("Pending", f"BadParameters: {why}")},
        ],
    )


def states_of(admin: Driver, workload: str) -> dict[str, tuple[str, str]]:
    found = admin.ask("GET", f"{WORKLOADS}/{workload}")["status"]["admissionChecks"]
    return {one["name"]: (one["state"], one["message"]) for one in found}


def annotated(admin: Driver, namespace: str, check: str = "p") -> None:
    annotations = {ANNOTATION_PLACEMENT_NAMESPACE: namespace}
    path = admin.kueue("admissionchecks", check)
    admin.ask("PATCH", path, {"metadata": {"annotations": annotations}}, "merge")


def test_a_namespace_that_may_not_be_read_is_reported_and_nothing_is_decided(
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
