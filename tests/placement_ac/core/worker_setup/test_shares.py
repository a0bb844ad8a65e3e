"""LocalQueues that are too many for one ManifestWork: whose do not arrive, and how often it is written."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from placement_ac.core.api.decode import managed_cluster, manifest_work
from placement_ac.core.inputs.state import Since, SinceKind
from placement_ac.core.inputs.worker_setup import (
    HubClusterQueue,
    SetupUsage,
    WorkerSetupInputs,
    WorkerSetupPolicy,
)
from placement_ac.core.worker_setup.manifests import wanted_setup, work_spec
from placement_ac.core.worker_setup.planning import plan_worker_setup
from placement_ac.core.worker_setup.readiness import setup_state

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ETCD_BYTES = 1_572_864
"""etcd: the largest request, and so about the largest object."""


def inputs(*queues: tuple[str, str], before: tuple[tuple[str, str], ...] = (), **rest: Any) -> Any:
    """A cluster and these LocalQueues of the hub; `before`: those that its ManifestWork has."""
    given = WorkerSetupInputs(
        "c1",
        NOW,
        policy=WorkerSetupPolicy(enabled=True),
        managed_cluster=managed_cluster({"metadata": {"name": "c1"}}, with_allocatable=True),
        queues=(HubClusterQueue("q", {}, tuple(sorted(queues))),),
        usage=SetupUsage({"uid": "check"}, selected=True),
        **rest,
    )
    if not before:
        return given
    there = replace(given, queues=(HubClusterQueue("q", {}, before),))
    spec = work_spec(wanted_setup(there), None, "kueue-system")
    mine = [{"manager": "placement-ac", "operation": "Apply", "fieldsV1": {}}]
    meta = {"name": "placement-ac-queues", "namespace": "c1", "generation": 1, "managedFields": mine}
    return replace(given, work=manifest_work({"metadata": meta, "spec": spec}))


def of(namespace: str, number: int) -> list[tuple[str, str]]:
    return [(namespace, f"queue-{n:04}") for n in range(number)]


def arriving(given: Any) -> dict[str, int]:
    """Namespace → the number of its LocalQueues that the worker gets."""
    found: dict[str, int] = {}
    for one in wanted_setup(given):
        if one["kind"] == "LocalQueue":
            namespace = one["metadata"]["namespace"]
            found[namespace] = found.get(namespace, 0) + 1
    return found


GREEDY = of("greedy", 3000)


def test_3000_queues_of_one_namespace_leave_room_for_those_of_all_others() -> None:
    """Their ManifestWork was larger than an object may be, so that nobody's queues arrived."""
    given = inputs(*GREEDY, *of("team-a", 2), *of("team-b", 30))
    assert arriving(given) == {"greedy": 698, "team-a": 2, "team-b": 30}
    spec = work_spec(wanted_setup(given), None, "kueue-system")
    assert len(json.dumps(spec)) < ETCD_BYTES / 2, "OCM's report takes as much"


def test_the_largest_share_alike() -> None:
    assert arriving(inputs(*GREEDY, *of("also", 3000), *of("team-a", 2))) == {
        "also": 366,
        "greedy": 364,
        "team-a": 2,
    }


def test_a_queue_that_comes_late_pushes_out_none_that_is_there() -> None:
    before = tuple(("greedy", f"z-{n}") for n in range(700))
    given = inputs(*before, *GREEDY, before=before)
    there = {(one["metadata"].get("namespace"), one["metadata"]["name"]) for one in wanted_setup(given)}
    assert set(before) <= there
    assert arriving(inputs(*GREEDY, *of("team-a", 2), before=tuple(GREEDY))) == {"greedy": 728, "team-a": 2}


def test_queues_that_are_gone_count_while_they_stay_for_their_jobs() -> None:
    """Else, whoever makes and deletes them again and again would fill it all the same."""
    gone = tuple(("greedy", f"gone-{n:04}") for n in range(700))
    assert arriving(inputs(*GREEDY, *of("team-a", 2), before=gone)) == {"greedy": 30, "team-a": 2}


def test_the_surplus_is_named() -> None:
    given = inputs(*GREEDY, *of("team-a", 2), before=(("team-a", "queue-0000"),))
    assert setup_state(given).remarks[0] == (
        "delete LocalQueues of namespace greedy: it has the most, and the worker does not get 2,272 of them"
        " (queue-0728, queue-0729, queue-0730, queue-0731, queue-0732, queue-0733, queue-0734, queue-0735,"
        " queue-0736, queue-0737 and 2262 more), as a ManifestWork holds no more"
    )


@pytest.mark.parametrize(("age", "writes", "left"), [(0.0, 0, 3.0), (2.0, 0, 1.0), (3.0, 1, None)])
def test_a_manifest_work_is_written_every_three_seconds_at_most(
    age: float, writes: int, left: float | None
) -> None:
    """3,000 LocalQueues one after the other were 735 writes of 393 KB."""
    since = Since(SinceKind.SETUP_WRITTEN, "1")
    given = inputs(*of("team-a", 2), before=(("team-a", "queue-0000"),), ages={since: age})
    answer = plan_worker_setup(given)
    assert (len(answer.phases), answer.requeue_after) == (writes, left)
    assert since in answer.lasting


def test_the_first_one_is_written_at_once() -> None:
    assert len(plan_worker_setup(inputs(*of("team-a", 2))).phases) == 1
