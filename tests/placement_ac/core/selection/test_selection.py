"""Which clusters are listed: at once when they come, with patience when they go."""

from datetime import timedelta
from typing import Any

import pytest

from placement_ac.core.inputs.state import HubFacts, Since, SinceKind
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.core.plan.targets import select_targets
from placement_ac.core.selection.selection import ListableCluster, Selection
from tests.support.builders import (
    NOW,
    check,
    decision,
    inputs,
    labels_of,
    listed,
    our_cluster,
    our_config,
    our_objects,
    placement,
    secrets,
    selection_of,
    snapshot,
    undecided,
    unreadable,
    world,
)

NOTHING_FOUND = "create Secret kueue-system/multikueue-{0} with key kubeconfig: {0} has no credentials"
OCM = "cluster.open-cluster-management.io/v1beta1"
WAITS = frozenset({Since(SinceKind.REMOVAL_UNSETTLED, "b")})
FOREIGN, DISAGREE = Since(SinceKind.DECISIONS_DOUBTED), Since(SinceKind.DECISIONS_DISAGREE)
MANY = [f"c{number:02}" for number in range(23)]


def usable(cluster: str, source: str | None = "") -> ListableCluster:
    way = None if source is None else CredentialSource("Secret", source or f"multikueue-{cluster}")
    return ListableCluster(cluster, f"p-{cluster}", way)


def selected(*objects: Any, ages: dict[Any, float] | None = None, **rest: Any) -> Selection:
    return selection_of(inputs(check(), *objects, **rest, ages=ages))


def chosen(*objects: Any, **rest: Any) -> Selection:
    """The selection, without the ranks that put it into order."""
    answer = selected(*objects, **rest)
    return answer._replace(listable=tuple(entry._replace(rank=None) for entry in answer.listable))


def order(*objects: Any, ages: dict[str, float] | None = None, **rest: Any) -> list[str]:
    names = listed(check(), *objects, ages=ages, **rest) or []
    return [name.removeprefix("p-") for name in names]


def test_clusters_come_in_order_and_each_once() -> None:
    answer = chosen(
        placement(),
        decision("b", "a", index=10, group=1),
        decision("c", "b", index=2),
        secrets("a", "b", "c"),
    )
    assert answer == Selection(
        is_conclusive=True, listable=(usable("b"), usable("c"), usable("a")), ranked=("b", "c", "a")
    )


@pytest.mark.parametrize("most", [20, 10])
def test_only_the_first_seats_are_given_away(most: int) -> None:
    seen = world(check(), placement(), decision(*MANY), secrets(*MANY), hub=HubFacts(clusters_max=most))
    answer = select_targets(snapshot(seen))
    assert [entry.cluster for entry in answer.to_list] == MANY[:most]
    assert answer.over_limit == tuple(MANY[most:])


def test_a_cluster_that_comes_waits_for_nothing() -> None:
    assert order(placement(selected=1), decision("a", "b"), secrets("a", "b"), our_objects("a")) == ["a", "b"]


