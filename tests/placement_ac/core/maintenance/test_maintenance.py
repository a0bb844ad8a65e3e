"""A cluster that goes into maintenance: which jobs it still gets, and how it leaves. It is a; b stays."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from placement_ac.core.api.constants import ANNOTATION_MAINTENANCE, IMMEDIATE, MANAGED_CLUSTER
from placement_ac.core.inputs.state import PlacementPolicy, Plan, Since, SinceKind, WorkerCopies
from tests.support.builders import NOW, Raw, an, listed_in, posts, running, workload
from tests.support.decided import (
    NO_COPIES,
    check_messages,
    check_states,
    decided_plan,
    nominated,
    problems,
    ranked,
    ready,
)

PATIENT = PlacementPolicy(retention=0.0, waiting_grace=60.0)
OURS = PlacementPolicy(retention=0.0, dispatcher=True, step_size=2, unlist_after=3600.0)
CLOSED, WITHDRAWN = Since(SinceKind.GATE_CLOSED_FOR, "a"), Since(SinceKind.WITHDRAWN, "a")
SINCE = "in maintenance since 2026-08-01T11:50:00Z; to end that: kubectl placement drain a --cancel"


def in_minutes(minutes: float, *, force: bool = False) -> str:
    """The annotation of a maintenance that begins then."""
    return f"{NOW + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}" + ",force" * force


def at(
    annotation: str,
    *objects: Any,
    selected: str = "ab",
    listed: str = "",
    policy: PlacementPolicy = PATIENT,
    **rest: Any,
) -> Plan:
    """The plan on a hub where the ManagedCluster of a has this annotation."""
    fleet = [an(MANAGED_CLUSTER, name) for name in "ab"]
    fleet[0]["metadata"]["annotations"] = {ANNOTATION_MAINTENANCE: annotation}
    return decided_plan(
        ranked(selected), *objects, listed=listed or selected, policy=policy, fleet=fleet, **rest
    )


BEGUN, FORCED = in_minutes(-10), in_minutes(-10, force=True)
RUNS = running("job", "p-a")


# -- before it begins


def test_it_is_announced_and_nothing_else_changes() -> None:
    answer = at(in_minutes(5))
    assert (listed_in(answer), answer.requeue_after) == (("p-a", "p-b"), 300.0)
    assert problems(answer) == "a: maintenance begins at 2026-08-01T12:05:00Z"
    assert answer.verdicts["check"].reason == "Active"
    message = "a is in maintenance from 2026-08-01T12:05:00Z on: Workloads are waited for"
    assert posts(answer) == [("ClusterMaintenance", "", message)]


@pytest.mark.parametrize(
    ("annotation", "policy", "then"),
    [
        pytest.param(in_minutes(5, force=True), PATIENT, "are sent back at once", id="force"),
        pytest.param(
            in_minutes(5), replace(PATIENT, removal=IMMEDIATE), "are sent back at once", id="Immediate"
        ),
        pytest.param(
            in_minutes(5),
            replace(PATIENT, drain_deadline=120.0),
            "are waited for, 2 min at most, and then sent back",
            id="a deadline",
        ),
    ],
)
def test_the_event_says_what_happens_to_jobs(annotation: str, policy: PlacementPolicy, then: str) -> None:
    ((_, _, message),) = posts(at(annotation, policy=policy))
    assert message == f"a is in maintenance from 2026-08-01T12:05:00Z on: Workloads {then}"


def test_an_annotation_that_cannot_be_read_is_reported_and_ignored() -> None:
    answer = at("tonight", RUNS)
    assert (listed_in(answer), answer.verdicts["check"].reason, posts(answer)) == (
        ("p-a", "p-b"),
        "Active",
        [],
    )
    assert problems(answer).startswith(f"a: correct the annotation {ANNOTATION_MAINTENANCE}: ")


def test_a_job_that_says_it_runs_longer_goes_elsewhere() -> None:
    long, short = ready(name="long"), ready(name="short")
    long["spec"]["maximumExecutionTimeSeconds"], short["spec"]["maximumExecutionTimeSeconds"] = 301, 300
    silent = ready(name="silent")
    answer = at(in_minutes(5), long, short, silent, policy=OURS)
    assert nominated(answer) == {"long": ("p-b",), "short": ("p-a", "p-b"), "silent": ("p-a", "p-b")}


def test_kueues_own_dispatcher_gets_the_whole_list_until_then() -> None:
    long = workload("long")
    long["spec"]["maximumExecutionTimeSeconds"] = 301
    assert check_states(at(in_minutes(5), long)) == {"long": "Ready"}


def test_if_it_is_the_only_cluster_a_long_job_waits_and_says_why() -> None:
    long = workload("long")
    long["spec"]["maximumExecutionTimeSeconds"] = 7200
    answer = at(in_minutes(5), long, selected="a", policy=OURS)
    why = "1 had too little time left before its maintenance for a job of 7,200 s (Maintenance)"
    assert check_messages(answer) == {"long": f"NoClusterFits: 0/1 clusters fit: {why}"}


# -- jobs that wait there, and would run too long


def waits(seconds: int = 301, **rest: Any) -> Raw:
    job = ready("p-a", "p-b", **rest)
    job["spec"]["maximumExecutionTimeSeconds"] = seconds
    return job


def test_a_job_that_waits_there_and_would_run_too_long_is_withdrawn_as_from_a_cluster_that_leaves() -> None:
    first = at(in_minutes(5), waits(), policy=OURS)
    assert (first.ask_for_copies, nominated(first)) == (("p-a",), {})
    then = at(in_minutes(5), waits(), policy=OURS, copies=NO_COPIES)
    assert nominated(then) == {"job": ("p-b",)}
    has_quota = WorkerCopies({("default", "job"): True}, age=0.5)
    assert nominated(at(in_minutes(5), waits(), policy=OURS, copies=has_quota)) == {}


def test_one_that_is_short_enough_stays_until_it_is_not() -> None:
    answer = at(in_minutes(5), waits(290), policy=OURS, ages={WITHDRAWN: 60.0}, copies=WorkerCopies(age=57.0))
    assert (nominated(answer), answer.requeue_after) == ({}, 10.0)


def test_the_cluster_is_asked_again_and_an_admission_of_that_moment_is_healed() -> None:
    withdrawn = ready("p-b", since=NOW - timedelta(minutes=5))
    withdrawn["spec"]["maximumExecutionTimeSeconds"] = 301

    def after(seconds: float, copies: WorkerCopies, *jobs: Raw) -> Plan:
        return at(
            in_minutes(5), *(jobs or [withdrawn]), policy=OURS, ages={WITHDRAWN: seconds}, copies=copies
        )

    assert after(2.0, NO_COPIES).ask_for_copies == ("p-a",)
    has_quota = WorkerCopies({("default", "job"): True}, age=0.1)
    assert nominated(after(2.5, has_quota)) == {"job": ("p-b", "p-a")}
    later = ready("p-b", since=NOW)  # it has lost its quota since, and got some again
    assert nominated(after(60.0, WorkerCopies({("default", "job"): True}, age=57.0), later)) == {}


# -- from then on


def test_then_it_leaves_like_a_cluster_that_is_not_selected() -> None:
    idle = at(BEGUN)
    assert listed_in(idle) == ("p-b",)
    assert problems(idle) == f"left out: a ({SINCE})"
    assert idle.verdicts["check"].reason == "SomeClustersUnusable"
    assert idle.unusable == ()  # an admin has said so: no alert
    drains = at(BEGUN, RUNS)
    assert listed_in(drains) == ("p-b", "p-a")
    assert problems(drains) == f"left out: a ({SINCE}); draining: a (Workloads run there)"
    assert posts(drains)[1] == (
        "ClusterDraining",
        "",
        f"1 cluster drains: a ({SINCE}; 1 Workload runs there); Workloads are waited for",
    )


def test_no_job_is_sent_there_not_even_a_short_one() -> None:
    assert nominated(at(BEGUN, RUNS, ready(name="new"), policy=OURS)) == {"new": ("p-b",)}


def test_if_it_was_the_only_cluster_jobs_wait_and_it_drains() -> None:
    answer = at(BEGUN, RUNS, workload("new"), selected="a")
    assert listed_in(answer) == ("p-a",)
    assert (answer.verdicts["check"].status, answer.verdicts["check"].reason) == ("False", "NoClusterUsable")
    assert check_messages(answer)["new"].startswith(
        f"NoClusterUsable: {SINCE}; no selected cluster is usable"
    )


def test_it_is_no_mass_loss() -> None:
    """The policy of these tests holds the list for five minutes, if all clusters go at once."""
    assert listed_in(at(BEGUN, selected="a")) == ()
    assert decided_plan("", listed="a", policy=PATIENT).config is not None


def test_by_force_the_rest_is_sent_back_through_the_gate() -> None:
    first = at(FORCED, RUNS)
    assert (first.ask_for_copies, check_states(first)) == (("p-a",), {})
    closed = at(FORCED, RUNS, copies=NO_COPIES)
    assert (CLOSED in closed.lasting, check_states(closed), closed.requeue_after) == (True, {}, 0.0)
    sent = at(FORCED, RUNS, copies=NO_COPIES, ages={CLOSED: 0.5})
    assert (check_states(sent), listed_in(sent)) == ({"job": "Retry"}, ("p-b", "p-a"))
    assert (
        "SentBack",
        "job",
        "sent back from cluster a, which leaves for maintenance; it starts again elsewhere",
    ) in (posts(sent))


@pytest.mark.parametrize(
    "annotation",
    [pytest.param(BEGUN, id="not by force"), pytest.param(in_minutes(1, force=True), id="not yet")],
)
def test_otherwise_nothing_is_sent_back(annotation: str) -> None:
    answer = at(annotation, RUNS, copies=NO_COPIES, ages={CLOSED: 0.5})
    assert check_states(answer) == {}


def test_a_cluster_that_is_not_selected_any_more_is_left_by_force_too() -> None:
    answer = at(FORCED, RUNS, selected="b", listed="ab", copies=NO_COPIES, ages={CLOSED: 0.5})
    assert check_states(answer) == {"job": "Retry"}
