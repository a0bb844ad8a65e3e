"""
The recorded fleets: `explain` agrees with OCM's decision about every cluster of every fleet.

The steps have their tests in `tests/kubectl_placement/test_explain_steps.py`.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kubectl_placement.explain.explanations import explain_cluster, explain_placement
from kubectl_placement.explain.steps import PlacementView, StepName
from kubectl_placement.hub.dump_files import dump_of
from kubectl_placement.hub.hub_view import HubView
from placement_ac.config.settings import Settings
from tests.published.test_scheduling import NOW, PARTS, recorded
from tests.support import commands
from tests.support.builders import Raw
from tests.support.commands import write_list


@cache
def fleets() -> list[Raw]:
    return recorded()


FLEETS = pytest.mark.parametrize("fleet", fleets(), ids=lambda fleet: fleet["name"])


def decided(fleet: Raw) -> set[str]:
    return {
        decision["clusterName"]
        for made in fleet["expect"]["decisions"]
        for decision in made["decisions"] or []
    }


def case_of(fleet: Raw, *more: Raw, **status: Any) -> PlacementView:
    placement = fleet["placement"] | status
    objects = [obj for part in PARTS for obj in fleet[part]]
    return PlacementView(HubView(dump_of([*objects, placement, *more]), Settings(), NOW), placement)


@cache
def steps(name: str) -> dict[str, StepName]:
    """Return the step that decides for each cluster of a fleet."""
    fleet = next(one for one in fleets() if one["name"] == name)
    return {fate.cluster: fate.step for fate in explain_placement(case_of(fleet)).clusters}


def decisions(fleet: Raw) -> list[Raw]:
    """Return the recorded decisions as objects."""
    return [
        {
            "apiVersion": "cluster.open-cluster-management.io/v1beta1",
            "kind": "PlacementDecision",
            "metadata": {
                "name": decision["name"],
                "namespace": fleet["placement"]["metadata"]["namespace"],
                "labels": decision["labels"],
            },
            "status": {"decisions": decision["decisions"] or []},
        }
        for decision in fleet["expect"]["decisions"]
    ]


@FLEETS
def test_when_ocm_has_decided_it_agrees_and_the_steps_are_the_same(fleet: Raw) -> None:
    case = case_of(fleet, *decisions(fleet), status=fleet["expect"]["placementStatus"])
    selected = decided(fleet)
    for name, step in steps(fleet["name"]).items():
        found = explain_cluster(case, name)
        (link,) = [link for link in found.links if link.step is StepName.DECISION]
        assert (found.selected, found.step) == (name in selected, step)
        assert "though" not in link.sentence, "OCM's decision is what the engine would decide"


def test_there_are_clusters_for_each_step() -> None:
    """The recording says something of every step."""
    found = {step for fleet in fleets() for step in steps(fleet["name"]).values()}
    assert found == {
        StepName.CLUSTER_SET,
        StepName.PREDICATE,
        StepName.TAINT,
        StepName.NUMBER,
        StepName.DECISION,
    }
    whys = (fate.why for fleet in fleets() for fate in explain_placement(case_of(fleet)).clusters)
    assert any("the CEL expression" in why for why in whys)


# -- the command


def test_the_command_on_a_dump(tmp_path: Path) -> None:
    fleet = fleets()[20]
    objects = [*(obj for part in PARTS for obj in fleet[part]), fleet["placement"], *decisions(fleet)]
    path = write_list(tmp_path / "dump.yaml", objects)
    last = fleet["managedClusters"][-1]["metadata"]["name"]
    overview = explained("placement", fleet["name"], path)
    states = {cluster["cluster"]: cluster["state"] for cluster in overview["clusters"]}
    assert {name for name, state in states.items() if state == "selected"} == decided(fleet)
    assert {cluster["cluster"]: cluster["step"] for cluster in overview["clusters"]} == steps(fleet["name"])
    found = explained("cluster", last, path)
    assert (found["placement"], found["state"]) == (f"{fleet['name']}/{fleet['name']}", states[last])


def explained(type_: str, name: str, path: Path) -> Raw:
    run = commands.run("explain", type_, name, "--from-dump", str(path), "-o", "json")
    assert run.exit_code == 0, run.output
    document = json.loads(run.output)
    assert (document["subject"]["type"], document["subject"]["name"]) == (type_, name)
    (found,) = document["checks"]
    return dict(found)
