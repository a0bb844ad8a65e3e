"""
The subresource `scale`: the desired and actual replicas of an object.

Pure. Source: autoscaling/v1 Scale.
"""

from typing import Any

from placement_lab.hub.errors import bad_request

Object = dict[str, Any]


def scale_of(obj: Object) -> Object:
    """Return the Scale of an object."""
    named = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    metadata, status = obj["metadata"], obj.get("status") or {}
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in named if key in metadata},
        "spec": {"replicas": (obj.get("spec") or {}).get("replicas", 1)},
        "status": {"replicas": status.get("replicas", 0)},
    }


def with_scale(obj: Object, scale: Object) -> Object:
    """Return an object with the replicas of a Scale; raises 400 if they are not a number."""
    spec = scale.get("spec")
    replicas = spec.get("replicas", 0) if isinstance(spec, dict) else None
    if not isinstance(replicas, int) or replicas < 0:
        raise bad_request("spec.replicas: a number is needed")
    return obj | {"spec": {**(obj.get("spec") or {}), "replicas": replicas}}