@pytest.mark.parametrize(
    ("objects", "ages", "clusters", "recheck"),
    [
        pytest.param([placement(selected=1), decision("a")], {}, ["a"], None, id="settled"),
        pytest.param([placement(), decision("a")], {}, ["a"], None, id="nobody keeps the status"),
        pytest.param([placement(selected=2), decision("a")], {}, ["a", "b"], 2.0, id="not settled"),
        pytest.param(
            [placement(selected=2), decision("a")], {"b": 0.5}, ["a", "b"], 1.5, id="not settled for 0.5 s"
        ),
        pytest.param(
            [placement(selected=2), decision("a")],
            {"b": 2.0},
            ["a"],
            2.0,
            id="for 2 s; then that is reported",
        ),
        pytest.param(
            [placement(selected=2), decision()],
            {"a": 2.0, "b": 0.75},
            ["b"],
            1.25,
            id="each cluster has its own 2 s",
        ),
        pytest.param(
            [placement(selected=1, groups=[(["p-decision-1"], 2)]), decision("a")],
            {},
            ["a", "b"],
            2.0,
            id="the group counts another number",
        ),
        pytest.param(
            [placement(selected=1, groups=[(["p-decision-9"], 1)]), decision("a")],
            {},
            ["a", "b"],
            2.0,
            id="the group names another decision",
        ),
        pytest.param(
            [placement(selected=1, groups=[(["p-decision-1"], 1)]), decision("a")],
            {},
            ["a"],
            None,
            id="the group agrees",
        ),
        pytest.param([placement(selected=2), undecided()], {}, ["a", "b"], 2.0, id="no status yet"),
        pytest.param([placement(selected=2)], {}, ["a", "b"], 2.0, id="no decision at all"),
        pytest.param(
            [placement(status={"conditions": "bad"}), decision("a")], {}, ["a", "b"], 2.0, id="bad Placement"
        ),
        pytest.param(
            [placement(), unreadable()], {"a": 99.0, "b": 99.0}, ["a", "b"], None, id="unreadable, for ever"
        ),
        pytest.param(
            [placement(), decision("a"), unreadable(index=2)],
            {"b": 99.0},
            ["a", "b"],
            None,
            id="partly unreadable, for ever",
        ),
    ],
)
def test_a_cluster_that_goes_waits_for_ocm_to_settle(
    objects: list[Any], ages: dict[str, float], clusters: list[str], recheck: float | None
) -> None:
    answer = selected(*objects, secrets("a", "b"), our_objects("a", "b"), ages=ages)
    assert ([entry.cluster for entry in answer.listable], answer.requeue_after) == (clusters, recheck)


def test_a_cluster_that_drains_does_not_come_back_while_decisions_disagree() -> None:
    objects = [placement(selected=2), decision("a"), secrets("a", "b"), our_objects("a", "b")]
    left = world(*objects)
    ages = {Since(SinceKind.DESELECTED, "b"): 600.0}
    seen = snapshot(left, ages=ages)
    assert [entry.cluster for entry in selection_of(seen).listable] == ["a"]


def test_a_wait_is_reported_so_that_its_age_is_known_next_time() -> None:
    answer = chosen(placement(selected=2), decision("a"), secrets("a", "b"), our_objects("a", "b"))
    assert answer == Selection(
        is_conclusive=True,
        listable=(usable("a"), usable("b", None)),
        ranked=("a",),
        lasting=WAITS | {DISAGREE},
        requeue_after=2.0,
    )


FORMER = [{"apiVersion": OCM, "kind": "Placement", "name": "p", "uid": "of a former one"}]
OTHER_KIND = [{"apiVersion": "example.com/v1", "kind": "Placement", "name": "p", "uid": "Placement/p"}]


@pytest.mark.parametrize("owners", [[], FORMER, OTHER_KIND], ids=["none", "former", "another kind"])
def test_a_decision_that_its_placement_does_not_own_is_ignored(owners: list[Any]) -> None:
    forged = decision("b", index=2, ownerReferences=owners)
    objects = (placement(selected=1), decision("a"), forged, secrets("a", "b"))
    answer = selected(*objects)
    assert [entry.cluster for entry in answer.listable] == ["a"]
    # A Placement that is made again owns other decisions at once; the old ones stay a moment.
    assert (answer.remarks, answer.lasting, answer.requeue_after) == ((), {FOREIGN}, 2.0)
    assert selected(*objects, ages={FOREIGN: 1.9}).remarks == ()
    assert selected(*objects, ages={FOREIGN: 2.0}).remarks == (
        "delete PlacementDecision kueue-system/p-decision-2: Placement p does not own it, so it is ignored",
    )


NAMED = placement(selected=1, groups=[(["p-decision-1"], 1)])
UNNAMED = Since(SinceKind.DECISIONS_DOUBTED, "p-decision-2")
TWO_SECONDS_AGO = (NOW - timedelta(seconds=2.9)).isoformat()
LONG_AGO = (NOW - timedelta(seconds=3)).isoformat()


