"""Builders of Kueue's objects and of namespaces, as a user applies them in tests of the stand-ins."""

from typing import Any

Object = dict[str, Any]

API = "kueue.x-k8s.io"
VERSION = "v1beta2"


def kueue_object(kind: str, name: str, spec: Object | None = None, **more: Any) -> Object:
    """An object of Kueue's API; `more` are further top-level fields, such as `status`."""
    item = {"apiVersion": f"{API}/{VERSION}", "kind": kind, "metadata": {"name": name}}
    return item | ({"spec": spec} if spec else {}) | more


def multikueue_config(name: str, *clusters: str) -> Object:
    return kueue_object("MultiKueueConfig", name, {"clusters": list(clusters)})


def admission_check(name: str, config: str, controller: str = f"{API}/multikueue", **more: Any) -> Object:
    """An AdmissionCheck with the MultiKueueConfig `config`."""
    parameters = {"apiGroup": API, "kind": "MultiKueueConfig", "name": config}
    spec = {"controllerName": controller, "parameters": parameters}
    return kueue_object("AdmissionCheck", name, spec, **more)


def cluster_queue(name: str, *checks: str, **spec: Any) -> Object:
    strategy = {"admissionChecks": [{"name": check} for check in checks]}
    return kueue_object(
        "ClusterQueue", name, {"namespaceSelector": {}, "admissionChecksStrategy": strategy} | spec
    )


def local_queue(name: str, queue: str) -> Object:
    """A LocalQueue in the namespace `default` for the ClusterQueue `queue`."""
    local = kueue_object("LocalQueue", name, {"clusterQueue": queue})
    local["metadata"]["namespace"] = "default"
    return local


def queues(name: str, *checks: str) -> list[Object]:
    """A ClusterQueue with these checks, and its LocalQueue of the same name."""
    return [cluster_queue(name, *checks), local_queue(name, name)]


def namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
