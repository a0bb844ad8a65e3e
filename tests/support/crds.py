"""CRDs for tests: the hub's own, strict as the published ones are, and plain ones that take anything."""

import copy
import functools
import pickle
from typing import Any

from placement_lab.hub.kinds import bundled, published

Object = dict[str, Any]

IMPLIED = ("apiVersion", "kind", "metadata")
"""Fields of every object, which a CRD need not have."""
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


def strict_crds() -> list[Object]:
    """
    The hub's own CRDs, which prune and refuse what the published ones do; the caller may change them.

    `tests/published/test_kinds.py` compares the two.
    """
    crds: list[Object] = pickle.loads(_strict_crds())
    return crds


@functools.cache
def _strict_crds() -> bytes:
    crds = copy.deepcopy(bundled())
    for crd in crds:
        spec = crd["spec"]
        for version in spec["versions"]:
            strict = published().get((spec["group"], version["name"], spec["names"]["kind"]))
            if strict:
                fields = {name: one for name, one in strict["properties"].items() if name not in IMPLIED}
                version["schema"]["openAPIV3Schema"] = strict | {"properties": fields}
    return pickle.dumps(crds)


def with_kueue_in(crds: list[Object], *versions: str) -> list[Object]:
    """The CRDs as if Kueue served these versions alone, the last one stored, and no kind without them."""
    found = []
    for crd in crds:
        kept = crd["spec"]["versions"]
        if crd["spec"]["group"] == "kueue.x-k8s.io":
            kept = [one | {"storage": one["name"] == versions[-1]} for one in kept if one["name"] in versions]
        if kept:
            found.append(crd | {"spec": crd["spec"] | {"versions": kept}})
    return found
