"""
The only place that speaks HTTP to an API server: discover, list, watch, read, apply, delete; its errors.

One try per call: whoever calls decides when to try again, with what `errors` tells.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar
from urllib.parse import urlencode

import aiohttp
import orjson

from placement_ac.core.api.constants import FIELD_MANAGER, Kind, Resource
from placement_ac.core.api.errors import ApiError, Gone, NotFound, NotLeading, Refused, Unavailable
from placement_ac.kube.login import Login
from placement_ac.kube.responses import event_of, object_of
from placement_ac.kube.write_fence import READ, WriteFence, fenced_request_class
from placement_ac.observability.logs import redacted

T = TypeVar("T")

Object = dict[str, Any]
WatchEvent = tuple[str, Object]
"""What a watch tells: ADDED, MODIFIED, DELETED or BOOKMARK, and the object."""

RequestObserver = Callable[[str, int | None, float | None], None]
"""Told of each request: its verb, the HTTP code of its failure (0: no answer; None: it went well), and the
seconds that it took (None: it is a watch, which lasts)."""

PAGE_SIZE = 500
"""Objects asked for at once, as kubectl does."""
TIMEOUT_SECONDS = 30.0
WATCH_SECONDS = 40
"""The server is asked to end a watch after this time: not every server sends bookmarks while all is quiet."""
WATCH_IDLE_SECONDS = 50.0
"""A watch on which nothing has come for this long, not even its end, has been cut on the way.

With what it takes to begin anew, less than a minute is lost.
"""
CONNECT_SECONDS = 10.0
MAX_CONNECTIONS = 32
"""Requests under way at once: a burst of changes must not become one of connections, which take memory."""
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Listing:
    """What a LIST gave: the items, and the version that the list as a whole has."""

    items: tuple[Object, ...]
    resource_version: str


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a LIST. With a `first` one the list begins, maybe anew: what came before has expired."""

    items: tuple[Object, ...]
    resource_version: str
    first: bool


