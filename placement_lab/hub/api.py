"""
Handle a request: paths, verbs, content types. No sockets.

Runs in the hub's thread and never waits. Turns a `StatusError` into a Status response.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import orjson
import yaml

from placement_lab.hub import (
    discovery,
    kinds,
    openapi,
    openapi_v2,
    options,
    patch,
    protobuf,
    reads,
    reviews,
    scale,
    users,
)
from placement_lab.hub.errors import StatusError, bad_request, internal, not_found, object_details
from placement_lab.hub.pod_logs import LogStream, PodLogs
from placement_lab.hub.reads import METADATA, PLAIN, TABLE, ReadRequest
from placement_lab.hub.request_attributes import RequestAttributes, attributes_of
from placement_lab.hub.watch import WatchStream
from placement_lab.hub.write_request import WriteRequest
from placement_lab.hub.writes import Writes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from placement_lab.hub.access_control import AccessControl
    from placement_lab.hub.catalog import Catalog
    from placement_lab.hub.kinds import ServedResource, ServedVersion
    from placement_lab.hub.store import Record, Store
    from placement_lab.hub.users import Impersonation, UserInfo

JSON, YAML = "application/json", "application/yaml"
BODIES = (JSON, YAML, protobuf.CONTENT_TYPE)
NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
APPLY, STRATEGIC = "application/apply-patch+yaml", "application/strategic-merge-patch+json"
PATCHES = ("application/json-patch+json", "application/merge-patch+json", STRATEGIC, APPLY)


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One HTTP request."""

    method: str
    path: str
    query_string: str
    body: bytes
    content_type: str = JSON
    accept: str = ""
    authorization: str = ""
    user_agent: str = ""
    host: str = ""
    impersonation: Impersonation | None = None

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(self.query_string, keep_blank_values=True)) if self.query_string else {}


@dataclass(frozen=True, slots=True)
class ApiResponse:
    status: int
    body: bytes
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """The resource that a path addresses; `name` and `subresource` may be empty."""

    resource: ServedResource
    version: ServedVersion
    namespace: str
    name: str
    subresource: str


Answer = ApiResponse | WatchStream | LogStream


def text(status: int, body: str) -> ApiResponse:
    return ApiResponse(status, body.encode(), "text/plain; charset=utf-8")


def json(body: Any, status: int = 200) -> ApiResponse:
    return ApiResponse(status, orjson.dumps(body))


def error_response(error: StatusError) -> ApiResponse:
    return json(error.status(), error.code)


NOT_FOUND = text(404, "404 page not found\n")


