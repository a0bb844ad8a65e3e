"""The objects of a virtual hub beside Kueue's Workloads: Placements, decisions, clusters, checks."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from placement_ac.core.api import constants
from placement_ac.core.api.constants import CAPACITY_MANAGER, KUEUE_ADMISSION, WORKLOAD, Kind
from placement_ac.core.api.errors import Conflict, NotFound
from placement_ac.core.inputs.state import HubFacts
from placement_ac.core.plan.diff import Apply, SetCondition
from placement_lab.standins.multikueue.objects import deep_copy, format_time
from tests.support.builders import (
    NS,
    Raw,
    an,
    check,
    decision,
    kind_of,
    managed_clusters,
    multikueue_check,
    placement,
    scores,
    secret,
)
from tests.support.memory import MemoryHub, id_of, is_met
from tests.support.virtual.kueue import VirtualKueue
from tests.support.virtual.workloads import CHECK, OURS

if TYPE_CHECKING:
    from placement_ac.core.inputs.fitness import Fitness

PLACEMENT: Final = "p"


def object_of(cluster: str) -> str:
    """Return the name of a cluster's MultiKueueCluster, which is its name in the virtual Kueue."""
    return HubFacts().multikueue_cluster_name(PLACEMENT, cluster)


def checks_of(placement: str) -> tuple[str, str]:
    """Return the multikueue check and our check of a Placement."""
    return (CHECK, OURS) if placement == PLACEMENT else (f"{CHECK}-{placement}", f"{OURS}-{placement}")


