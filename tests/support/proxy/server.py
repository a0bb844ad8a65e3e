"""
`Proxy`: serves what an API server answers, with faults, outages, a journal and users of its own.

It has the methods of `placement_lab.hub.Hub` that tests use, in its own thread. Bodies and headers pass
unchanged; the API server sees the admin, who impersonates the users.
"""

import asyncio
import random
import ssl
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import parse_qsl

import aiohttp
from aiohttp import web
from aiohttp.web_request import BaseRequest
from multidict import CIMultiDict
from yarl import URL

from placement_lab.hub import frontend
from placement_lab.hub.api import error_response
from placement_lab.hub.errors import StatusError
from placement_lab.hub.faults import Fault, Faults, RecordedRequest
from placement_lab.hub.frontend import CUT, fault_response, send_slowly
from placement_lab.hub.http_server import ADMIN, HttpServer
from placement_lab.hub.request_attributes import attributes_of
from placement_lab.hub.watch import error_line
from tests.support.proxy.history import ForgottenHistory
from tests.support.proxy.users import Identity, Users
from tests.support.proxy.watches import Watches, WatchRelay

OF_ONE_CONNECTION = (
    "Connection",
    "Content-Length",
    "Expect",
    "Keep-Alive",
    "Proxy-Connection",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
)
"""Headers that do not pass: each connection has its own."""
AUTOMATIC = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
RBAC = "/apis/rbac.authorization.k8s.io/"
CONFIGMAPS = "/api/v1/namespaces/kube-system/configmaps"


@dataclass(frozen=True, slots=True)
class Upstream:
    """
    An API server and its admin. `tls`: the context for https, None for http.

    `rbac_lag`: the seconds after which a changed role counts; a real one learns of it by a watch.
    """

    url: str
    token: str
    tls: ssl.SSLContext | None = None
    rbac_lag: float = 0.0


@dataclass(slots=True)
class Call:
    """One request of a client."""

    method: str
    path: str
    target: str
    headers: CIMultiDict[str]
    body: bytes
    query: dict[str, str] = field(init=False)
    agent: str = field(init=False)

    def __post_init__(self) -> None:
        self.query = dict(parse_qsl(self.target.partition("?")[2], keep_blank_values=True))
        self.agent = self.headers.get("User-Agent", "")

    @property
    def watches(self) -> bool:
        return self.method == "GET" and self.query.get("watch") in ("true", "1")


@dataclass(slots=True)
class Answer:
    """The API server's answer: `body` for a plain one, `stream` for a watch."""

    status: int
    headers: CIMultiDict[str]
    user: str = ""
    body: bytes = b""
    stream: AsyncIterator[bytes] | None = None
    source: aiohttp.ClientResponse | None = None

    def close(self) -> None:
        if self.source is not None:
            self.source.close()