class ApiHandler:
    """Handles requests. `soon` schedules a function after the current request."""

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        access: AccessControl,
        soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self.store, self.catalog, self.access = store, catalog, access
        self.writes = Writes(store, catalog, soon, access.rbac.check_escalation)
        self.logs = PodLogs()

    def install(self, crds: Iterable[dict[str, Any]]) -> None:
        """Install the built-in kinds, the first namespaces and these CustomResourceDefinitions."""
        for resource in kinds.builtin():
            self.catalog.add(resource)
            self.store.add_kind(resource)
            if "log" in resource.subresources:
                self.store.by_resource[resource].watchers[self.logs.on_change] = None
        for name in NAMESPACES:
            self._put(
                "", "v1", "namespaces", {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}}
            )
        for crd in crds:  # copied, so that no caller shares the stored object
            copy = orjson.loads(orjson.dumps(crd))
            self._put("apiextensions.k8s.io", "v1", "customresourcedefinitions", copy)

    def _put(self, group: str, version: str, plural: str, obj: dict[str, Any]) -> None:
        entry = self.catalog.find(group, version, plural)
        assert entry is not None  # noqa: S101 built in
        self.writes.create(WriteRequest(*entry, "", "", "", {}, users.LOOPBACK, "hub", []), obj)

    def handle(self, call: ApiRequest) -> tuple[str, Answer]:
        """Return the user's name, and the response, or the watch or the log to stream."""
        name = ""
        try:
            user = self.access.authenticate(call.authorization)
            if call.impersonation is not None:
                user = self.access.impersonate(user, call.impersonation)
            name = user.name
            if users.MASTERS not in user.groups:
                self.access.authorize(user, attributes_of(call.method, call.path, call.query))
            answer = self._route(call, user)
        except StatusError as error:
            answer = error_response(error)
        return name, in_yaml(answer, call.accept) if isinstance(answer, ApiResponse) else answer

    def _route(self, call: ApiRequest, user: UserInfo) -> Answer:
        parts = [part for part in call.path.split("/") if part]
        match parts:
            case ["api", version, *rest] if rest:
                return self._resource(call, user, "", version, rest)
            case ["apis", group, version, *rest] if rest:
                return self._resource(call, user, group, version, rest)
        if call.method != "GET":
            return NOT_FOUND
        return self._discovery(call, parts)

    def _discovery(self, call: ApiRequest, parts: list[str]) -> ApiResponse:
        """Return the response for discovery, health, version or OpenAPI."""
        document: Any = None
        match parts:
            case ["healthz" | "livez" | "readyz", *_]:
                return text(200, "ok")
            case ["version"]:
                document = discovery.VERSION
            case ["api"]:
                document = discovery.core_versions(call.host)
            case ["apis"]:
                document = discovery.group_list(self.catalog)
            case ["api", version]:
                document = discovery.resource_list(self.catalog, "", version)
            case ["apis", group]:
                document = discovery.group(self.catalog, group)
            case ["apis", group, version]:
                document = discovery.resource_list(self.catalog, group, version)
            case ["openapi", "v2"]:
                return self._openapi_v2(call.accept)
            case ["openapi", "v3", *rest]:
                document = openapi.document(self.catalog, "/".join(rest))
        return NOT_FOUND if document is None else json(document)

    def _openapi_v2(self, accept: str) -> ApiResponse:
        document = openapi_v2.document(self.catalog)
        if any(form in accept for form in openapi_v2.ACCEPTED):
            return ApiResponse(200, openapi_v2.protobuf(document), openapi_v2.PROTOBUF)
        return json(document)

    def _target(self, group: str, version: str, rest: list[str]) -> RequestTarget | None:
        namespace = ""
        if (
            rest[0] == "namespaces"
            and len(rest) > 2
            and not (len(rest) == 3 and rest[2] in ("status", "finalize"))
        ):
            namespace, rest = rest[1], rest[2:]
        entry = self.catalog.find(group, version, rest[0])
        if entry is None or len(rest) > 3:
            return None
        resource, served = entry
        if namespace and not resource.namespaced:
            return None
        return RequestTarget(resource, served, namespace, *([*rest[1:], "", ""])[:2])

    def _resource(
        self, call: ApiRequest, user: UserInfo, group: str, version: str, rest: list[str]
    ) -> Answer:
        if kind := discovery.REVIEWS.get((group, version, "/".join(rest))):
            return self._review(call, user, rest[0], {"apiVersion": f"{group}/{version}", "kind": kind})
        target = self._target(group, version, rest)
        if target is None:
            return NOT_FOUND
        if target.subresource and not _has(target):
            raise not_found(target.resource, target.name)
        if target.subresource == "token":
            return self._token(call, target)
        if target.subresource == "scale":
            return self._scale(call, user, target)
        if target.subresource == "log":
            return self._log(call, target)
        if call.method == "GET":
            return self._read(call, target)
        return self._write(call, user, target)

    def _review(self, call: ApiRequest, user: UserInfo, plural: str, identity: dict[str, str]) -> ApiResponse:
        if call.method != "POST":
            raise _not_allowed()
        return json(reviews.answer(self.access, user, plural, parsed(call)) | identity, 201)

    def _token(self, call: ApiRequest, target: RequestTarget) -> ApiResponse:
        if call.method != "POST":
            raise _not_allowed()
        record = self.store.get(target.resource, (target.namespace, target.name))
        if record is None:
            raise not_found(target.resource, target.name)
        return json(self.access.service_account_tokens.issue(record, parsed(call)), 201)

    def _scale(self, call: ApiRequest, user: UserInfo, target: RequestTarget) -> ApiResponse:
        record = self.store.get(target.resource, (target.namespace, target.name))
        if record is None:
            raise not_found(target.resource, target.name)
        shown = scale.scale_of(record.obj)
        if call.method == "GET":
            return json(shown, 200)
        if call.method == "PATCH" and call.content_type.startswith("application/merge"):
            wanted = patch.merge_patch(shown, parsed(call))
        elif call.method == "PUT":
            wanted = parsed(call)
        else:
            raise _not_allowed()
        request = WriteRequest(
            target.resource, target.version, target.namespace, target.name, "",
            call.query, user, call.user_agent, [],
        )  # fmt: skip
        return json(
            scale.scale_of(self.writes.patch(request, lambda obj: scale.with_scale(obj, wanted)).obj), 200
        )

    # -- reading

    def _log(self, call: ApiRequest, target: RequestTarget) -> LogStream:
        if call.method != "GET":
            raise _not_allowed()
        record = self.store.get(target.resource, (target.namespace, target.name))
        if record is None:
            raise not_found(target.resource, target.name)
        return self.logs.open(record.obj, call.query)

    def _read(self, call: ApiRequest, target: RequestTarget) -> ApiResponse | WatchStream:
        read = ReadRequest(
            target.resource, target.version, target.namespace, call.query, _representation(call.accept)
        )
        headers = _warning_header(target.version.warning)
        if target.name:
            try:
                reads.check_version(self.store, read.query)
            except ValueError as error:
                raise internal(str(error)) from None
            record = self.store.get(target.resource, (target.namespace, target.name))
            if record is None:
                raise not_found(target.resource, target.name)
            return ApiResponse(200, read.render(record), headers=headers)
        options.check_list(read.query)
        if options.flag(read.query, "watch"):
            return reads.watch(self.store.by_resource[target.resource], read)
        return ApiResponse(200, reads.list_(self.store, read), headers=headers)

    # -- writing

    def _write(self, call: ApiRequest, user: UserInfo, target: RequestTarget) -> ApiResponse:
        query = call.query
        request = WriteRequest(
            target.resource, target.version, target.namespace, target.name, target.subresource,
            query, user, call.user_agent, [target.version.warning] if target.version.warning else [],
        )  # fmt: skip
        if kind := OPTIONS.get(call.method):
            options.check_write(query, kind, applies=call.content_type == APPLY)
        match call.method, bool(target.name):
            case "POST", False:
                self._needs_namespace(target)
                return self._created(request, self.writes.create(request, parsed(call)))
            case "PUT", True if self.writes.creates_by_put(request):
                self._check_create(request)
                return self._created(request, self.writes.create_by_put(request, parsed(call)))
            case "PUT", True:
                return self._object_response(request, self.writes.update(request, parsed(call)))
            case "PATCH", True:
                return self._patch(call, request)
            case "DELETE", True:
                return self._delete(request, _delete_options(call))
            case "DELETE", False:
                return self._delete_all(call, target, request)
        raise _not_allowed()

    def _needs_namespace(self, target: RequestTarget) -> None:
        if target.resource.namespaced and not target.namespace:
            raise bad_request("an empty namespace may not be set during creation")

    def _object_response(self, request: WriteRequest, record: Record, status: int = 200) -> ApiResponse:
        return ApiResponse(
            status, record.json(request.version.name), headers=_warning_header(*request.warnings)
        )

    def _created(self, request: WriteRequest, record: Record) -> ApiResponse:
        return self._object_response(request, record, 201)

    def _patch(self, call: ApiRequest, request: WriteRequest) -> ApiResponse:
        kind = call.content_type
        if kind not in PATCHES:
            raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type")
        if kind == STRATEGIC and request.resource.custom:
            raise unsupported([one for one in PATCHES if one != STRATEGIC])
        if kind == APPLY:
            there = self.store.get(request.resource, request.key) is not None
            if not there and not request.subresource:
                self._check_create(request)
            return self._object_response(
                request, self.writes.apply(request, parsed(call)), 200 if there else 201
            )
        if kind.startswith("application/json-patch"):
            operations = loads(call)
            return self._object_response(
                request, self.writes.patch(request, lambda obj: patch.json_patch(obj, operations))
            )
        body = parsed(call)
        if kind.startswith("application/merge"):
            return self._object_response(
                request, self.writes.patch(request, lambda obj: patch.merge_patch(obj, body))
            )
        schema = request.version.schema
        return self._object_response(
            request, self.writes.patch(request, lambda obj: patch.strategic_patch(schema, obj, body))
        )

    def _check_create(self, request: WriteRequest) -> None:
        """Raise 403 unless the user may create: applying a missing object creates it."""
        resource = request.resource
        action = RequestAttributes(
            "create", resource.group, resource.plural, "", request.namespace, request.name
        )
        self.access.authorize(request.user, action)

    def _delete(self, request: WriteRequest, wanted: dict[str, Any]) -> ApiResponse:
        record, gone = self.writes.delete(request, wanted)
        if not gone:
            return self._object_response(request, record)
        details = object_details(request.resource, request.name) | {"uid": record.uid}
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": details,
        }
        return ApiResponse(200, orjson.dumps(status), headers=_warning_header(*request.warnings))

    def _delete_all(self, call: ApiRequest, target: RequestTarget, request: WriteRequest) -> ApiResponse:
        if "deletecollection" not in target.resource.verbs:
            raise _not_allowed()
        read = ReadRequest(target.resource, target.version, target.namespace, request.query, PLAIN)
        wanted = _delete_options(call)
        records = list(reads.select(self.store.by_resource[target.resource], read))
        for record in records:
            namespace, name = record.key
            single = WriteRequest(
                request.resource,
                request.version,
                namespace,
                name,
                "",
                request.query,
                request.user,
                request.user_agent,
                [],
            )
            self.writes.delete(single, wanted)
        return ApiResponse(200, reads.list_json(read, records, {"resourceVersion": str(self.store.rv)}))


