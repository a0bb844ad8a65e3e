"""Kubernetes events: from the difference of two lists, one event per reason, after the write."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

import pytest

from placement_ac.core.api import decode, objects
from placement_ac.core.api.constants import EVENTS, IMMEDIATE, UNUSABLE_SECONDS
from placement_ac.core.api.list_change import ClusterChange, ListChange
from placement_ac.core.inputs.state import EventIntent, PlacementPolicy, Plan, Since, SinceKind
from placement_ac.core.plan.event_intents import (
    NAMES_SHOWN,
    WORKLOAD_EVENTS_MAX,
    PostableEvent,
    postable_events,
)
from tests.support.builders import NOW, managed_clusters, planned, posts, running, the, workload
from tests.support.decided import decided

BY: Final = "by Placement kueue-system/p"
NOTHING_RAN: Final = "(not selected any more; nothing ran there)"
WAITED: Final = "Workloads are waited for"
NOT_SELECTED: Final = "not selected any more"
AGAIN: Final = "selected again while it drained"
MANY: Final = tuple(f"c{number:02}" for number in range(17))


@dataclass
class Hub:
    """OCM's selection, beside the present list."""

    selected: Sequence[Any] = ()
    listed: Sequence[str] = ()
    draining: Sequence[str] = ()
    without: Sequence[str] = ()
    """Clusters that have no credentials."""
    by_hand: Sequence[str] | None = None
    """The list after somebody else has changed it; `listed`: the clusters with a MultiKueueCluster."""
    jobs: Any = ()
    fleet: Any = ()
    policy: PlacementPolicy = field(default_factory=lambda: PlacementPolicy(retention=0.0, loss_grace=0.0))

    def planned(self, ages: Mapping[Since, float] | None = None) -> Plan:
        names = [entry if isinstance(entry, str) else entry[0] for entry in self.selected]
        hub = decided(
            self.selected,
            self.listed,
            credentials=sorted({*names, *self.listed} - set(self.without)),
            fleet=self.fleet or None,
            draining=dict.fromkeys(self.draining, NOW - timedelta(hours=1)),
        )
        if self.by_hand is not None:
            config = the(hub, "MultiKueueConfig")
            config["spec"] = {"clusters": [f"p-{name}" for name in self.by_hand]}
            other, ours = config["metadata"]["managedFields"]
            other["fieldsV1"] = {"f:spec": ours["fieldsV1"].pop("f:spec")}
        return planned(hub, *self.jobs, policy=self.policy, ages=ages)


def on_checks(answer: Plan) -> list[tuple[str, str]]:
    return [(reason, message) for reason, about, message in posts(answer) if not about]


def b_drains(why: str, patience: str) -> list[tuple[str, str]]:
    expected_events = f"1 cluster drains: b (not selected any more; {why}); {patience}"
    return [("ClusterDraining", expected_events)]


A_JOB: Final = (running("job", "p-b"),)
NOBODY_LEFT: Final = {"policy": PlacementPolicy(retention=0.0, loss_grace=0.0, removal=IMMEDIATE)}
AN_HOUR: Final = PlacementPolicy(retention=0.0, loss_grace=0.0, drain_deadline=3600.0)


@pytest.mark.parametrize(
    ("hub", "expected_events"),
    [
        pytest.param(Hub("ab", "ab"), [], id="nothing"),
        pytest.param(Hub("ab"), [("ClustersSelected", f"2 clusters, {BY}: a, b")], id="the first"),
        pytest.param(
            Hub([("a", 40), "b"]),
            [("ClustersSelected", f"2 clusters, {BY}: a (score 40); b")],
            id="the first, by score",
        ),
        pytest.param(
            Hub("a", "b", ["b"], jobs=A_JOB),
            [("ClustersSelected", f"1 cluster, {BY}: a")],
            id="the first beside one that drains",
        ),
        pytest.param(Hub("abc", "a"), [("ClusterAdded", f"2 clusters more, {BY}: b, c")], id="two more"),
        pytest.param(
            Hub("ab", "ab", "b", jobs=A_JOB),
            [("ClusterAdded", f"1 cluster more, {BY}: b (selected again while it drained)")],
            id="selected again",
        ),
        pytest.param(
            Hub("a", "ab", jobs=A_JOB),
            b_drains("1 Workload runs there", WAITED),
            id="drains",
        ),
        pytest.param(
            Hub("a", "ab", jobs=[*A_JOB, running("two", "p-b")], policy=AN_HOUR),
            b_drains("2 Workloads run there", f"{WAITED}, 60 min at most, and then sent back"),
            id="drains, with a deadline",
        ),
        pytest.param(
            Hub("a", "ab", jobs=A_JOB, **NOBODY_LEFT),
            b_drains("1 Workload runs there", "Workloads are sent back at once"),
            id="drains, at once",
        ),
        pytest.param(
            Hub("a", "ab", jobs=A_JOB, fleet=managed_clusters("a", "b", unreachable="b")),
            b_drains("OCM cannot reach it", WAITED),
            id="out of reach",
        ),
        pytest.param(Hub("a", "ab", "b", jobs=A_JOB), [], id="drains on"),
        pytest.param(
            Hub("a", "ab"),
            [("ClusterRemoved", f"1 cluster is no longer listed: b {NOTHING_RAN}")],
            id="goes at once",
        ),
        pytest.param(
            Hub("c", "ab", fleet=managed_clusters("b", "c")),
            [
                ("ClusterAdded", f"1 cluster more, {BY}: c"),
                (
                    "ClusterRemoved",
                    f"2 clusters are no longer listed: a (its ManagedCluster is gone); b {NOTHING_RAN}",
                ),
            ],
            id="goes with its ManagedCluster",
        ),
    ],
)  # fmt: skip
def test_a_change_of_the_list_has_one_event_per_reason(
    hub: Hub, expected_events: list[tuple[str, str]]
) -> None:
    assert on_checks(hub.planned()) == expected_events


