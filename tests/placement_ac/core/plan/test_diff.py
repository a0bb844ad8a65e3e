"""The writes that make the difference, their order, and that there are none when nothing differs."""

import copy
from typing import Any

import pytest

from placement_ac.core.api.constants import ADMISSION_CHECK, MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG
from placement_ac.core.api.managed_fields import spec_writer
from placement_ac.core.inputs.state import HubFacts, Verdict
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.core.plan.diff import ABSENT, Apply, Delete, SetCondition, conditions, diff, source_spec
from placement_ac.core.plan.plan import plan
from tests.support.builders import (
    GENERATED,
    Raw,
    check,
    condition,
    decision,
    inputs,
    kubeconfig_spec,
    labels_of,
    managed,
    multikueue_check,
    our_cluster,
    our_config,
    our_objects,
    phases,
    placement,
    references,
    secrets,
    undecided,
    workload,
    write_names,
)

CONFIG, CLUSTER = "MultiKueueConfig", "MultiKueueCluster"
DONE = check(active=condition())
"""A check whose condition is right."""


def the(objects: list[Raw], kind: str, name: str) -> Raw:
    return next(raw for raw in objects if (raw["kind"], raw["metadata"]["name"]) == (kind, name))


def at_rest(*clusters: str, weights: Any = None) -> list[Raw]:
    """A hub on which everything is as it should be."""
    return [DONE, placement(), decision(*clusters), *secrets(*clusters), *our_objects(*clusters)]


def body(kind: str, name: str, labels: dict[str, str], spec: Raw, owners: list[Raw] | None = None) -> Raw:
    metadata: Raw = {"name": name, "labels": labels}
    metadata["ownerReferences"] = references("check") if owners is None else owners
    return {"metadata": metadata, "spec": spec}


def test_everything_is_made_clusters_before_config_before_good_news() -> None:
    done = phases(check(), placement(), decision("b", "a"), secrets("a", "b"))
    config = body(CONFIG, "p", labels_of("p"), {"clusters": ["p-a", "p-b"]})
    config["metadata"]["resourceVersion"] = ABSENT
    assert done == (
        (
            Apply(
                MULTIKUEUE_CLUSTER,
                body(CLUSTER, "p-a", labels_of("p", "a"), kubeconfig_spec("multikueue-a")),
                None,
            ),
            Apply(
                MULTIKUEUE_CLUSTER,
                body(CLUSTER, "p-b", labels_of("p", "b"), kubeconfig_spec("multikueue-b")),
                None,
            ),
        ),
        (Apply(MULTIKUEUE_CONFIG, config, None),),
        (SetCondition("check", "1", condition(lastTransitionTime="2026-08-01T12:00:00Z")),),
    )


def test_a_second_look_finds_nothing_to_do() -> None:
    assert phases(*at_rest("a", "b")) == ()


def test_clusters_go_after_the_config_has_let_go_of_them() -> None:
    objects = [check(), placement(), decision("b", "c"), secrets("b", "c"), our_objects("a", "b")]
    assert write_names(phases(*objects)) == [
        ["Apply MultiKueueCluster p-c"],
        ["Apply MultiKueueConfig p"],
        ["Delete MultiKueueCluster p-a"],
        ["SetCondition AdmissionCheck check"],
    ]


def test_a_cluster_that_is_listed_already_is_repaired_after_the_list() -> None:
    objects = copy.deepcopy(
        [DONE, placement(), decision("a", "b", "c"), *secrets("a", "b", "c"), *our_objects("a", "b")]
    )
    del the(objects, CLUSTER, "p-a")["metadata"]["labels"]["open-cluster-management.io/cluster-name"]
    assert write_names(phases(*objects)) == [
        ["Apply MultiKueueCluster p-c"],
        ["Apply MultiKueueConfig p"],
        ["Apply MultiKueueCluster p-a"],
    ]


def test_a_cluster_that_is_listed_and_missing_is_created_before_the_list() -> None:
    objects = [DONE, placement(), decision("a", "b", "c"), *secrets("a", "b", "c"), *our_objects("a", "b")]
    objects.remove(the(objects, CLUSTER, "p-a"))
    assert write_names(phases(*objects)) == [
        ["Apply MultiKueueCluster p-a", "Apply MultiKueueCluster p-c"],
        ["Apply MultiKueueConfig p"],
    ]


