"""The stand-in for OCM against a hub that is a dict: what it writes, in which steps, when it looks again."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from placement_ac.core.api.constants import (
    PLACEMENT,
    PLACEMENT_DECISION,
    SET_BINDING,
    Kind,
    Resource,
)
from placement_ac.core.api.errors import NotFound
from placement_lab.standins.ocm import Scheduler
from tests.kubectl_placement.scheduling.builders import (
    NOW,
    binding,
    cluster,
    cluster_set,
    decision,
    placement,
)

Object = dict[str, Any]
KINDS = {kind.kind: kind for kind in (*Scheduler.kinds, *Scheduler.optional)}


class FakeHub:
    """Takes the writes of one Scheduler, and shows it their echo only on demand."""

    def __init__(self, *objects: Object, **options: Any) -> None:
        self.scheduler = Scheduler(object(), clock=lambda: self.now, **{"status_delay": 0.0, **options})  # type: ignore[arg-type]  # never logs in
        self.scheduler.client = self  # type: ignore[assignment]  # stands in for the HTTP client
        self.scheduler.informer.resources = {kind: Resource(kind, "v1") for kind in KINDS.values()}
        self.now = NOW
        self.stored: dict[tuple[Kind, str, str], Object] = {}
        self.writes: list[str] = []
        self.version = 0
        for obj in objects:
            self.put(obj)

    def put(self, obj: Object) -> None:
        """Store an object and let the scheduler see it."""
        self.show(self.store(KINDS[obj["kind"]], obj))

    def store(self, kind: Kind, obj: Object) -> Object:
        self.version += 1
        metadata = {**obj["metadata"], "resourceVersion": str(self.version)}
        stored = {**obj, "kind": kind.kind, "metadata": metadata}
        self.stored[kind, metadata.get("namespace", ""), metadata["name"]] = stored
        return stored

    def show(self, obj: Object) -> set[tuple[str, ...]]:
        """Let the scheduler see an object; return the keys it wants to look at."""
        kind, where = KINDS[obj["kind"]], (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        self.scheduler.informer.objects[kind][where] = obj
        return set(self.scheduler.keys_for(kind, *where))

    def hide(self, kind: Kind, namespace: str, name: str) -> set[tuple[str, ...]]:
        self.stored.pop((kind, namespace, name), None)
        self.scheduler.informer.objects[kind].pop((namespace, name), None)
        return set(self.scheduler.keys_for(kind, namespace, name))

    def look(self, key: tuple[str, ...] = ("placement", "ns", "p")) -> list[str]:
        """Have a key reconciled and return what was written."""
        self.writes.clear()
        asyncio.run(self.scheduler.reconcile(key))
        return list(self.writes)

    def get(self, kind: Kind, name: str, namespace: str = "ns") -> Object:
        return self.stored[kind, namespace, name]

    async def create(self, resource: Resource, body: Object) -> Object:
        self.writes.append(f"create {body['metadata']['name']} {sorted(body)}")
        return self.store(resource.of, body)

    async def merge(
        self, resource: Resource, name: str, patch: Object, *, namespace: str, subresource: str = ""
    ) -> Object:
        (what,) = patch
        self.writes.append(f"patch {name} {what} {sorted(patch[what])}")
        before = self.stored[resource.of, namespace, name]
        return self.store(resource.of, {**before, what: {**before.get(what, {}), **patch[what]}})

    async def delete(self, resource: Resource, name: str, namespace: str) -> None:
        self.writes.append(f"delete {name}")
        if (resource.of, namespace, name) not in self.stored:
            raise NotFound(name)
        del self.stored[resource.of, namespace, name]


A, B = cluster("a", {"region": "eu"}), cluster("b")
CREATE = "create p-decision-1 ['apiVersion', 'kind', 'metadata']"
DECIDE = "patch p-decision-1 status ['decisions']"
TELL = "patch p status ['conditions', 'decisionGroups', 'numberOfSelectedClusters']"


def hub_of(*objects: Object, **options: Any) -> FakeHub:
    return FakeHub(cluster_set(), binding(), placement(), *objects, **options)


def clusters(hub: FakeHub, name: str = "p-decision-1") -> list[str]:
    return [one["clusterName"] for one in hub.get(PLACEMENT_DECISION, name)["status"]["decisions"]]


def test_the_decision_comes_before_its_status_and_the_placement_last() -> None:
    hub = hub_of(A, B)
    assert hub.look() == [CREATE, DECIDE, TELL]
    assert clusters(hub) == ["a", "b"]
    assert hub.look() == []


def test_decisions_that_are_no_longer_needed_are_deleted() -> None:
    hub = hub_of(A, decision("z", number=2), decision("z", owner="q"))
    assert hub.look() == [CREATE, DECIDE, "delete p-decision-2", TELL]
    assert hub.look() == ["delete p-decision-2"], "its deletion has not been seen yet, and is no error"
    hub.hide(PLACEMENT_DECISION, "ns", "p-decision-2")
    assert hub.look() == []


def test_an_older_event_does_not_cover_what_was_written() -> None:
    hub = hub_of(A)
    hub.look()
    written = hub.get(PLACEMENT_DECISION, "p-decision-1")
    without_status = {key: value for key, value in written.items() if key != "status"}
    without_status["metadata"] = {**written["metadata"], "resourceVersion": "5"}
    hub.show(without_status)
    assert hub.look() == []
    hub.show(written)
    hub.show(without_status | {"metadata": {**written["metadata"], "resourceVersion": "99"}})
    assert hub.look() == [DECIDE]


def test_a_binding_without_its_set_is_left_alone() -> None:
    hub = FakeHub(binding() | {"spec": {"clusterSet": "all"}})
    assert hub.look(("binding", "ns", "all")) == []
    hub.put(cluster_set())
    assert hub.look(("binding", "ns", "all")) == ["patch all status ['conditions']"]
    assert hub.get(SET_BINDING, "all")["status"]["conditions"] == [
        {
            "type": "Bound",
            "status": "True",
            "reason": "ClusterSetBound",
            "message": "",
            "lastTransitionTime": "2026-11-21T12:00:00Z",
        }
    ]


def prioritized(name: str, namespace: str = "ns", **spec: Any) -> Object:
    coordinate = {"type": "AddOn", "addOn": {"resourceName": "usage", "scoreName": "gpu"}}
    wanted = placement(prioritizerPolicy={"configurations": [{"scoreCoordinate": coordinate}]}, **spec)
    wanted["metadata"] = {"name": name, "namespace": namespace}
    return wanted


SCORE = {"kind": "AddOnPlacementScore", "metadata": {"name": "usage", "namespace": "a"}}
ANY, EU_ONLY, US_ONLY = ("placement", "ns", "p"), ("placement", "ns", "eu"), ("placement", "ns", "us")


def world() -> FakeHub:
    eu = cluster_set("eu", selectorType="LabelSelector", labelSelector={"matchLabels": {"region": "eu"}})
    broken = cluster_set("broken", selectorType="Lottery")
    return hub_of(
        *(
            eu,
            broken,
            binding("eu"),
            binding("us"),
            cluster("a", {"region": "eu", "cluster.open-cluster-management.io/clusterset": "-"}),
        ),
        *(
            prioritized("eu", clusterSets=["eu"]),
            prioritized("us", clusterSets=["us"]),
            prioritized("eu", "far"),
        ),
    )


@pytest.mark.parametrize(
    ("changed", "keys"),
    [
        pytest.param(prioritized("us"), {US_ONLY}, id="a Placement: itself"),
        pytest.param(decision("a"), {ANY}, id="a decision: its Placement"),
        pytest.param(
            cluster("a", {"region": "eu"}), {ANY, EU_ONLY}, id="a cluster: the Placements of its sets"
        ),
        pytest.param(cluster("a"), {ANY, EU_ONLY}, id="… and of those it was in"),
        pytest.param(
            cluster("x", {"cluster.open-cluster-management.io/clusterset": "-"}),
            set(),
            id="a cluster of no set: nobody",
        ),
        pytest.param(
            SCORE, {EU_ONLY, US_ONLY}, id="a score: who prioritizes by it where its cluster is bound"
        ),
        pytest.param(
            {**SCORE, "metadata": {"name": "other", "namespace": "a"}}, set(), id="another score: nobody"
        ),
        pytest.param(
            {**SCORE, "metadata": {"name": "usage", "namespace": "x"}},
            set(),
            id="of an unknown cluster: nobody",
        ),
        pytest.param(binding("us"), {ANY, US_ONLY, ("binding", "ns", "us")}, id="a binding: its namespace"),
        pytest.param(
            cluster_set("us"), {ANY, US_ONLY, ("binding", "ns", "us")}, id="a set: where it is bound"
        ),
    ],
)
def test_who_is_looked_at(changed: Object, keys: set[tuple[str, ...]]) -> None:
    hub = world()
    assert hub.show(changed) == keys


def test_time_alone_is_looked_after_once() -> None:
    taints = [{"key": "k", "effect": "NoSelect", "timeAdded": "2026-11-21T11:59:00Z"}]
    wanted = placement(tolerations=[{"key": "k", "operator": "Exists", "tolerationSeconds": 90}])
    hub = FakeHub(cluster_set(), binding(), wanted, cluster("a", spec={"taints": taints}))
    asked: list[float] = []
    hub.scheduler.enqueue = lambda key, *, after=0.0: asked.append(after)  # type: ignore[method-assign]  # listens
    hub.look()
    assert asked == []
    hub.look()
    hub.look()
    assert asked == [30.0]
    hub.now += timedelta(seconds=30)
    assert hub.look() == [DECIDE, TELL]
    hub.hide(PLACEMENT, "ns", "p")
    assert hub.look() == []
