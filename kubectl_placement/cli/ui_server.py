"""
The HTTP server of `placement-ac ui`: one page, its changes as server-sent events, and explanations.

It listens on 127.0.0.1 only and answers only GET, and only to the page at the printed address (`ui_access`).
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import orjson
from aiohttp import web

from kubectl_placement.cli.ui_access import ADDRESS, Access
from kubectl_placement.cli.ui_feed import Feed
from kubectl_placement.cli.ui_streams import Streams
from kubectl_placement.ui.page import Page, read_page
from placement_ac.core.api.errors import PlacementAcError
from placement_ac.observability.http import CannotListen

BEAT_SECONDS: Final = 15.0
"""How often a comment is sent while nothing changes: so a closed page is noticed."""
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serve(feed: Feed, port: int) -> AsyncIterator[str]:
    """Serve the page as long as the `with` lasts; yield its URL. Port 0: a free one. Raises CannotListen."""
    server = _Server(feed, read_page())
    app = web.Application(middlewares=[server.guard])
    root = server.access.root
    app.router.add_get(root, server.page, allow_head=False)
    app.router.add_get(f"{root}events", server.events, allow_head=False)
    app.router.add_get(f"{root}explain", server.explain, allow_head=False)
    app.router.add_get(f"{root}jobs", server.jobs, allow_head=False)
    app.router.add_get(f"{root}job", server.job, allow_head=False)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, ADDRESS, port).start()
        except OSError as error:
            raise CannotListen(f"choose another --port: {ADDRESS}:{port}: {_reason(error)}") from None
        server.port = runner.addresses[0][1]
        yield f"http://{ADDRESS}:{server.port}{root}"
    finally:
        await runner.cleanup()


class _Server:
    """The answers."""

    def __init__(self, feed: Feed, page: Page) -> None:
        self._feed, self._page = feed, page
        self.access, self._streams = Access(), Streams()
        self.port = 0

    @web.middleware
    async def guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse other methods and what `Access` refuses; add the headers that each answer has."""
        if request.method != "GET":
            return _refusal(405, "only GET is answered: the page is read-only", {"Allow": "GET"})
        if why := self.access.refusal(request.headers, request.path, self.port):
            return _refusal(403, why)
        try:
            answer = await handler(request)
        except web.HTTPNotFound:
            return _refusal(404, "there is only one page: the address that placement-ac ui has printed")
        if not answer.prepared:
            answer.headers.update(_HEADERS)
        return answer

    async def page(self, _: web.Request) -> web.Response:
        headers = {"Content-Security-Policy": self._page.policy}
        return web.Response(text=self._page.text, content_type="text/html", charset="utf-8", headers=headers)

    async def explain(self, request: web.Request) -> web.Response:
        check, cluster = (request.query.get(name, "") for name in ("check", "cluster"))
        return await _answer(self._feed.explain(check, cluster))

    async def jobs(self, _: web.Request) -> web.Response:
        return await _answer(self._feed.jobs())

    async def job(self, request: web.Request) -> web.Response:
        namespace, workload = (request.query.get(name, "") for name in ("namespace", "workload"))
        return await _answer(self._feed.job(namespace, workload))

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Send the hub, all checks and the chosen check, and then what changes of them."""
        with self._streams.opened(f"{request.remote} {request.headers.get('User-Agent')}") as stream:
            if stream is None:
                return _refusal(503, "close other pages first")
            answer = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
            try:
                await answer.prepare(request)
                await self._send_all(answer, request.query.get("check", ""))
            except ConnectionError:
                pass
            except asyncio.CancelledError:
                if not stream.replaced:
                    raise
                await answer.write(b"event: replaced\ndata: {}\n\n")
        return answer

    async def _send_all(self, answer: web.StreamResponse, check: str) -> None:
        sent = _Sent(self._feed, check)
        revision = 0
        while True:
            try:
                async with asyncio.timeout(BEAT_SECONDS):
                    revision = await self._feed.next_revision(revision)
            except TimeoutError:
                await answer.write(b": nothing has changed\n\n")
                continue
            for event, text in await sent.changes():
                await answer.write(b"event: %s\ndata: %s\n\n" % (event.encode(), text))


class _Sent:
    """The state that one page has been sent."""

    def __init__(self, feed: Feed, check: str) -> None:
        self._feed, self._check = feed, check
        self._hub = self._detail = -1
        self._capacity = 0
        self._checks: dict[str, int] = {}
        self._began = False

    async def changes(self) -> list[tuple[str, bytes]]:
        """Return the events that the page lacks."""
        feed = self._feed
        events: list[tuple[str, bytes]] = []
        if feed.hub.revision != self._hub:
            self._hub = feed.hub.revision
            events.append(("hub", feed.hub.text))
        if checks := self._changed_checks():
            events.append(("checks", checks))
        if feed.capacity.revision != self._capacity:
            self._capacity = feed.capacity.revision
            events.append(("capacity", feed.capacity.text))
        detail = feed.details.get(self._check)
        if detail is not None and detail.revision != self._detail:
            self._detail = detail.revision
            events += [("check", detail.text), *await feed.drawings(self._check)]
        return events

    def _changed_checks(self) -> bytes:
        known = {name: summary.revision for name, summary in self._feed.summaries.items()}
        gone = sorted(self._checks.keys() - known.keys())
        changed = [name for name, revision in known.items() if self._checks.get(name) != revision]
        if self._began and not changed and not gone:
            return b""
        whole = b"false" if self._began else b"true"
        texts = b",".join(self._feed.summaries[name].text for name in changed)
        self._checks, self._began = known, True
        return b'{"whole":%s,"checks":[%s],"gone":%s}' % (whole, texts, orjson.dumps(gone))


async def _answer(document: Awaitable[bytes]) -> web.Response:
    """Return the JSON document, or one with the error."""
    try:
        text = await document
    except PlacementAcError as error:
        text = orjson.dumps({"kind": "error", "message": str(error)})
    return web.Response(body=text, content_type="application/json")


def _reason(error: OSError) -> str:
    """Return the operating system's words alone: asyncio's repeat the address."""
    return os.strerror(error.errno) if error.errno else str(error)


def _refusal(status: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(text=message + "\n", status=status, headers={**_HEADERS, **(headers or {})})