OPTIONS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}


def _delete_options(call: ApiRequest) -> dict[str, Any]:
    """Return the DeleteOptions of a request: the body's; without a body, the parameters."""
    query = call.query
    given = {"propagationPolicy": query.get("propagationPolicy"), "dryRun": query.get("dryRun")}
    wanted = {key: [one] if key == "dryRun" else one for key, one in given.items() if one}
    if call.body:
        wanted = parsed(call)
        if wanted.get("kind", "DeleteOptions") != "DeleteOptions":
            version = wanted.get("apiVersion", "v1")
            raise bad_request(f'no kind "{wanted["kind"]}" is registered for version "{version}" in scheme')
    options.check_delete(wanted)
    return wanted


def _not_allowed() -> StatusError:
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message)


def _has(target: RequestTarget) -> bool:
    if target.subresource == "status":
        return target.version.status
    return target.subresource in target.resource.subresources


def _representation(accept: str) -> str:
    """Return the first supported representation of an Accept header; raises 406 if there is none."""
    if not accept:
        return PLAIN
    for wish in accept.split(","):
        kind, *parameters = (part.strip() for part in wish.split(";"))
        if kind not in (JSON, YAML, "*/*", "application/*"):
            continue
        wanted = dict(part.partition("=")[::2] for part in parameters).get("as", "")
        if wanted in (TABLE, METADATA, METADATA + "List"):
            return wanted.removesuffix("List")
        if not wanted:
            return PLAIN
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(BODIES)}"
    raise StatusError(406, "NotAcceptable", message)


