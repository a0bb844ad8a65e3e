"""The entry of each Workload for our check, and how it is written."""

from datetime import timedelta
from typing import Any

import pytest

from placement_ac.core.api.constants import WORKLOAD, WORKLOAD_WRITES_AT_ONCE
from placement_ac.core.inputs.state import Key, PlacementPolicy, Plan, Since, SinceKind, Snapshot
from placement_ac.core.plan.diff import SetCheckStates, diff
from placement_ac.core.plan.plan import plan
from tests.support.builders import (
    NOW,
    check,
    check_with,
    managed_clusters,
    multikueue_check,
    planned,
    running,
    workload,
    world,
)
from tests.support.decided import decided_inputs, decided_plan


def answer_to(*objects: Any, selected: str = "ab", usable: str = "abc", **rest: Any) -> Plan:
    """The plan for Placement p, which selects clusters of which a, b and c have credentials."""
    return plan(inputs(*objects, selected=selected, usable=usable, **rest))


def inputs(*objects: Any, selected: str = "ab", usable: str = "abc", **rest: Any) -> Snapshot:
    names = [name for name in selected if name in usable]
    return decided_inputs(selected, *objects, listed=names, credentials=names, **rest)


def updates_of(answer: Plan) -> list[tuple[str, str, str]]:
    return [(reply.workload.meta.name, reply.state, reply.message) for reply in answer.check_state_updates]


READY = "2 of 2 selected clusters usable: a, b"


@pytest.mark.parametrize(
    ("job", "state"),
    [
        pytest.param(workload("job"), "Ready", id="quota reserved"),
        pytest.param(workload("job", check="Pending"), "Ready", id="our check alone is listed"),
        pytest.param(workload("job", quota=False), None, id="no quota yet"),
        pytest.param(workload("job", active=False), None, id="deactivated"),
        pytest.param(workload("job", mk="Pending"), None, id="our check is not listed"),
        pytest.param(workload("job", finished=True), None, id="finished"),
        pytest.param(workload("job", check="Ready", mk="Pending"), None, id="written already"),
        pytest.param(workload("job", check="Retry", mk="Pending"), None, id="on its way back"),
        pytest.param(workload("job", check="Rejected", mk="Pending"), None, id="rejected by somebody else"),
    ],
)
def test_who_becomes_ready(job: Any, state: str | None) -> None:
    assert updates_of(answer_to(job)) == ([("job", state, READY)] if state else [])


def test_the_message_counts_what_is_selected_and_names_what_is_usable() -> None:
    answer = answer_to(workload("job"), selected="abxcy")
    assert updates_of(answer) == [("job", "Ready", "3 of 5 selected clusters usable: a, b, c")]


def test_an_unreadable_entry_of_a_decision_is_not_counted_as_a_cluster() -> None:
    answer = decided_plan(
        ["a", ""], workload("job"), listed="a", credentials="a", fleet=managed_clusters("a")
    )
    assert updates_of(answer) == [("job", "Ready", "1 of 1 selected clusters usable: a")]


@pytest.mark.parametrize(
    ("selected", "why"),
    [
        ("", "NoClusterSelected: Placement kueue-system/p selects no cluster"),
        ("x", "NoClusterUsable: create Secret kueue-system/multikueue-x with key kubeconfig: x has no"),
    ],
)
def test_without_a_cluster_it_stays_pending_with_the_reason(selected: str, why: str) -> None:
    ((name, state, message),) = updates_of(answer_to(workload("job"), selected=selected))
    assert (name, state, message.startswith(why)) == ("job", "Pending", True)


def test_the_reason_is_written_once() -> None:
    job = workload("job")
    ((_, _, message),) = updates_of(answer_to(job, selected=""))
    job["status"]["admissionChecks"][0]["message"] = message
    assert updates_of(answer_to(job, selected="")) == []


def test_nothing_is_taken_back_from_an_admitted_workload() -> None:
    assert updates_of(answer_to(running("job", "p-a"), selected="")) == []


def test_a_check_without_its_placement_says_so_on_its_workloads() -> None:
    objects = [check(), multikueue_check(), workload("job")]
    ((_, state, message),) = updates_of(planned(objects))
    assert (state, message) == (
        "Pending",
        (
            "PlacementNotFound: correct spec.parameters.name, or "
            "create Placement kueue-system/p: it does not exist"
        ),
    )


