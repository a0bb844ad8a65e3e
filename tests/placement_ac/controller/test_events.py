"""The Kubernetes events of a controller at work: in order, once each, and in nobody's way."""

import pytest

from placement_lab.hub import Hub
from tests.support.driver import Controllers, Driver, Object, eventually
from tests.support.jobs import Play, soon
from tests.support.stage import shorten

BY = "by Placement kueue-system/p"
NOTHING_RAN = "(not selected any more; nothing ran there)"
SELECTED = ("ClustersSelected", f"1 cluster, {BY}: c", 1)
DRAINS = "1 cluster drains: c (not selected any more; 1 Workload runs there); Workloads are waited for"
DRAINED = "1 cluster is no longer listed: c (not selected any more; drained)"


def posted_events(admin: Driver) -> list[tuple[str, str, int]]:
    """Reason, message and count of the events on checks, in the order in which they were first posted."""
    return [(event["reason"], event["message"], event["count"]) for event in admin.events()]


def on_events(hub: Hub, since: int = 0) -> list[tuple[str, int]]:
    """Verb and status of the requests about events."""
    asked = [r for r in hub.journal[since:] if "/events" in r.path and r.user_agent == "placement-ac"]
    return [(request.method, request.status) for request in asked]


def test_events_of_changes_and_a_drain_come_in_order_and_are_counted_on(play: Play) -> None:
    stage = play("b", "c")
    stage.select("c")
    first = stage.controllers.start()
    stage.submit("j")
    stage.until_runs("j", "c")
    stage.select("b")
    stage.until_listed("b", "c")
    stage.finish("j")
    stage.until_listed("b")
    story = [
        SELECTED,
        ("ClusterAdded", f"1 cluster more, {BY}: b", 1),
        ("ClusterDraining", DRAINS, 1),
        ("ClusterRemoved", DRAINED, 1),
    ]
    soon(lambda: posted_events(stage.admin), story)
    first.stop()

    since = len(stage.admin.hub.journal)
    stage.controllers.start()
    stage.submit("k")
    stage.until_runs("k", "b")
    assert on_events(stage.admin.hub, since) == [], "a restart alone tells nothing"
    stage.select("b", "c")
    stage.until_listed("b", "c")
    stage.finish("k")
    stage.until_finished("k")
    stage.select("c")
    stage.until_listed("c")
    stage.select("b", "c")
    stage.until_listed("b", "c")
    soon(lambda: posted_events(stage.admin)[1], ("ClusterAdded", f"1 cluster more, {BY}: b", 2))
    assert [reason for reason, _, count in posted_events(stage.admin)[4:] if count == 1] == [
        "ClusterAdded",
        "ClusterRemoved",
    ]


def test_an_unusable_cluster_is_reported_once_by_all_checks(
    admin: Driver, controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(monkeypatch, UNUSABLE_SECONDS=0.2)
    admin.namespace("default")
    admin.check("p")
    admin.select("p", "a")
    admin.decide("p", "a", "b")

    def complaints() -> list[Object]:
        return [event for event in admin.events() if event["reason"] == "ClusterUnusable"]

    with controllers():
        [event] = eventually(complaints)
    assert (event["type"], event["count"]) == ("Warning", 1)
    why = event["message"].removeprefix("1 selected cluster cannot be used: b (")
    assert f"left out: b ({why}" in admin.active("p")["message"]
    with controllers():
        since = len(admin.hub.journal)
        eventually(lambda: on_events(admin.hub, since), [("POST", 409), ("PATCH", 200)])
    assert [event["count"] for event in complaints()] == [1]
    shorten(monkeypatch, REPEAT_SECONDS=0.0)
    with controllers():
        eventually(lambda: [event["count"] >= 2 for event in complaints()], [True])


def test_no_event_reports_a_write_that_failed(admin: Driver, controllers: Controllers) -> None:
    admin.namespace("default")
    admin.check("p")
    admin.select("p", "a", "b")
    admin.hub.faults.add("PATCH", "/multikueueconfigs/p$", status=500, times=3)
    controllers.start()
    eventually(lambda: admin.reason("p"), "Active")
    eventually(lambda: posted_events(admin), [("ClustersSelected", f"2 clusters, {BY}: a, b", 1)])
    written = [r for r in admin.hub.journal if r.path.endswith("/multikueueconfigs/p") and r.raw]
    [posted] = [r for r in admin.hub.journal if r.path.endswith("/events") and r.method == "POST"]
    statuses = [request.status for request in written if request.method == "PATCH"]
    assert (statuses, posted.at > written[-1].at) == ([500, 500, 500, 201], True)


def test_a_write_is_reported_though_a_later_one_fails(admin: Driver, controllers: Controllers) -> None:
    admin.namespace("default")
    admin.check("p")
    admin.select("p", "a")
    admin.hub.faults.add("PATCH", "/admissionchecks/p/status$", status=500)
    controllers.start()
    eventually(lambda: posted_events(admin), [("ClustersSelected", f"1 cluster, {BY}: a", 1)])


@pytest.mark.parametrize("status", [403, 500])
def test_events_that_cannot_be_posted_are_in_nobodys_way(
    admin: Driver, controllers: Controllers, status: int
) -> None:
    admin.namespace("default")
    admin.hub.faults.add("POST", "/events$", status=status, times=10_000)
    admin.check("p")
    admin.select("p", "a", "b")
    controllers.start()
    eventually(lambda: admin.listed("p"), ["p-a", "p-b"])
    eventually(lambda: on_events(admin.hub)[:1], [("POST", status)])
    admin.decide("p", "b")
    eventually(lambda: admin.listed("p"), ["p-b"])
    eventually(lambda: admin.reason("p"), "Active")


def test_a_change_of_many_clusters_is_one_event_and_waits_for_none(
    admin: Driver, controllers: Controllers
) -> None:
    """No event is answered before the test is over, and the controller can be stopped all the same."""
    names = [f"c{number:02}" for number in range(20)]
    admin.namespace("default")
    admin.hub.faults.add("POST", "/events$", delay=30, times=10_000)
    admin.check("p")
    admin.select("p", *names)
    with controllers():
        eventually(lambda: admin.listed("p"), [f"p-{name}" for name in names])
        admin.decide("p", "c00")
        eventually(lambda: admin.listed("p"), ["p-c00"])
    assert posted_events(admin) == []
    admin.hub.faults.clear()
    with controllers():
        admin.decide("p", *names)
        eventually(lambda: len(admin.listed("p") or ()), 20)
        more = f"19 clusters more, {BY}: c01, c02, c03, c04, c05 and 14 more"
        eventually(lambda: posted_events(admin), [("ClusterAdded", more, 1)])
