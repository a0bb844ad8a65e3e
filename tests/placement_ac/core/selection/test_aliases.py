"""One worker under several names: a list holds one of them, and what runs there goes on."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from placement_ac.core.api.constants import ANNOTATION_SECOND_NAMES, MANAGED_CLUSTER
from placement_ac.core.inputs.state import PlacementPolicy, Since, SinceKind, Snapshot, WorkerCopies
from placement_ac.core.plan.diff import diff
from placement_ac.core.plan.plan import plan
from placement_ac.core.plan.targets import select_targets
from tests.support.builders import AT_ONCE, NS, Raw, an, listed_in, our_cluster, running, workload
from tests.support.decided import decided_inputs, problems
from tests.support.identities import shows

STARTED = Since(SinceKind.PLACEMENT_NAMESPACE, NS)
KNOWN = Since(SinceKind.PLACEMENT_GENERATION, "Placement/p", 1)
LONG_AGO = {STARTED: 61.0, KNOWN: 61.0}
DAY = {"a": "2026-01-01T00:00:00Z", "b": "2026-01-02T00:00:00Z", "c": "2026-01-03T00:00:00Z"}


def managed_cluster(name: str, claim: str = "", created: str = "", annotations: Any = None) -> Raw:
    claims = [{"name": "platform", "value": "same"}] + [{"name": "id.k8s.io", "value": claim}] * bool(claim)
    metadata = {"creationTimestamp": created or DAY[name], "annotations": annotations or {}}
    return an(MANAGED_CLUSTER, name, status={"clusterClaims": claims}, **metadata)


def hub(
    *objects: Raw,
    selected: str = "ab",
    listed: str = "",
    claims: Mapping[str, str] | None = None,
    uids: Mapping[str, Any] | None = None,
    created: Mapping[str, str] | None = None,
    resting: Iterable[str] = (),
    ages: Mapping[Since, float] | None = None,
    gone: str = "",
    **rest: Any,
) -> Snapshot:
    """A hub on which `a` and `b` are one worker, by what both have shown if nothing else is given."""
    names = dict.fromkeys(selected + listed)
    claims = claims or {}
    window = {"placement-ac.open-cluster-management.io/maintenance": "2026-01-01T00:00:00Z"}
    fleet = [
        managed_cluster(
            name, claims.get(name, ""), (created or {}).get(name, ""), window if name in resting else {}
        )
        for name in names
        if name not in gone
    ]
    seen = decided_inputs(
        selected, *objects, listed=listed, fleet=fleet, ages=LONG_AGO if ages is None else ages, **rest
    )
    if uids is None:
        uids = {name: "one" if name in "ab" else name for name in names} if not claims else {}
    return shows(seen, **{name: shown for name, shown in uids.items() if seen.credentials.usable(name)})


class Case(NamedTuple):
    """The clusters of a Placement, and those that are then listed."""

    stays: str
    given: Mapping[str, Any]
    jobs: tuple[Raw, ...] = ()


QUEUES = frozenset({"queue"})


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(Case("a", {}), id="neither is listed: the older one"),
        pytest.param(Case("b", {"created": {"a": "2026-02-01T00:00:00Z"}}), id="older by its ManagedCluster"),
        pytest.param(Case("b", {"listed": "b"}), id="the listed one, though it is younger"),
        pytest.param(Case("a", {"listed": "ab"}), id="of two that are listed, the older one"),
        pytest.param(
            Case("bc", {"listed": "abc", "selected": "abc"}, (running("job", "p-b"),)), id="jobs run"
        ),
        pytest.param(Case("a", {"claims": {"a": "x", "b": "x"}}), id="by the claim"),
        pytest.param(Case("ab", {"claims": {"a": "x", "b": "y"}}), id="other claims"),
        pytest.param(Case("ab", {"claims": {"b": "y"}}), id="no claim to compare with"),
        pytest.param(
            Case("a", {"claims": {"a": "x", "b": "y"}, "uids": {"a": "1", "b": "1"}}), id="uid beats claim"
        ),
        pytest.param(Case("ab", {"uids": {}}), id="equal kubeconfigs prove nothing"),
        pytest.param(Case("ab", {"uids": {"a": "1", "b": "2"}}), id="other uids"),
        pytest.param(
            Case("a", {"uids": {"a": {"queues": QUEUES}, "b": {"queues": QUEUES}}}), id="by a ClusterQueue"
        ),
        pytest.param(Case("a", {"uids": {"a": {"copies": QUEUES}, "b": {"copies": QUEUES}}}), id="by a copy"),
        pytest.param(
            Case("ab", {"uids": {"a": "1", "b": {"namespace": "1", "version": "old"}}}),
            id="of old credentials",
        ),
        pytest.param(
            Case("a", {"selected": "abc", "claims": {"a": "x", "c": "x"}, "uids": {"a": "1", "b": "1"}}),
            id="three names",
        ),
        pytest.param(Case("", {"listed": "a", "resting": "a"}), id="none, as one is in maintenance"),
        pytest.param(Case("b", {"credentials": "b"}), id="one without credentials is no name to list"),
    ],
)
def test_one_name_is_listed(case: Case) -> None:
    to_list = select_targets(hub(*case.jobs, **case.given)).to_list
    assert "".join(entry.cluster for entry in to_list) == case.stays


def test_the_condition_names_both_and_which_to_remove() -> None:
    verdict = plan(hub(listed="a")).verdicts["check"]
    assert (verdict.status, verdict.reason) == ("True", "SomeClustersUnusable")
    assert problems(plan(hub(listed="a"))) == (
        "left out: b (remove ManagedCluster b, or do not select it: it leads to the same worker as a, which"
        " stays (both kubeconfigs show the same objects, by uid))"
    )
    assert "both ManagedClusters have the same claim id.k8s.io" in problems(
        plan(hub(claims={"a": "x", "b": "x"}))
    )


def test_nothing_leaves_for_this_reason_in_the_first_minute_after_a_start() -> None:
    for ages, names in (({}, 2), ({STARTED: 59.0}, 2), ({STARTED: 60.0}, 1)):
        wanted = plan(hub(listed="ab", ages=ages))
        assert len(listed_in(wanted)) == names, ages
    assert plan(hub(listed="ab", ages={STARTED: 59.0})).requeue_after == pytest.approx(1.0)
    assert listed_in(plan(hub(listed="a", ages={}))) == ("p-a",), "but none is added"


CLOSED, QUIET = Since(SinceKind.GATE_CLOSED_FOR, "b"), Since(SinceKind.QUIET, "b")
ON_A = WorkerCopies({("default", "job"): True}, age=0.5)
"""The copy of a job that is recorded on a: the worker shows it by both names."""


@pytest.mark.parametrize(
    ("jobs", "ages", "stays"),
    [
        pytest.param(
            [running("job", "p-a"), running("other", "p-b")], {}, True, id="a job is recorded there"
        ),
        pytest.param([running("job", "p-a")], {}, True, id="the gate is not closed yet"),
        pytest.param([running("job", "p-a")], {CLOSED: 9.0, QUIET: 1.0}, True, id="quiet for a second"),
        pytest.param(
            [running("job", "p-a")], {CLOSED: 9.0, QUIET: 3.0}, False, id="the other name has the job"
        ),
    ],
)
def test_the_second_name_leaves_as_a_drain_does(
    jobs: list[Raw], ages: dict[Since, float], stays: bool
) -> None:
    seen = hub(*jobs, listed="ab", ages=LONG_AGO | ages, copies={"p-b": ON_A})
    assert listed_in(plan(seen)) == (("p-a", "p-b") if stays else ("p-a",))


def test_a_claim_alone_does_not_make_copies_those_of_the_other_name() -> None:
    """It may have been copied to another cluster, where the job then runs twice."""
    ages = LONG_AGO | {CLOSED: 9.0, QUIET: 3.0}
    seen = hub(
        running("job", "p-a"), listed="ab", claims={"a": "x", "b": "x"}, ages=ages, copies={"p-b": ON_A}
    )
    assert listed_in(plan(seen)) == ("p-a", "p-b")
    assert "it holds copies of Workloads that are placed elsewhere" in problems(plan(seen))


def test_with_the_dispatcher_the_second_name_is_nominated_no_more_and_does_not_stand_by() -> None:
    policy = PlacementPolicy(dispatcher=True, unlist_after=3600.0, loss_grace=0.0, reorder_interval=0.0)
    waiting = workload("job", nominated=["p-a"], check="Ready", mk="Pending")
    copies = {"p-b": WorkerCopies({("default", "job"): True}, age=0.5)}
    seen = hub(waiting, listed="ab", ages=LONG_AGO | {QUIET: 3.0}, copies=copies, policy=policy)
    wanted = plan(seen)
    assert listed_in(wanted) == ("p-a",)
    assert wanted.nominations == ()


def test_names_that_leave_count_as_a_loss() -> None:
    """A claim that was copied with an image must not empty the list."""
    policy = replace(AT_ONCE, loss_grace=300.0)
    claims = dict.fromkeys("abcd", "image")
    seen = hub(
        selected="abcd", listed="abcd", claims=claims, policy=policy, created=dict.fromkeys("abcd", DAY["a"])
    )
    assert listed_in(plan(seen)) == ("p-a", "p-b", "p-c", "p-d")
    assert "3 of 4 clusters would go at once" in problems(plan(seen))


# -- the listed name is no longer selected, and another one is


CLOSED_A, QUIET_A = Since(SinceKind.GATE_CLOSED_FOR, "a"), Since(SinceKind.QUIET, "a")
CONNECTED = {"conditions": [{"type": "Active", "status": "True", "reason": "Active", "message": ""}]}


def imported_again(*objects: Raw, connected: bool = True, **rest: Any) -> Snapshot:
    """The cluster a is listed, and the cluster b, the same worker, has replaced it in OCM's decision."""
    there = [our_cluster("b", owners=("check", "mk"), status=CONNECTED)] if connected else []
    return hub(*there, *objects, selected="b", listed="a", uids={"a": "one", "b": "one"}, **rest)


