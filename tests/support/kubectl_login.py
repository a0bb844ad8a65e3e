"""An API server that answers how it was reached, proxies to it, and how kubectl and our login reach it."""

import asyncio
import json
import os
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import aiohttp
import pytest
import trustme
from aiohttp import web

from placement_ac.core.api.errors import LoginFailed
from placement_ac.core.kubeconfig.read import read_kubeconfig
from placement_ac.core.kubeconfig.source import Unusable
from placement_ac.kube.login import Login
from tests.support.builders import encoded
from tests.support.kubeconfigs import one_context

Reached = dict[str, Any] | None
"""How the server was reached; None: it was not."""
HOST = "hub.example.invalid"
"""A name that only the proxies know."""
_WATCHED = ("authorization", "impersonate-")
SECONDS = 10.0


class Reach:
    """A TLS and a plain server, and three proxies that lead every name to them, in a thread of its own."""

    def __init__(self) -> None:
        self.ca = trustme.CA()
        self.clients = trustme.CA()
        self.through: list[str] = []
        """The proxies that were used, by their scheme, with the target."""
        self.ports: dict[str, int] = {}
        self._loop = asyncio.new_event_loop()

    @contextmanager
    def running(self) -> Iterator["Reach"]:
        thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(SECONDS)
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(SECONDS)

    def context(self, *names: str) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.ca.issue_cert(*names).configure_cert(context)
        self.clients.configure_trust(context)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def serve(self, context: ssl.SSLContext) -> int:
        """Start another server, and return its port."""
        return asyncio.run_coroutine_threadsafe(self._serve(context), self._loop).result(SECONDS)

    async def _serve(self, context: ssl.SSLContext | None) -> int:
        app = web.Application()
        app.router.add_get("/{path:.*}", _answer)
        runner = web.AppRunner(app)
        await runner.setup()
        opened = socket.create_server(("127.0.0.1", 0))
        await web.SockSite(runner, opened, ssl_context=context).start()
        return int(opened.getsockname()[1])

    async def _open(self) -> None:
        for name, context in (("https", self.context("127.0.0.1", "localhost", HOST)), ("http", None)):
            self.ports[name] = await self._serve(context)
        for name, context in (("http", None), ("https", self.context("127.0.0.1"))):
            server = await asyncio.start_server(self._connect_proxy(name), "127.0.0.1", 0, ssl=context)
            self.ports[f"{name}-proxy"] = server.sockets[0].getsockname()[1]
        socks = await asyncio.start_server(self._socks_proxy, "127.0.0.1", 0)
        self.ports["socks5-proxy"] = socks.sockets[0].getsockname()[1]

    def proxy(self, scheme: str, user: str = "") -> str:
        return f"{scheme}://{user}127.0.0.1:{self.ports[f'{scheme}-proxy']}"

    def _connect_proxy(self, name: str) -> Any:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                method, target, *_ = head.split()
                given = [line for line in head.splitlines() if line.lower().startswith("proxy-authorization")]
                origin = "/".join(target.split("/")[:3]) if "://" in target else target
                self.through.append(" ".join((name, origin, *given)))
                if method == "CONNECT":
                    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    await _tunnel(reader, writer, self.ports["https"])
                else:
                    await _tunnel(reader, writer, self.ports["http"], head.encode())
            writer.close()

        return serve

    async def _socks_proxy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            _, count = await reader.readexactly(2)
            methods = await reader.readexactly(count)
            user = ""
            if 2 in methods:
                writer.write(b"\x05\x02")
                await reader.readexactly(1)
                user = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
                user += ":" + (await reader.readexactly((await reader.readexactly(1))[0])).decode()
                writer.write(b"\x01\x00")
            else:
                writer.write(b"\x05\x00")
            _, _, _, kind = await reader.readexactly(4)
            size = 4 if kind == 1 else (await reader.readexactly(1))[0]
            address = await reader.readexactly(size)
            port = int.from_bytes(await reader.readexactly(2), "big")
            name = ".".join(map(str, address)) if kind == 1 else address.decode()
            self.through.append(f"socks5 {name}:{port} {user}".strip())
            writer.write(b"\x05\x00\x00\x01\0\0\0\0\0\0")
            await _tunnel(reader, writer, self.ports["https"])
        writer.close()

    def kubeconfig(self, user: Mapping[str, Any] | None = None, **cluster: Any) -> dict[str, Any]:
        """Return a kubeconfig for the TLS server."""
        authority = {"certificate-authority-data": encoded(self.ca.cert_pem.bytes())}
        if cluster.get("insecure-skip-tls-verify") or "certificate-authority" in cluster:
            authority = {}
        given = {"server": f"https://127.0.0.1:{self.ports['https']}"} | authority | cluster
        return one_context(given, {"token": "token"} if user is None else dict(user), "hub")


async def _answer(request: web.Request) -> web.Response:
    seen = sorted(
        (name.lower(), value) for name, value in request.headers.items() if name.lower().startswith(_WATCHED)
    )
    peer = request.transport.get_extra_info("peercert") if request.transport else None
    subject = dict(pair for part in (peer or {}).get("subject", ()) for pair in part)
    return web.json_response(
        {"scheme": request.scheme, "headers": seen, "certificate": subject.get("commonName", "")}
    )


async def _tunnel(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, first: bytes = b""
) -> None:
    other_reader, other_writer = await asyncio.open_connection("127.0.0.1", port)
    other_writer.write(first)
    await asyncio.gather(_copy(reader, other_writer), _copy(other_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while part := await reader.read(65536):
            writer.write(part)
            await writer.drain()
    writer.close()


def environment(home: Path, **given: str) -> dict[str, str]:
    """Return the environment of a shell without a kubeconfig and proxies, but for those given."""
    base = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return base | {"HOME": str(home)} | given


def by_kubectl(env: Mapping[str, str], folder: Path, *flags: str) -> tuple[Reached, str]:
    """Return how kubectl reaches the server, and its stderr."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("needs kubectl")
    words = [kubectl, "get", "--raw", "/reached", "--request-timeout=5s", *flags]
    done = subprocess.run(
        words,
        env=dict(env),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return (json.loads(done.stdout) if done.returncode == 0 else None), done.stderr


def as_a_worker(env: Mapping[str, str], kubeconfig: Mapping[str, Any]) -> tuple[Reached, str]:
    """Return how we reach a worker with the kubeconfig of a Secret, and why we do not."""
    access = read_kubeconfig(json.dumps(kubeconfig).encode())
    if isinstance(access, Unusable):
        return None, access.why
    with patch.dict(os.environ, env, clear=True):
        return _reached(partial(Login, access=access))


def by_us(env: Mapping[str, str], folder: Path, *flags: str) -> tuple[Reached, str]:
    """Return how our login reaches the server, and why it does not."""
    given = dict(flag.removeprefix("--").split("=", 1) for flag in flags)
    path = Path(given["kubeconfig"]) if "kubeconfig" in given else None
    with patch.dict(os.environ, env, clear=True), chdir(folder):
        return _reached(partial(Login, path, given.get("context")))


def _reached(log_in: Callable[[], Login]) -> tuple[Reached, str]:
    try:
        return json.loads(asyncio.run(_reach(log_in))), ""
    except (LoginFailed, aiohttp.ClientError, OSError, TimeoutError) as error:
        return None, f"{type(error).__name__}: {error}"


async def _reach(log_in: Callable[[], Login]) -> str:
    login = log_in()
    timeout = aiohttp.ClientTimeout(total=5)
    async with login.session(timeout=timeout) as http, http.get(f"{login.server}/reached") as answer:
        return await answer.text()
