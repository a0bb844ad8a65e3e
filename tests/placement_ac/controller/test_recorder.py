"""Kubernetes events one by one on a hub: how they look, how they are counted, and that nobody waits."""

import asyncio
import socket
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from placement_ac.controller.event_queue import QUEUED
from placement_ac.controller.recorder import AT_ONCE, PER_SECOND, REPEAT_SECONDS, Recorder
from placement_ac.core.api import decode
from placement_ac.core.api.constants import ADMISSION_CHECK, WORKLOAD
from placement_ac.core.api.list_change import ANNOTATION, ClusterChange, ListChange
from placement_ac.core.plan.event_intents import PostableEvent
from placement_ac.kube.client import Client
from placement_lab.hub import Hub
from tests.support import builders
from tests.support.driver import Driver, eventually
from tests.support.stage import shorten

RESOURCES: Final = {ADMISSION_CHECK: ADMISSION_CHECK.at("v1beta2"), WORKLOAD: WORKLOAD.at("v1beta1")}
CHECK: Final = decode.check(builders.check("p"))
JOB: Final = decode.workload(builders.workload("job"))
ADDED: Final = PostableEvent("ClusterAdded", "1 cluster more", lasts=False)
HELD: Final = PostableEvent("Held", "held", lasts=True)
BACK: Final = PostableEvent("SentBack", "sent back", lasts=False, about=JOB)


