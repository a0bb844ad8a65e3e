"""The objects of a worker that begins bare, and what its Kueue makes of them, on the virtual clock."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from placement_ac.core.api.constants import CLUSTER_QUEUE, LOCAL_QUEUE, Kind, Resource
from placement_ac.core.api.errors import Conflict, NotFound
from placement_ac.core.api.fields import name_of, namespace_of
from placement_lab.standins.multikueue import objects as of
from placement_lab.standins.work_rules import Place
from tests.support.jobs_to_dispatch import GPU
from tests.support.virtual.clock import Obj

CLUSTER_QUEUES: Final = CLUSTER_QUEUE.kind
LOCAL_QUEUES: Final = LOCAL_QUEUE.kind


@dataclass(slots=True)
class OwnJob:
    """A Workload that somebody queues on the worker itself. `admitted`: its ClusterQueue; "": it waits."""

    namespace: str
    queue: str
    gpus: int
    admitted: str = ""


@dataclass(frozen=True, slots=True)
class QueueUse:
    """The counts of a worker's Kueue: GPUs and jobs by ClusterQueue, and jobs by LocalQueue."""

    gpus: Mapping[str, int]
    admitted: Mapping[str, int]
    reserving: Mapping[tuple[str, str], int]
    pending: Mapping[tuple[str, str], int]