@pytest.mark.parametrize(
    ("seen", "names"),
    [
        pytest.param(imported_again(connected=False), "a", id="Kueue does not know the new name"),
        pytest.param(
            imported_again(our_cluster("b", owners=("check", "mk")), connected=False),
            "a",
            id="Kueue is not connected by the new name",
        ),
        pytest.param(imported_again(running("job", "p-a")), "a", id="jobs run there"),
        pytest.param(imported_again(), "b", id="nothing runs at all"),
        pytest.param(imported_again(workload("job")), "a", id="the gate is closed first"),
        pytest.param(
            imported_again(workload("job"), ages=LONG_AGO | {CLOSED_A: 9.0, QUIET_A: 3.0}),
            "b",
            id="in one write",
        ),
        pytest.param(
            imported_again(running("job", "p-a"), gone="a"), "b", id="its ManagedCluster is deleted"
        ),
    ],
)
def test_the_new_name_takes_over_when_nothing_runs_under_the_old_one(seen: Snapshot, names: str) -> None:
    wanted = plan(seen)
    assert listed_in(wanted) == tuple(f"p-{name}" for name in names)
    assert "p-b" in [cluster.name for cluster in wanted.clusters], "Kueue connects by the new name"
    assert wanted.verdicts["check"].status == "True"