class VirtualHub(MemoryHub):
    """Placements on a hub: the virtual Kueue keeps the Workloads, this class the other objects.

    `facts`: as the controller has them. `listeners` are called on every change. `struck` is called after
    `strike_in` more requests,
    before the response of the last one.
    """

    def __init__(
        self,
        kueue: VirtualKueue,
        clusters: Sequence[str],
        placements: Sequence[str] = (PLACEMENT,),
        facts: HubFacts | None = None,
    ) -> None:
        self.kueue = kueue
        self.clusters = tuple(clusters)
        self.placements = tuple(placements)
        self.listeners: list[Callable[[str, Kind, Raw], None]] = []
        self.events: list[tuple[float, Raw]] = []
        """The events that were created or counted up, and when."""
        self.kept_events: dict[str, Raw] = {}
        self.writes: Counter[Kind] = Counter()
        """The controller's writes, but for events."""
        self.on_apply: list[Callable[[Kind, Raw | None, Raw], None]] = []
        """Called when the controller has applied an object: as it was, and as it is."""
        self.weights: dict[str, int] = {"usage/gpu": 1}
        """The scores by which the Placements choose."""
        self.fitness: dict[str, Fitness] = {}
        """Cluster → what a probe of it finds; without one: it is fit."""
        self._wanted: dict[str, tuple[str | tuple[str, int], ...]] = {}
        self.strike_in = 0
        self.struck: Callable[[], None] = lambda: None
        for worker in kueue.workers.values():
            worker.known = worker.connected = False
        for name in placements:
            kueue.set_config(None, config=name)
        kueue.listeners.append(self._on_kueue_change)
        kueue.connections.append(self._connection)
        setup = [part for name in placements for part in _checked(name)]
        fleet = [part for cluster in clusters for part in _joined(cluster)]
        super().__init__([*setup, *fleet], facts or HubFacts())

    def put(self, raw: Raw) -> None:
        if kind_of(raw) == constants.MANIFEST_WORK:
            raw["metadata"].setdefault("creationTimestamp", format_time(self.kueue.now))
        super().put(raw)
        self._notify("put", kind_of(raw), self.objects[id_of(raw)])

    def items(self, kind: Kind) -> tuple[list[Raw], str]:
        """Return all objects of a kind, and the version of the list."""
        if kind == WORKLOAD:
            return self.kueue.workloads(), self.kueue.version
        return [deep_copy(raw) for (of, _, _), raw in self.objects.items() if of == kind], str(self.version)

    def listed(self, placement: str = PLACEMENT) -> list[str]:
        """Return the clusters in the config; none without a config."""
        config = self.objects.get((constants.MULTIKUEUE_CONFIG, "", placement))
        listed = config["spec"]["clusters"] if config else ()
        return [self._cluster_of(placement, name) for name in listed]

    def _cluster_of(self, placement: str, name: str) -> str:
        return HubFacts().cluster_of(placement, name)

    def joined(self) -> set[str]:
        """Return the clusters that have a MultiKueueCluster."""
        found = (name for kind, _, name in self.objects if kind == constants.MULTIKUEUE_CLUSTER)
        return {HubFacts().cluster_of(PLACEMENT, name) for name in found}

    def _notify(self, what: str, kind: Kind, raw: Raw) -> None:
        self._pass_on(what, kind, deep_copy(raw))

    def _pass_on(self, what: str, kind: Kind, raw: Raw) -> None:
        for listener in tuple(self.listeners):
            listener(what, kind, raw)

    def _on_kueue_change(self, what: str, kind: Kind, raw: Raw) -> None:
        if kind == WORKLOAD:
            self._pass_on(what, kind, raw)

    def _connection(self, name: str, connected: bool) -> None:
        """Write Kueue's condition on a MultiKueueCluster: connected or not."""
        found = self.objects.get((constants.MULTIKUEUE_CLUSTER, "", name))
        if found:
            condition = {"type": "Active", "status": str(connected), "reason": "Reported", "message": ""}
            self.put(deep_copy(found) | {"status": {"conditions": [condition]}})

    # OCM

    def select(
        self, clusters: Sequence[str | tuple[str, int]], *, edited: bool = False, of: str = PLACEMENT
    ) -> None:
        """Write OCM's decision: names or (name, score)s; `edited`: the Placement itself has changed, too."""
        self._wanted[of] = tuple(clusters)
        if edited:
            changed = deep_copy(self.objects[constants.PLACEMENT, NS, of])
            changed["metadata"]["generation"] += 1
            self.put(changed)
        self._soon((0.005, 0.05), partial(self._decide, of))

    @property
    def selected(self) -> tuple[str, ...]:
        return self.selected_by(PLACEMENT)

    def selected_by(self, placement: str) -> tuple[str, ...]:
        return tuple(c if isinstance(c, str) else c[0] for c in self._wanted.get(placement, ()))

    def _decide(self, of: str) -> None:
        self.put(decision(*self._wanted[of], of=of))
        self._soon((0.001, 0.05), partial(self._count, of))

    def _count(self, of: str) -> None:
        """Write the number of selected clusters into the Placement's status."""
        generation = self.objects[constants.PLACEMENT, NS, of]["metadata"]["generation"]
        number = len(self.selected_by(of))
        self.put(placement(of, number, weights=self.weights, generation=generation))

    def score(self, cluster: str, value: int) -> None:
        self.put(scores(cluster, gpu=value))

    def taint(self, cluster: str, unreachable: bool) -> None:
        self.put(*managed_clusters(cluster, unreachable=[cluster] if unreachable else ()))

    def _soon(self, seconds: tuple[float, float], event: Callable[[], None]) -> None:
        self.kueue.later(self.kueue.random.uniform(*seconds), event)

    # requests

    def apply(self, kind: Kind, body: Raw, manager: str | None) -> Raw:
        """Carry out a server-side apply of the controller; return the resulting object."""
        name = body["metadata"]["name"]
        if kind == WORKLOAD:
            done = self._nominate(body) if manager == KUEUE_ADMISSION else self._answer(body)
        elif kind == constants.ADMISSION_CHECK:
            (condition,) = body["status"]["conditions"]
            self._refuse_another(kind, name, body, self.objects[kind, "", name])
            self.act(SetCondition(name, body["metadata"]["resourceVersion"], condition))
            self.kueue.set_ours_active(condition["status"] == "True", name)
            done = self.objects[kind, "", name]
        elif manager == CAPACITY_MANAGER:
            done = an(kind, name, body["metadata"]["namespace"], data=body["data"])
            self.put(done)
        else:
            done = self._apply_object(kind, name, body)
        self._written(kind)
        return deep_copy(done)

    def get(self, kind: Kind, name: str) -> Raw:
        return (
            self.kueue.workload(_job(name)) if kind == WORKLOAD else deep_copy(self.objects[kind, "", name])
        )

    def delete(self, kind: Kind, name: str, namespace: str, uid: str | None, version: str | None) -> Raw:
        before = self.objects.get((kind, namespace, name))
        if before is None:
            raise NotFound(f"no {kind} {name}", status=404)
        metadata = before["metadata"]
        if uid not in (None, metadata["uid"]) or version not in (None, "", metadata["resourceVersion"]):
            raise Conflict(f"another {kind} {name}", status=409)
        done = self.remove(kind, name, namespace)
        self._written(kind)
        return done

    def remove(self, kind: Kind, name: str, namespace: str = "") -> Raw:
        """Delete an object, as soon as it has no finalizer."""
        before = self.objects[kind, namespace, name]
        if before["metadata"].get("finalizers"):
            deleted = deep_copy(before)
            deleted["metadata"].setdefault("deletionTimestamp", format_time(self.kueue.now))
            self.put(deleted)
            return deep_copy(deleted)
        del self.objects[kind, namespace, name]
        self.version += 1
        self._notify("remove", kind, before)
        self._mirror(kind, name, before, None)
        return {"kind": "Status"}

    def update(self, item: Raw, **fields: Raw) -> Raw:
        """Write fields of an object that somebody has read. Raises Conflict if it has changed since."""
        id_ = id_of(item)
        before = self.objects.get(id_)
        if before is None:
            raise NotFound(f"no {id_}", status=404)
        if before["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
            raise Conflict(f"{id_} has changed", status=409)
        after = deep_copy(before) | {"metadata": before["metadata"] | fields.pop("metadata", {})} | fields
        self.put(after)
        if after["metadata"].get("deletionTimestamp") and not after["metadata"].get("finalizers"):
            self.remove(*id_[::2], namespace=id_[1])
            return after
        return deep_copy(self.objects[id_])

    def take_event(self, body: Raw) -> Raw:
        name = body["metadata"]["name"]
        if name in self.kept_events:
            raise Conflict(f"event {name} exists", status=409)
        return self.count_event(name, body)

    def count_event(self, name: str, patch: Raw) -> Raw:
        self.kept_events[name] = self.kept_events.get(name, {}) | patch
        self.events.append((self.kueue.now, self.kept_events[name]))
        return self.kept_events[name]

    def _written(self, kind: Kind) -> None:
        self.writes[kind] += 1
        if self.strike_in:
            self.strike_in -= 1
            if not self.strike_in:
                self.struck()

    def _apply_object(self, kind: Kind, name: str, body: Raw) -> Raw:
        id_ = kind, str(body["metadata"].get("namespace", "")), name
        before = self.objects.get(id_)
        self._refuse_another(kind, name, body, before)
        if before and "status" in body:
            self.put(deep_copy(before) | {"status": body["status"]})
        else:
            self.act(Apply(kind, body, None))
        after = self.objects[id_]
        self._mirror(kind, name, before, after)
        for listener in self.on_apply:
            listener(kind, before, after)
        return after

    def _refuse_another(self, kind: Kind, name: str, body: Raw, before: Raw | None) -> None:
        """Raise Conflict if the guard of an apply is not met; the uid guards no status."""
        wanted = body["metadata"]
        if before and "status" in body:
            wanted = wanted | {"uid": before["metadata"]["uid"]}
        if not is_met(wanted, before):
            raise Conflict(f"another {kind} {name}", status=409)

    def _mirror(self, kind: Kind, name: str, before: Raw | None, after: Raw | None) -> None:
        """Update the virtual Kueue with the fields that it reads of these objects."""
        if kind == constants.MULTIKUEUE_CONFIG:
            self.kueue.set_config(after["spec"]["clusters"] if after else None, config=name)
        elif kind != constants.MULTIKUEUE_CLUSTER:
            return
        elif before is None:
            self.kueue.add_cluster(name)
        elif after is None:
            self.kueue.remove_cluster(name)

    def _answer(self, body: Raw) -> Raw:
        (entry,) = body["status"]["admissionChecks"]
        job = _job(body["metadata"]["name"])
        self.kueue.answer(
            job,
            entry["state"],
            entry["message"],
            check=entry["name"],
            requeue_after=entry.get("requeueAfterSeconds"),
            resource_version=body["metadata"]["resourceVersion"],
        )
        return self.kueue.workload(job)

    def _nominate(self, body: Raw) -> Raw:
        job, clusters = (
            _job(body["metadata"]["name"]),
            body.get("status", {}).get("nominatedClusterNames", ()),
        )
        self.kueue.nominate(job, clusters, resource_version=body["metadata"]["resourceVersion"])
        return self.kueue.workload(job)


def _checked(name: str) -> list[Raw]:
    kueues, ours = checks_of(name)
    return [check(ours, name), multikueue_check(kueues, name), placement(name)]


def _joined(cluster: str) -> list[Raw]:
    return [secret(f"multikueue-{cluster}"), *managed_clusters(cluster), scores(cluster, gpu=0)]


def _job(workload: str) -> str:
    return workload.removeprefix("job-")
