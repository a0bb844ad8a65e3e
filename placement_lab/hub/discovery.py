"""
Discovery: versions, groups and their resources. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from placement_lab.hub.catalog import Catalog
    from placement_lab.hub.kinds import ServedResource, ServedVersion

VERSION = {
    "major": "1",
    "minor": "35",
    "gitVersion": "v1.35.0+placement-ac",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "cpython",
    "platform": "in-memory",
}
# Reviews, which are answered but not stored: (group, version, plural) to kind.
REVIEWS = {
    ("authorization.k8s.io", "v1", "selfsubjectaccessreviews"): "SelfSubjectAccessReview",
    ("authorization.k8s.io", "v1", "selfsubjectrulesreviews"): "SelfSubjectRulesReview",
    ("authentication.k8s.io", "v1", "selfsubjectreviews"): "SelfSubjectReview",
    ("authentication.k8s.io", "v1", "tokenreviews"): "TokenReview",
}
TOKEN = {
    "name": "serviceaccounts/token",
    "singularName": "",
    "namespaced": True,
    "group": "authentication.k8s.io",
    "version": "v1",
    "kind": "TokenRequest",
    "verbs": ["create"],
}

SCALE = {
    "singularName": "",
    "group": "autoscaling",
    "version": "v1",
    "kind": "Scale",
    "verbs": ["get", "patch", "update"],
}


def core_versions(host: str) -> dict[str, Any]:
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}],
    }


def _groups(catalog: Catalog) -> dict[str, list[str]]:
    return catalog.groups() | {group: [version] for group, version, *_ in REVIEWS}


def group_list(catalog: Catalog) -> dict[str, Any]:
    groups = [_group(name, versions) for name, versions in sorted(_groups(catalog).items())]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(catalog: Catalog, name: str) -> dict[str, Any] | None:
    versions = _groups(catalog).get(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)} if versions else None


def _group(name: str, versions: list[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def resource_list(catalog: Catalog, group: str, version: str) -> dict[str, Any] | None:
    """Return the APIResourceList of a group and version, None if it is not served."""
    served = catalog.served(group, version)
    reviews = [_review(name, kind) for (g, v, name), kind in REVIEWS.items() if (g, v) == (group, version)]
    if not served and not reviews:
        return None
    resources = [entry for pair in served for entry in _resources(*pair)]
    name = f"{group}/{version}" if group else version
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": name,
        "resources": resources + reviews,
    }


def _review(plural: str, kind: str) -> dict[str, Any]:
    return {
        "name": plural,
        "singularName": kind.lower(),
        "namespaced": False,
        "kind": kind,
        "verbs": ["create"],
    }


def _resources(resource: ServedResource, version: ServedVersion) -> list[dict[str, Any]]:
    main: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        main["shortNames"] = list(resource.short_names)
    if resource.categories:
        main["categories"] = list(resource.categories)
    subresources = ("status",) if resource.custom and version.status else resource.subresources
    return [main, *(_subresource(resource, name) for name in subresources)]


VERBS = {"status": ["get", "patch", "update"], "log": ["get"]}  # of subresources; of others: update


def _subresource(resource: ServedResource, name: str) -> dict[str, Any]:
    if name == "token":
        return TOKEN
    if name == "scale":
        return SCALE | {"name": f"{resource.plural}/scale", "namespaced": resource.namespaced}
    return {
        "name": f"{resource.plural}/{name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": VERBS.get(name, ["update"]),
    }
