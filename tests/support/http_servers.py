"""HTTP servers that answer as no hub would."""

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def http_server(
    answer: Callable[[BaseHTTPRequestHandler], object], tls: ssl.SSLContext | None = None
) -> Iterator[str]:
    """The host and port of a server whose answers to GET requests are written by `answer`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def answering(answers: Mapping[str, bytes | Callable[[], bytes]]) -> Iterator[str]:
    """The URL of a server that gives these answers, by path."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        body = answers[request.path.partition("?")[0]]
        text = body if isinstance(body, bytes) else body()
        request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text)

    with http_server(answer) as address:
        yield f"http://{address}"