def test_a_check_with_bad_parameters_says_so_on_its_workloads() -> None:
    objects = [check_with(None, "bad"), workload("job", bad="Pending")]
    seen = world(objects).snapshot(Key("check", "bad"), NOW, {})
    ((_, state, message),) = updates_of(plan(seen))
    assert (state, message.startswith("BadParameters: set spec.parameters to ")) == ("Pending", True)


def test_a_workload_touches_what_its_checks_name() -> None:
    seen = world(check(), check_with(None, "bad"), multikueue_check("mk", "q"))
    job = workload("job", check="Pending", bad="Pending", mk="Pending", unknown="Pending")
    assert seen.put(WORKLOAD, job) == {Key("placement", "p"), Key("placement", "q"), Key("check", "bad")}
    job["metadata"]["resourceVersion"] = "2"
    job["status"]["conditions"].append({"type": "PodsReady", "status": "True"})
    assert seen.put(WORKLOAD, job) == set()


def test_every_check_of_ours_on_a_workload_is_answered() -> None:
    job = workload("job", check="Pending", second="Pending", mk="Pending", foreign="Pending")
    answer = answer_to(check("second"), job)
    assert sorted(reply.check for reply in answer.check_state_updates) == ["check", "second"]


def test_thousands_are_answered_in_portions() -> None:
    jobs = [workload(f"job-{number:03}") for number in range(WORKLOAD_WRITES_AT_ONCE + 5)]
    answer = answer_to(*jobs)
    assert (len(answer.check_state_updates), answer.requeue_after) == (WORKLOAD_WRITES_AT_ONCE, 0.0)


# -- giving quota back


PATIENT = PlacementPolicy(retention=0.0, loss_grace=0.0, retry_waiting_after=300.0)
STUCK = Since(SinceKind.NO_CLUSTER, "Workload/job")


def test_after_a_long_wait_without_a_cluster_quota_is_given_back() -> None:
    early = answer_to(workload("job"), selected="", policy=PATIENT, ages={STUCK: 200.0})
    assert ([state for _, state, _ in updates_of(early)], early.requeue_after) == (["Pending"], 100.0)
    late = answer_to(workload("job"), selected="", policy=PATIENT, ages={STUCK: 300.0})
    assert [(reply.state, reply.requeue_after) for reply in late.check_state_updates] == [("Retry", 60)]


def test_that_is_off_unless_it_is_set() -> None:
    answer = answer_to(workload("job"), selected="", ages={STUCK: 9e9})
    assert ([state for _, state, _ in updates_of(answer)], STUCK in answer.lasting) == (["Pending"], False)


def test_the_wait_begins_anew_when_there_was_a_cluster() -> None:
    answer = answer_to(workload("job"), policy=PATIENT, ages={STUCK: 299.0})
    assert STUCK not in answer.lasting


# -- the write


def written(*objects: Any, **rest: Any) -> SetCheckStates:
    seen = inputs(*objects, **rest)
    *_, phase = diff(seen, plan(seen))
    (action,) = phase
    assert isinstance(action, SetCheckStates)
    return action


def test_the_write_names_our_entry_alone_and_the_version_that_was_seen() -> None:
    action = written(workload("job", version=7))
    assert (action.namespace, action.name, action.workload.meta.resource_version) == ("default", "job", "7")
    assert action.entries[0] == {
        "name": "check",
        "state": "Ready",
        "lastTransitionTime": "2026-08-01T12:00:00Z",
        "message": READY,
    }


def test_a_message_alone_is_no_transition() -> None:
    entry = written(workload("job", since=NOW - timedelta(hours=2)), selected="").entries[0]
    assert (entry["state"], entry["lastTransitionTime"]) == ("Pending", "2026-08-01T10:00:00Z")


def test_a_retry_says_how_long_kueue_is_to_wait() -> None:
    entry = written(workload("job"), selected="", policy=PATIENT, ages={STUCK: 300.0}).entries[0]
    assert (entry["state"], entry["requeueAfterSeconds"]) == ("Retry", 60)
