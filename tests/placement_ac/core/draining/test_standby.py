"""With our dispatcher, a cluster that is no longer selected stays listed and stands by: `--unlist-after`."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from placement_ac.core.inputs.state import (
    HubFacts,
    PlacementPolicy,
    Plan,
    Since,
    SinceKind,
    WantedConfig,
    WorkerCopies,
)
from placement_ac.core.plan.diff import Apply, diff
from placement_ac.core.plan.objects import owners_of
from placement_ac.core.plan.plan import plan
from tests.support.builders import (
    NOW,
    listed_in,
    running,
)
from tests.support.decided import NO_COPIES, decided_inputs, decided_plan, nominated, problems, ranked, ready

STABLE = PlacementPolicy(
    retention=0.0, loss_grace=300.0, dispatcher=True, unlist_after=3600.0, step_size=3, reorder_interval=0.0
)
QUIET, STANDING_BY, DESELECTED = (
    Since(kind, "a") for kind in (SinceKind.QUIET, SinceKind.STANDING_BY, SinceKind.DESELECTED)
)
STANDS = {QUIET: 100.0, STANDING_BY: 100.0, DESELECTED: 100.0}
GENERATION = {Since(SinceKind.PLACEMENT_GENERATION, "Placement/p", 1): 100.0}
JOB = ("default", "job")
UNLIST = "placement-ac.open-cluster-management.io/unlist"


class Answer:
    """The plan for a Placement that selects `selected` while its config lists `before`, and its writes."""

    def __init__(
        self,
        selected: str,
        *objects: Any,
        before: str = "abc",
        ages: Mapping[Since, float] | None = None,
        asked: WorkerCopies | None = NO_COPIES,
        policy: PlacementPolicy = STABLE,
        **rest: Any,
    ) -> None:
        lasting = GENERATION | dict(ages or {})
        given = {"listed": before, "ages": lasting, "copies": asked, "policy": policy} | rest
        inputs = decided_inputs(ranked(selected), *objects, **given)
        self.before = WantedConfig("p", tuple(f"p-{name}" for name in before), owners_of(inputs))
        self.plan: Plan = plan(inputs)
        phases = diff(inputs, self.plan)
        self.writes = [act.kind.kind for phase in phases for act in phase if isinstance(act, Apply)]

    @property
    def listed(self) -> tuple[str, ...]:
        return listed_in(self.plan)

    @property
    def nominated(self) -> dict[str, tuple[str, ...]]:
        return nominated(self.plan)

    @property
    def message(self) -> str:
        return self.plan.verdicts["check"].message


def test_a_flip_among_listed_clusters_writes_no_list() -> None:
    for selected in ("b", "c", "cb", "bc", "abc"):
        answer = Answer(selected, ready())
        assert (answer.listed, answer.writes) == (("p-a", "p-b", "p-c"), [])
        assert answer.nominated == {"job": tuple(f"p-{name}" for name in selected)}


def test_the_condition_names_those_that_stand_by() -> None:
    assert Answer("c").message.endswith("; listed, standing by: a, b")
    assert Answer("bc", running("job", "p-a")).message.endswith("; draining: a (Workloads run there)")


def test_it_is_denominated_and_asked_before_it_stands_by() -> None:
    waiting = Answer("b", ready("p-a"), before="ab", asked=None)
    assert (waiting.plan.ask_for_copies, waiting.nominated) == (("p-a",), {})
    assert Answer("b", ready("p-a"), before="ab").nominated == {"job": ("p-b",)}
    quiet = Answer("b", ready("p-b"), before="ab", ages={QUIET: 1.0}, asked=None)
    assert quiet.plan.ask_for_copies == ()
    assert Answer("b", ready("p-b"), before="ab", ages={QUIET: 2.0}, asked=None).plan.ask_for_copies == (
        "p-a",
    )


def test_a_copy_that_it_has_nevertheless_is_nominated_there_again() -> None:
    held = WorkerCopies({JOB: True}, age=0.1)
    answer = Answer("b", ready("p-b"), before="ab", ages={QUIET: 3.0}, asked=held)
    assert answer.nominated == {"job": ("p-b", "p-a")}


def test_a_job_that_has_quota_there_is_not_withdrawn() -> None:
    """Kueue records an admission only while the cluster is nominated."""
    held = WorkerCopies({JOB: True}, age=0.1)
    assert Answer("b", ready("p-a"), before="ab", asked=held).nominated == {}
    waits = WorkerCopies({JOB: False}, age=0.1)
    assert Answer("b", ready("p-a"), before="ab", asked=waits).nominated == {"job": ("p-b",)}


@pytest.mark.parametrize(
    ("evicted", "again"),
    [
        pytest.param(None, True, id="never evicted"),
        pytest.param(20.0, True, id="evicted before it got this quota"),
        pytest.param(5.0, False, id="being evicted: the copy goes with the quota"),
    ],
)
def test_a_copy_found_where_jobs_run_is_nominated_there_again_if_it_is_of_now(
    evicted: float | None, again: bool
) -> None:
    job = ready("p-b", since=NOW - timedelta(seconds=10))
    if evicted is not None:
        when = (NOW - timedelta(seconds=evicted)).isoformat()
        entry = {"type": "Evicted", "status": "True", "reason": "x", "message": ""}
        job["status"]["conditions"].append(entry | {"lastTransitionTime": when})
    ages = {Since(SinceKind.WITHDRAWN, "a"): 3.0}
    held = WorkerCopies({JOB: True}, age=0.5)
    answer = Answer("b", running("other", "p-a"), job, before="ab", ages=ages, asked=held)
    assert answer.nominated == ({"job": ("p-b", "p-a")} if again else {})


def test_jobs_that_run_there_go_on_and_the_list_stays() -> None:
    """Since when it drains is recorded: a write without a change of the list costs Kueue nothing."""
    answer = Answer("b", running("job", "p-a"), ready(name="new"), before="ab")
    assert (answer.writes, answer.nominated) == (["MultiKueueConfig"], {"new": ("p-b",)})
    assert answer.plan.config == answer.before._replace(draining={"p-a": NOW})


@pytest.mark.parametrize(
    ("selected", "jobs", "asked", "events"),
    [
        pytest.param("b", [running("job", "p-a")], NO_COPIES, [], id="it drains on"),
        pytest.param(
            "b",
            [],
            NO_COPIES,
            [("ClusterDrained", "1 cluster has drained and stands by: a")],
            id="it stands by",
        ),
        pytest.param(
            "ab",
            [running("job", "p-a")],
            NO_COPIES,
            [
                (
                    "ClusterAdded",
                    "1 cluster more, by Placement kueue-system/p: a (selected again while it drained)",
                )
            ],
            id="it is selected again",
        ),
    ],
)
def test_how_a_drain_ends(selected: str, jobs: list[Any], asked: WorkerCopies, events: Any) -> None:
    since = {"a": NOW - timedelta(minutes=5)}
    answer = Answer(selected, *jobs, before="ab", draining=since, asked=asked)
    assert answer.listed == ("p-a", "p-b")
    assert [
        (config_event.reason, config_event.message) for config_event in answer.plan.config_events()
    ] == events
    assert answer.writes == (["MultiKueueConfig"] if events else [])


@pytest.mark.parametrize(
    ("ages", "asked", "events"),
    [
        pytest.param({}, None, [], id="Kueue is connected to it again"),
        pytest.param({QUIET: 3.0}, WorkerCopies({JOB: True}, age=0.1), [], id="a job runs there"),
        pytest.param(
            {QUIET: 3.0}, WorkerCopies(age=0.1), ["ClusterDrained"], id="it has said that none does"
        ),
    ],
)
def test_it_has_drained_when_it_has_said_that_nothing_runs_there(
    ages: dict[Since, float], asked: WorkerCopies | None, events: list[str]
) -> None:
    since = {"a": NOW - timedelta(minutes=5)}
    answer = Answer("b", ready("p-b"), before="ab", draining=since, ages=ages, asked=asked)
    assert [event.reason for event in answer.plan.config_events()] == events


@pytest.mark.parametrize(
    ("how", "stays"),
    [
        pytest.param({}, True, id="nothing has changed"),
        pytest.param({"ages": STANDS | {STANDING_BY: 3600.0}}, False, id="its time has passed"),
        pytest.param({"credentials": "bc"}, False, id="its credentials are gone"),
        pytest.param({"annotations": {UNLIST: "a"}}, False, id="an admin names the cluster"),
        pytest.param({"annotations": {UNLIST: "x,p-a"}}, False, id="an admin names its MultiKueueCluster"),
        pytest.param({"annotations": {UNLIST: "b"}}, True, id="an admin names another one"),
        pytest.param({"hub": HubFacts(clusters_max=3), "selected": "bcd"}, False, id="its slot is needed"),
        pytest.param({"hub": HubFacts(clusters_max=4), "selected": "bcd"}, True, id="there is another slot"),
        pytest.param({"policy": replace(STABLE, unlist_after=0.0)}, False, id="not set"),
    ],
)
def test_how_long_it_stands_by(how: dict[str, Any], stays: bool) -> None:
    answer = Answer(how.pop("selected", "bc"), ready("p-b"), **({"ages": STANDS} | how))
    assert ("p-a" in answer.listed) is stays


def test_its_time_does_not_begin_anew_if_the_write_of_the_list_fails() -> None:
    answer = Answer("bc", ready("p-b"), ages=STANDS | {STANDING_BY: 3600.0})
    assert ("p-a" in answer.listed, STANDING_BY in answer.plan.lasting) == (False, True)


def test_before_it_is_unlisted_it_is_asked_again() -> None:
    late = STANDS | {STANDING_BY: 3600.0, QUIET: 3600.0}
    answer = Answer("bc", ready("p-b"), ages=late, asked=WorkerCopies({}, age=3000.0))
    assert ("p-a" in answer.listed, answer.plan.ask_for_copies) == (True, ("p-a",))


def test_without_any_workload_nobody_is_asked() -> None:
    answer = Answer("bc", asked=None)
    assert (answer.plan.ask_for_copies, answer.writes) == ((), [])
    assert Answer("bc", asked=None, ages={STANDING_BY: 3600.0}).listed == ("p-b", "p-c")


def test_those_that_stand_by_are_no_mass_loss() -> None:
    names = "abcdef"
    lost = Answer("f", ready(), before=names)
    assert "held for 5 min" in lost.message
    left_before = {Since(SinceKind.DESELECTED, name): 9.0 for name in "abcde"}
    assert "standing by: a, b, c, d, e" in Answer("f", ready(), before=names, ages=left_before).message


def test_a_new_controller_takes_them_for_standing_by() -> None:
    assert "standing by: a, b, c, d, e" in problems(decided_plan("f", listed="abcdef", policy=STABLE))
