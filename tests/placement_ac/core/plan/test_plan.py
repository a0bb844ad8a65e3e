"""The plan for one Placement: the objects for Kueue, and the condition with its words."""

from typing import Any

import pytest

from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    CONDITION_MESSAGE_MAX,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    REASONS,
)
from placement_ac.core.api.list_change import ClusterChange, ListChange
from placement_ac.core.inputs.state import (
    EventIntent,
    HubFacts,
    Key,
    Plan,
    Verdict,
    WantedCluster,
    WantedConfig,
)
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.core.plan.conditions import refuse
from placement_ac.core.plan.diff import Apply, Delete
from placement_ac.core.plan.plan import plan
from tests.support.builders import (
    GENERATED,
    NOW,
    SHARED,
    check,
    check_with,
    decision,
    foreign_cluster,
    foreign_config,
    kubeconfig_spec,
    labels_of,
    listed,
    multikueue_check,
    our_cluster,
    our_config,
    our_objects,
    phases,
    placement,
    planned,
    secret,
    secrets,
    undecided,
    unmarked,
    unreadable,
    verdict,
    world,
)

CHECK = {"AdmissionCheck/check": "check"}
FIX = (
    "set spec.parameters to apiGroup: cluster.open-cluster-management.io, kind: Placement "
    "and the name of a Placement in namespace kueue-system: "
)
OCM = "cluster.open-cluster-management.io"
NO_MATCH = ("PlacementSatisfied", "False", "NoManagedClusterMatched", "No ManagedCluster matches")
TOLERATE = "tolerate the taints of clusters in spec.tolerations"
ADOPT = {"placement-ac.open-cluster-management.io/adopt": "true"}


def no(reason: str, message: str) -> Verdict:
    return Verdict("False", reason, message)


def yes(reason: str, rest: str = "") -> Verdict:
    return Verdict("True", reason, GENERATED + rest)


def wanted(cluster: str, secret: str | None = "", owners: dict[str, str] = CHECK) -> WantedCluster:
    source = CredentialSource("Secret", secret or f"multikueue-{cluster}") if secret is not None else None
    return WantedCluster(f"p-{cluster}", cluster, source, owners)


def test_every_selected_cluster_with_credentials_is_generated() -> None:
    answer = planned(check(), placement(), decision("b", "a"), secrets("a", "b"))
    assert unmarked(answer) == Plan(
        selected=("a", "b"),
        verdicts={"check": yes("Active")},
        config=WantedConfig("p", ("p-a", "p-b"), CHECK),
        clusters=(wanted("a"), wanted("b")),
    )
    expected_texts = "2 clusters, by Placement kueue-system/p: a, b"
    change = ListChange("added", (ClusterChange("a"), ClusterChange("b")))
    assert answer.config_events() == (EventIntent("ClustersSelected", expected_texts, "list", change=change),)


@pytest.mark.parametrize(
    ("parameters", "finding"),
    [
        pytest.param(None, "spec.parameters is missing", id="absent"),
        pytest.param({}, "spec.parameters.apiGroup is ''", id="empty"),
        pytest.param(
            {"apiGroup": OCM, "kind": "ConfigMap", "name": "p"},
            "spec.parameters.kind is 'ConfigMap'",
            id="another kind",
        ),
        pytest.param(
            {"apiGroup": "multicluster.x-k8s.io", "kind": "Placement", "name": "p"},
            "spec.parameters.apiGroup is 'multicluster.x-k8s.io'",
            id="another group",
        ),
        pytest.param(
            {"apiGroup": OCM, "kind": "Placement", "name": ""},
            "spec.parameters.name is empty",
            id="empty name",
        ),
        pytest.param(
            {"apiGroup": OCM, "kind": "Placement", "name": 7},
            "the spec cannot be read: spec.parameters.name: Input should be a valid string",
            id="unreadable",
        ),
    ],
)
def test_bad_parameters_are_reported_with_what_to_do(parameters: Any, finding: str) -> None:
    seen = world(check_with(parameters), placement(), decision("a"), secrets("a"))
    answer = plan(seen.snapshot(Key("check", "check"), NOW, {}))
    assert answer == Plan(verdicts={"check": no("BadParameters", FIX + finding)})


