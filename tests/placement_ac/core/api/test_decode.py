"""Decoding of objects: an invalid shape is reported in `problem` and never raised."""

from datetime import UTC, datetime
from typing import Any

import pytest

from placement_ac.core.api import decode, objects
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    ANNOTATION_ADOPT,
    ANNOTATION_MAINTENANCE,
    LABEL_CLUSTER_SET,
    LABEL_PLACEMENT,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
)
from placement_ac.core.api.label_selector import Requirement
from placement_ac.core.api.objects import AddOnPrioritizer, AppliedFields, SecretRef
from placement_ac.core.api.schemas import Condition, DecisionGroup, Parameters
from placement_ac.core.decisions import ocm
from placement_ac.core.inputs.kinds import WATCHED_KINDS
from tests.support.builders import (
    an,
    check,
    check_with,
    condition,
    foreign_cluster,
    foreign_config,
    labels_of,
    multikueue_check,
    our_cluster,
    our_config,
    placement,
    profile,
    references,
    scores,
    secret,
)

NOT_A_LIST = "status.{}: Input should be a valid list"


def test_metadata_may_be_sparse() -> None:
    assert decode.meta_of({"metadata": {"name": "x"}}) == objects.Meta("x", "", "", "", 0, {}, {}, False)
    assert decode.meta_of({}).id == ("", "")


def test_metadata_is_read() -> None:
    labels, annotations = {LABEL_PLACEMENT: "p"}, {ANNOTATION_ADOPT: "true"}
    other = {"a": "b"}
    raw = an(
        ADMISSION_CHECK, "x", labels=labels | other, annotations=annotations | other, deletionTimestamp="now"
    )
    assert decode.meta_of(raw) == objects.Meta(
        "x", "", "AdmissionCheck/x", "1", 1, labels, annotations, True
    ), "of labels and annotations only those that somebody reads are kept"


# -- AdmissionCheck


def test_null_in_labels_and_annotations_is_empty_text() -> None:
    template = {"metadata": {"labels": {"team": None}}, "spec": {"nodeSelector": {"gpu": None}}}
    job = decode.workload_with_job({"spec": {"podSets": [{"template": template}]}}).job
    raw = {"metadata": {"labels": {LABEL_CLUSTER_SET: None}, "annotations": {ANNOTATION_MAINTENANCE: None}}}
    cluster = decode.managed_cluster(raw)
    assert (job.label_keys, job.nodes) == (("team",), (((Requirement("gpu", "In", ("",)),),),))
    assert (cluster.labels, cluster.cluster_set, cluster.maintenance) == ({LABEL_CLUSTER_SET: ""}, "", "")


def test_a_check_of_ours_names_a_placement() -> None:
    seen = decode.check(check("one", "p", active=condition()))
    assert (seen.ours, seen.multikueue, seen.placement, seen.config, seen.problem) == (
        True,
        False,
        "p",
        "",
        "",
    )
    assert seen.parameters == Parameters(
        api_group="cluster.open-cluster-management.io", kind="Placement", name="p"
    )
    assert seen.active == Condition(
        type="Active",
        status="True",
        reason="Active",
        message=condition()["message"],
        observed_generation=1,
        last_transition_time="2026-07-01T00:00:00Z",
    )


def test_a_check_of_kueue_names_a_config() -> None:
    seen = decode.check(multikueue_check("mk", "p"))
    assert (seen.ours, seen.multikueue, seen.placement, seen.config) == (False, True, "", "p")


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        pytest.param(None, "", id="absent"),
        pytest.param(
            {"apiGroup": None, "name": 7},
            "spec.parameters.apiGroup: Input should be a valid string",
            id="nulls",
        ),
        pytest.param(
            "p",
            "spec.parameters: Input should be a valid dictionary or instance of Parameters",
            id="a string",
        ),
    ],
)
def test_unusable_parameters_do_not_hide_whose_check_it_is(parameters: Any, problem: str) -> None:
    seen = decode.check(check_with(parameters))
    assert (seen.ours, seen.placement, seen.problem) == (True, "", problem)


@pytest.mark.parametrize("spec", ["garbage", None, [], {}])
def test_a_check_without_a_readable_spec_is_nobodys(spec: Any) -> None:
    assert decode.check(an(ADMISSION_CHECK, "x", spec=spec)).ours is False


@pytest.mark.parametrize(
    ("status", "active"),
    [
        pytest.param("bad", False, id="no object"),
        pytest.param({"conditions": {"type": "Active"}}, False, id="no list"),
        pytest.param({"conditions": [{"type": "Active"}]}, False, id="half a condition"),
        pytest.param({"conditions": [{"type": "Other", "status": "True"}]}, False, id="another"),
        pytest.param(
            {"conditions": [7, {"type": "Bad"}, condition()]}, True, id="ours beside malformed ones"
        ),
    ],
)
def test_our_condition_is_found_in_any_status(status: Any, active: bool) -> None:
    assert bool(decode.check(check(status=status)).active) is active


# -- OCM


