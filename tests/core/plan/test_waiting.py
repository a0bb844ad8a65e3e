"""Who waits for the gate, who has been placed since its Ready, and what a change of the list costs."""

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from placement_ac.core.api.decode import workload as decoded
from placement_ac.core.inputs.state import PlacementPolicy, Timer, TimerKind, WorkerCopies
from placement_ac.core.plan.diff import diff
from placement_ac.core.plan.list_writes import kueue_workloads, list_writes
from placement_ac.core.plan.plan import plan
from placement_ac.core.plan.stats import placement_stats
from placement_ac.core.plan.waiting import (
    HeldWorkloads,
    Placed,
    held_for,
    held_workloads,
    placed_since_ready,
)
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
    snapshot,
    workload,
    world,
)

PATIENT = PlacementPolicy(retention=0.0, loss_grace=0.0, waiting_grace=60.0)
NAMES = [f"c{number:02}" for number in range(12)]


def hub(listed: str | list[str], selected: str | list[str]) -> list[Any]:
    """A hub whose config lists clusters of which `selected` stay."""
    objects = our_objects(*listed, owners=["check", "mk"])
    both = [*listed, *(name for name in selected if name not in listed)]
    given = [*secrets(*both), *managed_clusters(*both)]
    return [check(), multikueue_check(), placement(), decision(*selected), *given, *objects]


def answered(*, leaves: list[str], job: Raw, others: list[Raw]) -> Raw:
    """The Workload `job` as our answer leaves it while the gate is closed for these clusters."""
    ages = {Timer(TimerKind.GATE_CLOSED_FOR, name): 1.0 for name in leaves}
    asked = {f"p-{name}": WorkerCopies({}, age=0.5) for name in leaves}
    seen = snapshot(world(hub([*leaves, "z"], ["z"]), *others, job, policy=PATIENT), ages=ages, **asked)
    [update] = [one for one in plan(seen).check_state_updates if one.workload.meta.name == "job"]
    return with_message(job, update.message)


def with_message(job: Raw, message: str) -> Raw:
    changed = copy.deepcopy(job)
    changed["status"]["admissionChecks"][0]["message"] = message
    return changed


@pytest.mark.parametrize(
    ("leaves", "clusters"),
    [
        pytest.param(["a"], ("a",), id="one"),
        pytest.param(["a", "b"], ("a", "b"), id="two"),
        pytest.param(NAMES, tuple(NAMES[:10]), id="more than a message names"),
    ],
)
def test_a_workload_that_the_plan_holds_is_counted_by_its_message(
    leaves: list[str], clusters: tuple[str, ...]
) -> None:
    waits_there = workload("other", nominated=[f"p-{name}" for name in leaves], check="Ready", mk="Pending")
    job = answered(leaves=leaves, job=workload("job"), others=[waits_there])
    assert held_workloads([decoded(job)], {"check"}) == (HeldWorkloads("check", clusters, 1, NOW),)


def test_one_that_a_cluster_may_still_run_is_held_too() -> None:
    job = workload("job")
    evicted = {"type": "Evicted", "status": "True", "reason": "AdmissionCheck", "lastTransitionTime": "x"}
    evicted["message"] = "At least one admission check is false: cluster a is leaving the Placement"
    job["status"]["conditions"].append(evicted)
    problem = WorkerCopies(problem="no route", age=0.5)
    seen = snapshot(world(hub("az", "z"), job, policy=PATIENT), **{"p-a": problem})
    [update] = plan(seen).check_state_updates
    assert held_for(update.message) == ("a",)


@pytest.mark.parametrize(
    "message",
    ["", "NoClusterSelected: Placement ns/p selects no cluster", "it waits: a is leaving", "a is leaving: x"],
)
def test_other_messages_hold_nobody(message: str) -> None:
    assert held_for(message) == ()


HELD = "waits: a is leaving: it takes a moment"


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(workload("job", quota=False), id="without quota"),
        pytest.param(workload("job", check="Ready", mk="Pending"), id="Ready by now"),
        pytest.param(workload("job", cluster="p-a"), id="placed"),
        pytest.param(workload("job", other="Pending"), id="of another controller"),
    ],
)
def test_who_does_not_wait_for_us_is_not_held(job: Raw) -> None:
    assert held_workloads([decoded(with_message(job, HELD))], {"check"}) == ()


