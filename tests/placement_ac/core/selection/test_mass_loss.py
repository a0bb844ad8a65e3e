"""The guard against mass loss: what only OCM or vanished credentials take away is held for a while."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, NamedTuple

import pytest

from placement_ac.core.api.constants import ANNOTATION_MAINTENANCE, CLAIM_ID, PER_PLACEMENT, SHARED
from placement_ac.core.inputs.identity import WorkerIdentity
from placement_ac.core.inputs.state import HubFacts, PlacementPolicy, Plan, Since, SinceKind
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.core.plan.plan import plan
from tests.support.builders import (
    NOW,
    Raw,
    check,
    decision,
    foreign_cluster,
    inputs,
    listed_in,
    managed_clusters,
    multikueue_check,
    our_cluster,
    our_config,
    placement,
    planned,
    running,
    secrets,
)
from tests.support.decided import decided_plan

HELD = PlacementPolicy(retention=0.0, loss_grace=300.0)
LOSS = Since(SinceKind.MASS_LOSS)
NAMESPACE = Since(SinceKind.PLACEMENT_NAMESPACE, "kueue-system")


def answer_for(before: str, after: str, ages: Any = None, *, keys: Any = None, **rest: Any) -> Plan:
    """The config lists `before`, OCM decides `after`; `keys`: the clusters with credentials."""
    given = {"policy": HELD} | rest
    return decided_plan(after, listed=before, credentials=keys, ages=ages, **given)


def listed(answer: Plan) -> list[str]:
    return [name.removeprefix("p-") for name in listed_in(answer)]


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        pytest.param("a", "", "a", id="the only one"),
        pytest.param("abc", "", "abc", id="all of them"),
        pytest.param("abc", "a", "a", id="few, and not all"),
        pytest.param("abcd", "a", "abcd", id="more than half of four"),
        pytest.param("abcd", "ab", "ab", id="just half"),
        pytest.param("a", "b", "b", id="one takes over from another"),
        pytest.param("abcd", "wxyz", "wxyz", id="all take over"),
        pytest.param("abcd", "z", "zabcd", id="one for four"),
    ],
)
def test_a_loss_of_more_than_half_is_held_unless_others_take_over(before: str, after: str, kept: str) -> None:
    assert sorted(listed(answer_for(before, after))) == sorted(kept)


def test_it_is_reported_in_the_condition_and_in_an_event() -> None:
    answer = answer_for("abc", "")
    expected_message = (
        "3 of 3 clusters would go at once though the Placement was not changed: held for 5 min, "
        "or until the Placement is changed"
    )
    verdict = answer.verdicts["check"]
    assert (verdict.status, verdict.reason) == ("True", "Active")
    assert verdict.message.endswith(f"; {expected_message}")
    assert [(notice.reason, notice.message) for notice in answer.events] == [("Held", expected_message)]
    assert (LOSS in answer.lasting, answer.requeue_after) == (True, 300.0)


def test_after_the_grace_it_goes_through() -> None:
    assert listed(answer_for("abc", "", {LOSS: 299.0})) == ["a", "b", "c"]
    late = answer_for("abc", "", {LOSS: 300.0})
    assert (late.config, late.verdicts["check"].reason) == (None, "NoClusterSelected")


def test_a_loss_that_ends_by_itself_leaves_no_trace() -> None:
    answer = answer_for("abc", "abc", {LOSS: 100.0})
    assert (listed(answer), LOSS in answer.lasting, answer.events) == (["a", "b", "c"], False, ())


def test_whoever_changes_the_placement_gets_it_at_once() -> None:
    known = {NAMESPACE: 999.0, Since(SinceKind.PLACEMENT_GENERATION, "Placement/p", 1): 999.0}
    answer = answer_for("abc", "", known, generation=2)
    edited = Since(SinceKind.PLACEMENT_EDITED, "Placement/p", 2)
    assert (answer.config, edited in answer.lasting) == (None, True)


def test_a_placement_that_is_created_anew_is_a_change() -> None:
    known = {NAMESPACE: 999.0, Since(SinceKind.PLACEMENT_GENERATION, "its uid before", 1): 999.0}
    assert listed(answer_for("abc", "", known)) == []


@pytest.mark.parametrize(("age", "kept"), [(59.0, []), (60.0, ["a", "b", "c"])])
def test_a_change_counts_for_a_minute_as_ocm_may_follow_late(age: float, kept: list[str]) -> None:
    known = {
        NAMESPACE: age,
        Since(SinceKind.PLACEMENT_GENERATION, "Placement/p", 2): age,
        Since(SinceKind.PLACEMENT_EDITED, "Placement/p", 2): age,
    }
    assert listed(answer_for("abc", "", known, generation=2)) == kept


def test_the_generation_found_at_the_start_is_no_change() -> None:
    """After a restart of the hub, controller and OCM come up together."""
    answer = answer_for("abc", "", generation=7)
    generation = Since(SinceKind.PLACEMENT_GENERATION, "Placement/p", 7)
    assert (listed(answer), {NAMESPACE, generation} <= answer.lasting) == (["a", "b", "c"], True)


def test_vanished_credentials_are_a_loss_as_well() -> None:
    answer = answer_for("abc", "abc", {"a": 9.0, "b": 9.0, "c": 9.0}, keys={"other"})
    assert listed(answer) == ["a", "b", "c"]


def test_clusters_that_drain_already_are_no_mass_loss_for_a_new_controller() -> None:
    draining = dict.fromkeys("abc", NOW - timedelta(hours=1))
    quiet = {Since(SinceKind.QUIET, name): 2.0 for name in "abc"}
    assert listed(answer_for("dabc", "d", quiet, draining=draining)) == ["d"]


def test_the_share_and_the_grace_are_settings() -> None:
    assert listed(answer_for("abcd", "abc", policy=PlacementPolicy(loss_share=0.2))) == ["a", "b", "c", "d"]
    assert listed(answer_for("abcd", "", policy=PlacementPolicy(loss_grace=0.0, retention=0.0))) == []


# -- losses that come in steps

SIX: Final = "abcdef"


class Step(NamedTuple):
    """The state of the hub, `after` seconds later: what OCM selects, and what is otherwise than before."""

    selected: str
    after: float = 0.25
    keys: str = SIX + "uvwxyz"
    """The clusters with credentials."""
    maintained: str = ""
    """The clusters in maintenance."""
    gone: str = ""
    """The clusters whose ManagedCluster is deleted."""
    generation: int = 1
    """Of the Placement."""
    restart: bool = False
    """Whether another controller takes over."""


def fleet_of(step: Step) -> list[Raw]:
    fleet = managed_clusters(*(name for name in SIX + "uvwxyz" if name not in step.gone))
    for cluster in fleet:
        if cluster["metadata"]["name"] in step.maintained:
            cluster["metadata"]["annotations"] = {ANNOTATION_MAINTENANCE: "2026-01-01T00:00:00Z"}
    return fleet


def played(steps: Iterable[Step], jobs_on: str = "", **rest: Any) -> list[str]:
    """The clusters that are listed and do not drain, after each step; a job runs on each of `jobs_on`."""
    listed, ages, since, kept = list(SIX), dict[Since, float](), dict[str, float](), list[str]()
    now = 0.0
    for step in (Step(SIX), *steps):
        now += step.after
        ages = {} if step.restart else {one: age + step.after for one, age in ages.items()}
        unlisted = [our_cluster(name) for name in SIX if name not in {*step.selected, *listed}]
        answer = decided_plan(
            step.selected,
            *(unlisted, [running(f"on-{name}", f"p-{name}") for name in jobs_on]),
            listed=listed,
            credentials=step.keys,
            fleet=fleet_of(step),
            draining={name: NOW - timedelta(seconds=now - then) for name, then in since.items()},
            ages=ages,
            generation=step.generation,
            **{"policy": HELD} | rest,
        )
        ages = {one: ages.get(one, 0.0) for one in answer.lasting}
        listed = [name.removeprefix("p-") for name in listed_in(answer)]
        drains = answer.config.draining if answer.config else ()
        since = {name: since.get(name, now) for name in listed if f"p-{name}" in drains}
        kept.append("".join(name for name in listed if name not in since))
    return kept[1:]


def one_by_one(clusters: str, after: float, **rest: Any) -> list[Step]:
    """The clusters are no longer selected, one after the other."""
    kept = [[name for name in SIX if name not in clusters[: at + 1]] for at in range(len(clusters))]
    return [Step("".join(names), after, **rest) for names in kept]


@pytest.mark.parametrize("jobs_on", ["", SIX], ids=["idle", "jobs run"])
@pytest.mark.parametrize(
    ("steps", "last"),
    [
        pytest.param(one_by_one("abcde", 60), SIX, id="a minute after the other"),
        pytest.param(one_by_one(SIX, 40), SIX, id="all of them"),
        pytest.param([*one_by_one("abcd", 9), Step("ef", 290)], SIX, id="for the whole grace"),
        pytest.param([*one_by_one("abcd", 9), Step("ef", 301)], "ef", id="and no longer"),
        pytest.param([*one_by_one("abcd", 9), Step("", 290), Step("", 11)], "", id="more of them meanwhile"),
        pytest.param([*one_by_one("abcd", 9), Step(SIX)], SIX, id="it ends by itself"),
        pytest.param([*one_by_one("abcd", 9), Step("cdef")], "cdef", id="it is no mass loss any more"),
        pytest.param(one_by_one("abc", 9), "def", id="half of them"),
        pytest.param([*one_by_one("abc", 9), Step("ef", 290)], "ef", id="the last one much later"),
        pytest.param([*one_by_one("abc", 9), Step("def", 400), Step("d")], "d", id="two windows"),
        pytest.param([Step("ubcdef"), Step("uvcdef"), Step("uvwdef"), Step("uvwx")], "uvwx", id="replaced"),
        pytest.param([Step("ubcdef"), Step("uvwdef"), Step("uvwdxy"), Step("wd")], "uvwdxy", id="and lost"),
        pytest.param([*one_by_one("abc", 9), Step("ef", generation=2)], "ef", id="the Placement is changed"),
        pytest.param(
            [*one_by_one("abcd", 9), Step("f", generation=2), Step("f", 70, generation=2)],
            "f",
            id="it is changed during the hold",
        ),
        pytest.param(
            [Step("def", generation=2), Step("ef", 70, generation=2)], "ef", id="one is lost after a change"
        ),
    ],
)
def test_losses_within_the_grace_of_the_first_one_count_together(
    steps: Sequence[Step], last: str, jobs_on: str
) -> None:
    assert sorted(played(steps, jobs_on)[-1]) == sorted(last)


@pytest.mark.parametrize(
    ("steps", "lists"),
    [
        pytest.param(one_by_one("abc", 9), ["bcdef", "cdef", "def"], id="too few to be held leave at once"),
        pytest.param(
            one_by_one("abcd", 9), ["bcdef", "cdef", "def", SIX], id="then the list is as it was before"
        ),
        pytest.param(
            [*(Step(SIX, keys=SIX[at:]) for at in range(1, 6)), Step(SIX, 2, keys="f")],
            [SIX] * 6,
            id="credentials vanish",
        ),
        pytest.param(
            [Step(SIX, maintained="ab"), Step("abdef", maintained="ab"), Step("abef", maintained="ab")],
            ["cdef", "def", "ef"],
            id="two of four beside two in maintenance",
        ),
        pytest.param(
            [*one_by_one("abc", 5), Step("ef", maintained="abc")],
            ["bcdef", "cdef", "def", "ef"],
            id="they go into maintenance after they have left",
        ),
        pytest.param(
            [Step(SIX[at:], 5, gone=SIX[:at]) for at in range(1, 6)],
            ["bcdef", "cdef", "def", "ef", "f"],
            id="ManagedClusters are deleted",
        ),
        pytest.param(
            [*one_by_one("abc", 5), Step("ef", gone="abc"), Step("f", gone="abc")],
            ["bcdef", "cdef", "def", "ef", "f"],
            id="they are deleted after their clusters have left",
        ),
        pytest.param([Step("", gone=SIX), Step("", 9, gone=SIX)], [SIX] * 2, id="all of them at once"),
    ],
)
def test_nothing_waits_for_losses_that_may_follow(steps: Sequence[Step], lists: Sequence[str]) -> None:
    assert played(steps) == lists


BUSY: Final = {"jobs_on": SIX}


@pytest.mark.parametrize(
    ("steps", "rest", "last"),
    [
        pytest.param([Step("def"), Step("ef", restart=True)], BUSY, SIX, id="between two losses"),
        pytest.param([Step("def"), Step("ef", 301, restart=True)], BUSY, "ef", id="long after the first"),
        pytest.param([Step("ef"), Step("ef", restart=True)], {}, SIX, id="during a hold"),
        pytest.param(
            [Step("f", generation=2), Step("f", 1, generation=2, restart=True)],
            BUSY,
            "f",
            id="after a change of the Placement",
        ),
    ],
)
def test_another_controller_goes_on_from_the_annotation(
    steps: Sequence[Step], rest: dict[str, str], last: str
) -> None:
    assert sorted(played(steps, **rest)[-1]) == sorted(last)


BEFORE: Final = Since(SinceKind.LISTED_BEFORE, "a,b,c,d")


@pytest.mark.parametrize(
    ("naming", "left", "names"),
    [
        pytest.param(PER_PLACEMENT, our_cluster("a"), ["p-a", "p-b", "p-c", "p-d"], id="its own"),
        pytest.param(SHARED, our_cluster("a", None), ["a", "b", "c", "d"], id="shared with other Placements"),
        pytest.param(PER_PLACEMENT, foreign_cluster("p-a"), ["p-b", "p-c", "p-d"], id="somebody else's"),
        pytest.param(PER_PLACEMENT, None, ["p-b", "p-c", "p-d"], id="none any more"),
    ],
)
def test_a_cluster_comes_back_with_its_multikueuecluster(
    naming: str, left: Raw | None, names: Sequence[str]
) -> None:
    """a has left the list, b and c would go now."""
    of = None if naming == SHARED else "p"
    prefix = f"{of}-" if of else ""
    answer = planned(
        [check(), multikueue_check(), placement(), decision("d"), *secrets(*"abcd")],
        [*managed_clusters(*"abcd"), our_config(*(f"{prefix}{name}" for name in "bcd"))],
        [*(our_cluster(name, of) for name in "bcd"), *([left] if left else [])],
        hub=HubFacts(naming=naming),
        policy=HELD,
        ages={BEFORE: 9.0},
    )
    assert listed_in(answer) == tuple(names)
    assert answer.verdicts["check"].reason == "Active"


@pytest.mark.parametrize("keys", ["abcd", "bcd"], ids=["with credentials", "without"])
@pytest.mark.parametrize("shown", ["claim", "uid"])
def test_a_second_name_of_a_listed_worker_does_not_come_back(shown: str, keys: str) -> None:
    """a and d are one worker: Kueue would delete jobs' copies by the name that it did not record."""
    fleet = managed_clusters(*"abcd")
    if shown == "claim":
        for cluster in (fleet[0], fleet[3]):
            cluster["status"] = {"clusterClaims": [{"name": CLAIM_ID, "value": "one"}]}
    seen = inputs(
        [check(), multikueue_check(), placement(), decision("d"), *secrets(*keys), *fleet],
        [our_config("p-b", "p-c", "p-d"), *(our_cluster(name) for name in "abcd")],
        policy=HELD,
        ages={BEFORE: 9.0},
    )
    if shown == "uid":
        source = seen.credentials.usable("d")
        assert source
        one = WorkerIdentity(source.version, NOW, namespace="its uid")
        identities = {source: one, CredentialSource("Secret", "multikueue-a"): one}
        seen = replace(seen, fleet=replace(seen.fleet, identities=identities))
    answer = plan(seen)
    assert "3 of 4 clusters would go at once" in answer.verdicts["check"].message
    assert listed_in(answer) == ("p-b", "p-c", "p-d")