class Proxy(HttpServer):
    """In front of `upstream`. The kubeconfig and the token are those of an admin."""

    def __init__(self, upstream: Upstream, host: str = "127.0.0.1", port: int = 0) -> None:
        super().__init__(host, port)
        self.journal: list[RecordedRequest] = []
        self.faults = Faults()
        self._upstream = upstream
        self._users = Users(upstream.token)
        self.token = self._users.add(ADMIN)
        self._watches = Watches()
        self._history = ForgottenHistory()
        self._session: aiohttp.ClientSession | None = None

    def _handler(self) -> web.Server:
        return web.Server(self._handle, access_log=None, keepalive_timeout=3600.0)

    async def _close(self) -> None:
        if self._session is not None:
            await self._session.close()
        await super()._close()

    # -- the interface of `Hub`

    @property
    def watched(self) -> dict[tuple[str, str], int]:
        return dict(self._watches.sent)

    def watchers(self, resource: str) -> int:
        return sum(watch.resource == resource for watch in tuple(self._watches.open))

    def add_user(self, name: str, token: str | None = None, groups: Sequence[str] | None = None) -> str:
        return self._users.add(name, token, groups)

    def expire_token(self, token: str) -> None:
        self._users.expire(token)

    def forget_history(self) -> None:
        """Answer 410 to whatever needs a version before now, as after a compaction of etcd."""
        self._run(self._forget())

    async def _forget(self) -> None:
        """The API server writes once, so that its next lists have a version that is not forgotten."""
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "history-"}}
        async with self._request("POST", CONFIGMAPS, json=body) as answer:
            created = await answer.json()
        self._history.oldest = int(created["metadata"]["resourceVersion"])
        async with self._request("DELETE", f"{CONFIGMAPS}/{created['metadata']['name']}"):
            pass

    def drop_watches(
        self,
        how: Literal["close", "hang", "garbage", "error-410", "error-500"] = "close",
        resource: str | None = None,
        agent: str | tuple[str, ...] = "",
    ) -> None:
        def drop() -> None:
            for watch in self._watches.chosen(resource, agent):
                watch.drop(how)

        self._in_loop(drop)

    def repeat_history(self, chance: random.Random, agent: str | tuple[str, ...] = "") -> None:
        def repeat() -> None:
            for watch in self._watches.chosen(None, agent):
                watch.replay(chance)

        self._in_loop(repeat)

    def reset(self, token: str | None = None) -> None:
        """Close all connections, and forget journal, faults and users; the admin may get another token."""
        self.go_down()
        self.faults.clear()
        self.journal.clear()
        self._users.clear()
        self.token = self._users.add(ADMIN, token or self.token)
        self._history.oldest = 0
        self._run(self._end_watches())
        self._client_ca = None
        self._renew_tls()
        self.come_back()

    async def _end_watches(self) -> None:
        """End them before anything is deleted: their clients are gone, and what they send would count."""
        while self._watches.open:
            for watch in tuple(self._watches.open):
                watch.finish()
            await asyncio.sleep(0.01)
        self._watches.forget()

    # -- requests

    async def _handle(self, request: BaseRequest) -> web.StreamResponse:
        body = await request.content.read() if request.body_exists else b""
        call = Call(request.method, request.path, request.raw_path, CIMultiDict(request.headers), body)
        fault = self.faults.take(call.method, call.path, call.agent)
        try:
            return await (self._fail(request, call, fault) if fault else self._serve(request, call))
        except aiohttp.ClientError:  # the API server closed the connection, and so does the proxy
            self._note(call, "", CUT)
            return _cut(request)

    async def _fail(self, request: BaseRequest, call: Call, fault: Fault) -> web.StreamResponse:
        done = await self._forward(call) if fault.after else None
        if fault.delay:
            await asyncio.sleep(fault.delay)
        if done is not None and (fault.hang_up or fault.status is not None):
            done.close()
        if fault.hang_up:
            self._note(call, "", CUT)
            return _cut(request)
        if fault.status is not None:
            self._note(call, "", fault.status)
            content = fault_response(fault)
            headers = {"Content-Type": content.content_type, **fault.headers}
            response: web.StreamResponse = web.Response(
                status=content.status, body=content.body, headers=headers
            )
        else:
            response = await self._serve(request, call, done)
        return await send_slowly(request, response, fault.slow_body)

    async def _serve(
        self, request: BaseRequest, call: Call, done: Answer | None = None
    ) -> web.StreamResponse:
        answer = done or await self._forward(call)
        self._note(call, answer.user, answer.status)
        if answer.stream is not None:
            return await self._relay(request, call, answer, answer.stream)
        return web.Response(status=answer.status, body=answer.body, headers=answer.headers)

    async def _forward(self, call: Call) -> Answer:
        """Return the API server's answer; a watch is only begun."""
        identity = self._users.identify(call.headers.get("Authorization", ""))
        if call.method == "GET" and (error := self._history.error_of(call.query)) is not None:
            return _expired(call, identity, error)
        headers = CIMultiDict(call.headers)
        identity.replace_in(headers)
        source = await self._request(
            call.method, call.target, data=call.body or None, headers=_passing(headers)
        )
        passed = _passing(source.headers)
        user = "" if source.status == 401 else identity.name
        if call.watches and source.status == 200:
            return Answer(200, passed, user, stream=source.content.iter_any(), source=source)
        async with source:
            body = await source.read()
        if call.method != "GET" and RBAC in call.path:
            await asyncio.sleep(self._upstream.rbac_lag)
        return Answer(source.status, passed, user, body=body)

    async def _relay(
        self, request: BaseRequest, call: Call, answer: Answer, stream: AsyncIterator[bytes]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers=answer.headers)
        resource = attributes_of(call.method, call.path, call.query).resource
        kind, encoding = answer.headers.get("Content-Type", ""), answer.headers.get("Content-Encoding")
        lines = kind.startswith("application/json") and not encoding
        past = self._watches.past_of(call.path, call.query)
        watch = WatchRelay(resource, call.agent, past, stream, lines=lines)
        self._watches.open[watch] = None

        async def send(data: bytes) -> None:
            self._watches.sent[call.agent, resource] += len(data)
            await response.write(data)

        try:
            with suppress(ConnectionError):  # the client has disconnected
                await response.prepare(request)
                await watch.run(send, lambda: _is_open(request))
        finally:
            del self._watches.open[watch]
            answer.close()
        return response

    def _request(self, method: str, target: str, **options: Any) -> Any:
        """Send a request to the API server, as its admin unless there are headers."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                auto_decompress=False,
                connector=aiohttp.TCPConnector(limit=0, ssl=self._upstream.tls or True),
                skip_auto_headers=AUTOMATIC,
                timeout=aiohttp.ClientTimeout(),
            )
        options.setdefault("headers", {"Authorization": f"Bearer {self._upstream.token}"})
        url = URL(self._upstream.url + target, encoded=True)
        return self._session.request(method, url, allow_redirects=False, **options)

    def _note(self, call: Call, user: str, status: int) -> None:
        if len(self.journal) >= frontend.JOURNAL_LENGTH:
            del self.journal[: frontend.JOURNAL_LENGTH // 2]
        entry = RecordedRequest(
            at=time.time(),
            method=call.method,
            path=call.path,
            query=call.query,
            user=user,
            user_agent=call.agent,
            status=status,
            raw=call.body,
        )
        self.journal.append(entry)


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


def _expired(call: Call, identity: Identity, error: StatusError) -> Answer:
    headers = CIMultiDict({"Content-Type": "application/json"})
    if call.watches:
        return Answer(200, headers, identity.name, stream=_once(error_line(error)))
    content = error_response(error)
    return Answer(content.status, headers, identity.name, body=content.body)


def _passing(headers: Any) -> CIMultiDict[str]:
    passing = CIMultiDict(headers)
    for name in OF_ONE_CONNECTION:
        passing.popall(name, None)
    return passing


def _is_open(request: BaseRequest) -> bool:
    return request.transport is not None and not request.transport.is_closing()


def _cut(request: BaseRequest) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
