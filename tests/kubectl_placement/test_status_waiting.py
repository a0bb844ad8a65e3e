"""The gate and the changes of the list, as `status` finds them in the objects of a hub."""

from datetime import timedelta
from typing import Any

import pytest

from kubectl_placement.hub.dump import Dump, MissingRight
from kubectl_placement.hub.dump_files import dump_of
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.hub.kinds import QUEUE_KINDS
from kubectl_placement.status.check_status import check_statuses
from kubectl_placement.status.model import CheckStatus, HeldRow, ListWrites
from placement_ac.config.settings import Settings
from placement_ac.core.api import constants
from placement_ac.core.api.list_change import ANNOTATION, Change, ClusterChange, ListChange
from placement_ac.core.inputs.kinds import WATCHED_KINDS
from tests.support.builders import (
    NOW,
    Raw,
    check,
    decision,
    managed_clusters,
    multikueue_check,
    our_objects,
    placement,
    running,
    secrets,
    workload,
)

KINDS = (*WATCHED_KINDS, *QUEUE_KINDS, constants.EVENT)


def status(
    *objects: Raw,
    missing: tuple[constants.Kind, ...] = (),
    name: str = "check",
    generation: int = 1,
    config: Raw | None = None,
) -> CheckStatus:
    """The status of a check on a hub with these objects, where a, b and z are listed and z stays."""
    found, *clusters = our_objects("a", "b", "z", owners=["check", "mk"])
    found["metadata"]["generation"] = generation
    listed = [config or found, *clusters]
    given = [check(), multikueue_check(), placement(selected=1), decision("z"), *secrets("a", "b", "z")]
    dump = dump_of([*given, *listed, *managed_clusters("a", "b", "z"), *objects])
    known = {kind: () if kind in missing else dump.of(kind) for kind in KINDS}
    rights = tuple(MissingRight("list", kind) for kind in missing)
    view = HubView(Dump(known, dump.served, rights, live=True), Settings(), NOW)
    [only] = check_statuses(view, [name])
    return only


def draining(*names: str) -> Raw:
    """The MultiKueueConfig, in which these clusters drain."""
    config, *_ = our_objects("a", "b", "z", owners=["check", "mk"])
    since = "2026-08-01T11:59:00Z"
    notes = {constants.ANNOTATION_DRAINING: ",".join(f"p-{name}={since}" for name in names)}
    config["metadata"] |= {"annotations": notes, "generation": 1}
    return config


def test_who_is_held_and_by_which_removal() -> None:
    early = NOW - timedelta(seconds=40)
    waits = workload("waits", nominated=["p-b"], check="Ready", mk="Pending")
    jobs = [running("runs", "p-a"), waits, workload("one"), workload("two", since=early)]
    assert status(*jobs, config=draining("a", "b")).held == (
        HeldRow(("b",), "Workloads wait there", 2, early),
    )
    two = status(workload("one"), config=draining("a", "b")).held
    assert two == (HeldRow(("a", "b"), "nothing runs there any more", 1, NOW),)


def test_without_a_cluster_that_drains_nobody_is_held() -> None:
    assert status(running("runs", "p-a"), workload("one"), config=draining()).held == ()


def test_who_waits_for_another_check_is_held_by_that() -> None:
    jobs = [workload("one", second="Pending", mk="Pending")]
    found = [
        status(check("second"), *jobs, config=draining("b"), name=name).held for name in ("check", "second")
    ]
    assert found == [(), (HeldRow(("b",), "nothing runs there any more", 1, NOW),)]


# -- how often the list changed


KINDS_OF: dict[str, Change] = {
    "ClustersSelected": "added",
    "ClusterAdded": "added",
    "ClusterDraining": "draining",
    "ClusterRemoved": "removed",
}