@pytest.mark.parametrize(
    ("hub", "changes"),
    [
        pytest.param(
            Hub([("a", 40), "b"]),
            [ListChange("added", (ClusterChange("a", 40), ClusterChange("b")))],
            id="the first",
        ),
        pytest.param(
            Hub([("a", 4), ("b", 9), ("c", 7)], "ab", "b", jobs=A_JOB),
            [ListChange("added", (ClusterChange("c", 7), ClusterChange("b", cause=AGAIN, again=True)))],
            id="one more, and one again",
        ),
        pytest.param(
            Hub("a", "ab", jobs=A_JOB),
            [
                ListChange(
                    "draining", (ClusterChange("b", cause=NOT_SELECTED, state="1 Workload runs there"),)
                )
            ],
            id="drains",
        ),
        pytest.param(
            Hub("c", "ab", fleet=managed_clusters("b", "c")),
            [
                ListChange("added", (ClusterChange("c"),)),
                ListChange(
                    "removed",
                    (
                        ClusterChange("a", cause="its ManagedCluster is gone"),
                        ClusterChange("b", cause=NOT_SELECTED, state="nothing ran there"),
                    ),
                ),
            ],
            id="goes",
        ),
        pytest.param(Hub(MANY), [ListChange("added", tuple(map(ClusterChange, MANY)))], id="all are named"),
    ],
)
def test_a_change_of_the_list_is_data_as_well(hub: Hub, changes: list[ListChange]) -> None:
    assert [intent.change for intent in hub.planned().config_events()] == changes


LEFT_BEFORE: Final = {Since(SinceKind.RETAINED, "p-b"): 5.0}


@pytest.mark.parametrize(
    ("hub", "ages", "expected_events"),
    [
        pytest.param(Hub("ab", "ab", by_hand="a"), {}, [], id="removed"),
        pytest.param(Hub("a", "ab", by_hand="b"), LEFT_BEFORE, [], id="replaced by one that had left"),
        pytest.param(
            Hub("abc", "ab", by_hand="a"),
            {},
            [("ClusterAdded", f"1 cluster more, {BY}: c")],
            id="OCM has selected another one",
        ),
        pytest.param(
            Hub("a", "ab", by_hand="b"),
            {},
            [("ClusterRemoved", f"1 cluster is no longer listed: b {NOTHING_RAN}")],
            id="OCM does not select one any more",
        ),
        pytest.param(
            Hub("ab", "ab", by_hand="a"),
            LEFT_BEFORE,
            [("ClusterAdded", f"1 cluster more, {BY}: b")],
            id="OCM has selected one that had left",
        ),
    ],
)
def test_a_change_by_hand_that_is_reverted_is_no_change_by_ocm(
    hub: Hub, ages: Mapping[Since, float], expected_events: list[tuple[str, str]]
) -> None:
    assert on_checks(hub.planned(ages)) == expected_events


def test_the_end_of_a_drain_is_reported() -> None:
    hub = Hub("a", "ab", "b")
    quiet = Since(SinceKind.QUIET, "b")
    assert on_checks(hub.planned()) == []  # Kueue has a moment to clear up
    expected_events = "1 cluster is no longer listed: b (not selected any more; drained)"
    assert on_checks(hub.planned({quiet: 2.0})) == [("ClusterRemoved", expected_events)]


def test_a_burst_is_one_event_that_names_some_and_counts_the_rest() -> None:
    [(reason, message)] = on_checks(Hub(MANY).planned())
    assert (reason, message) == (
        "ClustersSelected",
        f"17 clusters, {BY}: c00, c01, c02, c03, c04 and {17 - NAMES_SHOWN} more",
    )
    [(reason, message)] = on_checks(Hub("", MANY).planned())
    assert message == f"17 clusters are no longer listed: c00, c01, c02, c03, c04 {NOTHING_RAN} and 12 more"


