"""Jobs that give up, the whole controller on the virtual clock: a minute is the least, and costs nothing."""

import asyncio
from collections import Counter
from typing import Final

from placement_ac.core.api.constants import ANNOTATION_GIVE_UP
from placement_ac.core.inputs.state import PlacementPolicy
from tests.support.jobs_to_dispatch import GPU
from tests.support.virtual.loop import play
from tests.support.virtual.moving_fleet import MovingFleet

POLICY: Final = PlacementPolicy(
    retention=60.0, loss_grace=0.0, dispatcher=True, unlist_after=3600.0, give_up=True
)
JOB: Final = "j"


def too_large() -> MovingFleet:
    """Return two clusters with two GPUs each, for a job of four that gives up after a minute."""
    return MovingFleet(1, {"a": 2, "b": 2}, POLICY)


def submit(fleet: MovingFleet) -> None:
    fleet.seconds[JOB] = 600.0
    template = {"annotations": {ANNOTATION_GIVE_UP: "1m"}}
    fleet.kueue.submit(JOB, template=template, requests={GPU: "4"}, slots=4)


def is_active(fleet: MovingFleet) -> bool:
    return fleet.kueue.workload(JOB)["spec"].get("active") is not False


def gave_up(fleet: MovingFleet) -> int:
    return Counter(event["reason"] for event in fleet.hub.kept_events.values())["GaveUp"]


def test_a_job_that_every_cluster_refuses_is_deactivated_and_nominated_anew_once_it_is_active_again() -> None:
    fleet = too_large()

    async def story() -> None:
        fleet.start("a", "b")
        submit(fleet)
        await asyncio.sleep(55.0)
        assert (is_active(fleet), fleet.kueue.nominated(JOB)) == (True, [])
        await asyncio.sleep(20.0)
        assert (is_active(fleet), gave_up(fleet)) == (False, 1)
        fleet.resize("b", 8)
        await asyncio.sleep(300.0)
        assert (is_active(fleet), fleet.where(JOB)) == (False, "")
        fleet.kueue.activate(JOB, True)
        await asyncio.sleep(40.0)
        assert (is_active(fleet), fleet.where(JOB)) == (True, "b")

    play(fleet.kueue, story())
    assert (fleet.kueue.max_copies[JOB], gave_up(fleet)) == (1, 1)


def test_a_job_that_may_not_be_deactivated_is_sent_to_a_cluster_that_has_room_later() -> None:
    fleet = too_large()
    fleet.hub.may_deactivate = False

    async def story() -> None:
        fleet.start("a", "b")
        submit(fleet)
        await asyncio.sleep(200.0)
        assert (is_active(fleet), gave_up(fleet), fleet.where(JOB)) == (True, 0, "")
        assert 1 <= fleet.hub.refused <= 3  # once a minute, from its first one on
        fleet.resize("b", 8)
        await asyncio.sleep(60.0)
        assert fleet.where(JOB) == "b"

    play(fleet.kueue, story())


def test_a_job_that_may_not_be_deactivated_is_tried_again() -> None:
    fleet = too_large()
    fleet.hub.may_deactivate = False

    async def story() -> None:
        fleet.start("a", "b")
        submit(fleet)
        await asyncio.sleep(100.0)
        fleet.hub.may_deactivate = True
        await asyncio.sleep(90.0)
        assert (is_active(fleet), gave_up(fleet)) == (False, 1)

    play(fleet.kueue, story())
