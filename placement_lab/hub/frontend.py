"""
The HTTP frontend: pass requests from aiohttp to `ApiHandler` and send its responses and watch streams.

Injects the faults and records the requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from aiohttp import web

from placement_lab.hub.api import Answer, ApiHandler, ApiRequest, ApiResponse, error_response, json
from placement_lab.hub.errors import StatusError
from placement_lab.hub.faults import Fault, Faults, RecordedRequest
from placement_lab.hub.pod_logs import LogStream
from placement_lab.hub.users import Impersonation
from placement_lab.hub.watch import WatchStream

if TYPE_CHECKING:
    from aiohttp.web_request import BaseRequest
    from multidict import CIMultiDictProxy

JOURNAL_LENGTH = 100_000  # requests; when it is full, the older half is dropped
LARGEST_BODY = 3 * 2**20  # bytes, as a real server
SLOW_PIECES = 10  # of a slow body
CUT = 0  # the recorded status of a request whose connection was closed


class HttpFrontend:
    """Serves requests with `api`. `watches`: the open watches and the User-Agent of each.

    `watched`: the bytes that watches have sent, by User-Agent and plural name of the kind.
    """

    def __init__(self, api: ApiHandler, faults: Faults, journal: list[RecordedRequest]) -> None:
        self.api, self.faults, self.journal = api, faults, journal
        self.watched: Counter[tuple[str, str]] = Counter()
        self.watches: dict[WatchStream, str] = {}

    def server(self) -> web.Server:
        loop = asyncio.get_running_loop()

        def request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> BaseRequest:
            parts = message, payload, protocol, writer, task
            return web.BaseRequest(*parts, loop, client_max_size=LARGEST_BODY)

        return web.Server(self.handle, request_factory=request, access_log=None, keepalive_timeout=3600.0)

    async def handle(self, request: BaseRequest) -> web.StreamResponse:
        try:
            call = await self._call(request)
        except web.HTTPRequestEntityTooLarge:
            too_large = StatusError(413, "RequestEntityTooLarge", f"limit is {LARGEST_BODY} bytes")
            answer = error_response(too_large)
            return web.Response(status=413, body=answer.body, headers={"Content-Type": answer.content_type})
        fault = self.faults.take(call.method, call.path, call.user_agent)
        if fault is None:
            return await self._serve(request, call)
        done = self.api.handle(call) if fault.after else None
        if fault.delay:
            await asyncio.sleep(fault.delay)
        if fault.hang_up:
            self._note(call, "", CUT)
            return self._cut(request)
        if fault.status is not None:
            response: web.StreamResponse = self._plain(call, "", fault_response(fault), fault.headers)
        else:
            response = await self._serve(request, call, done)
        return await send_slowly(request, response, fault.slow_body)

    async def _call(self, request: BaseRequest) -> ApiRequest:
        headers = request.headers
        body = await request.read() if request.body_exists else b""
        return ApiRequest(
            method=request.method,
            path=request.path,
            query_string=request.rel_url.raw_query_string,
            body=body,
            content_type=headers.get("Content-Type", "application/json").partition(";")[0].strip().lower(),
            accept=headers.get("Accept", ""),
            authorization=headers.get("Authorization", ""),
            user_agent=headers.get("User-Agent", ""),
            host=headers.get("Host", ""),
            impersonation=_impersonation(headers),
        )

    async def _serve(
        self,
        request: BaseRequest,
        call: ApiRequest,
        done: tuple[str, Answer] | None = None,
    ) -> web.StreamResponse:
        user, answer = done or self.api.handle(call)
        if isinstance(answer, WatchStream):
            return await self._stream(request, call, user, answer)
        if isinstance(answer, LogStream):
            return await self._send_log(request, call, user, answer)
        return self._plain(call, user, answer, answer.headers)

    def _plain(
        self, call: ApiRequest, user: str, answer: ApiResponse, headers: dict[str, str]
    ) -> web.Response:
        self._note(call, user, answer.status)
        headers = {"Content-Type": answer.content_type, **headers}
        return web.Response(status=answer.status, body=answer.body, headers=headers)

    async def _stream(
        self, request: BaseRequest, call: ApiRequest, user: str, watch: WatchStream
    ) -> web.StreamResponse:
        self._note(call, user, 200)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        self.watches[watch] = call.user_agent
        who = call.user_agent, watch.shelf.resource.plural

        async def send(lines: bytes) -> None:
            self.watched[who] += len(lines)
            await response.write(lines)

        try:
            await response.prepare(request)
            await watch.run(send)
        except ConnectionError:
            pass  # the client has disconnected
        finally:
            watch.unsubscribe()
            del self.watches[watch]
        return response

    async def _send_log(
        self, request: BaseRequest, call: ApiRequest, user: str, log: LogStream
    ) -> web.StreamResponse:
        self._note(call, user, 200)
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        with contextlib.suppress(ConnectionError):  # the client has disconnected
            await response.prepare(request)
            await log.run(response.write)
        return response

    def _cut(self, request: BaseRequest) -> web.Response:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    def _note(self, call: ApiRequest, user: str, status: int) -> None:
        if len(self.journal) >= JOURNAL_LENGTH:
            del self.journal[: JOURNAL_LENGTH // 2]
        entry = RecordedRequest(
            at=time.time(),
            method=call.method,
            path=call.path,
            query=call.query,
            user=user,
            user_agent=call.user_agent,
            status=status,
            raw=call.body,
        )
        self.journal.append(entry)


def _impersonation(headers: CIMultiDictProxy[str]) -> Impersonation | None:
    name = headers.get("Impersonate-User")
    return None if name is None else Impersonation(name, tuple(headers.getall("Impersonate-Group", ())))


async def send_slowly(
    request: BaseRequest, response: web.StreamResponse, seconds: float
) -> web.StreamResponse:
    """Send a whole response in pieces, for that many seconds; one that is sent already is returned."""
    if not seconds or not isinstance(response, web.Response) or response.prepared:
        return response
    body = response.body if isinstance(response.body, bytes) else b""
    sent = web.StreamResponse(status=response.status, headers=response.headers)
    sent.content_length = len(body)
    with contextlib.suppress(ConnectionError):  # the client has disconnected
        await sent.prepare(request)
        size = len(body) // SLOW_PIECES + 1
        for start in range(0, len(body), size):
            await asyncio.sleep(seconds / SLOW_PIECES)
            await sent.write(body[start : start + size])
    return sent


def fault_response(fault: Fault) -> ApiResponse:
    """Return the response of a fault with a status."""
    assert fault.status is not None  # noqa: S101 asked before
    if fault.body is None:
        return error_response(StatusError(fault.status, "", "injected fault"))
    if isinstance(fault.body, (str, bytes)):
        body = fault.body.encode() if isinstance(fault.body, str) else fault.body
        return ApiResponse(fault.status, body)
    return json(fault.body, fault.status)
