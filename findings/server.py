"""For the findings: a server that notes what API clients send it, and has one ConfigMap."""

import http.server
import json
import threading
from typing import Any

REQUESTS: list[tuple[str, str, str, str]] = []
"""Method, path with its query, content type and body of each request but those of discovery."""
MAP: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "namespace": "default", "resourceVersion": "2", "uid": "u"},
    "data": {"kept": "1", "dropped": "1"},
}
VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
CONFIG_MAPS = {"name": "configmaps", "singularName": "configmap", "namespaced": True, "kind": "ConfigMap"}
DISCOVERY: dict[str, dict[str, Any]] = {
    "/version": {"major": "1", "minor": "35", "gitVersion": "v1.35.0"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [{**CONFIG_MAPS, "verbs": VERBS}],
    },
}
DISCOVERED: list[str] = []


class _Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        path = self.path.partition("?")[0].rstrip("/")
        if path in DISCOVERY:
            DISCOVERED.append(path)
            self._send(DISCOVERY[path])
            return
        REQUESTS.append((self.command, self.path, self.headers.get("Content-Type") or "", body))
        if "watch=" in self.path:
            self._send({"type": "ADDED", "object": MAP})
        elif path.endswith("/configmaps") and self.command == "GET":
            self._send({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {}, "items": [MAP]})
        else:
            self._send(MAP)

    def _send(self, answer: dict[str, Any]) -> None:
        text = json.dumps(answer).encode() + b"\n"
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


for _method in ("GET", "POST", "PATCH", "PUT", "DELETE"):
    setattr(_Handler, f"do_{_method}", _Handler.answer)


def serve() -> str:
    """Start on a free port of 127.0.0.1, and return the address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


def kubeconfig(server: str) -> dict[str, Any]:
    """Return a kubeconfig for `server`."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "nothing"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "default"}}],
        "current-context": "x",
    }
