"""The recorded fleets: the engine decides what OCM's real placement controller decided."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from kubectl_placement.scheduling import Fleet, schedule
from tests.published.shared import SHARED

NOW = datetime(2026, 11, 21, 11, 0, tzinfo=UTC)
PARTS = ("managedClusters", "clusterSets", "bindings", "scores")


def recorded() -> list[dict[str, Any]]:
    lines = (SHARED / "ocm" / "placements.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def digest(status: Any, decisions: list[Any]) -> dict[str, Any]:
    """Take what `ocm/replay.py` compares: all but times and messages."""
    groups = status.get("decisionGroups") or []
    fields = ("decisionGroupIndex", "decisionGroupName", "decisions", "clusterCount")
    return {
        "conditions": sorted(
            (condition["type"], condition["status"], condition["reason"])
            for condition in status["conditions"]
        ),
        "selected": status.get("numberOfSelectedClusters", 0),
        "groups": [[group.get(field) for field in fields] for group in groups],
        "decisions": decisions,
    }


def fleet_of(*fleets: dict[str, Any]) -> Fleet:
    return Fleet.of(obj for fleet in fleets for part in PARTS for obj in fleet[part])


def decided(placement: dict[str, Any], fleet: Fleet) -> dict[str, Any]:
    outcome = schedule(placement, fleet, NOW)
    decisions = [
        (
            decision["metadata"]["name"],
            decision["metadata"]["labels"],
            [c["clusterName"] for c in decision["status"]["decisions"]],
        )
        for decision in outcome.decisions
    ]
    return digest(outcome.status, sorted(decisions, key=lambda one: one[0]))


def wanted(fleet: dict[str, Any]) -> dict[str, Any]:
    decisions = [
        (decision["name"], decision["labels"], [c["clusterName"] for c in decision["decisions"] or []])
        for decision in fleet["expect"]["decisions"]
    ]
    return digest(fleet["expect"]["placementStatus"], decisions)


@pytest.mark.parametrize("fleet", recorded(), ids=lambda fleet: fleet["name"])
@pytest.mark.parametrize("spec", ["as applied", "as stored"])
def test_decides_as_recorded(fleet: dict[str, Any], spec: str) -> None:
    stored = {**fleet["placement"], "spec": fleet["placementSpecStored"]}
    placement = fleet["placement"] if spec == "as applied" else stored
    assert decided(placement, fleet_of(fleet)) == wanted(fleet)


@pytest.mark.parametrize("fleet", recorded(), ids=lambda fleet: fleet["name"])
def test_a_second_look_changes_nothing(fleet: dict[str, Any]) -> None:
    first = schedule(fleet["placement"], fleet_of(fleet), NOW)
    after = Fleet.of([*(obj for part in PARTS for obj in fleet[part]), *first.decisions])
    second = schedule({**fleet["placement"], "status": first.status}, after, NOW)
    assert (second.decisions, second.status) == (first.decisions, first.status)


def test_the_messages_are_the_recorded_ones_too() -> None:
    for fleet in recorded():
        outcome = schedule(fleet["placement"], fleet_of(fleet), NOW)
        conditions = {condition["type"]: condition["message"] for condition in outcome.status["conditions"]}
        recorded_ones = fleet["expect"]["placementStatus"]["conditions"]
        assert conditions == {one["type"]: one["message"] for one in recorded_ones}


def test_every_fleet_on_one_hub_is_decided_as_if_alone() -> None:
    """Balance counts the decisions of all Placements of the hub, here of clusters none other may choose."""
    fleets = recorded()
    seen: list[Any] = []
    for fleet in fleets:
        hub = Fleet.of([*(obj for one in fleets for part in PARTS for obj in one[part]), *seen])
        assert decided(fleet["placement"], hub) == wanted(fleet)
        seen += schedule(fleet["placement"], hub, NOW).decisions
