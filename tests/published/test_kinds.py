"""The kinds of the embedded hub have the fields, types, defaults and limits of the published CRDs."""

from typing import Any

import pytest

from tests.published.shared import published_crds
from tests.support.crds import strict_crds

Schema = dict[str, Any]
CRDS = published_crds()
NOT_COMPARED = {
    "anyOf", "description", "maxLength", "minLength", "pattern", "title", "x-kubernetes-validations",
}  # fmt: skip
"""Of strings the hub has mostly the limits of the newest version, and of the rules in CEL a few."""
OTHERWISE = {
    (
        "Placement",
        "v1beta1",
        "spec.decisionStrategy.groupStrategy.decisionGroups[].groupClusterSelector.celSelector",
    ),
    ("Workload", "v1beta1", "spec.podSets[].template"),  # takes any field
    ("Workload", "v1beta1", "status.admission.podSetAssignments[].delayedTopologyRequest"),
    ("Workload", "v1beta2", "spec.podSets[].template"),
    ("Workload", "v1beta2", "status.admissionChecks[].podSetUpdates[].tolerations"),  # atomic
    ("Workload", "v1beta2", "status.schedulingStats.evictions"),  # at most 256
}
"""Fields that differ, of a kind in a version; and all below them may."""


def fields_of(schema: Schema, path: str = "") -> dict[str, Schema]:
    """Return what is said of each field itself, by its path; `[]` are items, `{}` values of a map."""
    below = {
        f"{path}.{name}".removeprefix("."): one for name, one in (schema.get("properties") or {}).items()
    }
    below |= {f"{path}[]": schema["items"]} if "items" in schema else {}
    if isinstance(schema.get("additionalProperties"), dict):
        below[f"{path}{{}}"] = schema["additionalProperties"]
    children = ("properties", "items", "additionalProperties")
    own = {key: value for key, value in schema.items() if key not in {*children, *NOT_COMPARED}}
    found = {path: own}
    for name, one in below.items():
        if name not in ("apiVersion", "kind", "metadata"):
            found |= fields_of(one, name)
    return found


def version_of(crd: Schema, name: str) -> Schema:
    [version] = [one for one in crd["spec"]["versions"] if one["name"] == name]
    return dict(version["schema"]["openAPIV3Schema"])


@pytest.mark.parametrize(
    ("crd", "version"),
    [
        pytest.param(crd, version["name"], id=f"{crd['metadata']['name']} {version['name']}")
        for crd in CRDS
        for version in crd["spec"]["versions"]
    ],
)
def test_the_fields_are_those_of_the_published_crd(crd: Schema, version: str) -> None:
    [ours] = [one for one in strict_crds() if one["metadata"]["name"] == crd["metadata"]["name"]]
    kind = crd["spec"]["names"]["kind"]
    excepted = {path for one, name, path in OTHERWISE if (one, name) == (kind, version)}
    here, there = (
        {path: own for path, own in fields_of(schema).items() if not path.startswith(tuple(excepted))}
        for schema in (version_of(ours, version), version_of(crd, version))
    )
    assert here == there


def test_versions_are_served_and_stored_as_published() -> None:
    def versions(crd: Schema) -> list[tuple[str, bool, bool, bool]]:
        return [
            (one["name"], one["served"], one["storage"], "status" in (one.get("subresources") or {}))
            for one in crd["spec"]["versions"]
        ]

    ours = {crd["metadata"]["name"]: versions(crd) for crd in strict_crds()}
    assert {name: ours[name] for name in (crd["metadata"]["name"] for crd in CRDS)} == {
        crd["metadata"]["name"]: versions(crd) for crd in CRDS
    }
