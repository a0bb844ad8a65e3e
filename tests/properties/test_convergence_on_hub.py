"""
Whatever happens on a hub, in whatever order it is heard of, with a crash between any two writes: the
controller ends in the world that a calm run would have made, writes nothing more, and touches nobody else's.

The real path from the event to the write, on the embedded hub over HTTP; only the watch is played here, so
that events can come late, twice and out of order.
"""

import asyncio
import copy
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement_ac.cache.store import Cache
from placement_ac.controller.reconcile import Reconciler
from placement_ac.controller.recorder import Recorder
from placement_ac.controller.writer import Writer
from placement_ac.core.api.constants import Kind
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.inputs.kinds import WATCHED_KINDS
from placement_ac.core.inputs.state import HubFacts, Key, WorkerCopies
from placement_ac.kube.client import Client, Object
from placement_ac.kube.login import Login
from placement_ac.kube.workqueue import Requeue
from placement_lab.hub import Hub
from tests.support.builders import AT_ONCE
from tests.support.crds import strict_crds
from tests.support.driver import CORE, NS, OCM, PARAMETERS, Driver
from tests.support.real_hub import HubMaker

CHECKS = ("one", "two")
PLACEMENTS = ("p", "q")
CLUSTERS = ("a", "b", "c")
RESOURCES = {kind: kind.at(kind.versions[0]) for kind in WATCHED_KINDS}
ROUNDS = 30


class Crash(BaseException):
    """The process dies here."""


def is_event(path: str) -> bool:
    """Whether a request is about Kubernetes events: those are posted beside the work."""
    return "/events" in path


class MortalClient(Client):
    """Dies before or after its next write, when the test says so."""

    dies_at: int | None = None
    after = False

    async def request(self, method: str, path: str, *args: Any, **options: Any) -> Object:
        if method == "GET" or self.dies_at is None or is_event(path):
            return await super().request(method, path, *args, **options)
        self.dies_at -= 1
        if self.dies_at < 0:
            self.dies_at = None
            if self.after:
                await super().request(method, path, *args, **options)
            raise Crash
        return await super().request(method, path, *args, **options)