def test_bad_news_comes_before_things_are_taken_away() -> None:
    assert write_names(phases(DONE, placement(), decision(), our_objects("a"))) == [
        ["SetCondition AdmissionCheck check"],
        ["Delete MultiKueueConfig p"],
        ["Delete MultiKueueCluster p-a"],
    ]


def test_an_inactive_check_gets_the_reason_when_the_writes_are_done() -> None:
    """So that a write that is refused again and again does not flip the reason to and fro."""
    down = check(active=condition("False", "ApplyFailed", "forbidden"))
    assert write_names(phases(down, placement(), decision(), our_objects("a"))) == [
        ["Delete MultiKueueConfig p"],
        ["Delete MultiKueueCluster p-a"],
        ["SetCondition AdmissionCheck check"],
    ]


def test_a_delete_names_that_very_object() -> None:
    config, cluster = our_objects("a")
    config["metadata"]["uid"], cluster["metadata"]["uid"] = "17", "18"
    assert phases(placement(), config, cluster) == (
        (Delete(MULTIKUEUE_CONFIG, "p", "17", version="1"),),
        (Delete(MULTIKUEUE_CLUSTER, "p-a", "18"),),
    )


def set_in(kind: str, name: str, *path: str, to: Any) -> Any:
    """An edit: set a field of an object."""

    def edit(objects: list[Raw]) -> None:
        node = the(objects, kind, name)
        for step in path[:-1]:
            node = node[step]
        node[path[-1]] = to

    return edit


def reordered_by_hand(objects: list[Any]) -> None:
    """Whoever sets the list owns it from then on: our apply owns it no more."""
    set_in(CONFIG, "p", "spec", "clusters", to=["p-b", "p-a"])(objects)
    config = next(obj for obj in objects if obj["kind"] == CONFIG)
    for entry in config["metadata"]["managedFields"]:
        entry["fieldsV1"].pop("f:spec", None)


MK_REFERENCES = references("check", "mk")


@pytest.mark.parametrize(
    ("edit", "writes"),
    [
        pytest.param(
            set_in(CONFIG, "p", "metadata", "labels", to={}), ["Apply MultiKueueConfig p"], id="labels"
        ),
        pytest.param(
            set_in(CONFIG, "p", "metadata", "labels", to=labels_of("p") | {"x": "y"}), [], id="extra label"
        ),
        pytest.param(
            set_in(
                CONFIG,
                "p",
                "metadata",
                "managedFields",
                to=managed([*labels_of("p"), "old"], ["AdmissionCheck/check"]),
            ),
            ["Apply MultiKueueConfig p"],
            id="a label that we put there once",
        ),
        pytest.param(
            set_in(CONFIG, "p", "metadata", "ownerReferences", to=[]),
            ["Apply MultiKueueConfig p"],
            id="no owner",
        ),
        pytest.param(
            set_in(CONFIG, "p", "metadata", "ownerReferences", to=MK_REFERENCES), [], id="a foreign owner"
        ),
        pytest.param(
            set_in(
                CONFIG,
                "p",
                "metadata",
                "managedFields",
                to=managed(labels_of("p"), ["AdmissionCheck/check", "AdmissionCheck/mk"]),
            ),
            ["Apply MultiKueueConfig p"],
            id="an owner that we put there once",
        ),
        pytest.param(reordered_by_hand, ["Apply MultiKueueConfig p"], id="order"),
        pytest.param(
            set_in(CONFIG, "p", "spec", "clusters", to="garbage"), ["Apply MultiKueueConfig p"], id="no list"
        ),
        pytest.param(set_in(CONFIG, "p", "spec", to="garbage"), ["Apply MultiKueueConfig p"], id="no spec"),
        pytest.param(
            set_in(CLUSTER, "p-a", "spec", to=kubeconfig_spec("elsewhere")),
            ["Apply MultiKueueCluster p-a"],
            id="another Secret",
        ),
        pytest.param(
            set_in(CLUSTER, "p-a", "spec", to=kubeconfig_spec("multikueue-a") | {"extra": 1}),
            [],
            id="a cluster's field that we never write",
        ),
        pytest.param(
            set_in(CONFIG, "p", "spec", to={"clusters": ["p-a", "p-b"], "quotaManagement": "Automated"}),
            [],
            id="the config's field that we never write",
        ),
        pytest.param(
            set_in(CLUSTER, "p-a", "metadata", "labels", to={}),
            ["Apply MultiKueueCluster p-a"],
            id="a cluster's labels",
        ),
        pytest.param(
            set_in(CLUSTER, "p-a", "metadata", "annotations", to={"note": "x"}), [], id="annotation"
        ),
        pytest.param(
            set_in(CLUSTER, "p-a", "metadata", "deletionTimestamp", to="2026-08-01T00:00:00Z"),
            [],
            id="under deletion: it cannot be kept",
        ),
        pytest.param(
            set_in("AdmissionCheck", "check", "status", to={}),
            ["SetCondition AdmissionCheck check"],
            id="no condition",
        ),
        pytest.param(
            set_in("AdmissionCheck", "check", "status", to={"conditions": ["bad", condition()]}),
            [],
            id="a malformed condition beside ours",
        ),
        pytest.param(
            set_in("AdmissionCheck", "check", "status", to="bad"),
            ["SetCondition AdmissionCheck check"],
            id="a malformed status",
        ),
        pytest.param(
            set_in("AdmissionCheck", "check", "metadata", "generation", to=2),
            ["SetCondition AdmissionCheck check"],
            id="a new generation",
        ),
    ],
)
def test_our_fields_are_put_back_and_no_others(edit: Any, writes: list[str]) -> None:
    objects = copy.deepcopy(at_rest("a", "b"))
    edit(objects)
    assert [write for phase in write_names(phases(*objects)) for write in phase] == writes


