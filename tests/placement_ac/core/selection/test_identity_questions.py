"""Who is asked which worker it is, and which clusters wait for the answer."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from placement_ac.core.inputs.state import Since, SinceKind, Snapshot
from placement_ac.core.plan.plan import plan
from placement_ac.core.plan.targets import select_targets
from tests.support.builders import AT_ONCE, NOW, Raw, listed_in, workload
from tests.support.decided import decided_inputs
from tests.support.identities import shows

QUEUES, OTHER_QUEUES = {"queues": frozenset({"1"})}, {"queues": frozenset({"2"})}
NO_COPY: Mapping[str, Any] = {"copies": frozenset()}
"""An account that may see neither kube-system nor ClusterQueues, on a worker without copies."""
COPY, OTHER_COPY = {"copies": frozenset({"1"})}, {"copies": frozenset({"2"})}
PROBLEM = {"problem": "the worker cannot be reached"}


def identifying(
    *objects: Raw, selected: str, listed: str, ages: Mapping[Since, float] | None = None, **shown: Any
) -> Snapshot:
    policy = replace(AT_ONCE, identify=True)
    return shows(decided_inputs(selected, *objects, listed=listed, ages=ages, policy=policy), **shown)


def waited(seconds: float, cluster: str = "b") -> Mapping[Since, float]:
    return {Since(SinceKind.IDENTITY_AWAITED, cluster): seconds}


class Case(NamedTuple):
    """A hub: who is then asked, and who is in the next list."""

    asked: str
    names: str
    selected: str = "ab"
    listed: str = "a"
    ages: Mapping[Since, float] | None = None
    shown: Mapping[str, Any] = {}


CASES = {
    "one cluster alone": Case("", "a", "a", ""),
    "the first clusters": Case("ab", "", listed=""),
    "a new one beside a listed one": Case("ab", "a"),
    "what it may replace stays": Case("ab", "a", "b"),
    "it replaces another one": Case("", "b", "b", shown={"a": "1", "b": "2"}),
    "both are known": Case("", "ab", shown={"a": "1", "b": "2"}),
    "the listed one has not answered": Case("a", "a", shown={"b": "2"}),
    "it never answers": Case("ab", "ab", ages=waited(10.0)),
    "others wait for its answer": Case("b", "a", "abc", shown={"a": "1", "c": "3"}),
    "others do not wait for long": Case("b", "ac", "abc", ages=waited(2.0), shown={"a": "1", "c": "3"}),
    "it cannot be asked": Case("", "ab", shown={"a": "1", "b": PROBLEM | {"age": 59.0}}),
    "and is asked again": Case("b", "ab", shown={"a": "1", "b": PROBLEM | {"age": 60.0}}),
    "by their ClusterQueues": Case("", "ab", shown={"a": QUEUES | {"age": 700.0}, "b": OTHER_QUEUES}),
    "if they were asked at about the same time": Case(
        "a", "a", shown={"a": QUEUES | {"age": 701.0}, "b": OTHER_QUEUES}
    ),
    "a worker without copies": Case("", "ab", shown={"a": NO_COPY, "b": NO_COPY | {"age": 10.0}}),
    "that may have some by now": Case("b", "a", shown={"a": NO_COPY, "b": NO_COPY | {"age": 11.0}}),
    "copies that the listed one may have, too": Case(
        "a", "a", shown={"a": NO_COPY | {"age": 6.0}, "b": COPY | {"age": 5.0}}
    ),
    "and does not": Case("", "ab", shown={"a": OTHER_COPY | {"age": 4.0}, "b": COPY | {"age": 5.0}}),
    "listed clusters are asked once": Case("b", "ab", listed="ab", shown={"a": "1"}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_cluster_is_listed_when_it_is_known_which_worker_it_is(case: Case) -> None:
    seen = identifying(selected=case.selected, listed=case.listed, ages=case.ages, **case.shown)
    wanted = plan(seen)
    assert (
        "".join(source.name.removeprefix("multikueue-") for source in wanted.ask_for_identity) == case.asked
    )
    assert sorted(listed_in(wanted)) == [f"p-{name}" for name in case.names]


def test_the_first_clusters_get_no_condition_that_is_over_in_a_moment() -> None:
    assert plan(identifying(selected="ab", listed="")).verdicts == {}
    assert plan(identifying(selected="ab", listed="a")).verdicts["check"].status == "True"


@pytest.mark.parametrize(
    ("shown", "since", "asked"),
    [
        pytest.param(NO_COPY, 30.0, "ab", id="nothing tells them apart"),
        pytest.param(NO_COPY, 61.0, "", id="the eviction is over"),
        pytest.param({"a": "1", "b": "2"}, 30.0, "", id="they are known"),
    ],
)
def test_workers_that_nothing_tells_apart_are_asked_again_while_jobs_are_evicted(
    shown: Mapping[str, Any], since: float, asked: str
) -> None:
    evicted = workload("job", nominated=["p-a", "p-b"])
    when = (NOW - timedelta(seconds=since)).strftime("%Y-%m-%dT%H:%M:%SZ")
    evicted["status"]["conditions"].append(
        {"type": "Evicted", "status": "True", "reason": "x", "message": "", "lastTransitionTime": when}
    )
    both = shown if "a" in shown else {"a": {**shown, "age": 5.0}, "b": {**shown, "age": 5.0}}
    seen = identifying(evicted, selected="ab", listed="ab", **both)
    ask = select_targets(seen).identity.ask
    assert sorted(source.name.removeprefix("multikueue-") for source in ask) == list(asked)
