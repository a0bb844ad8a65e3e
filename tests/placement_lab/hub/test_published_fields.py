"""The fields of OCM's and Kueue's kinds in /openapi/v3 of an embedded hub that takes any other, too."""

from placement_lab.hub import Hub
from tests.support.crds import bundled_crd
from tests.support.hub_client import OCM, Client

PLACEMENTS = f"{OCM}/placements"


def test_the_hub_takes_fields_that_it_does_not_publish() -> None:
    obj = {"metadata": {"name": "p"}, "apiVersion": "cluster.open-cluster-management.io/v1beta1"}
    obj |= {"kind": "Placement", "spec": {"numberOfCluster": 1}}
    with Hub() as hub:
        client = Client(hub)
        assert client.create(PLACEMENTS, obj)["spec"]["numberOfCluster"] == 1
        documents = client.get("/openapi/v3/apis/cluster.open-cluster-management.io/v1beta1")
    schemas = documents["components"]["schemas"]
    fields = schemas["io.open-cluster-management.cluster.v1beta1.Placement"]["properties"]["spec"]
    assert "x-kubernetes-preserve-unknown-fields" not in fields


def test_a_crd_of_a_client_is_published_as_it_is() -> None:
    theirs = {"type": "object", "properties": {"theirs": {"type": "string"}}}
    crd = bundled_crd("placements.cluster.open-cluster-management.io")
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {
        "type": "object",
        "properties": {"spec": theirs},
    }
    with Hub(crds=[crd]) as hub:
        documents = Client(hub).get("/openapi/v3/apis/cluster.open-cluster-management.io/v1beta1")
    schemas = documents["components"]["schemas"]
    placement = schemas["io.open-cluster-management.cluster.v1beta1.Placement"]
    assert placement["properties"]["spec"] == theirs
