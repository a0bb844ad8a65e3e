"""The controller on the hub: from an AdmissionCheck to a MultiKueueConfig, and the conditions on the way."""

import pytest

from tests.support.driver import CORE, NS, OCM, PARAMETERS, SCORES, Controllers, Driver, eventually

GENERATED = "MultiKueueConfig and MultiKueueCluster generated"


def test_a_check_gets_its_config_its_clusters_and_its_condition(
    admin: Driver, controllers: Controllers
) -> None:
    check = admin.check("p")
    admin.select("p", "b", "a")
    controllers.start()
    eventually(lambda: admin.reason("p"), "Active")
    owners = [
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "AdmissionCheck",
            "name": "p",
            "uid": check["metadata"]["uid"],
        }
    ]
    config = admin.get(admin.kueue("multikueueconfigs", "p"))
    cluster = admin.get(admin.kueue("multikueueclusters", "p-a"))
    assert config is not None
    assert cluster is not None
    condition = admin.active("p")
    assert condition.pop("lastTransitionTime")
    assert condition == {
        "type": "Active",
        "status": "True",
        "reason": "Active",
        "message": GENERATED,
        "observedGeneration": 1,
    }
    assert (config["spec"], config["metadata"]["labels"], config["metadata"]["ownerReferences"]) == (
        {"clusters": ["p-a", "p-b"]},
        {"app.kubernetes.io/managed-by": "placement-ac", "cluster.open-cluster-management.io/placement": "p"},
        owners,
    )
    assert (cluster["spec"], cluster["metadata"]["labels"], cluster["metadata"]["ownerReferences"]) == (
        {"clusterSource": {"kubeConfig": {"location": "multikueue-a", "locationType": "Secret"}}},
        {
            "app.kubernetes.io/managed-by": "placement-ac",
            "cluster.open-cluster-management.io/placement": "p",
            "open-cluster-management.io/cluster-name": "a",
        },
        owners,
    )
    assert {entry["manager"] for entry in config["metadata"]["managedFields"]} == {"placement-ac"}


def test_the_config_follows_the_decision(admin: Driver, controllers: Controllers) -> None:
    admin.check("p")
    admin.select("p", "a", "b")
    admin.secrets_for("c")
    controllers.start()
    eventually(lambda: admin.listed("p"), ["p-a", "p-b"])
    admin.decide("p", "b", "c")
    eventually(lambda: admin.listed("p"), ["p-b", "p-c"])
    eventually(admin.clusters, ["p-b", "p-c"])
    admin.decide("p", ("c", 90), ("b", 10))
    eventually(lambda: admin.listed("p"), ["p-c", "p-b"])


def test_addon_scores_make_the_order_when_the_decision_has_none(
    admin: Driver, controllers: Controllers
) -> None:
    admin.check("p")
    admin.secrets_for("a", "b")
    coordinate = {"type": "AddOn", "addOn": {"resourceName": "usage", "scoreName": "gpu"}}
    policy = {"mode": "Exact", "configurations": [{"scoreCoordinate": coordinate, "weight": 1}]}
    admin.placement("p", prioritizerPolicy=policy)
    admin.decide("p", "a", "b")
    for name, value in (("a", -5), ("b", 60)):
        admin.namespace(name)
        body = {
            "apiVersion": "cluster.open-cluster-management.io/v1alpha1",
            "kind": "AddOnPlacementScore",
            "metadata": {"name": "usage"},
        }
        admin.ask("POST", SCORES.format(name), body)
        status = {"status": {"scores": [{"name": "gpu", "value": value}]}}
        admin.ask("PATCH", f"{SCORES.format(name)}/usage/status", status, "merge")
    controllers.start()
    eventually(lambda: admin.listed("p"), ["p-b", "p-a"])
    status = {"status": {"scores": [{"name": "gpu", "value": 99}]}}
    admin.ask("PATCH", f"{SCORES.format('a')}/usage/status", status, "merge")
    eventually(lambda: admin.listed("p"), ["p-a", "p-b"])


def test_several_decisions_and_groups_make_one_config(admin: Driver, controllers: Controllers) -> None:
    admin.check("p")
    admin.secrets_for("a", "b", "c")
    admin.placement("p")
    admin.decide("p", "b", "a", index=10, group=1)
    admin.decide("p", "c", "b", index=2, group=0)
    controllers.start()
    eventually(lambda: admin.listed("p"), ["p-b", "p-c", "p-a"])


def test_clusters_beyond_the_cap_are_left_out_and_named(admin: Driver, controllers: Controllers) -> None:
    names = [f"c{number:02}" for number in range(23)]
    admin.check("p")
    admin.select("p", *names)
    controllers.start()
    eventually(lambda: admin.reason("p"), "SomeClustersUnusable")
    assert admin.listed("p") == [f"p-{name}" for name in names[:20]]
    assert admin.active("p")["message"] == (
        f"{GENERATED}; 3 beyond the 20 clusters that Kueue takes: c20, c21, c22"
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        pytest.param({"kind": "ConfigMap"}, "spec.parameters.kind is 'ConfigMap'", id="another kind"),
        pytest.param(
            {"apiGroup": "multicluster.x-k8s.io"},
            "spec.parameters.apiGroup is 'multicluster.x-k8s.io'",
            id="another group",
        ),
    ],
)
def test_bad_parameters_are_reported(
    admin: Driver, controllers: Controllers, parameters: dict[str, str], message: str
) -> None:
    admin.check("bad", "p", **parameters)
    controllers.start()
    eventually(lambda: admin.reason("bad"), "BadParameters")
    assert admin.active("bad")["message"] == (
        "set spec.parameters to apiGroup: cluster.open-cluster-management.io, "
        f"kind: Placement and the name of a Placement in namespace kueue-system: {message}"
    )


