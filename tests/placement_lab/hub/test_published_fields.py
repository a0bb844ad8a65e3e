"""The fields of Kueue's kinds in /openapi/v3 of an embedded hub that takes any other, too."""

from placement_lab.hub import Hub
from tests.support.crds import bundled_crd
from tests.support.hub_client import KUEUE, Client

DOCUMENT = "/openapi/v3/apis/kueue.x-k8s.io/v1beta2"
FLAVOR = "io.x-k8s.kueue.v1beta2.ResourceFlavor"


def test_the_hub_takes_fields_that_it_does_not_publish() -> None:
    obj = {"metadata": {"name": "f"}, "apiVersion": "kueue.x-k8s.io/v1beta2"}
    obj |= {"kind": "ResourceFlavor", "spec": {"nodeLabel": "a"}}
    with Hub() as hub:
        client = Client(hub)
        assert client.create(f"{KUEUE}/resourceflavors", obj)["spec"]["nodeLabel"] == "a"
        documents = client.get(DOCUMENT)
    fields = documents["components"]["schemas"][FLAVOR]["properties"]["spec"]
    assert "x-kubernetes-preserve-unknown-fields" not in fields


def test_a_crd_of_a_client_is_published_as_it_is() -> None:
    theirs = {"type": "object", "properties": {"theirs": {"type": "string"}}}
    crd = bundled_crd("resourceflavors.kueue.x-k8s.io")
    crd["spec"]["versions"][-1]["schema"]["openAPIV3Schema"] = {
        "type": "object",
        "properties": {"spec": theirs},
    }
    with Hub(crds=[crd]) as hub:
        documents = Client(hub).get(DOCUMENT)
    assert documents["components"]["schemas"][FLAVOR]["properties"]["spec"] == theirs
