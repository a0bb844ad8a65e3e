"""Who waits for the gate, who has been placed since its Ready, and what a change of the list costs."""

from datetime import UTC, datetime, timedelta

import pytest

from placement_ac.core.inputs.state import HeldWorkloads, PlacementPolicy, Since, SinceKind, WorkerCopies
from placement_ac.core.plan.diff import diff
from placement_ac.core.plan.list_writes import kueue_workloads, list_writes
from placement_ac.core.plan.plan import plan
from placement_ac.core.plan.stats import placement_stats
from placement_ac.core.plan.waiting import Placed, placed_since_ready
from tests.support.builders import NOW, Raw, check, inputs, multikueue_check, running, the, workload
from tests.support.decided import NO_COPIES, decided, decided_inputs, decided_plan

PATIENT = PlacementPolicy(retention=0.0, loss_grace=0.0, waiting_grace=60.0)
NAMES = [f"c{number:02}" for number in range(12)]


GATE = {Since(SinceKind.GATE_CLOSED_FOR, name): 1.0 for name in ("a", "b", *NAMES)}


def held(*jobs: Raw, leaves: str | list[str] = "a", more: tuple[Raw, ...] = ()) -> tuple[HeldWorkloads, ...]:
    """Who is held while the gate is closed for the clusters that leave."""
    answer = decided_plan(
        "z", *more, *jobs, listed=[*leaves, "z"], policy=PATIENT, ages=GATE, copies=NO_COPIES
    )
    return answer.held


@pytest.mark.parametrize("leaves", [["a"], ["a", "b"], NAMES], ids=["one", "two", "many"])
def test_a_workload_that_gets_no_ready_is_held_for_the_clusters_that_leave(leaves: list[str]) -> None:
    assert held(workload("job"), leaves=leaves) == (HeldWorkloads("check", tuple(leaves), 1, NOW),)


def test_one_that_a_cluster_may_still_run_is_held_for_that() -> None:
    job = workload("job")
    evicted = {"type": "Evicted", "status": "True", "reason": "AdmissionCheck", "lastTransitionTime": "x"}
    evicted["message"] = "At least one admission check is false: cluster a is leaving the Placement"
    job["status"]["conditions"].append(evicted)
    problem = WorkerCopies(problem="no route", age=0.5)
    seen = decided_inputs("z", job, listed="az", policy=PATIENT, copies={"p-a": problem})
    assert plan(seen).held == (HeldWorkloads("check", ("a",), 1, NOW),)


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
    assert held(job) == ()


def test_without_a_usable_cluster_nobody_waits_for_the_gate() -> None:
    answer = decided_plan("", workload("job"), listed="a", policy=PATIENT, ages=GATE)
    assert answer.held == ()


def test_while_the_gate_is_open_nobody_is_held() -> None:
    assert decided_plan("z", workload("job"), policy=PATIENT).held == ()
    assert held(workload("job"), running("there", "p-a")) == (), "a drains under its job"


def test_workloads_are_counted_by_check() -> None:
    jobs = [
        workload("one", since=NOW - timedelta(seconds=30)),
        workload("two"),
        workload("three", second="Pending", mk="Pending"),
    ]
    assert held(*jobs, more=(check("second"),)) == (
        HeldWorkloads("check", ("a",), 2, NOW - timedelta(seconds=30)),
        HeldWorkloads("second", ("a",), 1, NOW),
    )


def test_the_wait_begins_with_the_quota() -> None:
    job = workload("job", since=NOW - timedelta(hours=1))
    job["status"]["conditions"][0]["lastTransitionTime"] = "2026-08-01T11:59:00Z"
    [one] = held(job)
    assert one.since == datetime(2026, 8, 1, 11, 59, tzinfo=UTC)


def test_without_times_it_is_held_all_the_same() -> None:
    job = workload("job")
    for part in ("conditions", "admissionChecks"):
        for one in job["status"][part]:
            one["lastTransitionTime"] = "yesterday"
    assert held(job) == (HeldWorkloads("check", ("a",), 1, None),)


def test_the_stats_have_the_state_of_each_drain_and_who_is_held() -> None:
    jobs = [running("there", "p-a"), workload("job")]
    seen = decided_inputs("z", *jobs, listed="abz", policy=PATIENT, copies={"p-b": NO_COPIES})
    stats = placement_stats(seen, plan(seen))
    assert stats.drain_states == {"a": "running", "b": "closing"}
    assert stats.held == (HeldWorkloads("check", ("b",), 1, NOW),)


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
    seen = inputs(check(), multikueue_check(), job)
    assert placed_since_ready(["Workload/job"], seen) == expected


# -- what a change of the list costs


def costs(listed: str | None, selected: str, *jobs: Raw) -> tuple[int, ...]:
    objects = decided(selected, listed or "")
    if listed is None:
        objects = [obj for obj in objects if obj["kind"] != "MultiKueueConfig"]
    seen = inputs(objects, *jobs, policy=PATIENT)
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
    objects = decided("a")
    the(objects, "MultiKueueConfig")["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "placement-ac"}
    seen = inputs(objects, *JOBS, policy=PATIENT)
    done = [action for phase in diff(seen, plan(seen)) for action in phase]
    assert ([action.name for action in done if action.name == "p"], list_writes(seen, done)) == (["p"], ())
    assert kueue_workloads(seen) == 3