@pytest.mark.parametrize(
    ("objects", "ages", "clusters"),
    [
        pytest.param([NAMED, decision("b", index=2)], {}, ["a"], id="just created"),
        pytest.param([NAMED, decision("b", index=2)], {UNNAMED: 1.9}, ["a"], id="for 1.9 s"),
        pytest.param([NAMED, decision("b", index=2)], {UNNAMED: 2.0}, ["a"], id="for 2 s"),
        pytest.param(
            [NAMED, decision("b", index=2, creationTimestamp=TWO_SECONDS_AGO)], {}, ["a"], id="young"
        ),
        pytest.param(
            [NAMED, decision("b", index=2, creationTimestamp=LONG_AGO)], {}, ["a"], id="after a restart"
        ),
        pytest.param(
            [placement(selected=1), decision("b", index=2)], {UNNAMED: 9.0}, ["a", "b"], id="nobody names any"
        ),
        pytest.param(
            [placement(selected=2, groups=[(["p-decision-1", "p-decision-2"], 2)]), decision("b", index=2)],
            {UNNAMED: 9.0},
            ["a", "b"],
            id="named",
        ),
    ],
)
def test_a_decision_that_the_status_does_not_name_adds_no_cluster(
    objects: list[Any], ages: Any, clusters: list[str]
) -> None:
    """One with a copied owner was listed at once, for two seconds."""
    answer = selected(*objects, decision("a"), secrets("a", "b"), ages=ages)
    assert [entry.cluster for entry in answer.listable] == clusters
    assert (UNNAMED in answer.lasting) is (objects[0] is NAMED), "its age is known next time"


IGNORED = (
    "delete PlacementDecision kueue-system/p-decision-2: status.decisionGroups of Placement "
    "kueue-system/p does not name it, so it is ignored"
)


@pytest.mark.parametrize(
    ("age", "names", "remarks"),
    [
        pytest.param(0.0, ["a", "b"], (), id="just created"),
        pytest.param(1.9, ["a", "b"], (), id="for 1.9 s"),
        pytest.param(2.0, ["a"], (IGNORED,), id="for 2 s"),
    ],
)
def test_a_listed_cluster_of_a_decision_that_is_not_named_yet_stays_for_two_seconds(
    age: float, names: list[str], remarks: Any
) -> None:
    """OCM regroups: it writes the new decision first, and the Placement's status a moment later."""
    objects = (NAMED, decision("a"), decision("b", index=2), secrets("a", "b"), our_objects("a", "b"))
    ages = {UNNAMED: age, Since(SinceKind.REMOVAL_UNSETTLED, "b"): age}
    assert order(*objects, ages=ages) == names
    assert selected(*objects, ages=ages).remarks == remarks


def test_as_long_as_no_decision_is_named_nothing_is_decided() -> None:
    """OCM has given all decisions other names, and not yet written that into the Placement's status."""
    objects = (NAMED, decision("a", index=2), secrets("a"), our_objects("a"))
    assert order(*objects) == ["a"]
    late = {UNNAMED: 9.0, Since(SinceKind.REMOVAL_UNSETTLED, "a"): 9.0}
    assert order(*objects, ages=late) == ["a"]


def test_forged_decisions_alone_decide_nothing() -> None:
    assert not selected(placement(), decision("b", ownerReferences=FORMER), secrets("b")).is_conclusive


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([placement(selected=2), decision("a")], "counts 2 clusters, its PlacementDecisions hold 1"),
        ([placement(selected=1), undecided()], "counts 1 cluster, its PlacementDecisions hold 0"),
        (
            [placement(selected=1, groups=[(["p-decision-9"], 1)]), decision("a")],
            "counts 1 cluster, its PlacementDecisions hold as many in other groups, or one of them twice",
        ),
        ([placement(selected=1), decision("a")], ""),
        ([placement(), decision("a")], ""),
        ([placement(selected=2), unreadable()], ""),
        ([placement(status={"conditions": "bad"}), decision("a")], ""),
    ],
)
def test_a_status_that_disagrees_is_reported_after_two_seconds(objects: list[Any], expected: str) -> None:
    assert selected(*objects, secrets("a"), ages={DISAGREE: 1.9}).remarks == ()
    late = selected(*objects, secrets("a"), ages={DISAGREE: 2.0}).remarks
    assert late == ((f"the Placement's status {expected}",) if expected else ())


def test_vanished_credentials_wait_as_well() -> None:
    objects = [placement(selected=2), decision("a", "b"), secrets("a"), our_objects("a", "b")]
    assert chosen(*objects) == Selection(
        is_conclusive=True,
        listable=(usable("a"), usable("b", None)),
        ranked=("a", "b"),
        lasting=WAITS,
        requeue_after=2.0,
    )
    assert chosen(*objects, ages={"b": 2.5}) == Selection(
        is_conclusive=True,
        listable=(usable("a"),),
        left_out={"b": NOTHING_FOUND.format("b")},
        ranked=("a", "b"),
        lasting=WAITS,
    )