def test_a_placement_is_read() -> None:
    raw = placement(
        "p",
        3,
        groups=[(["p-decision-1"], 3)],
        says=("PlacementSatisfied", "True", "AllDecisionsScheduled", ""),
        weights={"usage/gpu": 3, "usage/idle": -1, "usage/off": 0},
    )
    raw["spec"]["prioritizerPolicy"]["configurations"].append({"scoreCoordinate": {"type": "BuiltIn"}})
    seen = decode.placement(raw)
    assert (seen.selected, seen.prioritizers, seen.groups, seen.problem) == (
        3,
        (AddOnPrioritizer("usage", "gpu", 3), AddOnPrioritizer("usage", "idle", -1)),
        (DecisionGroup(decisions=("p-decision-1",), cluster_count=3),),
        "",
    )
    assert [c.reason for c in seen.conditions] == ["AllDecisionsScheduled"]


@pytest.mark.parametrize(
    ("rest", "selected", "problem"),
    [
        pytest.param({}, None, "", id="no status"),
        pytest.param({"status": {"conditions": []}}, 0, "", id="no number"),
        pytest.param(
            {"status": {"numberOfSelectedClusters": "x"}},
            None,
            "status.numberOfSelectedClusters: Input should be a valid integer, "
            "unable to parse string as an integer",
            id="a malformed status",
        ),
        pytest.param(
            {"spec": {"prioritizerPolicy": {"configurations": {}}}},
            None,
            "spec.prioritizerPolicy.configurations: Input should be a valid list",
            id="a malformed spec",
        ),
        pytest.param(
            {"status": {"conditions": [{"status": "True"}]}},
            None,
            "status.conditions.0.type: Field required",
            id="a condition without type",
        ),
    ],
)
def test_the_status_of_a_placement_is_read(rest: Any, selected: int | None, problem: str) -> None:
    seen = decode.placement(placement(**rest))
    assert (seen.selected, seen.problem) == (selected, problem)


@pytest.mark.parametrize(
    ("until", "problem"),
    [
        pytest.param("2026-08-01T12:00:00Z", "", id="a time"),
        pytest.param(
            "2026-08-01T12:00:00", "status.validUntil: Input should have timezone info", id="no zone"
        ),
    ],
)
def test_scores_are_read(until: str, problem: str) -> None:
    seen = decode.scores(scores("a", until=until, gpu=5, cpu=-3))
    good = ({"gpu": 5, "cpu": -3}, datetime(2026, 8, 1, 12, tzinfo=UTC))
    assert (seen.values, seen.valid_until) == (({}, None) if problem else good)
    assert seen.problem == problem


# -- credentials


def test_a_profile_is_read() -> None:
    seen = decode.cluster_profile(
        profile(
            "a",
            secret=("ns", "s"),
            providers=["ocm", ""],
            server="https://w",
            deprecated_providers=["old", "ocm"],
        )
    )
    assert (seen.cluster, seen.secrets, seen.providers, seen.problem) == (
        "a",
        (SecretRef("Secret", "ns", "s"),),
        {"ocm": {"server": "https://w"}, "old": {"server": ""}},
        "",
    )


def test_a_profile_without_labels_is_of_the_cluster_of_its_name() -> None:
    assert decode.cluster_profile(profile("a", labels={})).cluster == "a"


def test_only_the_secret_for_kueue_counts_and_is_beside_the_profile_by_default() -> None:
    other = {"consumer": "argo", "accessRef": {"kind": "Secret", "name": "x"}}
    mine = {"consumer": "kueue-admin", "accessRef": {"kind": "Secret", "name": "y"}}
    seen = decode.cluster_profile(profile("a", "ns", status={"credentials": [other, mine]}))
    assert seen.secrets == (SecretRef("Secret", "ns", "y"),)


def test_a_malformed_profile_is_reported() -> None:
    seen = decode.cluster_profile(profile("a", status={"accessProviders": "x"}))
    assert (seen.secrets, seen.providers, seen.problem) == ((), {}, NOT_A_LIST.format("accessProviders"))


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        pytest.param(secret("s"), "", id="good"),
        pytest.param(secret("s", None), "add key kubeconfig: it is missing", id="no key"),
        pytest.param(secret("s", data=None), "add key kubeconfig: it is missing", id="no data"),
        pytest.param(secret("s", b""), "put a kubeconfig under key kubeconfig: it is empty", id="empty"),
        pytest.param(secret("s", b"\xff"), "put a kubeconfig: this is not YAML", id="not UTF-8"),
        pytest.param(
            secret("s", data={"kubeconfig": "%"}),
            "encode key kubeconfig in base64: it is not base64",
            id="no base64",
        ),
        pytest.param(
            secret("s", data={"kubeconfig": "é"}),
            "encode key kubeconfig in base64: it is not base64",
            id="no ASCII",
        ),
        pytest.param(
            secret("s", data={"kubeconfig": 7}),
            "encode key kubeconfig in base64: it is not base64",
            id="no string",
        ),
    ],
)
def test_why_kueue_could_not_use_a_secret(raw: Any, problem: str) -> None:
    assert decode.secret(raw).problem == problem


