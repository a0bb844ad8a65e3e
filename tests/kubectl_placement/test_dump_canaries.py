"""A dump of objects of every kind with a canary in every field: only the fields in this table are in it."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

import pytest

from kubectl_placement.hub.dump import LAST_APPLIED
from kubectl_placement.hub.dump_files import dump_of
from kubectl_placement.hub.kinds import ALL_KINDS, CRD
from kubectl_placement.hub.redact import shared_objects
from kubectl_placement.scheduling.engine import DISABLE_ANNOTATION
from placement_ac.core.api.constants import (
    ANNOTATION_CLUSTER_NAMES,
    CLUSTER_PROFILE,
    CONFIG_MAP,
    DEPLOYMENT,
    EVENT,
    FIELD_MANAGER,
    SECRET,
    WORKLOAD,
    Kind,
)
from tests.support.crds import strict_crds

CANARY: Final = "canary"
READ: Final = {
    ANNOTATION_CLUSTER_NAMES: CANARY,
    DISABLE_ANNOTATION: CANARY,
    "placement-ac.open-cluster-management.io/adopt": CANARY,
}
UNREAD: Final = {LAST_APPLIED: CANARY, "note": CANARY, "addon.open-cluster-management.io/values": CANARY}
POD: Final = (
    "metadata.labels",
    "spec.nodeSelector", "spec.priorityClassName", "spec.serviceAccountName", "spec.tolerations",
    *(
        f"spec.{containers}.{field}"
        for containers in ("containers", "initContainers")
        for field in (
            "env.name", "env.valueFrom", "image", "name", "resources",
            "volumeMounts.mountPath", "volumeMounts.name", "volumeMounts.subPath",
        )
    ),
    *(
        f"spec.volumes.{field}"
        for field in (
            "configMap", "emptyDir", "hostPath", "name", "persistentVolumeClaim", "projected", "secret",
        )
    ),
)  # fmt: skip
CLUSTER: Final = (
    "certificate-authority", "certificate-authority-data", "proxy-url", "server", "tls-server-name",
)  # fmt: skip
REQUIRED: Final = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
ASKED: Final = ("spec.overhead", "spec.resourceClaims", "spec.resources", "spec.runtimeClassName")
KEPT: Final[Mapping[Kind, tuple[str, ...]]] = {
    SECRET: ("type",),
    CONFIG_MAP: (),
    EVENT: (),  # of others; the controller's own are kept whole
    DEPLOYMENT: ("spec.selector", "status", *(f"spec.template.{field}" for field in POD)),
    WORKLOAD: (
        *(f"spec.podSets.template.{field}" for field in (*POD, *ASKED, REQUIRED)),
        *(f"spec.podSets.{field}" for field in ("name", "topologyRequest")),
        "spec.preemptionGates", "spec.priorityClassRef", "spec.queueName",
        "status",
    ),
    CLUSTER_PROFILE: (
        "spec",
        *(f"status.{field}" for field in ("conditions", "version")),
        *(
            f"status.{providers}.{field}"
            for providers in ("accessProviders", "credentialProviders")
            for field in ("name", *(f"cluster.{one}" for one in CLUSTER))
        ),
    ),
    CRD: ("spec.group", "spec.names", "spec.scope", "spec.versions", "status"),
}  # fmt: skip
"""The fields of a kind that a dump has, beside its metadata; of other kinds it has all."""


@cache
def schema_of(kind: Kind) -> Any:
    """Return the hub's schema of a kind, with whole Pod templates, or Kubernetes' own."""
    if schema := schema_in(strict_crds(), kind):
        if kind == WORKLOAD:
            pod_set = schema["properties"]["spec"]["properties"]["podSets"]["items"]
            pod_set["properties"]["template"] = {"$ref": "#/$defs/io.k8s.api.core.v1.PodTemplateSpec"}
        return schema
    group = f"{kind.group.partition('.')[0]}-" if kind.group else ""
    return read(f"{kind.kind.lower()}-{group}{kind.versions[-1]}.json")


def schema_in(crds: list[Any], kind: Kind) -> Any:
    """Return the stored schema of a kind, or None."""
    for crd in crds:
        spec = crd["spec"]
        if (spec["group"], spec["names"]["kind"]) == (kind.group, kind.kind):
            [stored] = [version for version in spec["versions"] if version["storage"]]
            return stored["schema"]["openAPIV3Schema"]
    return None


@cache
def read(name: str) -> Any:
    path = files("kubernetes_validate") / "kubernetes-json-schema" / "v1.37.0-local" / name
    return json.loads(path.read_text("utf-8")) if path.is_file() else None


def filled(schema: Any, above: tuple[str, ...] = ()) -> Any:
    """Return a value with a canary in every field of a schema. `above`: the references around it."""
    if reference := schema.get("$ref"):
        name = reference.rpartition("/")[2]
        return CANARY if name in above else filled(read("_definitions.json")["$defs"][name], (*above, name))
    types = schema.get("type", "object" if "properties" in schema else "string")
    kinds = types if isinstance(types, list) else [types]
    if "object" in kinds and (properties := schema.get("properties")):
        return {name: filled(child, above) for name, child in properties.items()}
    if "object" in kinds:
        more = schema.get("additionalProperties")
        return {"any": filled(more, above) if isinstance(more, dict) else CANARY}
    if "array" in kinds:
        return [filled(schema["items"], above)]
    return CANARY if "string" in kinds else 1


def canary_of(kind: Kind, schema: Any) -> Any:
    """Return an object of a kind with a canary in every field, and all sorts of annotations."""
    obj = filled(schema)
    metadata = {"name": "x", "namespace": "kueue-system"} if kind.namespaced else {"name": "x"}
    obj |= {"apiVersion": kind.at(kind.versions[-1]).api_version, "kind": kind.kind, "metadata": metadata}
    metadata |= {"labels": {"a": "b"}, "annotations": READ | UNREAD}
    return annotated(obj)


def annotated(node: Any) -> Any:
    """Return a value in which each map of annotations has all sorts of them."""
    if isinstance(node, list):
        return [annotated(part) for part in node]
    if not isinstance(node, dict):
        return node
    whole = {key: annotated(part) for key, part in node.items()}
    return whole | ({"annotations": READ | UNREAD} if "annotations" in whole else {})


def canaries(node: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of the fields with a canary, without the annotations that commands read."""
    if isinstance(node, dict):
        for key, part in node.items():
            if not (path.endswith("annotations") and key in READ):
                yield from canaries(part, f"{path}.{key}".removeprefix("."))
    elif isinstance(node, list):
        for part in node:
            yield from canaries(part, path)
    elif node == CANARY:
        yield path