@dataclass
class Rig:
    """One replica that posts events; `now` is its clock."""

    client: Client
    now: datetime = datetime(2026, 8, 1, 12, tzinfo=UTC)
    per_second: float = 10_000.0

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget all: a new process, or another replica."""
        self.events = Recorder(
            self.client,
            RESOURCES,
            lambda: self.now,
            per_second=self.per_second,
        )

    async def post(self, *posts: PostableEvent) -> None:
        self.events.post(posts, [CHECK])
        await self.sent()

    async def sent(self) -> None:
        await asyncio.gather(*(task for task in asyncio.all_tasks() if task.get_name() == "post events"))


@pytest.fixture
def rig(client: Client, admin: Driver) -> Rig:
    admin.namespace("default")
    return Rig(client)


def counts(admin: Driver, kind: str = "AdmissionCheck") -> list[tuple[str, int, str]]:
    """Message, count and time of day of each event."""
    found = admin.events(kind)
    return [(event["message"], event["count"], event["lastTimestamp"][11:19]) for event in found]


async def test_an_event_has_its_source_reason_and_object(admin: Driver, rig: Rig) -> None:
    await rig.post(ADDED, BACK)
    [on_check], [on_job] = admin.events(), admin.events("Workload")
    metadata = {key: on_check["metadata"][key] for key in ("name", "namespace")}
    assert on_check | {"metadata": metadata} == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": on_check["metadata"]["name"], "namespace": "default"},
        "involvedObject": {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "AdmissionCheck",
            "name": "p",
            "uid": CHECK.meta.uid,
            "resourceVersion": CHECK.meta.resource_version,
        },
        "type": "Normal",
        "reason": "ClusterAdded",
        "message": "1 cluster more",
        "source": {"component": "placement-ac"},
        "reportingComponent": "placement-ac",
        "reportingInstance": socket.gethostname(),
        "eventTime": None,
        "firstTimestamp": "2026-08-01T12:00:00Z",
        "lastTimestamp": "2026-08-01T12:00:00Z",
        "count": 1,
    }
    assert on_job["involvedObject"] == {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "namespace": "default",
        "name": "job",
        "uid": JOB.meta.uid,
        "resourceVersion": JOB.meta.resource_version,
    }
    assert (on_job["type"], on_job["reason"]) == ("Warning", "SentBack")


async def test_a_change_that_happens_again_is_counted_up_also_after_a_restart(
    admin: Driver, rig: Rig
) -> None:
    await rig.post(ADDED)
    rig.now += timedelta(seconds=5)
    await rig.post(ADDED)
    rig.restart()
    rig.now += timedelta(seconds=5)
    await rig.post(ADDED, PostableEvent("ClusterAdded", "another", lasts=False))
    assert counts(admin) == [("1 cluster more", 3, "12:00:10"), ("another", 1, "12:00:10")]


async def test_an_event_with_other_data_is_another_event(admin: Driver, rig: Rig) -> None:
    first, other = (
        ListChange("added", (ClusterChange("a"), ClusterChange(name))).to_json() for name in ("b", "c")
    )
    await rig.post(ADDED)  # as an older version does, before this one takes over
    rig.restart()
    await rig.post(replace(ADDED, data=first))
    rig.now += timedelta(seconds=5)
    await rig.post(replace(ADDED, data=first), replace(ADDED, data=other))
    rig.restart()
    await rig.post(replace(ADDED, data=first))
    found = [(event["metadata"].get("annotations"), event["count"]) for event in admin.events()]
    assert found == [(None, 1), ({ANNOTATION: first}, 3), ({ANNOTATION: other}, 1)]


async def test_a_lasting_event_is_counted_once_in_ten_minutes_whoever_posts_it(
    hub: Hub, admin: Driver, rig: Rig
) -> None:
    await rig.post(HELD)
    since = len(hub.journal)
    rig.now += timedelta(seconds=REPEAT_SECONDS - 1)
    await rig.post(HELD)
    assert hub.journal[since:] == [], "the same process knows"
    rig.restart()
    await rig.post(HELD)
    assert counts(admin) == [("held", 1, "12:00:00")]
    rig.restart()
    rig.now += timedelta(seconds=1)
    await rig.post(HELD)
    assert counts(admin) == [("held", 2, "12:10:00")]


async def test_one_that_expires_before_it_is_counted_is_posted_anew(
    hub: Hub, admin: Driver, rig: Rig
) -> None:
    hub.faults.add("POST", "/events$", status=409)
    await rig.post(ADDED)
    assert [r.status for r in hub.journal if "/events" in r.path and r.method != "GET"][:3] == [409, 404, 201]
    assert counts(admin) == [("1 cluster more", 1, "12:00:00")]


async def test_a_name_that_is_as_long_as_can_be_has_room_for_an_event(admin: Driver, rig: Rig) -> None:
    long = decode.check(builders.check("c" * 253))
    rig.events.post([ADDED], [long])
    await rig.sent()
    assert [event["involvedObject"]["name"] for event in admin.events()] == [long.meta.name]


# -- nobody waits, and nothing is in the way


async def test_a_burst_is_queued_at_once_and_the_oldest_are_dropped(
    hub: Hub, admin: Driver, rig: Rig
) -> None:
    many = [
        PostableEvent("SentBack", f"number {number}", lasts=False, about=JOB) for number in range(2 * QUEUED)
    ]
    rig.events.post([HELD, *many], [CHECK])
    assert [r.path for r in hub.journal if r.path.endswith("/events")] == []
    await rig.sent()
    assert counts(admin) == []
    await rig.post(HELD)  # an event that was dropped does not count as posted
    assert [message for message, *_ in counts(admin, "Workload")] == [post.message for post in many[QUEUED:]]
    assert counts(admin) == [("held", 1, "12:00:00")]


async def test_many_go_out_at_a_pace(admin: Driver, rig: Rig) -> None:
    rig.per_second = 4.0
    rig.restart()
    news = [PostableEvent("ClusterAdded", f"news {number}", lasts=False) for number in range(AT_ONCE + 3)]
    rig.events.post(news, [CHECK])
    began = asyncio.get_running_loop().time()
    await rig.sent()
    assert asyncio.get_running_loop().time() - began > 0.5, "three of them wait"
    assert len(counts(admin)) == AT_ONCE + 3


@pytest.mark.parametrize(
    ("status", "tries"), [pytest.param(403, 1, id="refused"), pytest.param(500, 3, id="not available")]
)
async def test_a_hub_that_takes_no_events_is_not_asked_for_ever(
    hub: Hub, admin: Driver, monkeypatch: pytest.MonkeyPatch, status: int, tries: int, rig: Rig
) -> None:
    shorten(monkeypatch, PAUSES=(0.01, 0.01))
    hub.faults.add("POST", "/events$", status=status, times=tries)
    await rig.post(HELD)
    assert [r.status for r in hub.journal if r.path.endswith("/events")] == [status] * tries
    rig.restart()
    await rig.post(HELD)
    assert counts(admin) == [("held", 1, "12:00:00")]


async def test_an_event_that_could_not_be_posted_is_posted_when_it_recurs(
    hub: Hub, admin: Driver, monkeypatch: pytest.MonkeyPatch, rig: Rig
) -> None:
    shorten(monkeypatch, PAUSES=(0.01, 0.01))
    hub.faults.add("POST", "/events$", status=503, times=3)
    await rig.post(HELD)
    await rig.post(HELD)
    assert counts(admin) == [("held", 1, "12:00:00")]


async def test_nothing_is_posted_any_more_when_it_ends(hub: Hub, admin: Driver, rig: Rig) -> None:
    hub.faults.add("POST", "/events$", delay=30)
    rig.events.post([ADDED, HELD], [CHECK])
    await asyncio.sleep(0.05)
    await rig.events.close()
    hub.faults.clear()
    rig.events.post([ADDED, HELD], [CHECK])
    await rig.sent()
    assert counts(admin) == []


async def test_the_events_of_one_check_keep_no_other_waiting(admin: Driver, rig: Rig) -> None:
    other = decode.check(builders.check("q"))
    noise = [PostableEvent("SentBack", f"number {number}", lasts=False) for number in range(4 * QUEUED)]
    waited: list[float] = []
    rig.per_second = PER_SECOND
    rig.restart()
    rig.events.post(noise[: 2 * QUEUED], [CHECK])
    await asyncio.sleep(0.5)  # the burst is over
    began = asyncio.get_running_loop().time()
    rig.events.post([ADDED], [other])
    rig.events.post(noise[2 * QUEUED :], [CHECK])
    ask = lambda: "1 cluster more" in [message for message, *_ in counts(admin)]  # noqa: E731  # for a thread
    await asyncio.to_thread(eventually, ask, seconds=40)
    waited.append(asyncio.get_running_loop().time() - began)
    await rig.events.close()
    assert waited[0] < 1.0
