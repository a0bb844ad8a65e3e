"""
The only place that speaks HTTP to an API server: discover, list, read, apply, delete; and its errors.

One try per call: whoever calls decides when to try again, with what `errors` tells.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import aiohttp
import orjson

from placement_ac.errors import ApiError, Conflict, Gone, NotFound, Refused, Unavailable
from placement_ac.login import Login
from placement_ac.names import FIELD_MANAGER, Kind, Resource

Object = dict[str, Any]

PAGE = 500
"""Objects asked for at once, as kubectl does."""
TIMEOUT_SECONDS = 30.0
RETRY_AFTER_MOST_SECONDS = 60.0
"""The most that `Retry-After` may ask for: an answer "in an hour" must not outlive what it was about."""
CONNECTIONS = 32
"""Requests under way at once: a burst of changes must not become a burst of connections."""
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Listing:
    """What a LIST gave: the items, and the version that the list as a whole has."""

    items: tuple[Object, ...]
    resource_version: str


class Client:
    """One API server. Every method raises ApiError's children, nothing else."""

    def __init__(
        self, login: Login, *, field_manager: str = FIELD_MANAGER, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        self._login = login
        self._manager = field_manager
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = self._login.session(
            connections=CONNECTIONS,
            timeout=self._timeout,
            headers={"User-Agent": self._manager, "Accept": JSON},
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()
            self._session = None

    async def discover(self, kinds: Iterable[Kind]) -> dict[Kind, Resource]:
        """Return those of `kinds` that the hub serves, each in the newest version that both know."""
        groups = {kind.group for kind in kinds}
        served = {group: await self._served_versions(group) for group in groups}
        found: dict[Kind, Resource] = {}
        lists: dict[str, set[str]] = {}
        for kind in kinds:
            for version in (v for v in kind.versions if v in served[kind.group]):
                resource = kind.at(version)
                root = resource.path().rsplit("/", 1)[0]
                if root not in lists:
                    lists[root] = await self._plurals(root)
                if kind.plural in lists[root]:
                    found[kind] = resource
                    break
        return found

    async def _served_versions(self, group: str) -> set[str]:
        if not group:
            return {"v1"}
        try:
            answer = await self.request("GET", f"/apis/{group}")
        except NotFound:
            return set()
        return {entry["version"] for entry in answer.get("versions") or ()}

    async def _plurals(self, root: str) -> set[str]:
        try:
            answer = await self.request("GET", root)
        except NotFound:
            return set()
        return {entry["name"] for entry in answer.get("resources") or ()}

    async def schema(self, resource: Resource) -> Object | None:
        """Return the OpenAPI v3 schema that the hub publishes for `resource`; None when it tells none."""
        try:
            answer = await self.request("GET", f"/openapi/v3/apis/{resource.api_version}")
        except (NotFound, Refused):
            return None
        want = {"group": resource.of.group, "version": resource.version, "kind": resource.of.kind}
        for schema in (answer.get("components") or {}).get("schemas", {}).values():
            if want in (schema.get("x-kubernetes-group-version-kind") or ()):
                return dict(schema)
        return None

    async def list(self, resource: Resource, namespace: str | None = None) -> Listing:
        """Return all objects, page by page; begins again when a page has expired."""
        try:
            return await self._list_pages(resource, namespace)
        except Gone:
            return await self._list_pages(resource, namespace)

    async def _list_pages(self, resource: Resource, namespace: str | None) -> Listing:
        items: list[Object] = []
        query = {"limit": str(PAGE)}
        while True:
            answer = await self.request("GET", resource.path(namespace), query=query)
            items += answer.get("items") or ()
            metadata = answer.get("metadata") or {}
            if not metadata.get("continue"):
                return Listing(tuple(items), str(metadata.get("resourceVersion", "")))
            query = {"limit": str(PAGE), "continue": metadata["continue"]}

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        return await self.request("GET", resource.path(namespace, name))

    async def create(self, resource: Resource, body: Object) -> Object:
        metadata = body["metadata"]
        path = resource.path(metadata.get("namespace"))
        return await self.request("POST", path, body, query={"fieldManager": self._manager})

    async def apply(
        self, resource: Resource, body: Object, *, subresource: str = "", force: bool = False
    ) -> Object:
        """Server-side apply `body` (apiVersion and kind are filled in) and return what came of it."""
        metadata = body["metadata"]
        path = resource.path(metadata.get("namespace"), metadata["name"], subresource)
        query = {"fieldManager": self._manager} | ({"force": "true"} if force else {})
        whole = {"apiVersion": resource.api_version, "kind": resource.of.kind} | body
        return await self.request("PATCH", path, whole, query=query, content_type=APPLY)

    async def merge(
        self,
        resource: Resource,
        name: str,
        patch: Object,
        *,
        namespace: str | None = None,
        subresource: str = "",
    ) -> Object:
        """JSON merge patch."""
        path = resource.path(namespace, name, subresource)
        return await self.request(
            "PATCH", path, patch, query={"fieldManager": self._manager}, content_type=MERGE
        )

    async def delete(
        self, resource: Resource, name: str, namespace: str | None = None, *, uid: str | None = None
    ) -> Object:
        """Delete that very object: with `uid`, another one of the same name stays (Conflict).

        Returns a Status when it has gone, or the object when a finalizer still holds it.
        """
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}} if uid else None
        return await self.request("DELETE", resource.path(namespace, name), body)

    async def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = JSON,
    ) -> Object:
        """Send one request and return the JSON object that answers it."""
        if self._session is None:
            raise Unavailable("the client is closed")
        data = None if body is None else orjson.dumps(body)
        headers = {} if body is None else {"Content-Type": content_type}
        try:
            async with self._session.request(
                method, self._login.server + path, params=query, data=data, headers=headers
            ) as answer:
                return _read(answer, await answer.read(), f"{method} {path}")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unavailable(f"{method} {path}: {type(error).__name__}: {error}") from None


def _read(answer: aiohttp.ClientResponse, text: bytes, request: str) -> Object:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    if answer.status >= 400:
        raise error_of(answer.status, value, request, answer.headers.get("Retry-After"))
    if not isinstance(value, dict):
        raise Unavailable(f"{request}: the answer is no JSON object", status=answer.status)
    return value


def error_of(status: int, value: object, request: str, retry_after: str | None = None) -> ApiError:
    """Return the error for an answer: `value` is the Status object, if it was one."""
    told = value if isinstance(value, dict) else {}
    message = str(told.get("message") or f"{request}: HTTP {status}")
    reason = str(told.get("reason") or "")
    wait = _seconds(retry_after)
    kind = _KINDS.get(status) or (Unavailable if status >= 500 else Refused)
    return kind(message, status=status, reason=reason, retry_after=wait)


_KINDS: dict[int, type[ApiError]] = {
    401: Unavailable,
    404: NotFound,
    408: Unavailable,
    409: Conflict,
    410: Gone,
    429: Unavailable,
}


def _seconds(retry_after: str | None) -> float | None:
    try:
        return min(max(0.0, float(retry_after)), RETRY_AFTER_MOST_SECONDS) if retry_after else None
    except ValueError:
        return None