class BareWorker:
    """The API server of a worker, as far as `work_rules` needs it. Its methods do not wait.

    `now`: the clock. `use`: what its Kueue counts at the moment. `on_change` is called with (place, before,
    after) when the spec of an object changes, and None for one that is not there.
    """

    def __init__(self, now: Callable[[], float], use: Callable[[], QueueUse]) -> None:
        self.objects: dict[Place, Obj] = {}
        self.by_hand: dict[Place, Obj] = {}
        """Objects that somebody else has made, as they are to stay."""
        self.own: dict[str, OwnJob] = {}
        self.held = False
        self.on_change: list[Callable[[Place, Obj | None, Obj | None], None]] = []
        self._now = now
        self.use = use

    # -- requests

    async def discover(self, kinds: Iterable[Kind]) -> Mapping[Kind, Resource]:
        return {kind: kind.at(kind.versions[0]) for kind in kinds}

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Obj:
        place = resource.of.kind, namespace or "", name
        if place not in self.objects:
            raise NotFound(f"no {place}", status=404)
        return self.objects[place] | {"status": self._status(place)}

    async def apply(
        self, resource: Resource, body: Obj, *, force: bool = False, manager: str | None = None
    ) -> Obj:
        """Server-side apply: a spec that somebody else has set is a conflict, if it is another one."""
        place = resource.of.kind, namespace_of(body), name_of(body)
        theirs = self.by_hand.get(place)
        if theirs is not None and not force and theirs.get("spec") != body.get("spec"):
            raise Conflict('Apply failed with 1 conflict: conflict with "kubectl": .spec', status=409)
        before = self.objects.get(place)
        if before is None or before.get("spec") != body.get("spec"):
            created = before["metadata"]["creationTimestamp"] if before else of.format_time(self._now())
            after = of.deep_copy(body)
            after["metadata"] |= {"creationTimestamp": created}
            self._set(place, after)
        return self.objects[place]

    async def delete(self, resource: Resource, name: str, namespace: str | None = None) -> Obj:
        place = resource.of.kind, namespace or "", name
        if place not in self.objects:
            raise NotFound(f"no {place}", status=404)
        self._set(place, None)
        return {"kind": "Status"}

    # -- by hand

    def make(self, body: Obj) -> None:
        """Create an object as the worker's admin, unless it exists."""
        place = body["kind"], namespace_of(body), name_of(body)
        if place not in self.objects:
            self.by_hand[place] = body
            created = {"creationTimestamp": of.format_time(self._now())}
            self._set(place, body | {"metadata": body["metadata"] | created})

    def take_over(self, body: Obj) -> None:
        """Set the spec of an object as the worker's admin, whoever has made it."""
        place = body["kind"], namespace_of(body), name_of(body)
        self.by_hand[place] = body
        self._set(place, body | {"metadata": self.objects[place]["metadata"]})

    def wipe(self) -> None:
        """Install the cluster anew: it is bare again."""
        self.objects.clear()
        self.by_hand.clear()
        self.own.clear()

    def _set(self, place: Place, after: Obj | None) -> None:
        before = self.objects.get(place)
        if after is None:
            del self.objects[place]
        else:
            self.objects[place] = after
        for listener in self.on_change:
            listener(place, before, after)

    # -- its Kueue

    def cluster_queue_of(self, namespace: str, local_queue: str) -> str:
        """Return the ClusterQueue behind a LocalQueue, "" if one of them is missing."""
        queue = self.objects.get((LOCAL_QUEUES, namespace, local_queue))
        name = str(queue["spec"]["clusterQueue"]) if queue else ""
        return name if (CLUSTER_QUEUES, "", name) in self.objects else ""

    def cluster_queues(self) -> tuple[str, ...]:
        """Return the ClusterQueues that LocalQueues lead to, and that exist."""
        leads = (self.cluster_queue_of(*place[1:]) for place in self.objects if place[0] == LOCAL_QUEUES)
        return tuple(dict.fromkeys(filter(None, leads)))

    def quota(self, cluster_queue: str) -> int:
        """Return the GPUs of a ClusterQueue, 0 if it does not exist."""
        return gpus_in(self.objects.get((CLUSTER_QUEUES, "", cluster_queue)))

    def room(self, cluster_queue: str) -> int:
        return 0 if self.held else self.quota(cluster_queue) - self.use().gpus.get(cluster_queue, 0)

    def admit_own(self) -> None:
        """Give quota to those of the worker's own jobs that fit."""
        taken: Counter[str] = Counter()
        for job in self.own.values():
            where = self.cluster_queue_of(job.namespace, job.queue)
            if not job.admitted and where and self.room(where) - taken[where] >= job.gpus:
                job.admitted = where
                taken[where] += job.gpus

    def _status(self, place: Place) -> Obj:
        kind, namespace, name = place
        if kind == CLUSTER_QUEUES:
            total = str(self.use().gpus.get(name, 0))
            flavors = [
                {"name": flavor["name"], "resources": [{"name": GPU, "total": total}]}
                for group in self.objects[place]["spec"]["resourceGroups"]
                for flavor in group["flavors"]
            ]
            return {"conditions": [_active(not self.held)], "flavorsReservation": flavors}
        if kind == LOCAL_QUEUES:
            use, is_active = self.use(), bool(self.cluster_queue_of(namespace, name)) and not self.held
            return {
                "conditions": [_active(is_active)],
                "pendingWorkloads": use.pending.get((namespace, name), 0),
                "reservingWorkloads": use.reserving.get((namespace, name), 0),
            }
        return {}


def own_use(
    jobs: Iterable[OwnJob],
) -> tuple[Counter[str], Counter[str], Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """Return what a worker's own jobs count in `QueueUse`."""
    gpus: Counter[str] = Counter()
    admitted: Counter[str] = Counter()
    reserving: Counter[tuple[str, str]] = Counter()
    pending: Counter[tuple[str, str]] = Counter()
    for job in jobs:
        (reserving if job.admitted else pending)[job.namespace, job.queue] += 1
        if job.admitted:
            gpus[job.admitted] += job.gpus
            admitted[job.admitted] += 1
    return gpus, admitted, reserving, pending


def gpus_in(cluster_queue: Obj | None) -> int:
    """Return the GPUs that a ClusterQueue has."""
    return sum(
        int(quota["nominalQuota"])
        for group in (cluster_queue or {}).get("spec", {}).get("resourceGroups", ())
        for flavor in group["flavors"]
        for quota in flavor["resources"]
        if quota["name"] == GPU
    )


def _active(value: bool) -> Obj:
    return {"type": "Active", "status": str(value)}
