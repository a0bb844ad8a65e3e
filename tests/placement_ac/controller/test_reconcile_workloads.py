"""Workloads, one key at a time on a real hub: how they are answered, asked for and reported."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from placement_ac.cache.store import Cache
from placement_ac.controller.fair_slots import POSTPONED_SECONDS
from placement_ac.controller.write_limits import PACED_SECONDS, UNDONE_MAX
from placement_ac.core.api.constants import ANNOTATION_GROUP, WORKLOAD
from placement_ac.core.inputs.state import PlacementPolicy, WorkerCopies
from placement_ac.core.plan import workload_states
from placement_lab.hub import Hub
from tests.support.builders import AT_ONCE
from tests.support.driver import Driver, eventually
from tests.support.jobs import WORKLOADS, has_quota, is_admitted_on, managed, write_status
from tests.support.reconciling import WHEN, P, Rig


@pytest.fixture
def job(p: Driver) -> Driver:
    p.namespace("default")
    p.multikueue_check("mk", "p")
    managed(p, "a", "b")
    has_quota(p, "job", "p", "mk")
    return p


def check_states(admin: Driver, name: str = "job") -> dict[str, str]:
    """The states of a Workload's checks."""
    status = admin.ask("GET", f"{WORKLOADS}/{name}")["status"]
    return {entry["name"]: entry["state"] for entry in status["admissionChecks"]}


def warnings(admin: Driver) -> list[str]:
    return [event["message"] for event in admin.events() if event["reason"] == "ClusterLost"]


async def test_quota_is_answered_in_one_go_and_nothing_of_kueues_is_taken(job: Driver, rig: Rig) -> None:
    before = job.ask("GET", f"{WORKLOADS}/job")["status"]
    await rig.list()
    assert await rig.look() is None
    after = job.ask("GET", f"{WORKLOADS}/job")["status"]
    assert check_states(job) == {"p": "Ready", "mk": "Pending"}
    for status in (before, after):
        status["admissionChecks"] = [e for e in status["admissionChecks"] if e["name"] != "p"]
    assert after == before


async def test_writes_of_others_that_change_nothing_for_us_cost_no_second_look(job: Driver, rig: Rig) -> None:
    await rig.list()
    job.ask("PATCH", f"{WORKLOADS}/job", {"metadata": {"labels": {"some": "label"}}}, "merge")
    assert await rig.look() is None
    assert check_states(job)["p"] == "Ready"


@pytest.mark.parametrize(
    ("policy", "annotation", "conflicts"),
    [
        (AT_ONCE, "some/note", False),
        (replace(AT_ONCE, dispatcher=True), "some/note", False),
        (replace(AT_ONCE, avoid_after_failure=600.0, dispatcher=True), "some/note", False),
        (replace(AT_ONCE, dispatcher=True), ANNOTATION_GROUP, True),
    ],
    ids=["a note", "a note, with the dispatcher", "a note, where failures are remembered", "its group"],
)
async def test_only_a_write_that_matters_to_the_decision_is_a_conflict(
    policy: PlacementPolicy, annotation: str, conflicts: bool, job: Driver, rig: Rig
) -> None:
    rig = Rig(rig.client, rig.resources, world=Cache(policy=policy))
    job.ask("PATCH", f"{WORKLOADS}/job", {"metadata": {"labels": {"team": "x"}}}, "merge")
    await rig.list()
    job.ask("PATCH", f"{WORKLOADS}/job", {"metadata": {"annotations": {annotation: "true"}}}, "merge")
    assert (await rig.look() is not None) == conflicts
    assert check_states(job)["p"] == ("Pending" if conflicts else "Ready")


async def test_a_placement_in_between_is_a_conflict_and_no_eviction(job: Driver, rig: Rig) -> None:
    await rig.list()
    is_admitted_on(job, "job", "p-a")
    assert await rig.look() is not None
    assert check_states(job)["p"] == "Pending"
    assert await rig.look() is None  # it has looked again, and sees where the Workload is
    entries = job.ask("GET", f"{WORKLOADS}/job")["status"]["admissionChecks"]
    assert {e["name"]: e["message"] for e in entries}["p"] == "it runs on p-a"


async def test_who_is_written_to_all_the_time_is_tried_again_later(hub: Hub, job: Driver, rig: Rig) -> None:
    await rig.list()
    for _ in range(4):
        hub.faults.add("PATCH", "workloads", status=409)
    assert await rig.look() is not None
    assert await rig.look() is None
    assert check_states(job)["p"] == "Ready"


async def test_a_refused_answer_is_no_fault_of_the_check(hub: Hub, job: Driver, rig: Rig) -> None:
    await rig.list()
    hub.faults.add("PATCH", "workloads", status=403)
    assert await rig.look() is not None
    assert job.reason("p") == "Active"
    assert await rig.look() is None
    assert check_states(job)["p"] == "Ready"