def test_a_check_that_is_fine_or_not_ours_is_nothing_to_look_at_alone() -> None:
    seen = world(check(), multikueue_check("mk"))
    for name in ("check", "mk", "nobody"):
        assert plan(seen.snapshot(Key("check", name), NOW, {})) == Plan()


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(
            [decision("a")],
            no(
                "PlacementNotFound",
                ("correct spec.parameters.name, or create Placement kueue-system/p: it does not exist"),
            ),
            id="no Placement",
        ),
        pytest.param(
            [placement(namespace="elsewhere"), decision("a")],
            no(
                "PlacementNotFound",
                ("correct spec.parameters.name, or create Placement kueue-system/p: it does not exist"),
            ),
            id="a Placement in another namespace",
        ),
        pytest.param(
            [placement()],
            no("NoDecision", "OCM has not decided yet for Placement kueue-system/p"),
            id="no decision",
        ),
        pytest.param(
            [placement(selected=2, says=("PlacementMisconfigured", "True", "Misconfigured", "bad CEL"))],
            no("NoDecision", "OCM has not decided yet for Placement kueue-system/p (Misconfigured: bad CEL)"),
            id="no decision, and the Placement says why",
        ),
        pytest.param(
            [placement(status={"numberOfSelectedClusters": "many"}), undecided()],
            no(
                "NoDecision",
                "OCM has not decided yet for Placement kueue-system/p (it cannot be read: "
                "status.numberOfSelectedClusters: Input should be a valid integer, "
                "unable to parse string as an integer)",
            ),
            id="a malformed status of the Placement",
        ),
        pytest.param(
            [placement(), unreadable()],
            no(
                "NoDecision",
                "the decision of Placement kueue-system/p cannot be read: PlacementDecision "
                "kueue-system/p-decision-1 status.decisions: Input should be a valid list",
            ),
            id="a malformed decision",
        ),
        pytest.param(
            [placement(), unreadable(), decision(index=2)],
            no(
                "NoDecision",
                "the decision of Placement kueue-system/p cannot be read: PlacementDecision "
                "kueue-system/p-decision-1 status.decisions: Input should be a valid list",
            ),
            id="a malformed decision beside one without clusters",
        ),
        pytest.param(
            [placement(), decision()],
            no("NoClusterSelected", "Placement kueue-system/p selects no cluster"),
            id="nothing selected",
        ),
        pytest.param(
            [placement(says=NO_MATCH), decision()],
            no(
                "NoClusterSelected",
                f"{TOLERATE}: Placement kueue-system/p selects no cluster (NoManagedClusterMatched)",
            ),
            id="nothing selected, and the Placement says why",
        ),
        pytest.param(
            [placement(), decision("a", "b"), secret("multikueue-b", b"\xff\xfe")],
            no(
                "NoClusterUsable",
                "create Secret kueue-system/multikueue-a with key kubeconfig: "
                "a has no credentials; no selected cluster is usable: a, b",
            ),
            id="nothing usable",
        ),
        pytest.param(
            [placement(), decision("")],
            no(
                "NoClusterUsable",
                "1 of its entries has no clusterName; no selected cluster is usable: "
                "PlacementDecision kueue-system/p-decision-1",
            ),
            id="only an empty clusterName",
        ),
        pytest.param(
            [placement(), decision("a", "", ""), secrets("a")],
            yes(
                "SomeClustersUnusable",
                "; left out: PlacementDecision kueue-system/p-decision-1 "
                "(2 of its entries have no clusterName)",
            ),
            id="empty clusterNames among others",
        ),
        pytest.param(
            [placement(), decision("a", "b_b", "c", "d"), secrets("a")],
            yes("SomeClustersUnusable", "; left out: b_b (not the name of a managed cluster), c, d"),
            id="the first of several has its reason",
        ),
        pytest.param(
            [placement(), decision("a"), unreadable(index=2), secrets("a")],
            yes(
                "SomeClustersUnusable",
                "; left out: PlacementDecision kueue-system/p-decision-2 "
                "(status.decisions: Input should be a valid list)",
            ),
            id="a malformed decision beside a good one",
        ),
        pytest.param(
            [placement(), decision("a"), foreign_config()],
            no(
                "NoClusterUsable",
                "create Secret kueue-system/multikueue-a with key kubeconfig: "
                "a has no credentials; no selected cluster is usable: a",
            ),
            id="nothing usable before a name that is taken",
        ),
        pytest.param(
            [placement(), decision("a"), secrets("a"), foreign_config()],
            no(
                "NameTaken",
                "delete MultiKueueConfig p, or hand it over with kubectl annotate multikueueconfig p "
                "placement-ac.open-cluster-management.io/adopt=true: it was not made by placement-ac",
            ),
            id="the config's name is taken",
        ),
        pytest.param(
            [placement(), decision("a"), secrets("a"), foreign_config(annotations=ADOPT)],
            yes("Active"),
            id="the config is handed over",
        ),
        pytest.param(
            [placement(), decision("a"), secrets("a"), foreign_cluster("p-a", annotations=ADOPT)],
            yes("Active"),
            id="a cluster is handed over",
        ),
        pytest.param(
            [placement(), decision("a"), secrets("a"), our_config("x", labels=labels_of("other"))],
            no("NameTaken", "rename one of the Placements: MultiKueueConfig p belongs to Placement other"),
            id="a config that says it is another Placement's",
        ),
    ],
)
def test_the_first_objection_is_reported(objects: list[Any], expected: Verdict) -> None:
    assert verdict(check(), *objects) == expected


