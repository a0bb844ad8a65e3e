"""Decisions of OCM: its PlacementDecisions, and the order of their clusters."""

from typing import Any

import pytest

from placement_ac.core.api import decode
from placement_ac.core.decisions.ocm import rank, read
from placement_ac.core.decisions.source import DecidedCluster, RankedCluster
from tests.support.builders import NOW, Raw, decision, placement, scores, undecided, unreadable

SCORES = [scores("a", gpu=10, idle=0), scores("b", gpu=90, idle=-50), scores("c", gpu=50, idle=100)]


def ranked(
    decisions: list[Raw], weights: dict[str, int] | None = None, table: list[Raw] = SCORES
) -> list[RankedCluster]:
    parsed = [decode.scores(raw) for raw in table]
    by_id = {(s.meta.namespace, s.meta.name): s for s in parsed}
    prioritizers = decode.placement(placement(weights=weights)).prioritizers
    return list(rank(map(read, decisions), prioritizers, by_id, NOW))


def order(decisions: list[Raw], weights: dict[str, int] | None = None, table: list[Raw] = SCORES) -> str:
    return "".join(entry.cluster for entry in ranked(decisions, weights, table))


@pytest.mark.parametrize(
    ("decisions", "weights", "expected"),
    [
        pytest.param([decision("c", "a", "b")], {}, "abc", id="by name"),
        pytest.param([decision(("a", 1), ("b", -5), ("c", 8))], {}, "cab", id="by score"),
        pytest.param([decision("a", ("b", -5), ("c", 8))], {}, "cab", id="a score of 0 is left out"),
        pytest.param([decision(("a", 1), "b")], {"usage/gpu": 1}, "ab", id="OCM's score before our own"),
        pytest.param([decision("a", "b", "c")], {"usage/gpu": 1}, "bca", id="by an AddOn prioritizer"),
        pytest.param([decision("a", "b", "c")], {"usage/gpu": -1}, "acb", id="by a negative weight"),
        pytest.param([decision("a", "b", "c")], {"usage/gpu": 2, "usage/idle": 1}, "cba", id="by the sum"),
        pytest.param([decision("a", "b", "c")], {"usage/nope": 1, "other/gpu": 1}, "abc", id="no such score"),
        pytest.param(
            [decision("b", index=1, group=1), decision("c", index=2)], {}, "cb", id="by group before name"
        ),
        pytest.param(
            [decision("c", index=1, group=10), decision("b", index=2, group=2)],
            {},
            "bc",
            id="groups are numbers",
        ),
        pytest.param(
            [decision("c", index=10, group=0), decision("b", index=2, group=0)],
            {},
            "bc",
            id="index says nothing",
        ),
        pytest.param(
            [decision(("b", 1), index=1, group=1), decision(("c", 1), index=2)], {}, "cb", id="ties by group"
        ),
        pytest.param(
            [decision(("b", 9), index=1, group=1), decision(("c", 1), index=2)],
            {},
            "bc",
            id="score before group",
        ),
        pytest.param(
            [decision("a", "a", "b", index=1, group=1), decision("b", index=2)], {}, "ba", id="each once"
        ),
        pytest.param([decision("", "a")], {}, "a", id="no name"),
        pytest.param([undecided(), decision("a", index=2)], {}, "a", id="no status"),
        pytest.param([], {}, "", id="nothing"),
    ],
)
def test_the_order(decisions: list[Raw], weights: Any, expected: str) -> None:
    assert order(decisions, weights) == expected


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        pytest.param("2026-08-01T12:00:01Z", "ba", id="still valid"),
        pytest.param("2026-08-01T12:00:00Z", "ba", id="to the second"),
        pytest.param("2026-08-01T11:59:59Z", "ab", id="expired"),
        pytest.param("2026-08-01T14:00:00+02:00", "ba", id="another zone"),
        pytest.param("2026-08-01T12:00:01", "ab", id="unreadable: counts 0"),
    ],
)
def test_an_expired_score_counts_nothing(until: str, expected: str) -> None:
    table = [scores("a", gpu=10), scores("b", gpu=90, until=until)]
    assert order([decision("a", "b")], {"usage/gpu": 1}, table) == expected


def test_the_reason_for_the_place_of_a_cluster_is_given() -> None:
    decisions = [decision("a", index=1, group=3), decision("b", index=2)]
    assert ranked(decisions, {"usage/gpu": 2}) == [RankedCluster("b", 180, 0), RankedCluster("a", 20, 3)]


# -- PlacementDecisions


def test_a_decision_is_read() -> None:
    seen = read(decision("a", ("b", 7), of="p", group=12))
    assert (seen.placement, seen.group, seen.decided, seen.problem) == (
        "p",
        12,
        (DecidedCluster(cluster_name="a"), DecidedCluster(cluster_name="b", score=7)),
        "",
    )


@pytest.mark.parametrize(
    ("raw", "decided", "problem"),
    [
        pytest.param(undecided(), None, "", id="no status"),
        pytest.param(decision(), (), "", id="an empty list"),
        pytest.param(decision(status={"decisions": None}), (), "", id="null"),
        pytest.param(unreadable(), None, "status.decisions: Input should be a valid list", id="no list"),
        pytest.param(
            decision(status={"decisions": [{"clusterName": 7}]}),
            None,
            "status.decisions.0.clusterName: Input should be a valid string",
            id="no name",
        ),
    ],
)
def test_the_clusters_of_a_placementdecision_are_read(raw: Any, decided: Any, problem: str) -> None:
    seen = read(raw)
    assert (seen.decided, seen.problem) == (decided, problem)


def test_a_group_index_that_is_no_number_counts_as_the_first() -> None:
    raw = decision(labels={"cluster.open-cluster-management.io/decision-group-index": "x"})
    assert (read(raw).group, read(raw).placement) == (0, "")
