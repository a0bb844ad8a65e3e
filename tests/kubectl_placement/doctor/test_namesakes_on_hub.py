"""Several Placements of one name: the report of `doctor`, on a hub over HTTP."""

import json
from collections.abc import Callable

import pytest

from placement_ac.core.api.constants import ANNOTATION_PLACEMENT_NAMESPACE
from tests.support.commands import Run
from tests.support.driver import Controllers, Driver, eventually

NAMESAKE = (
    f"Placement p: rename Placement first/p, or annotate the check with {ANNOTATION_PLACEMENT_NAMESPACE}: "
    "it is ignored, because second/p is in use"
)
OTHER = (
    f"AdmissionCheck other: correct the annotation {ANNOTATION_PLACEMENT_NAMESPACE}: all checks of one "
    "Placement's name share its MultiKueueConfig, and second/p is in use"
)
Found = list[tuple[str, str, str]]
Doctor = Callable[[], dict[str, Found]]


@pytest.fixture
def doctor(run: Run) -> Doctor:
    """Returns the findings that are not OK, as level, message and fix, by their check."""

    def examine() -> dict[str, Found]:
        found: dict[str, Found] = {}
        for finding in json.loads(run("doctor", "-o", "json", "-n", "first,second").stdout)["findings"]:
            if finding["level"] != "OK":
                found.setdefault(finding["check"], []).append(
                    (finding["level"], finding["message"], finding["fix"])
                )
        return found

    return examine


def test_a_second_placement_of_the_name_is_reported(
    admin: Driver, controllers: Controllers, doctor: Doctor, run: Run
) -> None:
    first, second = admin.in_namespace("first"), admin.in_namespace("second")
    admin.check("p")
    second.select("p", "b")
    with controllers(placement_namespace="first,second"):
        eventually(lambda: admin.reason("p"), "Active")
        assert "credentials" not in doctor()
        first.select("p", "a")
        eventually(lambda: "first/p" in admin.active("p")["message"])
    assert "Placement second/p exists" in run("explain", "check", "p", "-n", "first,second").stdout
    [(level, message, _)] = doctor()["credentials"]
    assert (level, message) == ("WARN", NAMESAKE)


def test_a_check_that_names_the_namespace_of_another_placement_is_reported_with_its_fix(
    admin: Driver, controllers: Controllers, doctor: Doctor
) -> None:
    admin.check("p")
    annotate(admin, "p", "second")
    admin.in_namespace("first").select("p", "a")
    admin.in_namespace("second").select("p", "b")
    with controllers(placement_namespace="first,second"):
        eventually(lambda: admin.listed("p"), ["p-b"])
    admin.check("other", "p")
    annotate(admin, "other", "first")
    assert doctor()["check-parameters"] == [
        (
            "FAIL",
            OTHER,
            f"kubectl annotate admissioncheck other {ANNOTATION_PLACEMENT_NAMESPACE}=second --overwrite",
        )
    ]


def annotate(admin: Driver, check: str, namespace: str) -> None:
    note = {"metadata": {"annotations": {ANNOTATION_PLACEMENT_NAMESPACE: namespace}}}
    admin.ask("PATCH", admin.kueue("admissionchecks", check), note, "merge")
