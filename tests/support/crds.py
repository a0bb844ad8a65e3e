"""CRDs of kinds that the samples use and that are not recorded, reduced to what the tests need."""

from typing import Any

Object = dict[str, Any]

ANYTHING: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
LEVELS: Object = {
    "type": "array",
    "minItems": 1,
    "maxItems": 16,
    "items": {
        "type": "object",
        "required": ["nodeLabel"],
        "properties": {"nodeLabel": {"type": "string", "minLength": 1, "maxLength": 316}},
    },
}
"""Kueue: TopologySpec.levels."""
TOPOLOGY_SCHEMA: Object = {
    "type": "object",
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "spec": {"type": "object", "required": ["levels"], "properties": {"levels": LEVELS}},
    },
}


def plain_crd(group: str, kind: str, *versions: str, plural: str = "", **spec: Any) -> Object:
    """A namespaced CRD that accepts anything, in `versions` (v1); the last one is stored."""
    plural = plural or f"{kind.lower()}s"
    names = versions or ("v1",)
    schema = spec.pop("schema", ANYTHING)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == names[-1],
                    "schema": {"openAPIV3Schema": schema},
                }
                for name in names
            ],
        }
        | spec,
    }


def topology_crd() -> Object:
    return plain_crd(
        "kueue.x-k8s.io",
        "Topology",
        "v1beta1",
        "v1beta2",
        plural="topologies",
        scope="Cluster",
        schema=TOPOLOGY_SCHEMA,
    )


def job_crds() -> list[Object]:
    """The job kinds of the samples that Kubernetes lacks."""
    return [
        plain_crd("jobset.x-k8s.io", "JobSet", "v1alpha2"),
        plain_crd("tekton.dev", "PipelineRun"),
        plain_crd("argoproj.io", "Workflow", "v1alpha1"),
    ]
