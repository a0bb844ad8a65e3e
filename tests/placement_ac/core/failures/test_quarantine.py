"""Which clusters are quarantined: by their failures, and by an admin."""

from datetime import UTC, datetime

import pytest

from placement_ac.core.api.constants import ANNOTATION_QUARANTINE
from placement_ac.core.api.decode import kueue_object
from placement_ac.core.failures.memory import Failing
from placement_ac.core.failures.quarantine import BY_ADMIN, quarantines, wrong_annotations

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
FAILING = Failing(NOW, 5, 6, NOW, NOW)
WHY = "5 of 6 jobs failed there; one job may try it from 2026-11-26T12:00:00Z"


def fleet(**words: str) -> dict[str, object]:
    return {
        cluster: kueue_object(
            {"metadata": {"name": f"p-{cluster}", "annotations": {ANNOTATION_QUARANTINE: word}}}
        )
        for cluster, word in words.items()
    }


@pytest.mark.parametrize(
    ("words", "failing", "wanted"),
    [
        ({"a": "", "b": ""}, "a", {"a": WHY}),
        ({"a": ""}, "a", {}),
        ({"a": "", "b": "", "c": ""}, "ab", {}),
        ({"a": "", "b": "", "c": "", "d": ""}, "ab", {"a": WHY, "b": WHY}),
        ({"a": "false", "b": ""}, "a", {}),
        ({"a": "false", "b": "", "c": ""}, "ab", {"b": WHY}),
        ({"a": "True ", "b": ""}, "", {"a": BY_ADMIN}),
        ({"a": "true", "b": ""}, "a", {"a": BY_ADMIN}),
        ({"a": "yes", "b": ""}, "", {}),
        ({"a": "yes", "b": ""}, "a", {"a": WHY}),
        ({"b": "", "c": ""}, "a", {}),
    ],
    ids=[
        *("one of two", "the only one", "two of three", "two of four"),
        *(
            "an admin lifts it",
            "one that is lifted does not count",
            "an admin forces it",
            "forced and failing",
        ),
        *("a wrong word", "a wrong word is ignored", "one that is not listed or not connected"),
    ],
)
def test_who_is_quarantined(words: dict[str, str], failing: str, wanted: dict[str, str]) -> None:
    found = quarantines(fleet(**words), dict.fromkeys(failing, FAILING))
    assert {cluster: it.why for cluster, it in found.items()} == wanted


def test_a_quarantine_for_one_namespace_counts_for_that_alone() -> None:
    """A namespace whose jobs fail everywhere lifts no quarantine of others."""
    of_team = FAILING._replace(namespaces=("team",))
    found = quarantines(fleet(a="", b="", c="", d=""), {"a": FAILING, "b": of_team})
    assert {cluster: it.namespaces for cluster, it in found.items()} == {"a": (), "b": ("team",)}
    assert found["b"].why == (
        "5 of 6 jobs of namespace team failed there; one job may try it from 2026-11-26T12:00:00Z; jobs of"
        " others are sent there"
    )
    everywhere = {"a": FAILING, **dict.fromkeys("bcd", of_team)}
    assert list(quarantines(fleet(a="", b="", c="", d=""), everywhere)) == ["a"]


def test_a_recovered_one_is_not_and_nobody_tries_one_that_an_admin_has_quarantined() -> None:
    assert quarantines(fleet(a="", b=""), {"a": FAILING}, {"a"}) == {}
    assert quarantines(fleet(a="true"), {"a": FAILING})["a"].retry_at is None


def test_a_wrong_annotation_is_named() -> None:
    [wrong] = wrong_annotations(fleet(a="yes", b="true", c="").values())
    assert wrong == (
        "set the annotation placement-ac.open-cluster-management.io/quarantine of MultiKueueCluster p-a to"
        ' "true" or "false": \'yes\' is ignored'
    )