# -- clusters that cannot be used


def unusable(answer: Plan) -> list[str]:
    return [notice.message for notice in answer.events if notice.reason == "ClusterUnusable"]


def the_mark(answer: Plan) -> Since:
    [mark] = [mark for mark in answer.lasting if mark.kind is SinceKind.CLUSTERS_UNUSABLE]
    return mark


def test_a_cluster_that_cannot_be_used_is_reported_when_that_has_lasted() -> None:
    hub = Hub("ab", "a", without="b")
    early = hub.planned()
    assert (unusable(early), early.requeue_after) == ([], UNUSABLE_SECONDS)
    late = hub.planned({the_mark(early): UNUSABLE_SECONDS})
    [expected_events] = unusable(late)
    why = expected_events.removeprefix("1 selected cluster cannot be used: b (").removesuffix(")")
    assert f"left out: b ({why})" in late.verdicts["check"].message
    assert (the_mark(late), late.requeue_after) == (the_mark(early), None)


def test_one_that_stays_listed_though_it_cannot_be_used_is_reported_as_well() -> None:
    hub = Hub("ab", "ab", "b", without="b", jobs=A_JOB)
    gone = {Since(SinceKind.REMOVAL_UNSETTLED, "b"): 5.0}
    late = hub.planned(gone | {the_mark(hub.planned(gone)): UNUSABLE_SECONDS})
    [expected_events] = unusable(late)
    assert expected_events.startswith("1 selected cluster cannot be used: b (")
    assert expected_events.endswith("; listed until it has drained)")


def test_unusable_for_another_reason_has_to_last_anew() -> None:
    before = the_mark(Hub("abc", "a", without="bc").planned())
    now = Hub("abc", "a", without="c").planned({before: 60.0})
    assert (unusable(now), now.requeue_after, the_mark(now) == before) == ([], UNUSABLE_SECONDS, False)


# -- events that may be posted now


def workloads(count: int) -> tuple[objects.Workload, ...]:
    return tuple(decode.workload(workload(f"w{number}")) for number in range(count))


W0, W1 = workloads(2)
LASTS: Final = EventIntent("Held", "held")
LISTED: Final = EventIntent("ClusterAdded", "added", "list")
LOST: Final = EventIntent("ClusterLost", "lost", "list", (W0,), ("ClusterLost", "it is lost"))
BACK: Final = EventIntent("WorkloadsSentBack", "sent back", "answers", (W0, W1), ("SentBack", "come back"))
BOTH: Final = (W0.meta.uid, W1.meta.uid)


@pytest.mark.parametrize(
    ("notice", "done", "expected_events"),
    [
        pytest.param(LASTS, {}, [], id="something failed"),
        pytest.param(
            LASTS, {"succeeded": True}, [PostableEvent("Held", "held", lasts=True)], id="what lasts"
        ),
        pytest.param(LISTED, {"succeeded": True, "answered": BOTH}, [], id="the list was not written"),
        pytest.param(
            LISTED, {"listed": True}, [PostableEvent("ClusterAdded", "added", lasts=False)], id="it was"
        ),
        pytest.param(
            replace(LISTED, change=ListChange("added")),
            {"listed": True},
            [PostableEvent("ClusterAdded", "added", False, data='{"change":"added","clusters":[]}')],
            id="with its data",
        ),
        pytest.param(
            LOST,
            {"listed": True},
            [
                PostableEvent("ClusterLost", "lost: default/w0", lasts=False),
                PostableEvent("ClusterLost", "it is lost", lasts=False, about=W0),
            ],
            id="on a Workload too",
        ),
        pytest.param(BACK, {"listed": True, "succeeded": True}, [], id="no Workload was sent back"),
        pytest.param(
            BACK,
            {"answered": [W1.meta.uid]},
            [
                PostableEvent("WorkloadsSentBack", "sent back: default/w1", lasts=False),
                PostableEvent("SentBack", "come back", lasts=False, about=W1),
            ],
            id="one of two was",
        ),
    ],
)
def test_an_event_comes_after_the_write_that_it_reports(
    notice: EventIntent, done: Any, expected_events: list[PostableEvent]
) -> None:
    nothing: Any = {"listed": False, "answered": (), "succeeded": False}
    assert list(postable_events([notice], **nothing | done)) == expected_events


def test_of_many_workloads_some_get_an_event_and_that_on_the_check_counts_all() -> None:
    notice = EventIntent("ClusterLost", "lost", "list", workloads(100), ("ClusterLost", "it is lost"))
    first, *each = postable_events([notice], listed=True, answered=(), succeeded=True)
    assert first.message.endswith("default/w9 and 90 more")
    assert [one.about for one in each] == list(notice.workloads[:WORKLOAD_EVENTS_MAX])


def test_every_reason_has_a_type_that_kubernetes_knows() -> None:
    assert {kind for kind, _ in EVENTS.values()} == {"Normal", "Warning"}
