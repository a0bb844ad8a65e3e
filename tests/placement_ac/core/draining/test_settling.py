"""While decisions flap, removals wait with the gate open, and who was sent back gets a whole grace."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from placement_ac.core.draining.state import DrainState
from placement_ac.core.inputs.state import Ages, PlacementPolicy, Since, SinceKind, Snapshot
from placement_ac.core.plan.plan import plan
from placement_ac.core.plan.targets import select_targets
from tests.support.builders import (
    running,
    workload,
)
from tests.support.decided import NO_COPIES, decided_inputs

POLICY = PlacementPolicy(retention=0.0, loss_grace=0.0, settle=30.0, waiting_grace=60.0)
BEFORE, NOW_SELECTED = Since(SinceKind.SELECTION, "p-a"), Since(SinceKind.SELECTION, "p-b")
FLAPPED, FLAPPING = Since(SinceKind.FLAPPING, "p-a"), Since(SinceKind.FLAPPING, "p-b")
DESELECTED = Since(SinceKind.DESELECTED, "a")
CLOSED = Since(SinceKind.GATE_CLOSED_FOR, "a")
GENERATION = {Since(SinceKind.PLACEMENT_GENERATION, "Placement/p", 1): 500.0}


def settling_inputs(
    *jobs: Any, ages: Ages | None = None, policy: PlacementPolicy = POLICY, selected: str = "b"
) -> Snapshot:
    lasting = GENERATION | dict(ages or {})
    return decided_inputs(selected, *jobs, listed="ab", ages=lasting, copies=NO_COPIES, policy=policy)


def state_of_a(seen: Snapshot) -> DrainState:
    (step,) = select_targets(seen).drain.steps
    return step.state


NEW = workload("new", check="Pending", mk="Pending")


@pytest.mark.parametrize(
    ("ages", "waits"),
    [
        pytest.param({BEFORE: 10.0}, True, id="the selection before was short"),
        pytest.param({BEFORE: 29.9}, True, id="just short of it"),
        pytest.param({BEFORE: 30.0}, False, id="the selection before was long"),
        pytest.param({BEFORE: 100.0, FLAPPED: 10.0}, True, id="decisions flapped already"),
        pytest.param({NOW_SELECTED: 10.0, FLAPPING: 10.0}, True, id="it is the same for a short time"),
        pytest.param({NOW_SELECTED: 30.0, FLAPPING: 30.0}, False, id="it has settled"),
        pytest.param({NOW_SELECTED: 10.0}, False, id="it changed once only"),
        pytest.param({}, False, id="nothing is known"),
        pytest.param({BEFORE: 10.0, DESELECTED: 299.0}, True, id="it has waited for long"),
        pytest.param({BEFORE: 10.0, DESELECTED: 300.0}, False, id="it has waited for too long"),
    ],
)
def test_while_decisions_flap_a_removal_waits_with_the_gate_open(ages: Ages, waits: bool) -> None:
    seen = settling_inputs(NEW, ages=ages)
    assert (state_of_a(seen) is DrainState.SETTLING) is waits
    assert bool(plan(seen).check_state_updates[0].state == "Ready") is waits
    assert (FLAPPING in plan(seen).lasting) is (waits or DESELECTED in ages)


def test_its_time_is_looked_at_again() -> None:
    for jobs in ([NEW], [running("job", "p-a")]):
        assert plan(settling_inputs(*jobs, ages={NOW_SELECTED: 10.0, FLAPPING: 10.0})).requeue_after == 20.0


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(replace(POLICY, settle=0.0), id="not set"),
        pytest.param(replace(POLICY, removal="Immediate"), id="Immediate"),
        pytest.param(replace(POLICY, dispatcher=True), id="our dispatcher"),
    ],
)
def test_who_does_not_wait(policy: PlacementPolicy) -> None:
    assert state_of_a(settling_inputs(NEW, ages={BEFORE: 10.0}, policy=policy)) is not DrainState.SETTLING


def test_without_workloads_there_is_nothing_to_wait_for() -> None:
    seen = settling_inputs(ages={BEFORE: 10.0})
    assert state_of_a(seen) is DrainState.UNLISTED
    assert FLAPPING in plan(seen).lasting, "a job that comes meets a selection that flaps"


def test_after_a_change_of_the_placement_the_next_change_does_not_wait() -> None:
    edited = Since(SinceKind.PLACEMENT_EDITED, "Placement/p", 1)
    assert state_of_a(settling_inputs(NEW, ages={BEFORE: 10.0, edited: 5.0})) is not DrainState.SETTLING
    assert state_of_a(settling_inputs(NEW, ages={BEFORE: 5.0, edited: 10.0})) is DrainState.SETTLING
    flapped = {NOW_SELECTED: 10.0, FLAPPING: 10.0, edited: 5.0}
    assert state_of_a(settling_inputs(NEW, ages=flapped)) is not DrainState.SETTLING


def test_where_jobs_run_they_are_waited_for() -> None:
    assert state_of_a(settling_inputs(running("job", "p-a"), ages={BEFORE: 10.0})) is DrainState.RUNNING


# -- who was sent back


def grace(ready_for: float, unchanged: float, *, sent_back: bool) -> list[str]:
    """Return the Workloads that are sent back when the gate has been closed for a minute."""
    job = workload("job", nominated=["p-a"], check="Ready", mk="Pending")
    seen = settling_inputs(job, ages={CLOSED: 100.0, Since(SinceKind.LIST_ORDER, "p-a,p-b"): unchanged})
    (old,) = seen.workloads
    entries = tuple(
        replace(state, since=seen.now - timedelta(seconds=ready_for)) for state in old.check_states
    )
    old = replace(old, check_states=entries, sent_back_from="c" if sent_back else "")
    return [update.state for update in plan(replace(seen, workloads=(old,))).check_state_updates]


@pytest.mark.parametrize(
    ("ready_for", "unchanged", "sent_back", "due"),
    [
        pytest.param(61.0, 5.0, False, True, id="the first time the list does not matter"),
        pytest.param(61.0, 61.0, True, True, id="a whole grace"),
        pytest.param(61.0, 59.0, True, False, id="the list has changed meanwhile"),
        pytest.param(59.0, 61.0, True, False, id="Ready for a shorter time"),
    ],
)
def test_who_was_sent_back_gets_a_whole_undisturbed_grace(
    ready_for: float, unchanged: float, sent_back: bool, due: bool
) -> None:
    assert grace(ready_for, unchanged, sent_back=sent_back) == (["Retry"] if due else [])


# -- what decisions that flap cost


def test_a_flip_between_clusters_that_are_listed_changes_nothing_in_the_list() -> None:
    for jobs in ([NEW], [running("job", "p-a")]):
        config = plan(settling_inputs(*jobs, ages={BEFORE: 10.0})).config
        assert config is not None
        assert (config.clusters, dict(config.draining)) == (("p-a", "p-b"), {})


def test_a_cluster_that_settles_is_no_mass_loss() -> None:
    policy = replace(POLICY, loss_grace=300.0)
    assert DESELECTED in plan(settling_inputs(NEW, ages={BEFORE: 10.0})).lasting
    seen = settling_inputs(NEW, ages={NOW_SELECTED: 10.0, FLAPPING: 10.0, DESELECTED: 10.0}, policy=policy)
    assert state_of_a(seen) is DrainState.SETTLING