def test_the_content_of_a_secret_is_not_kept() -> None:
    assert "token" not in repr(decode.secret(secret("s", b"users: [{token: x}]")))


# -- our objects


def test_our_applied_fields_are_recognized() -> None:
    seen = decode.kueue_object(our_cluster("a", owners=["one"]))
    assert (seen.ours, seen.placement, seen.cluster, seen.owners) == (
        True,
        "p",
        "a",
        {"AdmissionCheck/one": "one"},
    )
    assert seen.applied_fields == AppliedFields(
        True, frozenset(labels_of("p", "a")), frozenset({"AdmissionCheck/one"}), clusters=True
    )


def test_equal_owners_and_applied_fields_are_kept_once() -> None:
    """There may be 10,000 of them."""
    one, other = (decode.kueue_object(our_cluster(name, owners=["one"])) for name in "ab")
    assert one.owners is other.owners
    assert one.applied_fields is other.applied_fields
    strangers = [decode.kueue_object(foreign_cluster(name)) for name in "ab"]
    assert strangers[0].meta.annotations is strangers[1].meta.annotations


@pytest.mark.parametrize(
    ("raw", "ours"),
    [
        pytest.param(foreign_cluster("x"), False, id="foreign"),
        pytest.param(foreign_cluster("x", labels=labels_of("p")), True, id="by label"),
        pytest.param(our_cluster("a", labels={}), True, id="by managed fields"),
        pytest.param(
            foreign_cluster("x", labels={"app.kubernetes.io/managed-by": "helm"}), False, id="helm's"
        ),
        pytest.param(
            foreign_cluster("x", managedFields=[{"manager": "placement-ac", "operation": "Update"}]),
            False,
            id="updated, not applied",
        ),
    ],
)
def test_which_objects_are_ours(raw: Any, ours: bool) -> None:
    assert decode.kueue_object(raw).ours is ours


def test_only_checks_count_as_owners() -> None:
    other = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x", "uid": "1"}
    raw = our_config(ownerReferences=[other, *references("one")])
    assert decode.kueue_object(raw).owners == {"AdmissionCheck/one": "one"}


@pytest.mark.parametrize(
    ("spec", "listed"),
    [
        pytest.param({"clusters": ["a", "b"]}, ("a", "b"), id="a list"),
        pytest.param({"clusters": "a"}, (), id="no list"),
        pytest.param("garbage", (), id="no object"),
    ],
)
def test_the_clusters_of_a_config_are_read(spec: Any, listed: tuple[str, ...]) -> None:
    raw = foreign_config() | {"spec": spec}
    assert decode.kueue_object(raw).listed == listed


PARSERS = {
    "AdmissionCheck": decode.check,
    "Placement": decode.placement,
    "PlacementDecision": ocm.read,
    "ClusterProfile": decode.cluster_profile,
    "Secret": decode.secret,
    "AddOnPlacementScore": decode.scores,
    MULTIKUEUE_CONFIG.kind: decode.kueue_object,
    MULTIKUEUE_CLUSTER.kind: decode.kueue_object,
    "Workload": decode.workload,
    "ManagedCluster": decode.managed_cluster,
}


@pytest.mark.parametrize("garbage", ["text", 7, ["list"], {"conditions": 7, "decisions": 7, "scores": "x"}])
@pytest.mark.parametrize("kind", WATCHED_KINDS, ids=lambda kind: kind.kind)
def test_no_shape_raises(kind: Any, garbage: Any) -> None:
    raw = an(kind, "x", spec=garbage, status=garbage, data=garbage)
    assert PARSERS[kind.kind](raw).meta.name == "x"


# -- how much is kept


def test_endless_reports_of_an_agent_are_not_kept() -> None:
    many = [{"name": f"name-{number}", "value": number} for number in range(2_000)]
    few = scores("a", one=1)
    too_many = few | {"status": {"scores": many}}
    problem = "status.scores: report fewer: at most 200,000 bytes are read"
    assert (decode.scores(too_many).values, decode.scores(too_many).problem) == ({}, problem)
    assert decode.scores(few).problem == ""

    providers = [{"name": f"p{number}", "cluster": {"server": "x" * 500}} for number in range(1_000)]
    raw = profile("a") | {"status": {"accessProviders": providers}}
    found = decode.cluster_profile(raw)
    problem = "status: report fewer credentials and accessProviders: at most 200,000 bytes are read"
    assert (found.providers, found.secrets, found.problem) == ({}, (), problem)


def test_of_claims_without_end_the_first_are_kept() -> None:
    claims = [{"name": f"c{number}", "value": "x" * 1_000} for number in range(1_000)]
    labels = decode.dispatch_labels(
        {"metadata": {"labels": {"own": "x"}}, "status": {"clusterClaims": claims}}
    )
    assert list(labels)[:3] == ["own", "claim:c0", "claim:c1"]
    assert sum(len(key) + len(value) for key, value in labels.items()) < 200_000 < 1_000 * 1_000
