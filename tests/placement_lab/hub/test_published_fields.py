"""The fields of OCM's and Kueue's kinds in /openapi/v3 of an embedded hub that takes any other, too."""

from collections.abc import Iterator
from typing import Any

import pytest

from placement_lab.hub import Hub, kinds
from tests.support.hub_client import OCM, Client
from tests.support.shared import published_crds, shared_dir

PLACEMENTS = f"{OCM}/placements"
NOT_IN_GROUPS = "spec.decisionStrategy.groupStrategy.decisionGroups.groupClusterSelector.celSelector"


def paths(schema: Any, path: str = "") -> Iterator[str]:
    """Yield the path of each field that has no fields of its own, without its type."""
    while "items" in schema:
        schema = schema["items"]
    if not schema.get("properties") and path:
        yield path
    for key, below in (schema.get("properties") or {}).items():
        yield from paths(below, f"{path}.{key}".removeprefix("."))


def spec_paths(schema: Any) -> set[str]:
    return set(paths({"properties": {"spec": schema["properties"]["spec"]}}))


@pytest.mark.parametrize("name", kinds.published(), ids=".".join)
def test_the_fields_are_those_of_the_published_crd(name: tuple[str, str, str]) -> None:
    group, version, kind = name
    shared_dir()
    crds = [published_crd["spec"] for published_crd in published_crds()]
    (crd,) = [one for one in crds if (one["group"], one["names"]["kind"]) == (group, kind)]
    (there,) = [one["schema"]["openAPIV3Schema"] for one in crd["versions"] if one["name"] == version]
    ours = {
        spec_path
        for spec_path in spec_paths(kinds.published()[name])
        if not spec_path.startswith(NOT_IN_GROUPS)
    }
    assert ours == spec_paths(there)


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
    crds = [
        published_crd
        for published_crd in published_crds()
        if published_crd["spec"]["names"]["plural"] == "placements"
    ]
    with Hub(crds=crds) as hub:
        documents = Client(hub).get("/openapi/v3/apis/cluster.open-cluster-management.io/v1beta1")
    schemas = documents["components"]["schemas"]
    placement = schemas["io.open-cluster-management.cluster.v1beta1.Placement"]
    (version,) = [one for one in crds[0]["spec"]["versions"] if one["name"] == "v1beta1"]
    there = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert placement["properties"]["spec"] == there