def test_missing_parameters_block_nobody_else_and_can_be_fixed(
    admin: Driver, controllers: Controllers
) -> None:
    admin.bare_check("bare")
    admin.check("p")
    admin.select("p", "a")
    controllers.start()
    eventually(lambda: admin.reason("p"), "Active")
    eventually(lambda: admin.reason("bare"), "BadParameters")
    assert admin.active("bare")["message"].endswith(": spec.parameters is missing")
    patch = {"spec": {"parameters": PARAMETERS | {"name": "p"}}}
    admin.ask("PATCH", admin.kueue("admissionchecks", "bare"), patch, "merge")
    eventually(lambda: admin.reason("bare"), "Active")
    assert admin.active("bare")["observedGeneration"] == 2
    config = admin.get(admin.kueue("multikueueconfigs", "p"))
    assert config is not None
    assert [owner["name"] for owner in config["metadata"]["ownerReferences"]] == ["bare", "p"]


def test_a_placement_comes_later_is_decided_goes_and_comes_back(
    admin: Driver, controllers: Controllers
) -> None:
    admin.check("p")
    admin.secrets_for("a")
    controllers.start()
    eventually(lambda: admin.reason("p"), "PlacementNotFound")
    assert admin.active("p")["message"] == (
        "correct spec.parameters.name, or create Placement kueue-system/p: it does not exist"
    )
    admin.placement("p")
    eventually(lambda: admin.reason("p"), "NoDecision")
    admin.decide("p", "a")
    eventually(lambda: admin.reason("p"), "Active")
    admin.ask("DELETE", f"{OCM}/placements/p")
    eventually(lambda: admin.reason("p"), "PlacementNotFound")
    assert admin.listed("p") == ["p-a"], "what runs there goes on"
    admin.placement("p")
    eventually(lambda: admin.reason("p"), "Active")


def test_nothing_selected_takes_the_config_away_and_quotes_ocms_reason(
    admin: Driver, controllers: Controllers
) -> None:
    admin.check("p")
    admin.select("p", "a")
    controllers.start()
    eventually(lambda: admin.reason("p"), "Active")
    admin.decide("p")
    admin.placement_says("p", 0, "NoManagedClusterMatched", "No ManagedCluster matches")
    message = (
        "tolerate the taints of clusters in spec.tolerations: Placement kueue-system/p selects no cluster "
        "(NoManagedClusterMatched)"
    )
    eventually(lambda: admin.active("p").get("message"), message)
    assert admin.reason("p") == "NoClusterSelected"
    eventually(lambda: (admin.listed("p"), admin.clusters()), (None, []))


def test_clusters_without_credentials_are_left_out_until_they_have_some(
    admin: Driver, controllers: Controllers
) -> None:
    admin.check("p")
    admin.placement("p")
    admin.decide("p", "a", "b")
    controllers.start()
    eventually(lambda: admin.reason("p"), "NoClusterUsable")
    admin.secrets_for("a")
    eventually(lambda: admin.reason("p"), "SomeClustersUnusable")
    assert admin.active("p")["message"] == (
        f"{GENERATED}; left out: b (create Secret kueue-system/multikueue-b with key kubeconfig: "
        "b has no credentials)"
    )
    admin.secrets_for("b")
    eventually(lambda: admin.reason("p"), "Active")
    admin.ask("DELETE", f"{CORE}/namespaces/{NS}/secrets/multikueue-a")
    eventually(lambda: admin.reason("p"), "SomeClustersUnusable")
    assert admin.listed("p") == ["p-b"]


def test_an_access_provider_becomes_a_cluster_profile_reference(
    admin: Driver, controllers: Controllers
) -> None:
    admin.check("p")
    admin.placement("p")
    admin.decide("p", "a")
    admin.profile("a", accessProviders=[{"name": "ocm", "cluster": {"server": "https://a"}}])
    controllers.start()
    eventually(lambda: admin.reason("p"), "Active")
    cluster = admin.get(admin.kueue("multikueueclusters", "p-a"))
    assert cluster is not None
    assert cluster["spec"] == {"clusterSource": {"clusterProfileRef": {"name": "a"}}}
    admin.secrets_for("a")
    wanted = {"clusterSource": {"kubeConfig": {"location": "multikueue-a", "locationType": "Secret"}}}
    eventually(lambda: (admin.get(admin.kueue("multikueueclusters", "p-a")) or {}).get("spec"), wanted)


def test_a_placement_that_never_matched_has_a_decision_without_status(
    admin: Driver, controllers: Controllers
) -> None:
    """OCM writes no status into a new decision that holds no cluster; its Placement's status tells."""
    admin.check("p")
    admin.placement("p")
    body = {
        "apiVersion": "cluster.open-cluster-management.io/v1beta1",
        "kind": "PlacementDecision",
        "metadata": {"name": "p-decision-1", "labels": {"cluster.open-cluster-management.io/placement": "p"}},
    }
    admin.ask("POST", f"{OCM}/placementdecisions", body)
    controllers.start()
    eventually(lambda: admin.reason("p"), "NoDecision")
    admin.placement_says("p", 0, "NoManagedClusterMatched", "no cluster has the label")
    eventually(lambda: admin.reason("p"), "NoClusterSelected")