def test_every_reason_is_documented() -> None:
    expected_texts = {"Active", "SomeClustersUnusable", "BadParameters", "PlacementNotFound", "NoDecision"}
    expected_texts |= {"NoClusterSelected", "NoClusterUsable", "NameTaken", "ApplyFailed"}
    assert set(REASONS) == expected_texts


def test_a_message_is_never_longer_than_a_condition_takes() -> None:
    assert len(refuse("ApplyFailed", "x" * 40000).message) == CONDITION_MESSAGE_MAX
    many = [f"{'c' * 50}{number:02}" for number in range(13)]
    expected_texts = verdict(check(), placement(), decision("a", *many), secrets("a")).message
    assert expected_texts.endswith(" and 3 more")


# -- two pairs that make one name


def test_of_two_new_pairs_that_make_one_name_the_first_in_the_alphabet_gets_it() -> None:
    objects = [
        *(check("one", "a-b"), placement("a-b"), decision("c", of="a-b")),
        *(check("two", "a"), placement("a"), decision("b-c", of="a")),
        *secrets("c", "b-c"),
    ]
    assert verdict(*objects, check="two", of="a") == yes("Active")
    refused = planned(*objects, of="a-b")
    assert unmarked(refused) == Plan(
        selected=("c",),
        verdicts={
            "one": no(
                "NameTaken",
                "rename one of the Placements: MultiKueueCluster a-b-c is the name for cluster b-c of "
                "Placement kueue-system/a as well",
            )
        },
        requeue_after=10.0,
    )


def test_a_claim_that_can_come_to_nothing_keeps_nobody_from_the_name() -> None:
    objects = [
        *(check("one", "a-b"), placement("a-b"), decision("c", of="a-b")),
        *(check("two", "a"), placement("a"), decision("b-c", of="a")),
    ]
    assert verdict(*objects, secrets("c"), check="one", of="a-b") == yes("Active")


def test_who_has_the_name_keeps_it() -> None:
    objects = [
        *(check("one", "a-b"), placement("a-b"), decision("c", of="a-b")),
        *(check("two", "a"), placement("a"), decision("b-c", of="a")),
        *secrets("c", "b-c"),
        our_cluster("c", "a-b", owners=["one"]),
    ]
    assert verdict(*objects, check="one", of="a-b") == yes("Active")
    assert verdict(*objects, check="two", of="a") == no(
        "NameTaken",
        "rename one of the Placements: MultiKueueCluster a-b-c belongs to Placement a-b, cluster c",
    )


# -- what becomes of the objects


@pytest.mark.parametrize(
    ("objects", "clusters"),
    [
        pytest.param([check(), placement(), undecided()], ["p-a", "p-b"], id="not decided"),
        pytest.param([check(), decision("a")], ["p-a", "p-b"], id="no Placement"),
        pytest.param([check(), placement(), decision()], None, id="nothing selected"),
        pytest.param(
            [check(), placement(), decision("a", "c"), secrets("a", "c"), foreign_cluster("p-c")],
            ["p-a", "p-b"],
            id="a name is taken",
        ),
        pytest.param([multikueue_check()], ["p-a", "p-b"], id="the multikueue check is left"),
        pytest.param([multikueue_check(config="other")], None, id="another multikueue check"),
        pytest.param([check_with({"kind": "Typo"})], ["p-a", "p-b"], id="parameters turned bad"),
        pytest.param([check_with({"kind": "Typo"}, "other")], None, id="another check is bad"),
        pytest.param([check(placement="q")], None, id="parameters changed"),
        pytest.param(
            [check(placement="q"), multikueue_check()], ["p-a", "p-b"], id="changed, but the config is used"
        ),
        pytest.param([], None, id="the last check is gone"),
    ],
)
def test_a_refusal_keeps_the_objects_unless_there_is_no_cluster_or_no_check(
    objects: list[Any], clusters: list[str] | None
) -> None:
    assert listed(*objects, our_objects("a", "b"), ages={"a": 5.0, "b": 5.0}) == clusters


