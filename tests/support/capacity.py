"""CapacityProviders, the queues of hub and workers, and the plan for them, as pure data."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from placement_ac.core.api.constants import (
    CAPACITY_PROVIDER,
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    OCM_CLUSTER,
    OUR_CONTROLLER,
)
from placement_ac.core.inputs.queue_facts import WorkerFacts, worker_facts
from placement_ac.core.inputs.state import Plan, Since, SinceKind
from placement_ac.core.plan.plan import plan
from tests.support.builders import AT_ONCE, Raw, an, snapshot, world
from tests.support.decided import decided

GPU = "nvidia.com/gpu"
PARAMETERS = {"apiGroup": OCM_CLUSTER, "kind": "Placement", "name": "p"}


def provider(published: Mapping[str, Mapping[str, str]] | None = None, *flavors: str, **rest: Any) -> Raw:
    """A CapacityProvider of ours for Placement p; `published`: its capacity, of before."""
    spec = {
        "controllerName": OUR_CONTROLLER,
        "parameters": PARAMETERS,
        "orchestratedFlavors": [{"name": name} for name in flavors or ("f",)],
    } | rest
    entries = [{"name": name, "resources": resources} for name, resources in (published or {}).items()]
    condition = {
        "type": "CapacitySynchronized",
        "status": "True",
        "reason": "Synchronized",
        "message": "of before",
    }
    status = {"capacity": {"flavors": entries}, "conditions": [condition]} if published is not None else {}
    return an(CAPACITY_PROVIDER, "hub", spec=spec, status=status)


def cluster_queue(name: str, flavors: Mapping[str, Mapping[str, str]], **rest: Any) -> Raw:
    groups = [
        {
            "coveredResources": list(quotas),
            "flavors": [
                {"name": flavor, "resources": [{"name": r, "nominalQuota": q} for r, q in quotas.items()]}
            ],
        }
        for flavor, quotas in flavors.items()
    ]
    return an(CLUSTER_QUEUE, name, spec={"namespaceSelector": {}, "resourceGroups": groups} | rest)


def local_queue(name: str, cluster_queue: str) -> Raw:
    return an(LOCAL_QUEUE, name, "team", spec={"clusterQueue": cluster_queue})


def hub_queue(
    name: str = "q", flavors: Mapping[str, Mapping[str, str]] | None = None, by: str = "check"
) -> list[Raw]:
    """A ClusterQueue of the hub that lists a check, and its LocalQueue of the same name."""
    strategy = {"admissionChecks": [{"name": by}]}
    queue = cluster_queue(name, flavors or {"f": {GPU: "1"}}, admissionChecksStrategy=strategy)
    return [queue, local_queue(name, name)]


def worker(
    *queues: tuple[str, Mapping[str, Mapping[str, str]]], local: tuple[str, ...] = (), **status: Any
) -> WorkerFacts:
    """A worker's queues: each ClusterQueue with a LocalQueue of its name; `local`: more of the first one."""
    first = queues[0][0] if queues else ""
    cluster_queues = [cluster_queue(name, flavors) | {"status": status} for name, flavors in queues]
    names = [(name, name) for name, _ in queues] + [(name, first) for name in local]
    return worker_facts([local_queue(*pair) for pair in names], cluster_queues)


def gpus(amount: str | int, name: str = "q") -> WorkerFacts:
    return worker((name, {"f": {GPU: str(amount)}}))


EIGHT, FOUR = gpus(8), gpus(4)


def unknown(*clusters: str, age: float) -> dict[Since, float]:
    return dict.fromkeys((Since(SinceKind.QUOTA_UNKNOWN, cluster) for cluster in clusters), age)


def planned(
    selected: str = "ab",
    *objects: Any,
    listed: str | None = None,
    of: Raw | None = None,
    queues: list[Raw] | None = None,
    facts: Mapping[str, WorkerFacts] | None = None,
    ages: Mapping[Since, float] | None = None,
    scene: list[Raw] | None = None,
    **rest: Any,
) -> Plan:
    """The plan for Placement p; `facts`: cluster → the answer of its worker."""
    objects = (
        decided(selected, listed, **rest.pop("placed", {})) if scene is None else scene,
        *objects,
        hub_queue() if queues is None else queues,
    )
    cache = world(*objects, of or provider(), capacity=True, **({"policy": AT_ONCE} | rest))
    seen = snapshot(cache, ages=ages)
    answers = {f"p-{cluster}": found for cluster, found in (facts or {}).items()}
    return plan(replace(seen, fleet=replace(seen.fleet, queue_facts=answers)))


def published(answer: Plan) -> tuple[str, str, str, Any]:
    """Status, reason and message of the condition that is written, and the capacity: flavor → resources."""
    [wanted] = answer.capacities
    [condition] = wanted.status["conditions"]
    capacity = wanted.status.get("capacity")
    flavors = {one["name"]: one["resources"] for one in capacity["flavors"]} if capacity else None
    return condition["status"], condition["reason"], condition["message"], flavors
