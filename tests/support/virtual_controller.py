"""
The whole controller on the virtual clock of a `VirtualKueue`: no HTTP, no threads, nothing sleeps.

Queue, reconciler and actor are the real ones, on an event loop whose time is Kueue's. This module
simulates the rest: delayed requests and events, failing requests, queries to workers, and crashes
between any two writes.
"""

import asyncio
import random
import selectors
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, TypeVar

from placement_ac.cache.store import Cache
from placement_ac.controller.background_queries import ReadQueues
from placement_ac.controller.reconcile import Reconciler
from placement_ac.controller.recorder import Recorder
from placement_ac.controller.session import ECHO_SECONDS, WRITTEN_KINDS
from placement_ac.controller.writer import Writer
from placement_ac.core.api import constants, decode
from placement_ac.core.api.constants import KUEUE_ADMISSION, WORKLOAD, Kind, Resource
from placement_ac.core.api.errors import ApiError, Conflict, NotFound, Unavailable
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.inputs.fitness import Fitness
from placement_ac.core.inputs.kinds import WATCHED_KINDS
from placement_ac.core.inputs.state import HubFacts, Key, PlacementPolicy, WorkerCopies
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.core.plan.diff import Apply, SetCondition
from placement_ac.kube.informer import RELIST_SECONDS
from placement_ac.kube.workqueue import Workqueue
from placement_ac.observability.metrics import Metrics
from placement_lab.standins.multikueue.objects import deep_copy
from tests.support.builders import (
    NS,
    Raw,
    check,
    decision,
    kind_of,
    managed_clusters,
    multikueue_check,
    placement,
    scores,
    secret,
)
from tests.support.memory import MemoryHub, id_of
from tests.support.virtual_kueue import CHECK, OURS, VirtualKueue

T = TypeVar("T")

PLACEMENT: Final = "p"
REQUEST_SECONDS: Final = (0.001, 0.01)
"""Delay of a request to the hub; the response takes as long again."""
EVENT_SECONDS: Final = 0.05
"""The longest delay of an event."""
ASK_SECONDS: Final = (0.0025, 0.025)
"""Delay of a query to a worker, one way."""
TIMEOUT_SECONDS: Final = 5.0
"""The timeout of a query to a worker."""


def object_of(cluster: str) -> str:
    """Return the name of a cluster's MultiKueueCluster, which is its name in the virtual Kueue."""
    return HubFacts().multikueue_cluster_name(PLACEMENT, cluster)


def checks_of(placement: str) -> tuple[str, str]:
    """Return the multikueue check and our check of a Placement."""
    return (CHECK, OURS) if placement == PLACEMENT else (f"{CHECK}-{placement}", f"{OURS}-{placement}")


# -- time


RESOLUTION: Final = 1e-6
"""Of the loop's clock: asyncio's own value is below the precision of a float of that size."""


class _Clockwork(selectors.SelectSelector):
    """A selector that advances the virtual time instead of waiting for files."""

    def __init__(self, kueue: VirtualKueue) -> None:
        super().__init__()
        self._kueue = kueue
        self.is_woken = False
        """Whether the loop has something new to do."""

    def select(self, timeout: float | None = None) -> list[Any]:
        """Run the events of the world until one of them concerns the loop, or for so long."""
        kueue, self.is_woken = self._kueue, timeout is not None and timeout <= 0
        end = None if timeout is None else kueue.now + timeout
        while not self.is_woken and (end is None or kueue.now + RESOLUTION <= end):
            kueue.step(None if end is None else end - kueue.now)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on Kueue's clock."""

    def __init__(self, kueue: VirtualKueue) -> None:
        self._clockwork = _Clockwork(kueue)
        super().__init__(self._clockwork)
        self._kueue = kueue
        self._clock_resolution = RESOLUTION

    def time(self) -> float:
        return self._kueue.now

    def call_soon(self, *args: Any, **kwargs: Any) -> asyncio.Handle:
        self._clockwork.is_woken = True
        return super().call_soon(*args, **kwargs)

    def call_at(self, *args: Any, **kwargs: Any) -> asyncio.TimerHandle:
        self._clockwork.is_woken = True
        return super().call_at(*args, **kwargs)


