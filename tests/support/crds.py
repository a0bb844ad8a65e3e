"""CRDs of kinds that the samples use and that are not recorded."""

import copy
from typing import Any

from placement_lab.hub.kinds import bundled
from tests.support.shared import published_crds

Object = dict[str, Any]

ANYTHING: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


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


def bundled_crd(name: str) -> Object:
    """The hub's own CRD of this name."""
    return copy.deepcopy(next(crd for crd in bundled() if crd["metadata"]["name"] == name))


def topology_crd() -> Object:
    return bundled_crd("topologies.kueue.x-k8s.io")


def job_crds() -> list[Object]:
    """The job kinds of the samples that Kubernetes lacks."""
    return [
        bundled_crd("jobsets.jobset.x-k8s.io"),
        bundled_crd("pipelineruns.tekton.dev"),
        bundled_crd("workflows.argoproj.io"),
    ]


def sample_crds() -> list[Object]:
    """The published CRDs, and the hub's own ones of the kinds that are not recorded."""
    named = {crd["metadata"]["name"]: crd for crd in (*bundled(), *published_crds())}
    return list(copy.deepcopy(named).values())