class Controller:
    """World, reconciler and actor of one process; time stands still unless `wait` is called."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.world = Cache(HubFacts(), policy=AT_ONCE)
        self.now = 0.0
        self.due: set[Key] = set()
        self.later: set[Key] = set()
        self.reconciler = Reconciler(
            self.world,
            Writer(client, RESOURCES, self._wrote),
            Recorder(client, RESOURCES, self._clock),
            read_copies=self._nobody_answers,
            clock=self._clock,
            monotonic=lambda: self.now,
            add_after=lambda key, _: self.later.add(key),
        )

    def _clock(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    async def _nobody_answers(self, cluster: KueueObject) -> WorkerCopies:
        return WorkerCopies({}, f"nobody answers for {cluster.meta.name}")

    def _wrote(self, kind: Kind, obj: Object, gone: bool) -> None:
        self.due |= (self.world.remove if gone else self.world.put)(kind, obj)

    async def list_all(self) -> None:
        for kind, resource in RESOURCES.items():
            listing = await self.client.list(resource)
            self.due |= self.world.replace(kind, listing.items, listing.resource_version)
        self.due |= self.world.keys()

    async def work(self) -> None:
        """Reconcile what is due; what has to be tried again stays due."""
        for key in sorted(self.due, key=str):
            self.due.discard(key)
            try:
                await self.reconciler.reconcile(key)
            except Requeue:
                self.later.add(key)

    async def settle(self) -> None:
        """Go on until nothing is due any more, and no wait is left."""
        for _ in range(ROUNDS):
            self.now += 10.0
            self.due |= self.later
            self.later.clear()
            await self.list_all()
            since = len(self.due)
            await self.work()
            if not since:
                break
            if not self.due and not self.later:
                return


# -- what may happen

Event = Callable[[Driver], None]


def _secret(cluster: str, there: bool) -> Event:
    def happen(admin: Driver) -> None:
        path = f"{CORE}/namespaces/{NS}/secrets"
        admin.try_("DELETE", f"{path}/multikueue-{cluster}")
        if there:
            admin.secret(f"multikueue-{cluster}")

    return happen


def _decide(placement: str, *clusters: str) -> Event:
    def happen(admin: Driver) -> None:
        if not admin.get(f"{OCM}/placements/{placement}"):
            admin.placement(placement)
        admin.decide(placement, *clusters)

    return happen


def _lose_placement(placement: str) -> Event:
    return lambda admin: admin.lose_placement(placement)


def _lose_decision(placement: str) -> Event:
    path = f"{OCM}/placementdecisions/{placement}-decision-1"
    return lambda admin: _ignore(admin.try_("DELETE", path))


def _check(name: str, placement: str | None) -> Event:
    def happen(admin: Driver) -> None:
        path = admin.kueue("admissionchecks", name)
        parameters = PARAMETERS | {"name": placement} if placement else None
        if admin.get(path):
            admin.ask("PATCH", path, {"spec": {"parameters": parameters}}, "merge")
        elif placement:
            admin.check(name, placement)
        else:
            admin.bare_check(name)

    return happen


def _remove_check(name: str) -> Event:
    return lambda admin: _ignore(admin.try_("DELETE", admin.kueue("admissionchecks", name)))


def _hurt(plural: str, name: str, patch: Object | None) -> Event:
    """Edit or delete an object of ours by hand, if it is there."""

    def happen(admin: Driver) -> None:
        path = admin.kueue(plural, name)
        _ignore(admin.try_("PATCH", path, patch, "merge") if patch else admin.try_("DELETE", path))

    return happen


def _ignore(_: object) -> None:
    """Whether it was there to be hurt does not matter."""


LIST = {"spec": {"clusters": ["elsewhere"]}}
SOURCE = {"spec": {"clusterSource": {"kubeConfig": None, "clusterProfileRef": {"name": "x"}}}}
UNLABEL = {"metadata": {"labels": None}}

placements = st.sampled_from(PLACEMENTS)
clusters = st.sampled_from(CLUSTERS)
decided = st.lists(clusters, max_size=3)
objects = st.tuples(placements, clusters).map("-".join)
events = st.one_of(
    st.builds(_secret, clusters, st.booleans()),
    st.builds(lambda p, cs: _decide(p, *cs), placements, decided),
    st.builds(_lose_placement, placements),
    st.builds(_lose_decision, placements),
    st.builds(_check, st.sampled_from(CHECKS), st.sampled_from((*PLACEMENTS, None))),
    st.builds(_remove_check, st.sampled_from(CHECKS)),
    st.builds(_hurt, st.just("multikueueconfigs"), placements, st.sampled_from((LIST, UNLABEL, None))),
    st.builds(_hurt, st.just("multikueueclusters"), objects, st.sampled_from((SOURCE, UNLABEL, None))),
)
steps = st.lists(st.tuples(events, st.none() | st.integers(0, 4), st.booleans()), min_size=1, max_size=8)
worlds = st.fixed_dictionaries(
    {
        "checks": st.fixed_dictionaries(dict.fromkeys(CHECKS, st.sampled_from((*PLACEMENTS, "p", None)))),
        "decided": st.fixed_dictionaries(
            dict.fromkeys(PLACEMENTS, st.lists(clusters, min_size=1, max_size=3))
        ),
        "secrets": st.sets(clusters, min_size=2),
    }
)


def bring_about(admin: Driver, world: dict[str, Any]) -> None:
    """Make a world of others' objects, whatever came before."""
    for cluster in CLUSTERS:
        _secret(cluster, cluster in world["secrets"])(admin)
    for placement in PLACEMENTS:
        _decide(placement, *world["decided"][placement])(admin)
    for check, placement in world["checks"].items():
        (_check(check, placement) if placement else _remove_check(check))(admin)


# -- looking


def ours(admin: Driver) -> dict[str, Any]:
    """Our objects and verdicts, without what time and identity put into them.

    Clusters are sorted: without scores, another order is not worth a write of a list.
    """
    found: dict[str, Any] = {}
    for plural in ("multikueueconfigs", "multikueueclusters"):
        for obj in admin.ask("GET", admin.kueue(plural))["items"]:
            metadata = obj["metadata"]
            owners = sorted(owner["name"] for owner in metadata.get("ownerReferences") or ())
            spec = {key: sorted(value) if key == "clusters" else value for key, value in obj["spec"].items()}
            found[f"{plural}/{metadata['name']}"] = (spec, metadata.get("labels"), owners)
    for check in CHECKS:
        condition = admin.active(check)
        found[check] = tuple(condition.get(key) for key in ("status", "reason", "message"))
    return found


