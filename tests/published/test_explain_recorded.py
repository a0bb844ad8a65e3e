"""
The recorded fleets: `explain` names, for every cluster of every fleet, a step that the recording confirms.

Small rules here confirm a step; they read the raw objects and know nothing of the engine. CEL has
none: there the engine's word counts, and the expression must be quoted.
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

FLEETS = pytest.mark.parametrize("fleet", recorded(), ids=lambda fleet: fleet["name"])
UNITS = {"Gi": 2**30, "Mi": 2**20, "m": 0.001}
NO_SCORE_NEEDED = {"Balance": 100, "Steady": 0}
"""Of a fleet that is alone on its hub and not decided yet."""


# -- what confirms a step


def meets(selector: Raw, labels: Raw) -> bool:
    equal = all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())
    return equal and all(
        _meets(match_expression, labels) for match_expression in selector.get("matchExpressions") or []
    )


def _meets(wanted: Raw, labels: Raw) -> bool:
    has, value = wanted["key"] in labels, labels.get(wanted["key"])
    return {
        "In": has and value in wanted.get("values", []),
        "NotIn": value not in wanted.get("values", []),
        "Exists": has,
        "DoesNotExist": not has,
    }[wanted["operator"]]


def in_a_set(fleet: Raw, cluster: Raw) -> bool:
    """Whether it is in a set that is bound in the Placement's namespace, and that the Placement names."""
    bound = {binding["spec"]["clusterSet"] for binding in fleet["bindings"]}
    named = fleet["placement"]["spec"].get("clusterSets") or bound
    return any(
        meets(
            cluster_set["spec"]["clusterSelector"]["labelSelector"], cluster["metadata"].get("labels") or {}
        )
        for cluster_set in fleet["clusterSets"]
        if cluster_set["metadata"]["name"] in bound.intersection(named)
    )


def expressions(fleet: Raw) -> list[str]:
    predicates = fleet["placement"]["spec"].get("predicates") or []
    selectors = [predicate["requiredClusterSelector"].get("celSelector") or {} for predicate in predicates]
    return [text for selector in selectors for text in selector.get("celExpressions") or []]


def taken(fleet: Raw, cluster: Raw) -> bool:
    """Whether a predicate matches it, as far as that is known without CEL."""
    predicates = fleet["placement"]["spec"].get("predicates") or []
    labels = cluster["metadata"].get("labels") or {}
    claims = {
        cluster_claim["name"]: cluster_claim["value"]
        for cluster_claim in cluster["status"].get("clusterClaims") or []
    }
    return not predicates or any(
        meets(one.get("labelSelector") or {}, labels) and meets(one.get("claimSelector") or {}, claims)
        for one in (predicate["requiredClusterSelector"] for predicate in predicates)
    )


def tolerated(fleet: Raw, cluster: Raw) -> bool:
    tolerations = fleet["placement"]["spec"].get("tolerations") or []
    return all(
        taint["effect"] == "PreferNoSelect" or any(_bears(toleration, taint) for toleration in tolerations)
        for taint in cluster["spec"].get("taints") or []
    )


def _bears(toleration: Raw, taint: Raw) -> bool:
    assert "tolerationSeconds" not in toleration, "none in the recording has a time"
    same = all(toleration.get(field, taint[field]) == taint[field] for field in ("key", "effect"))
    exists = toleration.get("operator") == "Exists"
    value = exists or toleration.get("value", "") == taint.get("value", "")
    return same and value


def score(fleet: Raw, cluster: Raw, among: list[Raw]) -> int:
    policy = fleet["placement"]["spec"].get("prioritizerPolicy") or {}
    weights: dict[str, int] = {} if policy.get("mode") == "Exact" else {"Balance": 1, "Steady": 1}
    total = 0
    for configuration in policy.get("configurations") or []:
        coordinate = configuration["scoreCoordinate"]
        if coordinate.get("type") == "AddOn":
            total += configuration.get("weight", 1) * add_on(fleet, cluster, coordinate["addOn"])
        else:
            weights[coordinate["builtIn"]] = configuration.get("weight", 1)
    return total + sum(weight * built_in(name, cluster, among) for name, weight in weights.items())


def add_on(fleet: Raw, cluster: Raw, wanted: Raw) -> int:
    for one in fleet["scores"]:
        where = one["metadata"]["namespace"], one["metadata"]["name"]
        if where == (cluster["metadata"]["name"], wanted["resourceName"]):
            found = {item["name"]: item["value"] for item in one["status"]["scores"]}
            return int(found.get(wanted["scoreName"], 0))
    return 0