def test_vanished_credentials_of_all_take_the_config_away_in_the_end() -> None:
    objects = (check(), placement(), decision("a"), our_objects("a"))
    assert (listed(*objects), listed(*objects, ages={"a": 2.0})) == (["p-a"], None)


def test_owners_follow_the_checks_though_the_objects_stay() -> None:
    owners = {"AdmissionCheck/mk": "mk"}
    answer = planned(multikueue_check(), our_objects("a"))
    assert answer == Plan(config=WantedConfig("p", ("p-a",), owners), clusters=(wanted("a", None, owners),))


def test_all_checks_of_a_placement_share_its_objects_and_its_verdict() -> None:
    answer = planned(check("one"), check("two"), multikueue_check(), placement(), decision("a"), secrets("a"))
    owners = {f"AdmissionCheck/{name}": name for name in ("one", "two", "mk")}
    assert unmarked(answer) == Plan(
        selected=("a",),
        verdicts={"one": yes("Active"), "two": yes("Active")},
        config=WantedConfig("p", ("p-a",), owners),
        clusters=(wanted("a", owners=owners),),
    )


def test_a_foreign_config_is_left_alone_whoever_uses_it() -> None:
    assert planned(multikueue_check(), foreign_config()) == Plan()


@pytest.mark.parametrize("stripped", [{}, {"app": "x"}], ids=["all labels", "our labels"])
def test_an_object_without_labels_is_known_by_its_name_while_nothing_is_decided(stripped: Any) -> None:
    config, a, b = our_objects("a", "b")
    a["metadata"]["labels"] = stripped
    answer = planned(check(), placement(), undecided(), config, a, b, ages={"a": 5.0, "b": 5.0})
    assert answer.clusters == (wanted("a", None), wanted("b", None))


# -- one MultiKueueCluster for all

TWO = [check("one", "p"), placement("p"), check("two", "q"), placement("q")]


def shared(cluster: str) -> Any:
    return our_cluster(cluster, None, owners=())


def removed(*objects: Any, of: str, hub: HubFacts = SHARED) -> list[str]:
    return [
        act.name for phase in phases(*objects, of=of, hub=hub) for act in phase if isinstance(act, Delete)
    ]


def test_a_shared_cluster_belongs_to_no_check() -> None:
    objects = [*TWO, decision("a", "b"), decision("b", of="q"), *secrets("a", "b")]
    assert planned(*objects, hub=SHARED).clusters == (
        WantedCluster("a", "a", CredentialSource("Secret", "multikueue-a"), {}),
        WantedCluster("b", "b", CredentialSource("Secret", "multikueue-b"), {}),
    )


def test_owners_of_a_former_version_are_taken_off_a_shared_cluster() -> None:
    objects = [*TWO, decision("a"), *secrets("a"), our_cluster("a", None, owners=["one", "two"])]
    (body,) = [
        act.body
        for phase in phases(*objects, hub=SHARED)
        for act in phase
        if isinstance(act, Apply) and act.kind == MULTIKUEUE_CLUSTER
    ]
    assert "ownerReferences" not in body["metadata"]


def test_a_change_of_a_placement_writes_no_shared_cluster_that_is_right() -> None:
    objects = [*TWO, decision("a", "b"), *secrets("a", "b"), shared("a"), shared("b")]
    objects += [our_config("a", owners=["one"]), our_config("b", of="q", owners=["two"])]
    kinds = [act.kind for phase in phases(*objects, hub=SHARED) for act in phase]
    assert kinds == [MULTIKUEUE_CONFIG, ADMISSION_CHECK]


