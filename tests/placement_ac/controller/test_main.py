"""The controller on the hub: from an AdmissionCheck to a MultiKueueConfig, and the conditions on the way."""

from tests.support.driver import CORE, NS, OCM, SCORES, Controllers, Driver, eventually

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