async def test_a_listed_cluster_that_somebody_fights_over_holds_no_workload_back(
    job: Driver, rig: Rig
) -> None:
    """After five times the MultiKueueCluster is written every 30 s only; Workloads are answered."""
    path = job.kueue("multikueueclusters", "p-a")
    theirs = {"spec": {"clusterSource": {"kubeConfig": {"location": "theirs", "locationType": "Secret"}}}}
    await rig.list()
    for _ in range(UNDONE_MAX + 1):
        await rig.look()
        job.ask("PATCH", path, theirs, "merge", fieldManager="rival")
        await rig.list()
    has_quota(job, "late", "p", "mk")
    await rig.list()
    assert await rig.look() is None
    assert job.ask("GET", path)["spec"] == theirs["spec"]
    assert check_states(job, "late")["p"] == "Ready"
    assert rig.later[-1] == (P, PACED_SECONDS)


async def test_a_list_that_somebody_fights_over_is_no_reason_to_try_at_once(
    job: Driver, monkeypatch: pytest.MonkeyPatch, rig: Rig
) -> None:
    """More Workloads wait than are written in one go, which otherwise asks for the next go at once."""
    monkeypatch.setattr(workload_states, "WORKLOAD_WRITES_AT_ONCE", 1)
    path = job.kueue("multikueueconfigs", "p")
    await rig.list()
    for _ in range(UNDONE_MAX + 1):
        await rig.look()
        job.ask("PATCH", path, {"spec": {"clusters": ["theirs"]}}, "merge", fieldManager="rival")
        await rig.list()
    has_quota(job, "second", "p", "mk")
    has_quota(job, "third", "p", "mk")
    await rig.list()
    assert await rig.look() is None
    assert rig.later[-1] == (P, PACED_SECONDS)
    assert {check_states(job, name)["p"] for name in ("second", "third")} == {"Pending"}, "the list is wrong"


async def test_a_workload_that_has_gone_is_nothing_to_try_again(job: Driver, rig: Rig) -> None:
    await rig.list()
    job.ask("DELETE", f"{WORKLOADS}/job")
    assert await rig.look() is None


# -- how long after our Ready it is placed


def placed(rig: Rig) -> tuple[float | None, float | None]:
    """How many Workloads were placed since their Ready, and in how many seconds together."""
    names = (f"placement_ac_ready_to_placed_seconds_{what}" for what in ("count", "sum"))
    count, seconds = map(rig.metrics.registry.get_sample_value, names)
    return count, seconds


async def test_the_time_from_ready_to_the_placement_is_measured_once(job: Driver, rig: Rig) -> None:
    await rig.list()
    await rig.look()
    rig.ticks = 3.0
    await rig.look()
    assert placed(rig) == (0.0, 0.0)
    is_admitted_on(job, "job", "p-a")
    await rig.list()
    rig.ticks = 4.0
    for _ in range(2):
        await rig.look()
        assert placed(rig) == (1.0, 4.0)


@pytest.mark.parametrize("lost", ["the Workload", "the memory"])
async def test_a_placement_whose_ready_was_not_seen_is_not_measured(job: Driver, lost: str, rig: Rig) -> None:
    await rig.list()
    await rig.look()
    if lost == "the memory":
        rig.reconciler.reset()
        is_admitted_on(job, "job", "p-a")
    else:
        job.ask("DELETE", f"{WORKLOADS}/job")
    await rig.list()
    await rig.look()
    assert placed(rig) == (0.0, 0.0)


def only_b(admin: Driver) -> None:
    admin.decide("p", "b")
    admin.placement_says("p", 1)


# -- asking


class Curious(Rig):
    """A rig whose clusters hold no copies, and say so when they may."""

    asked = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.may_answer = asyncio.Event()

    async def _ask(self, cluster: Any) -> WorkerCopies:
        self.asked += 1
        await self.may_answer.wait()
        return WorkerCopies()


async def test_a_cluster_is_asked_beside_the_work_and_once_at_a_time(job: Driver, rig: Rig) -> None:
    curious = Curious(rig.client, rig.resources)
    await curious.list()
    await curious.look()
    only_b(job)
    await curious.list()
    await curious.look()
    await curious.look()
    assert (curious.asked, job.listed("p"), curious.later) == (1, ["p-b", "p-a"], [])
    curious.may_answer.set()
    await asyncio.sleep(0.01)
    assert (curious.asked, curious.later) == (1, [(P, 0.0)])
    await curious.look()
    curious.ticks = 1.0  # the gate has closed; what became Ready just now has its grace
    await curious.look()
    assert (P, 60.0) in curious.later