def in_yaml(answer: ApiResponse, accept: str) -> ApiResponse:
    """Return the response as YAML if that is the first type that the client accepts."""
    if answer.content_type != JSON or accept.partition(",")[0].partition(";")[0].strip() != YAML:
        return answer
    body = yaml.safe_dump(orjson.loads(answer.body), sort_keys=False).encode()
    return replace(answer, body=body, content_type=YAML)


def _warning_header(*warnings: str) -> dict[str, str]:
    quoted = [w.replace("\\", "\\\\").replace('"', '\\"') for w in warnings if w]
    return {"Warning": ", ".join(f'299 - "{warning}"' for warning in quoted)} if quoted else {}


def unsupported(accepted: Iterable[str]) -> StatusError:
    listed = ", ".join(accepted)
    message = f"the body of the request was in an unknown format - accepted media types include: {listed}"
    return StatusError(415, "UnsupportedMediaType", message)


def loads(call: ApiRequest) -> Any:
    """Return the parsed body; raises 415 for another content type, 400 if it does not match its own."""
    kind = call.content_type or JSON
    if kind not in (*BODIES, *PATCHES):
        raise unsupported(BODIES)
    if kind == protobuf.CONTENT_TYPE:
        return protobuf.decode(call.body)
    try:
        if kind.endswith("yaml") and not call.body.lstrip().startswith(b"{"):
            return yaml.safe_load(call.body)
        return orjson.loads(call.body)
    except (ValueError, yaml.YAMLError) as error:
        raise _undecodable(call, error) from error


def _undecodable(call: ApiRequest, why: object) -> StatusError:
    """Return the 400 for a body that is not of its content type."""
    words = "couldn't get version/kind" if call.method == "DELETE" else "the object provided is unrecognized"
    if call.method == "PATCH":
        words = f"error decoding {'YAML' if call.content_type == APPLY else 'patch'}"
    return bad_request(f"{words}: {why}")


def parsed(call: ApiRequest) -> dict[str, Any]:
    """Return the parsed body, which must be a map; raises 415 for an unsupported content type."""
    body = loads(call)
    if body is None:
        return {}
    if not isinstance(body, dict) or not isinstance(body.get("metadata", {}), dict | None):
        raise _undecodable(call, "not a map")
    return body