def play(kueue: VirtualKueue, story: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine and its tasks in virtual time."""
    loop = VirtualLoop(kueue)
    try:
        return loop.run_until_complete(story)
    finally:
        loop.run_until_complete(_end_all())
        loop.close()


async def _end_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


# -- the hub


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
        number, weights = len(self.selected_by(of)), {"usage/gpu": 1}
        self.put(placement(of, number, weights=weights, generation=generation))

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
            self.act(SetCondition(name, body["metadata"]["uid"], condition))
            self.kueue.set_ours_active(condition["status"] == "True", name)
            done = self.objects[kind, "", name]
        else:
            done = self._apply_object(kind, name, body)
        self._written(kind)
        return deep_copy(done)

    def get(self, kind: Kind, name: str) -> Raw:
        return (
            self.kueue.workload(_job(name)) if kind == WORKLOAD else deep_copy(self.objects[kind, "", name])
        )

    def delete(self, kind: Kind, name: str, uid: str | None, version: str | None) -> Raw:
        before = self.objects.get((kind, "", name))
        if before is None:
            raise NotFound(f"no {kind} {name}", status=404)
        metadata = before["metadata"]
        if uid not in (None, metadata["uid"]) or version not in (None, "", metadata["resourceVersion"]):
            raise Conflict(f"another {kind} {name}", status=409)
        del self.objects[kind, "", name]
        self.version += 1
        self._notify("remove", kind, before)
        self._mirror(kind, name, before, None)
        self._written(kind)
        return {"kind": "Status"}

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
        before = self.objects.get((kind, "", name))
        if body["metadata"].get("uid") != (before["metadata"]["uid"] if before else None):
            raise Conflict(f"another {kind} {name}", status=409)
        self.act(Apply(kind, body, None))
        after = self.objects[kind, "", name]
        self._mirror(kind, name, before, after)
        return after

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


# -- between the hub and the controller


@dataclass(frozen=True)
class Odds:
    """Random delays and failures: a share `fails` of the requests fails, with or without effect.

    `late`: the longest delay of an event in seconds.
    """

    chance: random.Random
    fails: float = 0.0
    late: float = EVENT_SECONDS

    def draw(self, seconds: tuple[float, float]) -> float:
        return self.chance.uniform(*seconds)

    def event(self) -> float:
        return self.chance.uniform(0.0, self.late)


class VirtualClient:
    """Requests to the virtual hub, with the interface of `kube.Client`."""

    def __init__(self, hub: VirtualHub, odds: Odds) -> None:
        self._hub = hub
        self._odds = odds

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Raw:
        return await self._request(lambda: self._hub.get(resource.of, name))

    async def create(self, resource: Resource, body: Raw) -> Raw:
        """Only events are created."""
        return await self._request(lambda: self._hub.take_event(body))

    async def merge(self, resource: Resource, name: str, patch: Raw, *, namespace: str | None = None) -> Raw:
        """Only events are merged, to increase their count."""
        return await self._request(lambda: self._hub.count_event(name, patch))

    async def apply(
        self,
        resource: Resource,
        body: Raw,
        *,
        subresource: str = "",
        force: bool = False,
        manager: str | None = None,
    ) -> Raw:
        return await self._request(lambda: self._hub.apply(resource.of, body, manager))

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        version: str | None = None,
    ) -> Raw:
        return await self._request(lambda: self._hub.delete(resource.of, name, uid, version))

    async def _request(self, carry_out: Callable[[], Raw]) -> Raw:
        """Send a request; it may be carried out after its sender was cancelled, or be lost."""
        answer: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        kueue, odds = self._hub.kueue, self._odds

        def arrives() -> None:
            lost = odds.chance.random() < odds.fails
            if (answer.cancelled() or lost) and odds.chance.random() < 0.5:
                done: Raw | ApiError = Unavailable("the request was lost")
            else:
                done = _outcome(carry_out)
            if lost:
                done = Unavailable("the answer was lost")
            kueue.later(odds.draw(REQUEST_SECONDS), lambda: _deliver(answer, done))

        kueue.later(odds.draw(REQUEST_SECONDS), arrives)
        try:
            return await answer
        except asyncio.CancelledError:
            answer.cancel()
            raise


def _outcome(carry_out: Callable[[], Raw]) -> Raw | ApiError:
    try:
        return carry_out()
    except ApiError as error:
        return error


def _deliver(answer: asyncio.Future[Raw], done: Raw | ApiError) -> None:
    if answer.done():
        return
    if isinstance(done, ApiError):
        answer.set_exception(done)
    else:
        answer.set_result(done)


# -- the controller


class VirtualController:
    """A controller that crashes and restarts. It starts when it is created.

    `read_queues`: reads a worker's queues, for our dispatcher.
    """

    def __init__(
        self, hub: VirtualHub, policy: PlacementPolicy, odds: Odds, read_queues: ReadQueues | None = None
    ) -> None:
        self._hub = hub
        self._story = asyncio.current_task()
        self._away = 0.0
        self.began = hub.kueue.now
        """When it started last."""
        self.reconciles: Counter[Key] = Counter()
        """How often each key was reconciled, over all lives."""
        self._live = partial(_Life, hub, policy, odds, read_queues, self.reconciles)
        self._life: _Life | None = self._live()
        hub.struck = self._die

    @property
    def metrics(self) -> Metrics | None:
        """Those of the running controller; None: there is none."""
        return self._life.metrics if self._life else None

    def crash(self, away: float, after_writes: int = 0) -> None:
        """Crash after `after_writes` more writes, and restart `away` seconds later."""
        self._away = away
        self._hub.strike_in = after_writes
        if not after_writes:
            self._die()

    def _die(self) -> None:
        if self._life is None:
            return
        self._life.end(asyncio.all_tasks() - {self._story})
        self._life = None
        self._hub.kueue.later(self._away, self._begin)

    def _begin(self) -> None:
        self.began = self._hub.kueue.now
        self._life = self._live()


class _Life:
    """One run of the controller, from start to crash; corresponds to `session.Session`."""

    def __init__(
        self,
        hub: VirtualHub,
        policy: PlacementPolicy,
        odds: Odds,
        read_queues: ReadQueues | None,
        reconciles: Counter[Key],
    ) -> None:
        self._hub = hub
        self._odds = odds
        self._latest: dict[Kind, float] = {}
        self._ended = False
        self._loop = asyncio.get_running_loop()
        self._cache = Cache(hub.facts, policy=policy)
        self._queue: Workqueue[Key] = Workqueue(self._work)
        self._reconciles = reconciles
        self._dispatches = policy.dispatcher
        self.metrics = Metrics(leading=lambda: True)
        client: Any = VirtualClient(hub, odds)  # VirtualClient has the used part of `kube.Client`
        served = {kind: kind.at(kind.versions[0]) for kind in WATCHED_KINDS}
        self._reconciler = Reconciler(
            self._cache,
            Writer(client, served, self._wrote, self.metrics, monotonic=self._loop.time),
            Recorder(client, served, self._clock),
            read_copies=self._ask,
            read_queues=read_queues,
            probe=self._probe if policy.probe else None,
            clock=self._clock,
            monotonic=self._loop.time,
            add_after=self._queue.add_after,
            metrics=self.metrics,
        )
        hub.listeners.append(self._hear)
        self._listing = self._loop.create_task(self._list())

    def end(self, tasks: set[asyncio.Task[Any]]) -> None:
        """Cancel all `tasks`, wherever they are."""
        self._ended = True
        self._hub.listeners.remove(self._hear)
        for task in tasks:
            task.cancel()
        self._closing = self._loop.create_task(self._queue.close())

    def _clock(self) -> datetime:
        return datetime.fromtimestamp(self._loop.time(), UTC)

    async def _work(self, key: Key) -> None:
        self._reconciles[key] += 1
        await self._reconciler.reconcile(key)

    async def _list(self) -> None:
        """List every kind, and again every RELIST_SECONDS."""
        while True:
            for kind in WATCHED_KINDS:
                await asyncio.sleep(self._odds.event())
                items, version = self._hub.items(kind)
                await asyncio.sleep(self._odds.event())
                self._cache.replace(kind, items, version)
            self._queue.add(*self._cache.keys())
            await asyncio.sleep(RELIST_SECONDS)

    def _hear(self, what: str, kind: Kind, raw: Raw) -> None:
        """Deliver an event with a delay; events of one kind keep their order."""
        now = self._loop.time()
        due = max(self._latest.get(kind, now), now + self._odds.event())
        self._latest[kind] = due
        self._hub.kueue.later(due - now, lambda: self._arrives(what == "remove", kind, raw))

    def _arrives(self, gone: bool, kind: Kind, raw: Raw) -> None:
        if not self._ended:
            self._take(kind, raw, gone, soon=kind in WRITTEN_KINDS)

    def _wrote(self, kind: Kind, raw: Raw, gone: bool) -> None:
        self._take(kind, raw, gone, soon=kind != WORKLOAD or not self._dispatches)

    def _take(self, kind: Kind, raw: Raw, gone: bool, *, soon: bool) -> None:
        """Take in a change. `soon`: in a burst, reconciling at once would run each key twice."""
        keys = (self._cache.remove if gone else self._cache.put)(kind, raw)
        for key in keys if self._cache.has_synced else ():
            if soon:
                self._queue.add_after(key, ECHO_SECONDS)
            else:
                self._queue.add(key)

    async def _ask(self, cluster: KueueObject) -> WorkerCopies:
        await asyncio.sleep(self._odds.draw(ASK_SECONDS))
        try:
            copies = map(decode.workload, self._hub.kueue.copies(cluster.meta.name))
        except Unavailable as error:
            await asyncio.sleep(TIMEOUT_SECONDS if self._odds.chance.random() < 0.5 else 0.0)
            return WorkerCopies({}, error.message)
        said = {one.meta.id: one.has_quota and not one.finished for one in copies}
        await asyncio.sleep(self._odds.draw(ASK_SECONDS))
        return WorkerCopies(said)

    async def _probe(self, source: CredentialSource, _: object) -> Fitness:
        await asyncio.sleep(self._odds.draw(ASK_SECONDS))
        return self._hub.fitness.get(source.name.removeprefix("multikueue-"), Fitness())
