"""The Kubernetes events of a controller at work: in order, once each, and in nobody's way."""

from placement_lab.hub import Hub
from tests.support.driver import Controllers, Driver, eventually
from tests.support.jobs import Play, soon

BY = "by Placement kueue-system/p"
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