def theirs(admin: Driver) -> list[Object]:
    """The whole objects that only others wrote."""
    paths = [f"{CORE}/namespaces/{NS}/secrets", f"{OCM}/placements", f"{OCM}/placementdecisions"]
    items = [obj for path in paths for obj in admin.ask("GET", path)["items"]]
    for obj in admin.ask("GET", admin.kueue("admissionchecks"))["items"]:
        obj.pop("status", None)
        obj["metadata"].pop("resourceVersion")
        fields = obj["metadata"]["managedFields"]
        obj["metadata"]["managedFields"] = [f for f in fields if f["manager"] != "placement-ac"]
        items.append(obj)
    return items


def seen_now(admin: Driver) -> dict[tuple[Kind, str, str], Object]:
    found = {}
    for kind, resource in RESOURCES.items():
        for obj in admin.ask("GET", resource.path())["items"]:
            found[kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]] = obj
    return found


@contextmanager
def stage(a_hub: HubMaker) -> Iterator[tuple[Hub, Driver, Login]]:
    with a_hub(crds=strict_crds()) as hub, Driver(hub) as admin, tempfile.TemporaryDirectory() as folder:
        hub.write_kubeconfig(Path(folder) / "kubeconfig")
        admin.namespace(NS)
        yield hub, admin, Login(Path(folder) / "kubeconfig")


async def calm_run(admin: Driver, login: Login, ending: dict[str, Any]) -> dict[str, Any]:
    bring_about(admin, ending)
    async with Client(login) as client:
        controller = Controller(client)
        await controller.settle()
        await controller.reconciler.close()
    return ours(admin)


async def stormy_run(
    hub: Hub, admin: Driver, login: Login, tale: Any, chance: random.Random
) -> dict[str, Any]:
    beginning, story, ending = tale
    bring_about(admin, beginning)
    async with MortalClient(login) as client:
        controller = Controller(client)
        await controller.settle()
        known = seen_now(admin)
        late: list[tuple[Kind, Object, bool]] = []
        for event, dies_at, after in story:
            event(admin)
            now = seen_now(admin)
            late += [(id_[0], obj, False) for id_, obj in now.items() if known.get(id_) != obj]
            late += [(id_[0], obj, True) for id_, obj in known.items() if id_ not in now]
            known = copy.deepcopy(now)
            chance.shuffle(late)
            heard = late[: chance.randint(0, len(late))]  # the rest comes later, and these come again
            for kind, obj, gone in heard:
                controller.due |= (controller.world.remove if gone else controller.world.put)(kind, obj)
            client.dies_at, client.after = dies_at, after
            try:
                await controller.work()
            except Crash:
                await controller.reconciler.close()
                controller = Controller(client)
                await controller.list_all()
            client.dies_at = None
        bring_about(admin, ending)
        before = theirs(admin)
        await controller.settle()
        assert theirs(admin) == before
        # A new process finds nothing left to do.
        await controller.reconciler.close()
        since = len(hub.journal)
        controller = Controller(client)
        await controller.settle()
        await controller.reconciler.close()
        assert [r for r in hub.journal[since:] if r.method != "GET" and not is_event(r.path)] == []
    return ours(admin)


@pytest.mark.timeout(300)  # thirty stories
@settings(max_examples=30)
@given(tale=st.tuples(worlds, steps, worlds), seed=st.integers(0, 2**16))
def test_every_story_ends_in_the_same_world(a_hub: HubMaker, tale: Any, seed: int) -> None:
    with stage(a_hub) as (_, admin, login):
        wanted = asyncio.run(calm_run(admin, login, tale[2]))
    with stage(a_hub) as (hub, admin, login):
        came = asyncio.run(stormy_run(hub, admin, login, tale, random.Random(seed)))
    assert came == wanted