def test_credentials_that_were_never_there_wait_for_nothing() -> None:
    assert selected(placement(), decision("b")).left_out == {"b": NOTHING_FOUND.format("b")}


def test_while_unsettled_the_order_that_kueue_sees_is_kept() -> None:
    objects = [decision(("a", 9), ("b", 5)), secrets("a", "b", "c"), our_objects("c", "b", "a")]
    assert order(placement(selected=3), *objects) == ["c", "b", "a"]
    assert order(placement(selected=2), *objects) == ["a", "b"]


def test_while_unsettled_a_new_cluster_takes_no_seat_from_a_listed_one() -> None:
    objects = [decision("a", "c"), secrets("a", "b", "c"), our_objects("a", "b")]
    answer = select_targets(inputs(check(), placement(selected=3), *objects, hub=HubFacts(clusters_max=2)))
    assert ([entry.cluster for entry in answer.to_list], answer.over_limit) == (["a", "b"], ("c",))


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([our_config("p-b", "p-a", labels={}), our_cluster("b")], id="of the config"),
        pytest.param([our_config("p-b", "p-a"), our_cluster("b", labels={})], id="of the cluster"),
        pytest.param(
            [our_config("p-b", "p-a"), our_cluster("b", labels=labels_of(None))], id="half of the cluster's"
        ),
    ],
)
def test_labels_that_were_taken_off_end_no_wait(objects: list[Any]) -> None:
    assert order(placement(selected=2), decision("a"), secrets("a"), our_cluster("a"), *objects) == ["b", "a"]


@pytest.mark.parametrize(
    "stray",
    [
        pytest.param(our_config("p-a", "q-b"), id="another Placement's cluster"),
        pytest.param(our_config("p-a", "nowhere"), id="no cluster at all"),
    ],
)
def test_a_name_that_was_listed_by_hand_has_no_wait(stray: Any) -> None:
    objects = [stray, our_cluster("a"), our_cluster("b", "q"), secrets("a")]
    assert order(placement(selected=2), decision("a"), *objects) == ["a"]


@pytest.mark.parametrize(
    ("cluster", "of", "why"),
    [
        pytest.param("x" * 64, "p", "not the name of a managed cluster", id="cluster too long"),
        pytest.param("a..b", "p", "not the name of a managed cluster", id="no DNS name"),
        pytest.param("A", "p", "not the name of a managed cluster", id="upper case"),
        pytest.param("a\n", "p", "not the name of a managed cluster", id="a line's end"),
        pytest.param(
            "a", "p" * 252, "its MultiKueueCluster's name would be longer than 253 characters", id="both"
        ),
    ],
)
def test_impossible_names_are_left_out(cluster: str, of: str, why: str) -> None:
    seen = world(check(placement=of), placement(of), decision(cluster, of=of), secrets(cluster))
    assert selection_of(snapshot(seen, of)).left_out == {cluster: why}


@pytest.mark.parametrize("cluster", ["a", "a.b", "1-a", "x" * 63])
def test_possible_names_are_taken(cluster: str) -> None:
    assert order(placement(), decision(cluster), secrets(cluster)) == [cluster]


@pytest.mark.parametrize(
    ("objects", "decided"),
    [
        pytest.param([placement()], False, id="no decision"),
        pytest.param([placement(), undecided()], False, id="without status"),
        pytest.param([placement(selected=3), undecided()], False, id="without status, some counted"),
        pytest.param([placement(selected=0), undecided()], True, id="without status, none counted"),
        pytest.param([placement(selected=0)], True, id="none counted"),
        pytest.param([placement(selected=0), unreadable()], False, id="unreadable, none counted"),
        pytest.param([placement(), decision()], True, id="an empty list"),
        pytest.param([placement(), decision(), undecided(index=2)], True, id="one of two"),
    ],
)
def test_when_ocm_has_decided(objects: list[Any], decided: bool) -> None:
    assert selected(*objects).is_conclusive is decided
