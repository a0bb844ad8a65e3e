"""A write that lands late is refused by its guard, also where another leader has written meanwhile."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from placement_ac.cache.store import Cache
from placement_ac.core.api.constants import FIELD_MANAGER, KUEUE_ADMISSION
from placement_ac.core.api.managed_fields import owned_by
from placement_ac.kube.client import Client
from placement_lab.hub import Hub
from tests.support.admin import login_to
from tests.support.builders import AT_ONCE, condition
from tests.support.driver import Driver, eventually
from tests.support.jobs import WORKLOADS, has_quota, managed, write_status
from tests.support.late_writes import LATE_WRITES, landings
from tests.support.reconciling import Rig


@pytest.mark.parametrize("name", LATE_WRITES)
async def test_where_a_late_write_lands(hub: Hub, name: str) -> None:
    write = LATE_WRITES[name]
    async with Client(login_to(hub), field_manager="guard") as client:
        assert await landings(client, write) == write.lands


async def late_write(hub: Hub, rig: Rig, path: str, meanwhile: Callable[[], object]) -> int:
    """Reconcile, and let `meanwhile` happen before the request that writes there lands; return its status."""
    hub.faults.add("PATCH", path, delay=1.0)
    since = len(hub.journal)
    looks = asyncio.create_task(rig.look())
    await asyncio.to_thread(eventually, lambda: hub.faults.all_met)
    await asyncio.to_thread(meanwhile)

    def landed() -> list[int]:
        writes = (r for r in hub.journal[since:] if r.method == "PATCH" and r.path.endswith(path))
        return [write.status for write in writes if write.user_agent.startswith(FIELD_MANAGER)]

    await asyncio.to_thread(eventually, landed)
    await looks
    return landed()[0]


async def test_the_condition_of_a_deleted_check_does_not_land_on_its_successor(
    hub: Hub, p: Driver, rig: Rig
) -> None:
    """The successor is another controller's, so nothing would put that right."""
    await rig.list()

    def replaced() -> None:
        p.ask("DELETE", p.kueue("admissionchecks", "p"))
        p.multikueue_check("p", "other")

    assert await late_write(hub, rig, "/admissionchecks/p/status", replaced) == 409
    assert p.active("p") == {}


async def test_a_nomination_that_lands_after_a_takeover_is_refused(hub: Hub, p: Driver, rig: Rig) -> None:
    """It is sent; before it lands, the next leader nominates the Workload to another cluster."""
    p.namespace("default")
    p.multikueue_check("mk", "p")
    managed(p, "a", "b")
    has_quota(p, "job", "p", "mk")
    leader = Rig(rig.client, rig.resources, world=Cache(policy=replace(AT_ONCE, dispatcher=True)))
    await leader.list()
    await leader.look()
    for name in p.clusters():
        active = {"conditions": [condition(message="Connected", lastTransitionTime="2026-08-01T12:00:00Z")]}
        p.ask("PATCH", p.kueue("multikueueclusters", name, "status"), {"status": active}, "merge")
    await leader.list()

    def nominated() -> None:
        status = owned_by(p.ask("GET", f"{WORKLOADS}/job"), KUEUE_ADMISSION)["status"]
        write_status(p, "job", KUEUE_ADMISSION, status | {"nominatedClusterNames": ["p-b"]})

    assert await late_write(hub, leader, "/workloads/job/status", nominated) == 409
    assert p.ask("GET", f"{WORKLOADS}/job")["status"]["nominatedClusterNames"] == ["p-b"]