def is_below(path: str, fields: tuple[str, ...]) -> bool:
    return any(path == field or path.startswith(f"{field}.") for field in fields)


@pytest.mark.parametrize("kind", ALL_KINDS, ids=lambda kind: kind.kind)
def test_only_known_fields_are_in_a_dump(kind: Kind) -> None:
    has_known_fields_alone(kind, schema_of(kind))


def has_known_fields_alone(kind: Kind, schema: Any) -> None:
    given = canary_of(kind, schema)
    found = shared_objects(dump_of([given]), kind, ("kueue-system",))
    left = {path for one in found for path in canaries(one)}
    assert [path for path in left if "annotations" in path.split(".") and kind != CRD] == []
    fields = KEPT.get(kind, ("spec", "status", "rules", "aggregationRule", "roleRef", "subjects"))
    assert sorted(path for path in left if not is_below(path, fields)) == []
    if kind in KEPT:
        assert [field for field in fields if not any(is_below(path, (field,)) for path in left)] == []


@pytest.mark.parametrize("kind", [WORKLOAD, DEPLOYMENT], ids=lambda kind: kind.kind)
def test_a_variable_of_others_has_no_value_whatever_its_name(kind: Kind) -> None:
    container = {"name": "main", "env": [{"name": "PLACEMENT_AC_TOKEN", "value": CANARY}]}
    template = {"spec": {"containers": [container]}}
    spec = (
        {"podSets": [{"name": "main", "template": template}]} if kind == WORKLOAD else {"template": template}
    )
    obj = {"apiVersion": kind.at(kind.versions[-1]).api_version, "kind": kind.kind}
    given = obj | {"metadata": {"name": "x", "namespace": "team"}, "spec": spec}
    assert list(canaries(shared_objects(dump_of([given]), kind, ("team",)))) == []


def test_events_of_others_are_left_out() -> None:
    given = canary_of(EVENT, schema_of(EVENT))
    ours = given | {"reportingComponent": FIELD_MANAGER, "message": "ours", "metadata": {"name": "y"}}
    found = shared_objects(dump_of([given, ours]), EVENT, ())
    assert [one["message"] for one in found] == ["ours"]
