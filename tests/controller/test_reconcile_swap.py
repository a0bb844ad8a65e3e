"""A decision that merely swaps clusters: the list is written first, and everything is looked at then."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from placement_ac.cache.store import World
from placement_ac.core.api.constants import MANAGED_CLUSTER, PLACEMENT_DECISION, WATCHED_KINDS, WORKLOAD
from placement_ac.core.plan.plan import plan
from placement_ac.core.plan.swap import swap
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login
from placement_ac.lab.hub import Hub
from tests.controller.test_reconcile import FORBIDDEN, WHEN, P, Rig, Test, said
from tests.support.builders import GENERATED, managed_clusters, workload
from tests.support.driver import Driver


@pytest.fixture
def on(hub: Hub, tmp_path: Path) -> Callable[[Test], None]:
    """Runs an async test with a rig whose Placement is at rest: a and b are listed, c was a moment ago."""
    hub.write_kubeconfig(tmp_path / "kubeconfig")

    async def whole(test: Test) -> None:
        async with Client(Login(tmp_path / "kubeconfig")) as client:
            rig = Rig(client, await client.discover(WATCHED_KINDS), world=World())
            for clusters in (("b", "c"), ("a", "b")):
                Driver(hub).decide("p", *clusters)
                await rig.list()
                for _ in range(2):
                    assert await rig.look() is None
            await test(rig)
            await rig.told()

    return lambda test: asyncio.run(whole(test))


@pytest.fixture
def p(admin: Driver) -> Driver:
    admin.check("p")
    admin.select("p", "a", "b", "c")
    admin.placement_says("p", 2)
    return admin


def swaps(rig: Rig) -> bool:
    """Whether the short way is taken with what the world knows."""
    seen = rig.world.at_rest("p", WHEN)
    return seen is not None and swap(seen) is not None


def on_checks(p: Driver) -> list[tuple[str, str]]:
    return [(event["reason"], event["message"]) for event in p.events()]


def added_and_removed(cluster: str) -> list[tuple[str, str]]:
    return [
        ("ClusterAdded", f"1 cluster more, by Placement kueue-system/p: {cluster}"),
        ("ClusterRemoved", f"1 cluster is listed no more: {cluster} (its ManagedCluster is gone)"),
    ]


def test_it_is_one_write_and_everything_else_follows_as_ever(
    hub: Hub, p: Driver, on: Callable[[Test], None]
) -> None:
    async def test(rig: Rig) -> None:
        for clusters in (("b", "c"), ("a", "c"), ("a", "b")):
            since = len(hub.journal)
            p.decide("p", *clusters)
            await rig.list()
            assert swaps(rig)
            assert await rig.look() is None
            await rig.told()
            names = [f"p-{cluster}" for cluster in clusters]
            assert p.writes(since) == [("PATCH", p.kueue("multikueueconfigs", "p"))]
            assert (p.listed("p"), said(p)) == (names, ("True", "Active", GENERATED))
        assert set(on_checks(p)) >= {told for cluster in "abc" for told in added_and_removed(cluster)}

    on(test)


def knows(rig: Rig) -> tuple[str, ...]:
    return rig.world._configs.things["", "p"].listed


def test_the_answer_is_read_after_a_pause_and_the_rest_gives_way_as_ever(
    p: Driver, on: Callable[[Test], None]
) -> None:
    async def test(rig: Rig) -> None:
        known: dict[str, tuple[str, ...]] = {}

        async def pause() -> None:
            for _ in range(400):
                await asyncio.sleep(0.01)
                if p.listed("p") == ["p-b", "p-c"]:
                    break
            await asyncio.sleep(0.1)
            known["at the end of the pause"] = knows(rig)

        rig.pause = pause
        rig.meanwhile = lambda: known.update({"while it gives way": knows(rig)})
        p.decide("p", "b", "c")
        await rig.list()
        assert swaps(rig)
        assert await rig.look() is None
        assert known == {"at the end of the pause": ("p-a", "p-b"), "while it gives way": ("p-b", "p-c")}

    on(test)


def test_one_that_is_cut_in_its_pause_is_looked_at_anew(p: Driver, on: Callable[[Test], None]) -> None:
    """The lead may be lost meanwhile, and come back."""

    async def test(rig: Rig) -> None:
        begun = asyncio.Event()

        async def pause() -> None:
            begun.set()
            await asyncio.Event().wait()

        rig.pause = pause
        p.decide("p", "b", "c")
        await rig.list()
        looks = asyncio.create_task(rig.look())
        await begun.wait()
        looks.cancel()
        with pytest.raises(asyncio.CancelledError):
            await looks
        rig.pause = None
        await rig.list()
        assert await rig.look() is None
        assert (p.listed("p"), knows(rig)) == (["p-b", "p-c"], ("p-b", "p-c"))

    on(test)


def test_somebody_who_was_quicker_is_not_overwritten(p: Driver, on: Callable[[Test], None]) -> None:
    async def test(rig: Rig) -> None:
        p.decide("p", "b", "c")
        await rig.list()
        path = p.kueue("multikueueconfigs", "p")
        p.ask("PATCH", path, {"metadata": {"annotations": {"by": "hand"}}}, "merge")
        assert swaps(rig)
        assert await rig.look() is not None
        assert p.listed("p") == ["p-a", "p-b"]
        await rig.list()
        assert not swaps(rig)
        assert await rig.look() is None
        assert p.listed("p") == ["p-b", "p-c"]

    on(test)


def test_a_refusal_is_told_and_mended_when_it_may_be(hub: Hub, p: Driver, on: Callable[[Test], None]) -> None:
    async def test(rig: Rig) -> None:
        p.decide("p", "b", "c")
        await rig.list()
        hub.faults.add("PATCH", "multikueueconfigs", status=403, body=FORBIDDEN, times=1)
        assert swaps(rig)
        assert await rig.look() is not None
        assert (p.listed("p"), said(p)) == (["p-a", "p-b"], ("False", "ApplyFailed", "you shall not"))
        assert await rig.look() is None
        assert (p.listed("p"), said(p)) == (["p-b", "p-c"], ("True", "Active", GENERATED))

    on(test)


def test_a_cluster_that_ocm_cannot_reach_does_not_go_by_the_next_swap(
    p: Driver, on: Callable[[Test], None]
) -> None:
    async def test(rig: Rig) -> None:
        for raw in managed_clusters("a", "b", "c", unreachable=["c"]):
            rig.world.put(MANAGED_CLUSTER, raw)
        for clusters, short in ((("b", "c"), True), (("a", "b"), False)):
            assert await rig.look() is None
            p.decide("p", *clusters)
            rig.world.put(PLACEMENT_DECISION, newest(p))
            assert swaps(rig) is short
        assert await rig.look() is None
        assert p.listed("p") == ["p-a", "p-b", "p-c"]

    on(test)


def newest(p: Driver) -> Any:
    return p.get(f"{p.ocm}/placementdecisions/p-decision-1")


def test_what_comes_while_it_is_written_is_looked_at_next(
    hub: Hub, p: Driver, on: Callable[[Test], None]
) -> None:
    async def test(rig: Rig) -> None:
        def meanwhile() -> None:
            rig.meanwhile = lambda: None
            p.decide("p", "a", "c")
            rig.world.put(PLACEMENT_DECISION, newest(p))

        p.decide("p", "b", "c")
        await rig.list()
        rig.meanwhile, since = meanwhile, len(hub.journal)
        assert swaps(rig)
        assert await rig.look() is None
        assert p.writes(since) == [("PATCH", p.kueue("multikueueconfigs", "p"))]
        assert await rig.look() is None
        assert p.writes(since) == [("PATCH", p.kueue("multikueueconfigs", "p"))] * 2
        assert (p.listed("p"), said(p)) == (["p-a", "p-c"], ("True", "Active", GENERATED))

    on(test)


def test_a_job_that_comes_while_it_is_written_waits_at_the_gate(
    p: Driver, on: Callable[[Test], None]
) -> None:
    async def test(rig: Rig) -> None:
        p.decide("p", "b", "c")
        await rig.list()
        rig.meanwhile = lambda: rig.world.put(WORKLOAD, workload("w", p="Pending"))
        assert swaps(rig)
        assert await rig.look() is None
        assert not swaps(rig)
        seen = rig.world.snapshot(P, WHEN, rig.reconciler._memory[P].ages(rig.ticks))
        (reply,) = plan(seen).replies
        # c went before the test began, and no time has passed.
        assert (reply.state, reply.message) == ("Pending", "waits: a, c is leaving: it takes a moment")

    on(test)