async def test_a_question_that_nobody_expected_to_fail_is_asked_again(job: Driver, rig: Rig) -> None:
    curious = Curious(rig.client, rig.resources)
    await curious.list()
    await curious.look()
    only_b(job)
    await curious.list()
    curious.may_answer = None  # type: ignore[assignment]
    for asked in (1, 2):
        await curious.look()
        await asyncio.sleep(0.01)
        assert curious.asked == asked
    await curious.reconciler.close()


async def test_nobody_is_asked_any_more_when_it_ends(job: Driver, rig: Rig) -> None:
    curious = Curious(rig.client, rig.resources)
    await curious.list()
    await curious.look()
    only_b(job)
    await curious.list()
    await curious.look()
    assert [task for task in asyncio.all_tasks() if "_query_copies" in repr(task)]
    await curious.reconciler.close()
    assert not [task for task in asyncio.all_tasks() if "_query_copies" in repr(task)]


# -- events


async def a_is_lost(rig: Rig, admin: Driver) -> None:
    """The ManagedCluster is deleted under a running job; nobody has looked since."""
    is_admitted_on(admin, "job", "p-a")
    await rig.list()
    await rig.look()
    admin.ask("DELETE", "/apis/cluster.open-cluster-management.io/v1/managedclusters/a")
    only_b(admin)


async def test_an_event_is_posted_once(hub: Hub, job: Driver, rig: Rig) -> None:
    await a_is_lost(rig, job)
    hub.faults.add("PATCH", "multikueueconfigs", status=500)
    await rig.list()
    assert await rig.look() is not None
    await rig.settle_events()
    assert warnings(job) == []
    await rig.look()
    await rig.look()
    await rig.settle_events()
    assert warnings(job) == ["ManagedCluster a is gone, and with it: default/job"]
    assert job.listed("p") == ["p-b"]


async def test_an_event_that_cannot_be_posted_is_in_nobodys_way(hub: Hub, job: Driver, rig: Rig) -> None:
    await a_is_lost(rig, job)
    hub.faults.add("POST", "events", status=403, times=100)
    await rig.list()
    assert await rig.look() is None
    await rig.settle_events()
    assert (warnings(job), job.listed("p")) == ([], ["p-b"])


# -- Kueue's own words


async def test_a_second_look_after_an_eviction_answers_again(job: Driver, rig: Rig) -> None:
    await rig.list()
    await rig.look()
    assert check_states(job)["p"] == "Ready"
    when = "2026-01-01T00:00:00Z"
    reset = [
        {"name": name, "state": "Pending", "message": "Reset to Pending", "lastTransitionTime": when}
        for name in ("p", "mk")
    ]
    write_status(job, "job", "kueue", {"admissionChecks": reset})
    listing = await rig.client.list(rig.resources[WORKLOAD])
    assert rig.world.replace(WORKLOAD, listing.items, listing.resource_version) == {P}
    await rig.look()
    assert check_states(job)["p"] == "Ready"


async def test_nothing_is_unlisted_while_a_write_hangs_that_could_bring_a_job_there(
    hub: Hub, job: Driver, rig: Rig
) -> None:
    async def looks(wanted: list[str], times: int) -> bool:
        for _ in range(times):
            await rig.list()
            assert await rig.look() is None
            await asyncio.sleep(0.05)  # the cluster answers
            rig.ticks += 5
            if await asyncio.to_thread(job.listed, "p") == wanted:
                return True
        return False

    rig.copies = WorkerCopies()
    hub.faults.add("PATCH", "/workloads/job/status", agent="placement-ac", delay=8.0)
    await rig.list()
    assert await rig.look() is None
    assert rig.later == [(P, POSTPONED_SECONDS)], "it is looked at again"
    job.decide("p", "a")
    assert not await looks(["p-a"], 10)
    assert check_states(job)["p"] == "Pending", "the write hangs"
    await asyncio.to_thread(eventually, lambda: check_states(job)["p"], "Ready", seconds=20)
    job.ask("DELETE", f"{WORKLOADS}/job")
    assert await looks(["p-a"], 10)


async def test_a_write_that_hung_is_reported_like_any_other(hub: Hub, job: Driver, rig: Rig) -> None:
    hub.faults.add("PATCH", "/workloads/job/status", agent="placement-ac", delay=1.0, status=500)
    hub.faults.add("PATCH", "/workloads/job/status", agent="placement-ac", delay=1.0)
    await rig.list()
    for is_last in (False, True):
        assert await rig.look() is None
        assert rig.later[-1] == (P, POSTPONED_SECONDS), "it is looked at again"
        await asyncio.sleep(1.5)
        assert rig.later[-1] == (P, 0.0 if is_last else POSTPONED_SECONDS)
    assert check_states(job)["p"] == "Ready"
    assert rig.world.snapshot(P, WHEN, {}).workloads[0].check_state("p").state == "Ready"