def built_in(name: str, cluster: Raw, among: list[Raw]) -> int:
    if name in NO_SCORE_NEEDED:
        return NO_SCORE_NEEDED[name]
    resource = {"ResourceAllocatableCPU": "cpu", "ResourceAllocatableMemory": "memory"}[name]
    amounts = [amount(one, resource) for one in among]
    least, most = min(amounts), max(amounts)
    if least == most:
        return 100
    return int(((amount(cluster, resource) - least) / (most - least) - 0.5) * 200)


def amount(cluster: Raw, resource: str) -> float:
    text = cluster["status"]["allocatable"][resource]
    unit = next((unit for unit in UNITS if text.endswith(unit)), "")
    return float(text.removesuffix(unit)) * UNITS.get(unit, 1)


def decided(fleet: Raw) -> set[str]:
    return {
        decision["clusterName"]
        for made in fleet["expect"]["decisions"]
        for decision in made["decisions"] or []
    }


def confirmed(fleet: Raw, cluster: Raw, step: StepName, why: str) -> bool:
    """Whether the raw objects say that this is the step at which the cluster drops out."""
    passed = (in_a_set(fleet, cluster), taken(fleet, cluster), tolerated(fleet, cluster))
    by_cel = any(f"the CEL expression {text} is not true" in why for text in expressions(fleet))
    if step is StepName.PREDICATE and by_cel:
        return passed[0]
    steps = (StepName.CLUSTER_SET, StepName.PREDICATE, StepName.TAINT)
    first = next((step for step, ok in zip(steps, passed, strict=True) if not ok), StepName.NUMBER)
    return step is first and (step is not StepName.NUMBER or is_behind(fleet, cluster))


def stands_to_choice(fleet: Raw, cluster: Raw) -> bool:
    by_cel = expressions(fleet) and steps(fleet["name"])[cluster["metadata"]["name"]] is StepName.PREDICATE
    return in_a_set(fleet, cluster) and taken(fleet, cluster) and tolerated(fleet, cluster) and not by_cel


def is_behind(fleet: Raw, cluster: Raw) -> bool:
    """Whether as many as are wanted come before it, by score and then by name."""
    selected = decided(fleet)
    chosen = [
        managed_cluster
        for managed_cluster in fleet["managedClusters"]
        if managed_cluster["metadata"]["name"] in selected
    ]
    among = [
        managed_cluster
        for managed_cluster in fleet["managedClusters"]
        if stands_to_choice(fleet, managed_cluster)
    ]

    def place(one: Raw) -> tuple[int, str]:
        return -score(fleet, one, among), one["metadata"]["name"]

    wanted = fleet["placement"]["spec"]["numberOfClusters"]
    return len(chosen) == wanted and all(place(one) < place(cluster) for one in chosen)


# -- the chains


def case_of(fleet: Raw, *more: Raw, **status: Any) -> PlacementView:
    placement = fleet["placement"] | status
    objects = [obj for part in PARTS for obj in fleet[part]]
    return PlacementView(HubView(dump_of([*objects, placement, *more]), Settings(), NOW), placement)


@cache
def steps(name: str) -> dict[str, StepName]:
    """Return the step that decides for each cluster of a fleet."""
    fleet = next(one for one in recorded() if one["name"] == name)
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
def test_the_step_is_the_one_that_the_objects_confirm(fleet: Raw) -> None:
    case, selected = case_of(fleet), decided(fleet)
    wrong = []
    for cluster in fleet["managedClusters"]:
        name = cluster["metadata"]["name"]
        found = explain_cluster(case, name)
        if name in selected:
            right = (found.selected, found.state, found.step) == (True, "selected", StepName.DECISION)
        else:
            output = (found.selected, found.state) == (False, "dropped")
            right = output and confirmed(fleet, cluster, found.step, found.why)
        if not right:
            wrong.append((name, found.state, found.step, found.why))
    assert wrong == []


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
    """The recording says something of every step: no rule above goes unused."""
    found = {step for fleet in recorded() for step in steps(fleet["name"]).values()}
    assert found == {
        StepName.CLUSTER_SET,
        StepName.PREDICATE,
        StepName.TAINT,
        StepName.NUMBER,
        StepName.DECISION,
    }
    whys = [fate.why for fleet in recorded() for fate in explain_placement(case_of(fleet)).clusters]
    assert any("the CEL expression" in why for why in whys)


# -- the command


@pytest.mark.parametrize("number", [0, 20, 40], ids=lambda number: recorded()[number]["name"])
def test_the_command_on_a_dump(number: int, tmp_path: Path) -> None:
    fleet = recorded()[number]
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