class Client:
    """One API server. Every method raises ApiError's children, nothing else.

    With a `write_fence`, what writes is asked there as late as can be, right before it goes out.
    """

    def __init__(
        self,
        login: Login,
        *,
        field_manager: str = FIELD_MANAGER,
        timeout: float = TIMEOUT_SECONDS,
        on_request_end: RequestObserver = lambda *_: None,
        write_fence: WriteFence | None = None,
    ) -> None:
        self._login = login
        self._field_manager = field_manager
        self._on_request_end = on_request_end
        self._timeout = timeout
        self._write_fence = write_fence
        self._session: aiohttp.ClientSession | None = None
        self._watch_session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        headers = {"User-Agent": self._field_manager, "Accept": JSON}
        self._session = self._login.session(
            connections=MAX_CONNECTIONS,
            timeout=aiohttp.ClientTimeout(total=None),  # each request has its own
            headers=headers,
            request_class=fenced_request_class(self._write_fence)
            if self._write_fence
            else aiohttp.ClientRequest,
        )
        # A watch lasts: it must not take a connection from the writes.
        lasting = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
        self._watch_session = self._login.session(timeout=lasting, headers=headers)
        return self

    async def __aexit__(self, *_: object) -> None:
        for session in (self._session, self._watch_session):
            if session:
                await session.close()
        self._session = self._watch_session = None

    async def discover(self, kinds: Iterable[Kind]) -> dict[Kind, Resource]:
        """Return those of `kinds` that the hub serves, each in the newest version that both know."""
        wanted = tuple(kinds)
        groups = dict.fromkeys(kind.group for kind in wanted)
        parts = await gather_all(
            self._discover_group(group, [kind for kind in wanted if kind.group == group]) for group in groups
        )
        found = {kind: resource for part in parts for kind, resource in part.items()}
        return {kind: found[kind] for kind in wanted if kind in found}

    async def _discover_group(self, group: str, kinds: Iterable[Kind]) -> dict[Kind, Resource]:
        served = await self._served_versions(group)
        found: dict[Kind, Resource] = {}
        lists: dict[str, set[str]] = {}
        for kind in kinds:
            for version in (v for v in kind.versions if v in served):
                resource = kind.at(version)
                root = resource.path().rsplit("/", 1)[0]
                if root not in lists:
                    lists[root] = await self._resource_names(root)
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

    async def _resource_names(self, root: str) -> set[str]:
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
        items: list[Object] = []
        version = ""
        async for page in self.pages(resource, namespace, limit=PAGE_SIZE):
            if page.first:
                items.clear()
            items += page.items
            version = page.resource_version
        return Listing(tuple(items), version)

    async def pages(
        self, resource: Resource, namespace: str | None = None, *, limit: int
    ) -> AsyncGenerator[Page]:
        """Yield all objects, at most `limit` at once; begins again, once, when a page has expired."""
        try:
            async for page in self._pages(resource, namespace, limit):
                yield page
        except Gone:
            async for page in self._pages(resource, namespace, limit):
                yield page

    async def _pages(self, resource: Resource, namespace: str | None, limit: int) -> AsyncGenerator[Page]:
        more = ""
        while True:
            query = {"limit": str(limit)} | resource.selector | ({"continue": more} if more else {})
            answer = await self.request("GET", resource.path(namespace), query=query)
            metadata = answer.get("metadata") or {}
            version = str(metadata.get("resourceVersion", ""))
            yield Page(tuple(answer.get("items") or ()), version, first=not more)
            more = str(metadata.get("continue") or "")
            if not more:
                return

    async def watch(
        self,
        resource: Resource,
        resource_version: str,
        namespace: str | None = None,
        on_open: Callable[[], None] = lambda: None,
    ) -> AsyncGenerator[WatchEvent]:
        """Yield what happens after `resource_version`, bookmarks too, until the server ends the watch.

        With "" it begins with what there is. `opened` is called when the server has agreed to it.

        Raises Gone when that version is forgotten, Garbled for what is no event.
        """
        path = resource.path(namespace)
        request = f"WATCH {path}"
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(WATCH_SECONDS),
        } | resource.selector
        try:
            async with await self._open_watch(path, query) as answer:
                on_open()
                rest = b""  # whole lines of any length; aiohttp's own readline stops at 64 KiB
                while chunk := await _next_chunk(answer):
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        yield event_of(line, request)
        except (ApiError, *_LOST_REQUEST_ERRORS) as error:
            raise self._failed(request, error, "watch", None) from None

    async def _open_watch(self, path: str, query: Mapping[str, str]) -> aiohttp.ClientResponse:
        """Return the answer to a watch that the server has agreed to."""
        if self._watch_session is None:
            raise Unavailable("the client is closed")
        async with asyncio.timeout(WATCH_IDLE_SECONDS):
            answer = await self._watch_session.get(self._login.server + path, params=query)
            if answer.status >= 400:
                async with answer:
                    await _read(answer, f"WATCH {path}")
        return answer

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        return await self.request("GET", resource.path(namespace, name))

    async def create(self, resource: Resource, body: Object) -> Object:
        metadata = body["metadata"]
        path = resource.path(metadata.get("namespace"))
        return await self.request("POST", path, body, query={"fieldManager": self._field_manager})

    async def put(self, resource: Resource, body: Object) -> Object:
        """Put `body` in the place of the version that it has; create it if it has none."""
        metadata = body["metadata"]
        if not metadata.get("resourceVersion"):
            return await self.create(resource, body)
        path = resource.path(metadata.get("namespace"), metadata["name"])
        return await self.request("PUT", path, body, query={"fieldManager": self._field_manager})

    async def apply(
        self,
        resource: Resource,
        body: Object,
        *,
        subresource: str = "",
        force: bool = False,
        manager: str | None = None,
    ) -> Object:
        """Server-side apply `body` (apiVersion and kind are filled in) and return what came of it.

        With `manager` it is applied as another field manager than this client's own.
        """
        metadata = body["metadata"]
        path = resource.path(metadata.get("namespace"), metadata["name"], subresource)
        query = {"fieldManager": manager or self._field_manager} | ({"force": "true"} if force else {})
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
            "PATCH", path, patch, query={"fieldManager": self._field_manager}, content_type=MERGE
        )

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        version: str | None = None,
    ) -> Object:
        """Delete that very object: with `uid`, another one of the same name stays (Conflict).

        With `version`, so does one that has changed since. Returns a Status when it has gone, or the object
        when a finalizer still holds it.
        """
        wanted = {"uid": uid, "resourceVersion": version}
        preconditions = {key: value for key, value in wanted.items() if value}
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
        body = options if preconditions else None
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
        """Send one request, with `body` as JSON, and return the JSON object that answers it."""
        if self._session is None:
            raise Unavailable("the client is closed")
        verb = "list" if method == "GET" and query and "limit" in query else _VERBS[method]
        data = None if body is None else orjson.dumps(body)
        address = self._login.server + path + (f"?{urlencode(query)}" if query else "")
        headers = {} if body is None else {"Content-Type": content_type}
        timeout = self._timeout
        if self._write_fence and method != READ:
            timeout = min(self._write_fence(), timeout)
        began = time.perf_counter()
        try:
            async with asyncio.timeout(timeout):
                async with self._session.request(method, address, data=data, headers=headers) as answer:
                    found = await _read(answer, f"{method} {path}")
        except (ApiError, *_LOST_REQUEST_ERRORS) as error:
            raise self._failed(f"{method} {path}", error, verb, time.perf_counter() - began) from None
        self._on_request_end(verb, None, time.perf_counter() - began)
        return found

    def _failed(self, request: str, error: BaseException, verb: str, seconds: float | None) -> BaseException:
        """Tell of a request that failed, and return what is to be raised."""
        failure = error if isinstance(error, ApiError) else _lost_request_error(request, error)
        if isinstance(failure, ApiError) and not isinstance(failure, NotLeading):  # then nothing was asked
            self._on_request_end(verb, failure.status, seconds)
        return failure


async def gather_all(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return what all of them give; raises the first error, when all have ended: none goes on alone."""
    answers = await asyncio.gather(*coroutines, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return [answer for answer in answers if not isinstance(answer, BaseException)]


_VERBS: Mapping[str, str] = {
    "GET": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}


_LOST_REQUEST_ERRORS = (aiohttp.ClientError, TimeoutError, OSError, asyncio.CancelledError)


def _lost_request_error(request: str, loss: BaseException) -> BaseException:
    """Return what the loss of a request is to us: Unavailable, or that who asks was cancelled.

    The end of a task that aiohttp has for it, to look up a name, is a loss too: kopf, when it ends, cancels
    every task that is younger than itself. Who asks was cancelled only if somebody has cancelled that very
    task.
    """
    if isinstance(loss, TimeoutError):
        return Unavailable(f"{request}: no answer in time")
    if isinstance(loss, Exception):
        return Unavailable(f"{request}: {redacted(loss)}")
    asks = asyncio.current_task()
    return loss if asks is None or asks.cancelling() else Unavailable(f"{request}: cut short")


async def _read(answer: aiohttp.ClientResponse, request: str) -> Object:
    return object_of(answer.status, await answer.read(), request, answer.headers.get("Retry-After"))


async def _next_chunk(answer: aiohttp.ClientResponse) -> bytes:
    """Return what comes next over a watch; b"": the server has ended it. Raises TimeoutError."""
    async with asyncio.timeout(WATCH_IDLE_SECONDS):
        return await answer.content.readany()
