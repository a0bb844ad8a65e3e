"""
The only HTTP client of API servers, apart from kopf's: discover, list, watch, read and write.

Each call makes one try, but for a command's client, which waits for a busy server; the caller decides by the
ApiError whether and when to try again.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Self, TypeVar
from urllib.parse import urlencode

import aiohttp
import orjson
import structlog

from placement_ac.core.api.constants import FIELD_MANAGER, Kind, Resource
from placement_ac.core.api.errors import (
    ApiError,
    Gone,
    Malformed,
    NotFound,
    NotLeading,
    Refused,
    TlsFailed,
    TooLarge,
    Unavailable,
)
from placement_ac.kube.budget import BudgetedReader, BudgetSpent
from placement_ac.kube.deep_json import MAX_LEVELS, name_of
from placement_ac.kube.login import Login, NoCredentials
from placement_ac.kube.responses import SKIPPED, event_of, object_of
from placement_ac.kube.tls import is_tls_error
from placement_ac.kube.write_fence import READ, WriteFence, fenced_request_class
from placement_ac.observability.logs import redacted

log = structlog.get_logger(__name__)

T = TypeVar("T")

Object = dict[str, Any]
WatchEvent = tuple[str, Object]
"""The type of an event (ADDED, MODIFIED, DELETED or BOOKMARK), and the object."""

RequestObserver = Callable[[str, int | None, float | None], None]
"""Called after each request with its verb, the HTTP status of its failure (0: no answer; None: it succeeded),
and its duration in seconds (None: it is a watch)."""

PAGE_SIZE = 500
"""Objects in a page of a list, as with kubectl."""
FIRST_PAGE_SIZE = 20
"""Objects in the first page, as their size is not known yet: 20 of the largest (etcd: 1.5 MB) have 30 MB."""
PAGE_BYTES = 4_000_000
"""About the size of the other pages: parsed, they take ten times as much memory."""
MAX_PAGE_BYTES = 8_000_000
"""A page with more is not read to its end, but asked for again with fewer objects; one object is always read.

The size of the objects before says little: large ones may follow small ones.
"""
TIMEOUT_SECONDS = 30.0
WATCH_SECONDS = 40
"""The `timeoutSeconds` of a watch: not every server sends bookmarks while nothing changes."""
WATCH_IDLE_SECONDS = 50.0
"""After this long without an event or the end of a watch, its connection is broken.