def event(
    reason: str,
    cluster: str,
    ago: float,
    *,
    first: float | None = None,
    count: int = 1,
    change: ListChange | None = None,
    **rest: Any,
) -> Raw:
    """An event of ours, `ago` minutes old. `change`: another one than of `cluster` alone."""
    times = [NOW - timedelta(minutes=one) for one in (ago if first is None else first, ago)]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{reason}.{cluster}.{ago}",
            "namespace": "default",
            "annotations": {
                ANNOTATION: (change or ListChange(KINDS_OF[reason], (ClusterChange(cluster),))).to_json()
            },
        },
        "involvedObject": {"kind": "AdmissionCheck", "name": "check"},
        "reportingComponent": "placement-ac",
        "reason": reason,
        "message": "1 cluster more",
        "firstTimestamp": times[0].isoformat(),
        "lastTimestamp": times[1].isoformat(),
        "count": count,
    } | rest


def last_hour(*events: Raw, changes: int = 99) -> int | None:
    writes = status(*events, generation=changes + 1).list_writes
    assert writes
    return writes.last_hour


AGAIN = ListChange("added", (ClusterChange("a", again=True),))
PARTLY = ListChange("added", (ClusterChange("b"), ClusterChange("a", again=True)))


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([], 0, id="none"),
        pytest.param(
            [event("ClusterAdded", "a", 9), event("ClusterRemoved", "b", 9), event("ClusterRemoved", "c", 5)],
            2,
            id="one change may post two events",
        ),
        pytest.param(
            [event("ClusterAdded", "a", 5, first=50, count=7), event("ClusterRemoved", "b", 6, count=3)],
            7,
            id="of repeated events, the largest sum of a reason",
        ),
        pytest.param(
            [event("ClusterAdded", "a", 5, count=2), event("ClusterAdded", "b", 4, first=50, count=3)],
            5,
            id="events of one reason are of different changes",
        ),
        pytest.param(
            [event("ClusterAdded", "a", 5, first=90, count=40)], 1, id="of an older event, its last time"
        ),
        pytest.param([event("ClusterAdded", "a", 61)], 0, id="longer ago"),
        pytest.param(
            [
                event("ClustersSelected", "a", 5),
                event("ClusterDraining", "a", 4),
                event("ClusterAdded", "a", 3, change=AGAIN),
            ],
            0,
            id="a new list, and a cluster that drains and is selected again, stays listed",
        ),
        pytest.param([event("ClusterAdded", "a", 3, change=PARTLY)], 1, id="another cluster is new"),
        pytest.param(
            [
                event("ClusterUnusable", "a", 5, change=AGAIN),
                event("ClusterAdded", "a", 5, reportingComponent="kueue"),
                event("ClusterAdded", "a", 5, involvedObject={"kind": "AdmissionCheck", "name": "other"}),
                event("ClusterAdded", "a", 5, involvedObject={"kind": "Workload", "name": "check"}),
            ],
            0,
            id="others, or about something else",
        ),
        pytest.param(
            [event("ClusterAdded", "a", 5, metadata={"name": "old"}), event("ClusterRemoved", "b", 4)],
            1,
            id="one of an older version has no data",
        ),
        pytest.param([event("ClusterAdded", "a", 5, firstTimestamp=None, lastTimestamp=[])], 0, id="no time"),
    ],
)
def test_changes_of_the_last_hour_are_at_least_those_that_events_prove(
    events: list[Raw], expected: int
) -> None:
    assert last_hour(*events) == expected


def test_a_config_that_is_new_has_no_changes_of_an_earlier_one() -> None:
    assert last_hour(event("ClusterRemoved", "a", 5, count=4), changes=1) == 1


def test_a_change_costs_each_workload_on_each_cluster() -> None:
    jobs = [running("one", "p-a"), workload("two"), workload("ours-alone", check="Ready")]
    assert status(*jobs).list_writes == ListWrites(0, 0, None, 2, 3, 6)


def test_counts_of_events_and_workloads_that_cannot_be_read_are_unknown() -> None:
    writes = status(missing=(constants.EVENT, constants.WORKLOAD)).list_writes
    assert writes == ListWrites(None, 0, None, None, 3, None)


def test_without_a_config_there_is_no_list() -> None:
    assert status(check("other", "q"), placement("q"), name="other").list_writes is None
