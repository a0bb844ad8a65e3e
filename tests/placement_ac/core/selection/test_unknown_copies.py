"""A worker with running jobs that Kueue would delete is left out; on listed ones they are reported."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from placement_ac.core.api.constants import ANNOTATION_DELETE_UNKNOWN, MANAGED_CLUSTER
from placement_ac.core.inputs.state import Since, SinceKind, Snapshot
from placement_ac.core.inputs.unknown_copies import UnknownCopies
from placement_ac.core.plan.plan import plan
from tests.support.builders import AT_ONCE, NOW, an, listed_in, managed_clusters, our_cluster
from tests.support.decided import decided_inputs, problems

FIX = "set another multiKueue.origin in the configuration of Kueue on each hub"
HOUR = 3600.0


def guarding(
    *,
    selected: str = "ab",
    listed: str = "a",
    shown: Mapping[str, Any] | None = None,
    consent: str = "",
    off: str = "",
    connected: str = "",
    ages: Mapping[Since, float] | None = None,
) -> Snapshot:
    """A hub that asks; `shown`: cluster → how many its worker has, or fields of UnknownCopies and `age`.

    `connected`: clusters that are not listed and have a MultiKueueCluster.
    """
    names = dict.fromkeys(selected + listed)
    yes = {ANNOTATION_DELETE_UNKNOWN: "true"}
    fleet = [
        an(MANAGED_CLUSTER, name, annotations=yes) if name in consent else managed_clusters(name)[0]
        for name in names
    ]
    objects = [our_cluster(name) for name in connected]
    policy = replace(AT_ONCE, guards_copies=True)
    seen = decided_inputs(
        selected, *objects, listed=listed, fleet=fleet, off=[*off], ages=ages, policy=policy
    )
    answers = {}
    for cluster, fields in (shown or {}).items():
        source = seen.credentials.usable(cluster)
        assert source is not None
        given = {"number": fields} if isinstance(fields, int) else dict(fields)
        asked_at = NOW - timedelta(seconds=given.pop("age", 1.0))
        version = given.pop("version", source.version)
        answers[source] = UnknownCopies(version, asked_at, **{"origin": "multikueue"} | given)
    return replace(seen, fleet=replace(seen.fleet, unknown_copies=answers))


def unlisted(seconds: float, cluster: str = "b") -> Mapping[Since, float]:
    return {Since(SinceKind.UNLISTED, cluster): seconds}


def awaited(seconds: float, cluster: str = "b") -> Mapping[Since, float]:
    return {Since(SinceKind.COPIES_AWAITED, cluster): seconds}


class Case(NamedTuple):
    """A hub: who is then asked, and who is in the next list. a is listed and was asked, b is not."""

    asked: str
    names: str
    b: Any = None
    given: Mapping[str, Any] = {}


CASES = {
    "it is asked first": Case("b", "a"),
    "it has none": Case("", "ab", 0),
    "that was long ago": Case("b", "a", {"age": 31.0}),
    "it is asked with other credentials": Case("b", "a", {"version": "old"}),
    "it has some": Case("", "a", 3),
    "it is asked again": Case("b", "a", {"number": 3, "age": 31.0}),
    "it cannot be asked": Case("", "ab", {"problem": "the worker cannot be reached"}),
    "an admin consents": Case("", "ab", 3, {"consent": "b"}),
    "and need not wait": Case("", "ab", None, {"consent": "b"}),
    "Kueue is connected already": Case("", "ab", 3, {"connected": "b"}),
    "this controller has unlisted it": Case("", "ab", 3, {"ages": unlisted(HOUR - 1)}),
    "more than an hour ago": Case("", "a", 3, {"ages": unlisted(HOUR)}),
    "others wait for its answer": Case("b", "a", None, {"selected": "abc", "more": {"c": 0}}),
    "and not for long": Case("b", "ac", None, {"selected": "abc", "more": {"c": 0}, "ages": awaited(2.0)}),
    "it is listed": Case("", "ab", 3, {"listed": "ab"}),
    "what it may replace stays": Case("b", "a", None, {"selected": "b"}),
    "also if it has some": Case("", "", 3, {"selected": "b", "listed": ""}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_worker_is_asked_before_it_is_listed(case: Case) -> None:
    shown = {"a": 0} | ({} if case.b is None else {"b": case.b})
    given = dict(case.given)
    shown |= given.pop("more", {})
    if given.get("listed") == "":
        shown.pop("a")
    wanted = plan(guarding(shown=shown, **given))
    asked = "".join(source.name.removeprefix("multikueue-") for source in wanted.ask_for_unknown_copies)
    assert (asked, sorted(listed_in(wanted))) == (case.asked, [f"p-{name}" for name in case.names])
    made = sorted(cluster.name for cluster in wanted.clusters if cluster.source)
    assert made == [f"p-{name}" for name in case.names], "no MultiKueueCluster either"


def test_the_condition_says_how_many_and_both_fixes() -> None:
    assert problems(plan(guarding(shown={"a": 0, "b": 3}))) == (
        f"left out: b ({FIX}, or annotate ManagedCluster b with {ANNOTATION_DELETE_UNKNOWN}=true: its worker "
        "has 3 unfinished Workloads with quota, of origin multikueue, that this hub does not have, and Kueue "
        "would delete them with their jobs)"
    )
    alone = plan(guarding(selected="b", listed="", shown={"b": 1})).verdicts["check"]
    assert (alone.status, alone.reason) == ("False", "NoClusterUsable")


def test_the_first_clusters_get_no_condition_that_is_over_in_a_moment() -> None:
    assert plan(guarding(listed="")).verdicts == {}


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (UnknownCopies("", NOW, 1, "o"), "1 unfinished Workload with quota, of origin o,"),
        (UnknownCopies("", NOW, 100, "o"), "at least 100 unfinished Workloads with quota, of origin o,"),
        (
            UnknownCopies("", NOW, 2, "o", "ConfigMap n/c"),
            "2 unfinished Workloads with quota, of origin o (assumed: ConfigMap n/c cannot be read),",
        ),
    ],
)
def test_the_text(shown: UnknownCopies, text: str) -> None:
    assert shown.text == f"{text} that this hub does not have"


# -- clusters that are listed


@pytest.mark.parametrize(
    ("shown", "asked", "given"),
    [
        pytest.param({"number": 0, "age": 599.0}, "", {}, id="every ten minutes"),
        pytest.param({"number": 0, "age": 600.0}, "a", {}, id="and then"),
        pytest.param({"number": 1, "age": 89.0}, "", {}, id="again after a garbage collection"),
        pytest.param({"number": 1, "age": 90.0}, "a", {}, id="and then again"),
        pytest.param({"number": 1, "age": 900.0}, "", {"consent": "a"}, id="an admin consents"),
        pytest.param({"number": 1, "age": 900.0}, "", {"off": "a"}, id="Kueue is not connected"),
    ],
)
def test_how_often_a_listed_cluster_is_asked(shown: Any, asked: str, given: Mapping[str, Any]) -> None:
    wanted = plan(guarding(selected="a", shown={"a": shown}, **given))
    assert [source.name for source in wanted.ask_for_unknown_copies] == [f"multikueue-{c}" for c in asked]


REMARK = (
    f"a: {FIX}: its worker has 2 unfinished Workloads with quota, of origin multikueue, that this hub does "
    "not have; Kueue deletes them with their jobs, and others come in their place"
)


@pytest.mark.parametrize(
    ("seen_for", "number", "consent", "remark"),
    [
        pytest.param(None, 2, "", "", id="for the first time"),
        pytest.param(30.0, 2, "", "", id="the same answer"),
        pytest.param(91.0, 2, "", REMARK, id="again after a garbage collection"),
        pytest.param(91.0, 0, "", "", id="gone"),
        pytest.param(91.0, 2, "a", "", id="an admin consents"),
    ],
)
def test_on_a_listed_cluster_they_are_reported_and_nothing_is_taken_away(
    seen_for: float | None, number: int, consent: str, remark: str
) -> None:
    since = Since(SinceKind.UNKNOWN_COPIES, "a")
    ages = {} if seen_for is None else {since: seen_for}
    seen = guarding(selected="a", shown={"a": {"number": number, "age": 1.0}}, consent=consent, ages=ages)
    wanted = plan(seen)
    assert (listed_in(wanted), problems(wanted)) == (("p-a",), remark)
    assert (since in wanted.lasting) == bool(number)


def test_what_was_unlisted_is_remembered_for_an_hour() -> None:
    leaving = {Since(SinceKind.BEING_UNLISTED, "b"): 1.0}
    since = Since(SinceKind.UNLISTED, "b")
    assert since in plan(guarding(selected="a", ages=leaving)).lasting
    assert since not in plan(guarding(selected="ab", listed="ab", ages=leaving)).lasting, "it is listed still"
    assert since in plan(guarding(selected="a", ages={since: HOUR - 1})).lasting
    assert since not in plan(guarding(selected="a", ages={since: HOUR})).lasting