def test_meanwhile_jobs_go_to_the_worker_by_its_old_name() -> None:
    targets = select_targets(imported_again(running("job", "p-a")))
    assert [entry.name for entry in targets.to_list] == ["p-a"]
    assert targets.drain.steps == ()
    assert targets.selection.left_out == {
        "b": "it takes over from a, the same worker, as soon as that is no longer listed"
    }


# -- what is recorded


def test_a_second_name_is_recorded_and_stays_out_after_a_restart() -> None:
    first = hub(listed="a")
    (write,) = [
        action
        for phase in diff(first, plan(first))
        for action in phase
        if action.kind.kind == "MultiKueueConfig"
    ]
    assert write.body["metadata"]["annotations"] == {ANNOTATION_SECOND_NAMES: "b=a"}  # type: ignore[union-attr]
    recorded = {ANNOTATION_SECOND_NAMES: "b=a"}
    restarted = hub(listed="a", uids={}, annotations=recorded)
    assert listed_in(plan(restarted)) == ("p-a",)
    one_claim = hub(listed="a", uids={}, claims={"a": "x"}, annotations=recorded)
    assert listed_in(plan(one_claim)) == ("p-a",), "a claim without another one tells nothing apart"
    for told_apart in ({"uids": {"a": "1", "b": "2"}}, {"claims": {"a": "x", "b": "y"}, "uids": {}}):
        assert set(listed_in(plan(hub(listed="a", annotations=recorded, **told_apart)))) == {"p-a", "p-b"}


def test_what_claims_tell_is_not_recorded() -> None:
    config = plan(hub(listed="a", claims={"a": "x", "b": "x"})).config
    assert config is not None
    assert config.second_names == {}