@pytest.mark.parametrize(
    ("objects", "gone"),
    [
        pytest.param([decision(), decision("a", of="q"), *secrets("a")], [], id="another selects it"),
        pytest.param(
            [decision(), undecided(of="q"), our_config("a", of="q", owners=["two"]), *secrets("a")],
            [],
            id="another lists it, though undecided",
        ),
        pytest.param([decision(), our_config("a", owners=["one"])], [], id="it is listed until now"),
        pytest.param([decision(), decision(of="q")], ["a"], id="nobody"),
    ],
)
def test_a_shared_cluster_goes_when_the_last_lets_go(objects: list[Any], gone: list[str]) -> None:
    objects = [*TWO, *objects, shared("a")]
    assert removed(*objects, of="a") == gone
    assert "a" not in removed(*objects, of="p"), "the key of its own name removes it"


@pytest.mark.parametrize(("listed", "gone"), [("p-a", []), ("q-a", ["p-a"])], ids=["it", "another one"])
def test_a_placements_cluster_stays_while_another_config_lists_it(listed: str, gone: list[str]) -> None:
    objects = [*TWO, decision(), undecided(of="q"), our_cluster("a", owners=["one"])]
    assert removed(*objects, our_config(listed, of="q", owners=["two"]), of="p", hub=HubFacts()) == gone


def test_a_foreign_shared_cluster_is_in_the_way() -> None:
    objects = [*TWO, decision("a"), *secrets("a"), foreign_cluster("a")]
    assert verdict(*objects, check="one", hub=SHARED).reason == "NameTaken"


def test_our_shared_cluster_with_the_label_of_another_cluster_is_in_the_way() -> None:
    odd = shared("a") | {"spec": kubeconfig_spec("odd")}
    odd["metadata"]["labels"]["open-cluster-management.io/cluster-name"] = "z"
    objects = [*TWO, decision("a"), *secrets("a"), odd]
    assert verdict(*objects, check="one", hub=SHARED) == no(
        "NameTaken", "rename one of the Placements: MultiKueueCluster a belongs to cluster z"
    )


IN = "in namespace kueue-system: "


@pytest.mark.parametrize(
    ("reason", "fix", "quoted"),
    [
        ("NoManagedClusterSetBindings", f"bind a ManagedClusterSet {IN}", "NoManagedClusterSetBindings"),
        ("NoIntersection", f"bind a ManagedClusterSet of spec.clusterSets {IN}", "NoIntersection"),
        (
            "AllManagedClusterSetsEmpty",
            f"add clusters to the ManagedClusterSets bound {IN}",
            "AllManagedClusterSetsEmpty",
        ),
        ("NoManagedClusterMatched", f"{TOLERATE}: ", "NoManagedClusterMatched"),
        ("Another", "", "Another: m"),
    ],
)
def test_a_placement_that_selects_nothing_has_its_fix_by_ocms_reason(
    reason: str, fix: str, quoted: str
) -> None:
    """OCM's message is left out where the fix says the same."""
    says = ("PlacementSatisfied", "False", reason, "m")
    message = planned(check(), placement(says=says), decision()).verdicts["check"].message
    assert message == f"{fix}Placement kueue-system/p selects no cluster ({quoted})"


def test_of_a_spec_that_ocm_cannot_follow_it_also_says_that_no_cluster_matches() -> None:
    names = ("type", "status", "reason", "message")
    wrong = ("PlacementMisconfigured", "True", "Misconfigured", "Predicate:bad operator")
    conditions = [dict(zip(names, one, strict=True)) for one in (wrong, NO_MATCH)]
    raw = placement(status={"conditions": conditions, "numberOfSelectedClusters": 0})
    assert planned(check(), raw, decision()).verdicts["check"].message == (
        "correct the spec of the Placement: Placement kueue-system/p selects no cluster "
        "(Misconfigured: Predicate:bad operator; NoManagedClusterMatched)"
    )


@pytest.mark.parametrize(
    ("spec", "fix"),
    [
        pytest.param({}, TOLERATE, id="taints alone"),
        pytest.param(
            {"predicates": [{}]}, f"label clusters as spec.predicates ask, or {TOLERATE}", id="predicates"
        ),
        pytest.param(
            {"predicates": [{}], "numberOfClusters": 0},
            "set spec.numberOfClusters to 1 or more, or remove it",
            id="none is wanted",
        ),
    ],
)
def test_ocm_gives_one_reason_for_all_that_leaves_out_clusters_of_the_sets(spec: Any, fix: str) -> None:
    message = planned(check(), placement(says=NO_MATCH, spec=spec), decision()).verdicts["check"].message
    assert message == f"{fix}: Placement kueue-system/p selects no cluster (NoManagedClusterMatched)"
