"""The checks get another Placement while jobs run: the MultiKueueConfig stays until they have ended."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from placement_ac.core.api.constants import WORKLOAD
from placement_ac.core.inputs.state import HubFacts, Plan, Since, SinceKind, WorkerCopies
from placement_ac.core.plan.diff import Delete, diff
from placement_ac.core.plan.plan import plan
from tests.support.builders import (
    Raw,
    check,
    check_with,
    inputs,
    managed_clusters,
    multikueue_check,
    our_cluster,
    our_config,
    our_objects,
    placement_keys,
    running,
    secrets,
    workload,
    world,
)
from tests.support.decided import NO_COPIES

BOTH: Final = [check(placement="q"), multikueue_check(config="q")]
OLD: Final = our_objects("a", "b", owners=("check", "mk"))
"""The objects that Placement p had of both checks."""
NEW: Final = our_objects("c", "a", of="q", owners=("check", "mk"))
HUB: Final = [*secrets(*"abc"), *managed_clusters(*"abc")]
QUIET: Final = {Since(SinceKind.QUIET, name): 5.0 for name in "ab"}
HELD: Final = {"p-a": WorkerCopies({("default", "job"): True}, age=1.0), "p-b": NO_COPIES}
"""The cluster a holds a copy of the job."""
NONE_HELD: Final = {"p-a": NO_COPIES, "p-b": NO_COPIES}


def plan_of_p(*objects: Any, checks: list[Raw] = BOTH, old: list[Raw] = OLD, **rest: Any) -> Plan:
    return plan(inputs([*checks, *old, *NEW, *HUB], *objects, **rest))


def owners(answer: Plan) -> set[str]:
    return set(answer.config.owners.values()) if answer.config else set()


def is_kept(answer: Plan) -> bool:
    return answer.config is not None and answer.config.clusters == ("p-a", "p-b")


RUNS: Final = running("job", "p-a")


@pytest.mark.parametrize(
    ("objects", "rest", "kept"),
    [
        pytest.param([], {}, False, id="there is no job"),
        pytest.param([RUNS], {}, True, id="a job runs there"),
        pytest.param([workload(nominated=["p-b"])], {}, True, id="a job waits there"),
        pytest.param([workload(cluster="p-a", finished=True)], {}, False, id="it has ended"),
        pytest.param([running("job", "p-a", other="Ready")], {}, False, id="a job of other checks"),
        pytest.param([running("job", "q-c")], {}, True, id="it runs elsewhere, and no cluster was asked"),
        pytest.param(
            [running("job", "q-c")],
            {"ages": QUIET, "copies": NONE_HELD},
            False,
            id="it runs elsewhere, and no cluster holds a copy",
        ),
        pytest.param(
            [running("job", "q-c")], {"ages": QUIET, "copies": HELD}, True, id="a holds a copy of it as well"
        ),
        pytest.param(
            [running("job", "q-a")],
            {"ages": QUIET, "copies": HELD},
            False,
            id="it runs there by the other name of a",
        ),
        pytest.param(
            [workload(nominated=["q-a", "q-c"])],
            {"ages": QUIET, "copies": HELD},
            False,
            id="it waits there by the other name of a",
        ),
        pytest.param(
            [workload(nominated=["q-c"])],
            {"ages": QUIET, "copies": HELD},
            True,
            id="it waits elsewhere, and a holds a copy",
        ),
        pytest.param(
            [running("job", "q-c")],
            {"ages": QUIET, "copies": {"p-a": WorkerCopies(problem="gone", age=1.0), "p-b": NO_COPIES}},
            True,
            id="a does not answer",
        ),
    ],
)
def test_it_stays_as_long_as_jobs_of_its_checks_are_there(
    objects: list[Raw], rest: Mapping[str, Any], kept: bool
) -> None:
    answer = plan_of_p(*objects, **rest)
    assert is_kept(answer) is kept
    assert owners(answer) == ({"check", "mk"} if kept else set())
    assert {one.name for one in answer.clusters} == ({"p-a", "p-b"} if kept else set())


@pytest.mark.parametrize(
    ("checks", "old", "kept_by"),
    [
        pytest.param([check(placement="q"), multikueue_check()], OLD, {"mk"}, id="ours has moved"),
        pytest.param([check(), multikueue_check(config="q")], OLD, {"check"}, id="Kueue's has moved"),
        pytest.param([*BOTH, check("more")], OLD, {"more"}, id="another one still names it"),
        pytest.param([check_with(None), BOTH[1]], OLD, {"check"}, id="ours names nothing"),
        pytest.param(BOTH, our_objects("a", "b", owners=("mk",)), {"mk"}, id="ours had moved before"),
    ],
)
def test_its_owners_are_the_checks_that_use_it_else_those_whose_jobs_do(
    checks: list[Raw], old: list[Raw], kept_by: set[str]
) -> None:
    """It never lacks an owner that exists: Kubernetes would delete it, or nobody ever would."""
    assert owners(plan_of_p(RUNS, checks=checks, old=old)) == kept_by


def test_kept_it_is_not_written_and_deleted_when_the_job_has_ended() -> None:
    seen = inputs([*BOTH, *OLD, *NEW, *HUB], RUNS)
    assert diff(seen, plan(seen)) == ()
    after = inputs([*BOTH, *OLD, *NEW, *HUB])
    deleted = [
        action.name for phase in diff(after, plan(after)) for action in phase if isinstance(action, Delete)
    ]
    assert deleted == ["p", "p-a", "p-b"]


def test_its_clusters_are_asked_when_nothing_has_run_there_for_two_seconds() -> None:
    elsewhere = running("job", "q-c")
    first = plan_of_p(elsewhere)
    assert (first.ask_for_copies, first.requeue_after, set(QUIET) <= first.lasting) == ((), 2.0, True)
    assert plan_of_p(elsewhere, ages=QUIET).ask_for_copies == ("p-a", "p-b")
    assert plan_of_p(elsewhere, RUNS).ask_for_copies == ()
    late = {"p-a": WorkerCopies({("default", "job"): True}, age=2.0), "p-b": NO_COPIES}
    again = plan_of_p(elsewhere, ages=QUIET, copies=late)
    assert (again.ask_for_copies, again.requeue_after) == ((), 13.0)


def test_it_goes_though_the_same_multikueueclusters_serve_its_jobs() -> None:
    """With one MultiKueueCluster for all Placements a job goes on where it runs."""
    shared = [our_cluster(name, None) for name in "abc"]
    both = [our_config("a", "b", owners=("check", "mk")), our_config("a", "c", of="q"), *shared]
    for job in (running("job", "a"), workload(nominated=["a", "c"])):
        seen = inputs(
            [*BOTH, *both, *HUB],
            job,
            hub=HubFacts(naming="{cluster}"),
            ages=QUIET,
            copies={"a": NO_COPIES, "b": NO_COPIES},
        )
        assert plan(seen).config is None
    seen = inputs([*BOTH, *both, *HUB], running("job", "b"), hub=HubFacts(naming="{cluster}"))
    assert plan(seen).config is not None


def test_the_end_of_a_job_concerns_the_placement_that_its_checks_named_before() -> None:
    cache = world([*BOTH, *OLD, *NEW, *HUB], RUNS)
    assert cache.remove(WORKLOAD, RUNS) == placement_keys("p", "q")