def test_workloads_are_counted_by_check_and_by_the_clusters_that_leave() -> None:
    jobs = [
        with_message(workload("one", since=NOW - timedelta(seconds=30)), HELD),
        with_message(workload("two"), HELD),
        with_message(workload("three", second="Pending", mk="Pending"), HELD),
        with_message(workload("four"), HELD.replace("a is", "a, b is")),
    ]
    assert held_workloads(map(decoded, jobs), {"check", "second"}) == (
        HeldWorkloads("check", ("a",), 2, NOW - timedelta(seconds=30)),
        HeldWorkloads("check", ("a", "b"), 1, NOW),
        HeldWorkloads("second", ("a",), 1, NOW),
    )


def test_the_wait_begins_with_the_quota() -> None:
    job = with_message(workload("job", since=NOW - timedelta(hours=1)), HELD)
    job["status"]["conditions"][0]["lastTransitionTime"] = "2026-08-01T11:59:00Z"
    [held] = held_workloads([decoded(job)], {"check"})
    assert held.since == datetime(2026, 8, 1, 11, 59, tzinfo=UTC)


def test_without_times_it_is_held_all_the_same() -> None:
    job = with_message(workload("job"), HELD)
    for part in ("conditions", "admissionChecks"):
        for one in job["status"][part]:
            one["lastTransitionTime"] = "yesterday"
    assert held_workloads([decoded(job)], {"check"}) == (HeldWorkloads("check", ("a",), 1, None),)


def test_the_stats_have_the_state_of_each_drain_and_who_is_held() -> None:
    jobs = [running("there", "p-a"), with_message(workload("job"), HELD)]
    seen = snapshot(world(hub("abz", "z"), *jobs, policy=PATIENT), **{"p-b": WorkerCopies({}, age=0.5)})
    stats = placement_stats(seen, plan(seen))
    assert stats.drain_states == {"a": "running", "b": "closing"}
    assert stats.held == (HeldWorkloads("check", ("a",), 1, NOW),)


# -- from our Ready to the placement


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        pytest.param(running("job", "p-a"), Placed(("Workload/job",), ()), id="clusterName is set"),
        pytest.param(
            workload("job", check="Ready", mk="Ready"), Placed(("Workload/job",), ()), id="Kueue's is Ready"
        ),
        pytest.param(
            workload("job", check="Ready", mk="Pending"), Placed((), ("Workload/job",)), id="it waits"
        ),
        pytest.param(workload("job", check="Retry", mk="Pending"), Placed((), ()), id="sent back"),
        pytest.param(workload("another", check="Ready", mk="Ready"), Placed((), ()), id="gone"),
    ],
)
def test_who_has_been_placed(job: Raw, expected: Placed) -> None:
    assert placed_since_ready(["Workload/job"], [decoded(job)], {"check"}, {"mk"}) == expected


# -- what a change of the list costs


def costs(listed: str | None, selected: str, *jobs: Raw) -> tuple[int, ...]:
    objects = hub(listed or "", selected)
    if listed is None:
        objects = [obj for obj in objects if obj["kind"] != "MultiKueueConfig"]
    seen = snapshot(world(objects, *jobs, policy=PATIENT))
    return list_writes(seen, [action for phase in diff(seen, plan(seen)) for action in phase])


JOBS = (running("one", "p-a"), workload("two"), workload("three", mk="Pending"), workload("four", x="Ready"))
DONE = workload("done", finished=True)


@pytest.mark.parametrize(
    ("listed", "selected", "expected"),
    [
        pytest.param("a", "ab", (3 * 2,), id="a cluster more: each Workload of Kueue's check, each cluster"),
        pytest.param("a", "a", (), id="unchanged"),
        pytest.param(None, "a", (), id="a new config requeues nothing"),
    ],
)
def test_a_changed_list_costs_a_request_per_workload_and_cluster(
    listed: str | None, selected: str, expected: tuple[int, ...]
) -> None:
    assert costs(listed, selected, *JOBS, DONE) == expected


def test_a_config_that_goes_asks_no_worker() -> None:
    assert costs("a", "") == ()


def test_a_write_that_leaves_the_list_as_it_is_costs_nothing() -> None:
    objects = hub("a", "a")
    config = next(obj for obj in objects if obj["kind"] == "MultiKueueConfig")
    config["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "placement-ac"}
    seen = snapshot(world(objects, *JOBS, policy=PATIENT))
    done = [action for phase in diff(seen, plan(seen)) for action in phase]
    assert ([action.name for action in done if action.name == "p"], list_writes(seen, done)) == (["p"], ())
    assert kueue_workloads(seen) == 3