def test_a_repair_is_applied_to_the_uid_that_was_seen() -> None:
    objects = copy.deepcopy(at_rest("a"))
    the(objects, CONFIG, "p")["spec"] = {"clusters": ["x"]}
    seen = inputs(*objects)
    wanted = body(CONFIG, "p", labels_of("p"), {"clusters": ["p-a"]})
    wanted["metadata"] |= {"uid": "MultiKueueConfig/p", "resourceVersion": "1"}
    assert diff(seen, plan(seen)) == ((Apply(MULTIKUEUE_CONFIG, wanted, seen.objects.config),),)


@pytest.mark.parametrize(
    "doomed", ["config", "cluster"], ids=["a config under deletion", "a cluster under deletion"]
)
def test_an_object_under_deletion_is_not_deleted_again(doomed: str) -> None:
    objects = dict(zip(("config", "cluster"), our_objects("a"), strict=True))
    objects[doomed]["metadata"]["deletionTimestamp"] = "2026-08-01T00:00:00Z"
    (phase,) = phases(placement(), *objects.values())
    assert [action.name for action in phase] == ["p-a" if doomed == "config" else "p"]


def test_a_config_whose_labels_were_taken_off_is_still_deleted() -> None:
    config, cluster = our_objects("a")
    config["metadata"]["labels"] = {}
    assert write_names(phases(placement(), config, cluster)) == [
        ["Delete MultiKueueConfig p"],
        ["Delete MultiKueueCluster p-a"],
    ]


def test_a_cluster_without_labels_is_deleted_only_when_nobody_lists_it() -> None:
    config, cluster = our_objects("a", of="q", owners=["two"])
    cluster["metadata"]["labels"] = {}
    others = [check("two", "q"), placement("q"), undecided("q")]
    assert write_names(phases(placement(), *others, config, cluster, of="q-a")) == []
    assert write_names(phases(placement(), *others, cluster, of="q-a")) == [["Delete MultiKueueCluster q-a"]]


def test_a_listed_cluster_is_not_deleted_when_the_form_of_names_has_changed() -> None:
    """The config lists what was shared; while nothing is decided, the list stays."""
    objects = [check(), placement(), undecided(), our_config("a"), our_cluster("a", None)]
    assert write_names(phases(*objects, ages={"a": 9.0})) == [
        ["SetCondition AdmissionCheck check"],
        ["Apply MultiKueueCluster a"],
    ]


@pytest.mark.parametrize(
    ("before", "now", "moved"),
    [
        pytest.param(None, condition(), True, id="new"),
        pytest.param(condition("False", "NoDecision", "…"), condition(), True, id="turned"),
        pytest.param(condition(message="other words"), condition(), False, id="other words"),
        pytest.param(condition(observedGeneration=7), condition(), False, id="another generation"),
        pytest.param(condition(lastTransitionTime="", message=""), condition(), True, id="no time"),
    ],
)
def test_the_transition_time_moves_only_with_the_status(before: Any, now: Raw, moved: bool) -> None:
    objects = [*at_rest("a")[1:], check(active=before)]
    ((action,),) = phases(*objects)
    time = "2026-08-01T12:00:00Z" if moved else "2026-07-01T00:00:00Z"
    assert action == SetCondition("check", "1", now | {"lastTransitionTime": time})


