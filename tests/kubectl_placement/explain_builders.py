"""Hubs for the tests of `explain`: each builder names only what differs."""

from collections.abc import Iterable
from typing import Any

from kubectl_placement.explain.explanations import CheckExplanation, ClusterExplanation, explain_check
from kubectl_placement.explain.steps import PlacementView, StepName
from kubectl_placement.explain.subject import find_check
from kubectl_placement.hub.dump import Dump
from kubectl_placement.hub.dump_files import dump_of
from kubectl_placement.hub.hub_view import HubView
from placement_ac.config.settings import Settings
from placement_ac.core.api import constants
from placement_ac.core.api.constants import CLUSTER_QUEUE, CLUSTER_SET, SET_BINDING, Kind
from tests.support.builders import (
    NOW,
    Raw,
    an,
    check,
    condition,
    decision,
    our_objects,
    placement,
    secret,
)

SET_LABEL = "cluster.open-cluster-management.io/clusterset"
GOOD = [
    {"type": kind, "status": "True", "reason": "ok", "message": ""}
    for kind in ("HubAcceptedManagedCluster", "ManagedClusterJoined", "ManagedClusterConditionAvailable")
]


def cluster(name: str = "c", *taints: Raw, conditions: Any = GOOD, **rest: Any) -> Raw:
    labels = rest.pop("labels", {SET_LABEL: "all"})
    spec, status = {"taints": list(taints)}, {"conditions": conditions, **rest.pop("status", {})}
    return an(constants.MANAGED_CLUSTER, name, labels=labels, spec=spec, status=status, **rest)


def a_set(name: str = "all") -> Raw:
    return an(CLUSTER_SET, name, spec={})


def binding(name: str = "all", namespace: str = "kueue-system") -> Raw:
    return an(SET_BINDING, name, namespace, spec={"clusterSet": name})


def queue(name: str = "q", *checks: str, active: str = "True") -> Raw:
    body = {"type": "Active", "status": active, "reason": "Ready", "message": "it can admit"}
    spec = {"admissionChecksStrategy": {"admissionChecks": [{"name": one} for one in checks or ("check",)]}}
    return an(CLUSTER_QUEUE, name, spec=spec, status={"conditions": [body]})


def predicate(**selector: Raw) -> Raw:
    return {"predicates": [{"requiredClusterSelector": selector}]}


def scored(*weights: tuple[str, int], **spec: Any) -> Raw:
    """A spec that scores by usage/<name>, with these weights, and by nothing else."""
    configurations = [
        {
            "weight": weight,
            "scoreCoordinate": {
                "type": "AddOn",
                "addOn": {"resourceName": "usage", "scoreName": name},
            },
        }
        for name, weight in weights
    ]
    return {"prioritizerPolicy": {"mode": "Exact", "configurations": configurations}, **spec}


FLEET = [a_set(), binding(), cluster()]
LIVE = [*FLEET, placement(), check(), secret("multikueue-c")]
"""All objects with which the check has the cluster, except OCM's decision and the controller's objects."""
ALL = [*LIVE, decision("c"), *our_objects("c")]


def dump(*objects: Raw | Kind | Iterable[Raw]) -> Dump:
    """Return the dump of these objects; of a Kind it is known that there are no others."""
    empty = [kind.at(kind.versions[0]) for kind in objects if isinstance(kind, Kind)]
    parts = ([part] if isinstance(part, dict) else part for part in objects if not isinstance(part, Kind))
    return dump_of((raw for part in parts for raw in part), empty)


def case(*objects: Raw | Kind | Iterable[Raw], name: str = "p", **settings: Any) -> PlacementView:
    view = HubView(dump(*objects), Settings(**settings), NOW)
    found = view.dump.find(constants.PLACEMENT, name, "kueue-system")
    assert found
    return PlacementView(view, found)


def sentences(found: ClusterExplanation | CheckExplanation, *steps: StepName) -> list[str]:
    """Return outcome and sentence of these steps, of all if none is named."""
    return [f"{link.outcome}: {link.sentence}" for link in found.links if not steps or link.step in steps]


GPU = {"key": "gpu", "value": "full", "effect": "NoSelect", "timeAdded": "2026-08-01T11:59:00Z"}
TOLERATED = {"tolerations": [{"key": "gpu", "operator": "Exists"}]}
FOR_5_MINUTES = {"tolerations": [{"key": "gpu", "operator": "Exists", "tolerationSeconds": 300}]}
HUB = [*FLEET, placement(), check(), decision("c")]
MANY = [f"c{number:02}" for number in range(21)]
NOT_CONNECTED = {
    "status": {"conditions": [condition("False", "ClientConnectionFailed", "nobody is there")]},
}
DROPPED = [a_set(), binding(), cluster("c", GPU), cluster("a"), placement(), check(), decision("a")]


def overview(*objects: Raw | Kind | Iterable[Raw], **settings: Any) -> CheckExplanation:
    view = HubView(dump(*objects), Settings(**settings), NOW)
    return explain_check(view, find_check(view, "check"))
