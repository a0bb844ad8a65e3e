"""
Writes that name the object's uid or resourceVersion, and what an API server answers them.

Recorded on kube-apiserver 1.36.2. The embedded hub, and any real one, is asked for the same.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

from placement_ac.core.api.constants import CONFIG_MAP, JOB, LEASE, PLACEMENT_SCORE, Kind, Resource
from placement_ac.core.api.errors import ApiError, NotFound
from placement_ac.kube.client import Client
from tests.support.driver import TYPES

Object = dict[str, Any]

NAME: Final = "placement-ac-real-guard"
NAMESPACE: Final = "default"
ANOTHER_UID: Final = "00000000-0000-0000-0000-000000000000"
GIVEN: Final = (
    "",
    "uid",
    "another uid",
    "version",
    "former version",
    "version 0",
    "another uid, version",
    "uid, former version",
)
"""The parts of the object that a write names, a column of the table each."""

_PATCHES: Final = "apply merge json"
_ALL_PATCHES: Final = f"{_PATCHES} strategic"
_ON_STATUS: Final = "apply/status merge/status json/status"
_IF_GONE: Final = "404 404 404 404 404 404 404 404"
_CREATED_BY_POST: Final = {"post": "409 409 409 500 500 409 500 500"}
_CREATED_BY_POST_IF_GONE: Final = {"post": "ok ok ok 500 500 ok 500 500"}
_DELETED: Final = {"delete": "ok ok 409 ok 409 409 409 409"}
_APPLIED_IF_GONE: Final = {"apply": "ok 409 409 ok ok ok 409 409"}
_Table = Mapping[str, str]

THERE: Final[Mapping[Kind, _Table]] = {
    PLACEMENT_SCORE: {
        _PATCHES: "ok ok 422 ok 409 422 422 409",
        _ON_STATUS: "ok ok ok ok 409 422 ok 409",
        "put put/status": "422 422 409 ok 409 422 409 409",
        **_DELETED,
        **_CREATED_BY_POST,
    },
    CONFIG_MAP: {
        _ALL_PATCHES: "ok ok 422 ok 409 ok 422 409",
        "put": "ok ok 409 ok 409 ok 409 409",
        **_DELETED,
        **_CREATED_BY_POST,
    },
    LEASE: {
        _ALL_PATCHES: "ok ok 422 ok 409 422 422 409",
        "put": "422 422 409 ok 409 422 409 409",
        **_DELETED,
        **_CREATED_BY_POST,
    },
    JOB: {
        f"{_ALL_PATCHES} {_ON_STATUS} strategic/status": "ok ok 422 ok 409 ok 422 409",
        "put put/status": "ok ok 409 ok 409 ok 409 409",
        **_DELETED,
        **_CREATED_BY_POST,
    },
}
"""The answers to requests about an object that exists: codes, or ok. A line may serve several requests."""

GONE: Final[Mapping[Kind, _Table]] = {
    PLACEMENT_SCORE: {
        f"merge json {_ON_STATUS} put put/status delete": _IF_GONE,
        **_APPLIED_IF_GONE,
        **_CREATED_BY_POST_IF_GONE,
    },
    CONFIG_MAP: {
        "merge json strategic put delete": _IF_GONE,
        **_APPLIED_IF_GONE,
        **_CREATED_BY_POST_IF_GONE,
    },
    LEASE: {
        "merge json strategic delete": _IF_GONE,
        "put": _APPLIED_IF_GONE["apply"],
        **_APPLIED_IF_GONE,
        **_CREATED_BY_POST_IF_GONE,
    },
    JOB: {
        f"merge json strategic {_ON_STATUS} strategic/status put put/status delete": _IF_GONE,
        **_APPLIED_IF_GONE,
        **_CREATED_BY_POST_IF_GONE,
    },
}
"""The same for an object that was deleted since it was read."""


TABLES: Final = {kind.kind: (kind, THERE) for kind in THERE} | {
    f"{kind.kind} that is gone": (kind, GONE) for kind in GONE
}


def rows(table: _Table) -> dict[str, str]:
    """Return request → its answers."""
    return {request: line for requests, line in table.items() for request in requests.split()}


_TEMPLATE: Final = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}
_FIELDS: Final[Mapping[Kind, Object]] = {
    CONFIG_MAP: {"data": {"key": "value"}},
    LEASE: {"spec": {"holderIdentity": "nobody"}},
    JOB: {"spec": {"suspend": True, "template": {"spec": _TEMPLATE}}},
}
_STATUS: Final[Mapping[Kind, Object]] = {
    PLACEMENT_SCORE: {"scores": [{"name": "guard", "value": 1}]},
    JOB: {"startTime": "2026-01-01T00:00:00Z"},
}
_LABEL: Final = {"guard": "written"}


async def answers(client: Client, kind: Kind, requests: Iterable[str], *, there: bool) -> dict[str, str]:
    """Send these requests, each once for every column; return request → its answers.

    An answer is marked if the object does not show what it says.
    """
    return {
        request: " ".join([await _answer(client, kind, request, there, given) for given in GIVEN])
        for request in requests
    }


async def _answer(client: Client, kind: Kind, request: str, there: bool, given: str) -> str:
    resource = kind.at(kind.versions[0])
    await remove(client, resource, NAME, NAMESPACE)
    former = await client.create(resource, _body(resource))
    label = {"metadata": {"labels": {"guard": "read"}}}
    seen = await client.merge(resource, NAME, label, namespace=NAMESPACE)
    if not there:
        await remove(client, resource, NAME, NAMESPACE)
    named = _named(given, seen, former)
    try:
        await _send(client, resource, request, named, seen)
    except ApiError as error:
        answer = str(error.status)
    else:
        answer = "ok"
    done = await _is_done(client, resource, request, there)
    await remove(client, resource, NAME, NAMESPACE)
    return answer if done is (answer == "ok") else f"{answer}(but {'' if done else 'not '}done)"


def _named(given: str, seen: Object, former: Object) -> Object:
    metadata: Object = {}
    for what in filter(None, given.split(", ")):
        source = former if what == "former version" else seen
        field = "uid" if "uid" in what else "resourceVersion"
        metadata[field] = source["metadata"][field]
    if "another uid" in given:
        metadata["uid"] = ANOTHER_UID
    if given == "version 0":
        metadata["resourceVersion"] = "0"
    return metadata


async def _send(client: Client, resource: Resource, request: str, named: Object, seen: Object) -> None:
    verb, _, subresource = request.partition("/")
    path, kind = resource.path(NAMESPACE, NAME, subresource), resource.of
    query = {"fieldManager": "guard"}
    labels = {} if subresource else {"labels": _LABEL}
    change: Object = {"metadata": named | labels} | ({"status": _STATUS[kind]} if subresource else {})
    match verb:
        case "apply":
            identity = {"name": NAME, "namespace": NAMESPACE}
            body = _body(resource) | change | {"metadata": change["metadata"] | identity}
            await client.request(
                "PATCH", path, body, query=query | {"force": "true"}, content_type=TYPES[verb]
            )
        case "merge" | "strategic":
            form = "application/strategic-merge-patch+json" if verb == "strategic" else TYPES[verb]
            await client.request("PATCH", path, change, query=query, content_type=form)
        case "json":
            operations = [
                {"op": "replace", "path": f"/metadata/{key}", "value": value} for key, value in named.items()
            ]
            operations.append(
                {"op": "add", "path": "/status", "value": _STATUS[kind]}
                if subresource
                else {"op": "add", "path": "/metadata/labels/guard", "value": _LABEL["guard"]}
            )
            await client.request("PATCH", path, operations, query=query, content_type=TYPES[verb])
        case "put":
            rest = {key: value for key, value in seen.items() if key not in ("metadata", "status")}
            identity = {"name": NAME, "namespace": NAMESPACE}
            await client.request(
                "PUT", path, rest | change | {"metadata": change["metadata"] | identity}, query=query
            )
        case "delete":
            options = {"propagationPolicy": "Background"} | ({"preconditions": named} if named else {})
            await client.request("DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions"} | options)
        case "post":
            body = _body(resource)
            body["metadata"] |= named | {"labels": _LABEL}
            await client.create(resource, body)


async def _is_done(client: Client, resource: Resource, request: str, there: bool) -> bool:
    try:
        now = await client.get(resource, NAME, NAMESPACE)
    except NotFound:
        return there and request == "delete"
    if request.endswith("/status"):
        wanted = _STATUS[resource.of]
        return bool(wanted.items() <= (now.get("status") or {}).items())
    return bool((now["metadata"].get("labels") or {}).get("guard") == _LABEL["guard"])


def _body(resource: Resource) -> Object:
    metadata = {"name": NAME, "namespace": NAMESPACE}
    identity = {"apiVersion": resource.api_version, "kind": resource.of.kind, "metadata": metadata}
    return identity | dict(_FIELDS.get(resource.of, {}))


async def remove(client: Client, resource: Resource, name: str, namespace: str | None = None) -> None:
    """Delete an object, if it exists, and wait until it is gone."""
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    try:
        answer = await client.request("DELETE", resource.path(namespace, name), options)
    except NotFound:
        return
    if answer["kind"] != "Status":  # a finalizer holds it
        await asyncio.sleep(0.05)
        await remove(client, resource, name, namespace)