def test_conditions_always_carry_the_observed_generation() -> None:
    ((action,),) = phases(*at_rest("a")[1:], check(generation=5))
    assert isinstance(action, SetCondition)
    assert action.condition["observedGeneration"] == 5


def test_conditions_can_be_written_alone() -> None:
    seen = inputs(check(), placement())
    (action,) = conditions(seen, {"check": Verdict("False", "ApplyFailed", "no")})
    assert (action.kind, action.name) == (ADMISSION_CHECK, "check")
    assert conditions(seen, {}) == ()


def test_owners_that_left_are_taken_off() -> None:
    objects = [multikueue_check(), *our_objects("a", owners=["check", "mk"])]
    (_, (action,)) = phases(*objects)
    assert isinstance(action, Apply)
    assert action.body["metadata"]["ownerReferences"] == references("mk")


def test_owners_are_written_in_the_version_that_the_hub_serves() -> None:
    facts = HubFacts(check_version="kueue.x-k8s.io/v1beta1", cluster_version="v1beta1")
    ((action,), *_) = phases(check(), placement(), decision("a"), secrets("a"), hub=facts)
    assert isinstance(action, Apply)
    assert action.body == body(
        CLUSTER,
        "p-a",
        labels_of("p", "a"),
        {"kubeConfig": {"location": "multikueue-a", "locationType": "Secret"}},
        references("check", version="v1beta1"),
    )


@pytest.mark.parametrize(
    ("source", "version", "spec"),
    [
        pytest.param(CredentialSource("Secret", "s"), "v1beta2", kubeconfig_spec("s"), id="v1beta2"),
        pytest.param(
            CredentialSource("Secret", "s"),
            "v1beta1",
            {"kubeConfig": {"location": "s", "locationType": "Secret"}},
            id="v1beta1",
        ),
        pytest.param(
            CredentialSource("ClusterProfile", "c"),
            "v1beta2",
            {"clusterSource": {"clusterProfileRef": {"name": "c"}}},
            id="a ClusterProfile",
        ),
    ],
)
def test_each_version_has_its_own_form(source: CredentialSource, version: str, spec: Raw) -> None:
    assert source_spec(source, HubFacts(cluster_version=version)) == spec
    assert by_hand(spec) == {"kubectl-edit"}


def test_whoever_edits_the_list_is_found() -> None:
    _, (config,), _ = phases(check(), placement(), decision("a"), secrets("a"))
    assert isinstance(config, Apply)
    assert by_hand(config.body["spec"]) == {"kubectl-edit"}


def by_hand(spec: Raw) -> set[str]:
    """Who has written a field of a `spec` that we write, when somebody has edited each of them."""
    return {
        spec_writer({"metadata": {"managedFields": [edit(path)]}}, "placement-ac") for path in leaves(spec)
    }


def leaves(spec: Any, *path: str) -> list[tuple[str, ...]]:
    if not isinstance(spec, dict):
        return [path]
    return [leaf for key, below in spec.items() for leaf in leaves(below, *path, key)]


def edit(path: tuple[str, ...]) -> Raw:
    fields: Raw = {}
    for key in reversed(path):
        fields = {f"f:{key}": fields}
    return {"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {"f:spec": fields}}


def test_the_message_of_a_condition_is_the_verdicts() -> None:
    ((action,),) = phases(*at_rest("a")[1:], check())
    assert isinstance(action, SetCondition)
    assert action.condition["message"] == GENERATED


def test_workloads_come_last() -> None:
    """A check that becomes Ready must find the final list."""
    objects = [
        *(check(), multikueue_check(), placement(), decision("a", "b"), *secrets("a", "b")),
        *(*our_objects("a", owners=["check", "mk"]), workload("job")),
    ]
    kinds = [phase[0].split()[0] for phase in write_names(phases(*objects))]
    names = [write for phase in write_names(phases(*objects)) for write in phase]
    assert kinds[-1] == "SetCheckStates"
    assert names.index("Apply MultiKueueConfig p") < names.index("SetCheckStates Workload job")