With the time for a new watch, less than a minute is lost.
"""
CONNECT_SECONDS = 10.0
COMMAND_RETRIES = 10
"""How often a command sends a request again that a server was too busy for, as kubectl does."""
MAX_CONNECTIONS = 32
"""The most connections, which take memory, unless the caller says otherwise."""
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON = "application/json"
METADATA = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"
"""The Accept header for the metadata of objects alone, {} being "List" for a list: a server that cannot leave
the rest out refuses with 406.
"""


@dataclass(frozen=True, slots=True)
class Listing:
    """A LIST or a page of one: the items, and the resourceVersion of the list."""

    items: tuple[Object, ...]
    resource_version: str
    kind: str = ""
    """The kind that the answer names, such as SecretList."""
    first: bool = True
    """Whether the list begins with this page, maybe again, since the pages before have expired."""
    last: bool = True
    """Whether the list is complete with this page."""
    skipped: int = 0
    """How many objects of the page are nested too deeply, and left out."""


class Client:
    """One API server. Every method raises subclasses of ApiError, nothing else.

    `write_fence` is called as late as possible, right before a write is sent. `reader`: reads all answers
    within its budget; none may be compressed then, and no page may have more objects than were asked for
    (None: a server that is trusted). `retries`: how often a request is sent again, after the time that the
    server names, when it answers 429; the controller has its own pauses.
    """

    def __init__(
        self,
        login: Login,
        *,
        field_manager: str = FIELD_MANAGER,
        timeout: float = TIMEOUT_SECONDS,
        on_request_end: RequestObserver = lambda *_: None,
        write_fence: WriteFence | None = None,
        reader: BudgetedReader | None = None,
        connections: int | None = None,
        retries: int = 0,
    ) -> None:
        self._login = login
        self._retries = retries
        self._connections = connections
        self._reader = reader
        self._field_manager = field_manager
        self._on_request_end = on_request_end
        self._timeout = timeout
        self._write_fence = write_fence
        self._session: aiohttp.ClientSession | None = None
        self._watch_session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        headers = {"User-Agent": self._field_manager, "Accept": JSON}
        if self._reader:
            headers["Accept-Encoding"] = "identity"
        fence = self._write_fence
        self._session = self._login.session(
            connections=self._connections or MAX_CONNECTIONS,
            timeout=aiohttp.ClientTimeout(total=None),  # each request has its own
            headers=headers,
            auto_decompress=self._reader is None,
            request_class=fenced_request_class(fence) if fence else aiohttp.ClientRequest,
        )
        # Watches last: they must not take connections from the writes.
        lasting = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
        self._watch_session = self._login.session(
            timeout=lasting, headers=headers, auto_decompress=self._reader is None
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        sessions = (self._session, self._watch_session)
        self._session = self._watch_session = None
        for session in sessions:
            if session:
                await session.close()

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return self._login.server

    @property
    def login(self) -> Login:
        """The credentials for it."""
        return self._login

    async def release(self) -> str:
        """Return the server's release, as `v1.35.0`; "" if it does not tell."""
        try:
            return str((await self.request("GET", "/version")).get("gitVersion") or "")
        except (NotFound, Refused):
            return ""

    async def discover(self, kinds: Iterable[Kind]) -> dict[Kind, Resource]:
        """Return those of `kinds` that the server has, each in the newest version that we support as well."""
        wanted = tuple(kinds)
        groups = dict.fromkeys(kind.group for kind in wanted)
        parts = await gather_all(
            self._discover_group(group, [kind for kind in wanted if kind.group == group]) for group in groups
        )
        served = {kind: resource for part in parts for kind, resource in part.items()}
        return {kind: served[kind] for kind in wanted if kind in served}

    async def _discover_group(self, group: str, kinds: Iterable[Kind]) -> dict[Kind, Resource]:
        served = await self._names_in(f"/apis/{group}", "versions", "version") if group else {"v1"}
        resources: dict[Kind, Resource] = {}
        plurals: dict[str, set[str]] = {}
        for kind in kinds:
            for version in (v for v in kind.versions if v in served):
                resource = kind.at(version)
                root = resource.path().rsplit("/", 1)[0]
                if root not in plurals:
                    plurals[root] = await self._names_in(root, "resources", "name")
                if kind.plural in plurals[root]:
                    resources[kind] = resource
                    break
        return resources

    async def _names_in(self, path: str, entries: str, name: str) -> set[str]:
        """Return a field of each entry of a discovery document; none if there is no such document."""
        try:
            answer = await self.request("GET", path)
        except NotFound:
            return set()
        return {entry[name] for entry in answer.get(entries) or ()}

    async def schema(self, resource: Resource) -> Object | None:
        """Return the OpenAPI v3 schema of `resource`; None if the server publishes none."""
        try:
            answer = await self.request("GET", f"/openapi/v3/apis/{resource.api_version}")
        except (NotFound, Refused):
            return None
        want = {"group": resource.of.group, "version": resource.version, "kind": resource.of.kind}
        for schema in (answer.get("components") or {}).get("schemas", {}).values():
            if want in (schema.get("x-kubernetes-group-version-kind") or ()):
                return dict(schema)
        return None

    async def list(
        self, resource: Resource, namespace: str | None = None, *, label_selector: str = ""
    ) -> Listing:
        """Return all objects, read page by page as in `pages`."""
        items: list[Object] = []
        version = ""
        async for page in self.pages(resource, namespace, limit=PAGE_SIZE, label_selector=label_selector):
            if page.first:
                items.clear()
            items += page.items
            version = page.resource_version
        return Listing(tuple(items), version)

    async def pages(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        limit: int,
        label_selector: str = "",
        metadata_only: bool = False,
    ) -> AsyncGenerator[Listing]:
        """Yield all objects in pages of at most `limit`, fewer if they are large.

        Begins again, once, when a page has expired. `metadata_only`: nothing but their metadata is sent.
        """
        selector = resource.selector | ({"labelSelector": label_selector} if label_selector else {})
        accept = METADATA.format("List") if metadata_only else ""
        try:
            async for page in self._pages(resource.path(namespace), selector, limit, accept):
                yield page
                del page  # two pages at a time would take twice the memory
        except Gone:
            async for page in self._pages(resource.path(namespace), selector, limit, accept):
                yield page
                del page

    async def _pages(
        self, path: str, selector: Mapping[str, str], limit: int, accept: str = ""
    ) -> AsyncGenerator[Listing]:
        budget = self._reader and self._reader.budget
        more, size = "", min(limit, FIRST_PAGE_SIZE)
        page_bytes = budget.page_bytes // 4 if budget else PAGE_BYTES  # the next may have larger objects
        tokens: set[int] = set()
        began, read = time.monotonic(), 0
        while True:
            query = {"limit": str(size), **selector} | ({"continue": more} if more else {})
            most = budget.page_bytes if budget else MAX_PAGE_BYTES if size > 1 else None
            send = partial(self._request, "GET", path, query=query, max_bytes=most, accept=accept)
            try:
                answer, length = await self._retried(send)
            except TooLarge as error:
                if size == 1 or isinstance(error, BudgetSpent):
                    raise
                size = max(size // 4, 1)
                continue
            metadata, items = answer.get("metadata") or {}, tuple(answer.get("items") or ())
            if budget and len(items) > size:  # to read them would block the event loop
                raise TooLarge(f"more than {size} objects in a page")
            skipped = answer.get(SKIPPED) or ()
            if skipped:
                _log_skipped(path, skipped)
            read += length
            version, kind = str(metadata.get("resourceVersion", "")), str(answer.get("kind"))
            del answer  # two pages at a time would take twice the memory
            size = max(min(limit, page_bytes * len(items) // length), 1) if items else size
            first, more = not more, str(metadata.get("continue") or "")
            yield Listing(items, version, kind, first=first, last=not more, skipped=len(skipped))
            del items
            if not more:
                return
            if hash(more) in tokens:
                raise TooLarge("the same page of a list again")
            tokens.add(hash(more))
            if budget:
                budget.check_list(len(tokens), read, time.monotonic() - began)

    async def watch(
        self,
        resource: Resource,
        resource_version: str,
        namespace: str | None = None,
        on_open: Callable[[], None] = lambda: None,
        *,
        initial_events: bool = False,
    ) -> AsyncGenerator[WatchEvent]:
        """Yield the events after `resource_version`, with bookmarks, until the server ends the watch.

        With "" the existing objects come first; with `initial_events`, a bookmark with the annotation
        INITIAL_EVENTS_END after them. `on_open` is called when the server has accepted the watch. Raises Gone
        if that version has expired, Malformed for a line that is no event.
        """
        path = resource.path(namespace)
        request = f"WATCH {path}"
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(WATCH_SECONDS),
        } | resource.selector
        if initial_events:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        try:
            async with await self._open_watch(path, query, WATCH_IDLE_SECONDS) as answer:
                on_open()
                rest = b""  # whole lines of any length; aiohttp's own readline stops at 64 KiB
                while chunk := await _next_chunk(answer):
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        change, item = event_of(line, request)
                        if change == SKIPPED:
                            _log_skipped(path, [name_of(item)])
                        else:
                            yield change, item
        except (ApiError, *_LOST_REQUEST_ERRORS) as error:
            raise self._failed(request, error, "watch", None) from None

    async def stream(self, path: str, query: Mapping[str, str]) -> AsyncGenerator[bytes]:
        """Yield the body of the answer to a GET as it comes, such as a Pod's log.

        It may take any time to begin and to go on: only the connection has a timeout.
        """
        try:
            async with await self._open_watch(path, query, None) as answer:
                async for part in answer.content.iter_any():
                    yield part
        except (ApiError, *_LOST_REQUEST_ERRORS) as error:
            raise self._failed(f"GET {path}", error, "stream", None) from None

    async def _open_watch(
        self, path: str, query: Mapping[str, str], seconds: float | None
    ) -> aiohttp.ClientResponse:
        """Return the answer to a watch that the server has accepted within `seconds`."""
        if self._watch_session is None:
            raise Unavailable("the client is closed")
        async with asyncio.timeout(seconds):
            answer = await self._watch_session.get(self._login.server + path, params=query)
            if answer.status >= 400:
                async with answer:
                    text = await self._read(answer)
                    object_of(answer.status, text, f"WATCH {path}", answer.headers.get("Retry-After"))
            if self._reader and answer.headers.get("Content-Encoding", "identity") != "identity":
                answer.close()
                raise Malformed(f"GET {path}: the answer is compressed, and nobody asked for that")
        return answer

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        return await self.request("GET", resource.path(namespace, name))

    async def exists(self, resource: Resource, name: str, namespace: str | None = None) -> bool:
        """Whether there is such an object: nothing but its metadata is sent."""
        try:
            path = resource.path(namespace, name)
            await self._retried(partial(self._request, "GET", path, accept=METADATA.format("")))
        except NotFound:
            return False
        return True

    async def find(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        """Return one object as `get` does, by the right to list."""
        path = resource.path(namespace)
        answer = await self.request("GET", path, query={"fieldSelector": f"metadata.name={name}"})
        for item in answer.get("items") or ():
            return dict(item)
        raise NotFound(f"GET {path}: there is no {name}", status=404)

    async def create(self, resource: Resource, body: Object) -> Object:
        metadata = body["metadata"]
        path = resource.path(metadata.get("namespace"))
        return await self.request("POST", path, body, query={"fieldManager": self._field_manager})

    async def put(self, resource: Resource, body: Object) -> Object:
        """Update the object if `body` has a resourceVersion, otherwise create it."""
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
        """Server-side apply `body` (apiVersion and kind are added) and return the resulting object.

        `manager`: a field manager other than this client's own.
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
        """Delete an object. Raises Conflict if it has another `uid` or `version` (None: any).

        Returns a Status when it is gone, or the object while a finalizer holds it.
        """
        required = {"uid": uid, "resourceVersion": version}
        preconditions = {key: value for key, value in required.items() if value}
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
        """Send one request, with `body` as JSON, and return the JSON object of the answer."""
        send = partial(self._request, method, path, body, query=query, content_type=content_type)
        return (await self._retried(send))[0]

    async def _retried(self, send: Callable[[], Awaitable[T]]) -> T:
        """Send a request, and again as often as `retries` says while the server is too busy for it."""
        for _ in range(self._retries):
            try:
                return await send()
            except Unavailable as error:
                if error.status != HTTPStatus.TOO_MANY_REQUESTS or error.retry_after is None:
                    raise
                await asyncio.sleep(error.retry_after)
        return await send()

    async def _request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = JSON,
        max_bytes: int | None = None,
        accept: str = "",
    ) -> tuple[Object, int]:
        """Return the JSON object of the answer, and its size in bytes. Raises TooLarge.

        `max_bytes`: of the answer, if it is not the one of the budget. `accept`: another form than JSON.
        """
        if self._session is None:
            raise Unavailable("the client is closed")
        verb = "list" if method == "GET" and query and "limit" in query else _VERBS[method]
        data = None if body is None else orjson.dumps(body)
        address = self._login.server + path + (f"?{urlencode(query)}" if query else "")
        headers = {} if body is None else {"Content-Type": content_type}
        headers |= {"Accept": accept} if accept else {}
        timeout = self._timeout
        if self._write_fence and method != READ:
            timeout = min(self._write_fence(), timeout)
        began = time.perf_counter()
        try:
            async with asyncio.timeout(timeout):
                async with self._session.request(method, address, data=data, headers=headers) as answer:
                    text = await self._read(answer, max_bytes)
                    retry_after = answer.headers.get("Retry-After")
                    result = object_of(answer.status, text, f"{method} {path}", retry_after), len(text)
        except (ApiError, *_LOST_REQUEST_ERRORS) as error:
            raise self._failed(f"{method} {path}", error, verb, time.perf_counter() - began) from None
        except AssertionError:  # aiohttp's, if its session was closed while the request waited for the login
            if self._session is not None:
                raise
            raise Unavailable("the client is closed") from None
        self._on_request_end(verb, None, time.perf_counter() - began)
        return result

    async def _read(self, answer: aiohttp.ClientResponse, max_bytes: int | None = None) -> bytes:
        """Return the body. Raises TooLarge."""
        if self._reader:
            return await self._reader.read(answer, max_bytes or self._reader.budget.answer_bytes)
        if max_bytes is None:
            return await answer.read()
        text = bytearray()
        async for chunk in answer.content.iter_any():
            text += chunk
            if len(text) > max_bytes:
                raise TooLarge(f"more than {max_bytes:,} bytes")
        return bytes(text)

    def _failed(self, request: str, error: BaseException, verb: str, seconds: float | None) -> BaseException:
        """Report a failed request to the observer, and return the error to raise."""
        failure = error if isinstance(error, ApiError) else _lost_request_error(request, error)
        # Without a lead nothing was sent, and a smaller page follows one that is too large.
        if isinstance(failure, ApiError) and not isinstance(failure, (NotLeading, TooLarge)):
            self._on_request_end(verb, failure.status, seconds)
        return failure


def _log_skipped(path: str, names: Sequence[str]) -> None:
    log.warning("objects are nested too deeply and left out", path=path, names=names, most_levels=MAX_LEVELS)


async def gather_all(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results of all; raise the first error when all have ended, so that none goes on alone."""
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
    """Return the error for a request without an answer: Unavailable, or CancelledError for the caller.

    When kopf ends it cancels every task that is younger than itself, such as a name lookup of aiohttp, so a
    CancelledError means that the caller was cancelled only if its own task is being cancelled.
    """
    if isinstance(loss, TimeoutError):
        return Unavailable(f"{request}: no answer in time")
    if isinstance(loss, NoCredentials):
        return Unavailable(str(loss))
    if isinstance(loss, Exception):
        kind = TlsFailed if is_tls_error(loss) else Unavailable
        return kind(f"{request}: {redacted(loss)}")
    caller = asyncio.current_task()
    return loss if caller is None or caller.cancelling() else Unavailable(f"{request}: cut short")


async def _next_chunk(answer: aiohttp.ClientResponse) -> bytes:
    """Return the next bytes of a watch; b"": the server has ended it. Raises TimeoutError."""
    async with asyncio.timeout(WATCH_IDLE_SECONDS):
        return await answer.content.readany()
