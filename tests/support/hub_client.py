"""A plain HTTP client for the hub's own tests: paths, verbs and raw responses."""

import contextlib
import http.client
import json
import socket
import threading
from typing import Any, Self

import requests

from placement_lab.hub import Hub
from tests.support.crds import plain_crd
from tests.support.driver import eventually
from tests.support.envtest import connection_to, session_to

KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
OCM = "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/default"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CONFIGS = f"{KUEUE}/multikueueconfigs"
CHECKS = f"{KUEUE}/admissionchecks"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
PATCH_TYPES = {
    "merge": "merge-patch+json",
    "json": "json-patch+json",
    "strategic": "strategic-merge-patch+json",
}
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

Object = dict[str, Any]


class Client:
    """Requests to one hub as its admin (or with another token)."""

    def __init__(self, hub: Hub, token: str | None = None) -> None:
        self.hub = hub
        self.session = session_to(hub, token)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> requests.Response:
        data = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        given = {"Content-Type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()}
        return self.session.request(method, self.hub.url + path, data=data, headers=given, timeout=20)

    def ok(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        answer = self.ask(method, path, body, **headers)
        assert answer.ok, answer.text
        return answer.json()

    def get(self, path: str) -> Any:
        return self.ok("GET", path)

    def create(self, path: str, body: Object) -> Any:
        return self.ok("POST", path, body)

    def patch(self, path: str, body: Any, kind: str = "merge") -> Any:
        return self.ok("PATCH", path, body, Content_Type=f"application/{PATCH_TYPES[kind]}")

    def apply(self, path: str, body: Object, manager: str = "tester", **query: str) -> requests.Response:
        asked = "&".join(f"{key}={value}" for key, value in {"fieldManager": manager, **query}.items())
        return self.ask("PATCH", f"{path}?{asked}", body, Content_Type="application/apply-patch+yaml")

    def applied(self, path: str, body: Object, manager: str = "tester", **query: str) -> Any:
        answer = self.apply(path, body, manager, **query)
        assert answer.ok, answer.text
        return answer.json()

    def delete(self, path: str, options: Object | None = None) -> Any:
        return self.ok("DELETE", path, options)

    def names(self, path: str) -> list[str]:
        return [item["metadata"]["name"] for item in self.get(path)["items"]]

    def version(self, path: str) -> str:
        """The resourceVersion of a list or an object."""
        version: str = self.get(path)["metadata"]["resourceVersion"]
        return version


class Watching:
    """A watch in its own thread; `events` are (type, name), `seen` the whole events."""

    def __init__(self, client: Client, path: str, **query: str) -> None:
        asked = "&".join(f"{key}={value}" for key, value in {"watch": "true", **query}.items())
        self.seen: list[Object] = []
        self.broken = ""
        self.connection = connection_to(client.hub)
        self.connection.request("GET", f"{path}?{asked}", headers=dict(client.session.headers))
        self.socket = self.connection.sock
        self.answer = self.connection.getresponse()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        try:
            while line := self.answer.readline():
                self.seen.append(json.loads(line))
        except (http.client.HTTPException, OSError, ValueError) as error:
            self.broken = type(error).__name__

    @property
    def events(self) -> list[tuple[str, str]]:
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in self.seen]

    def until(self, *expected: tuple[str, str]) -> None:
        eventually(lambda: self.events, list(expected))

    def ended(self) -> bool:
        self.thread.join(5)
        return not self.thread.is_alive()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # it may have ended by itself
            self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join(5)


def config(name: str, *clusters: str, **metadata: Any) -> Object:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "MultiKueueConfig",
        "metadata": {"name": name, **metadata},
        "spec": {"clusters": list(clusters) or ["a"]},
    }


def check(name: str, **metadata: Any) -> Object:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "AdmissionCheck",
        "metadata": {"name": name, **metadata},
        "spec": {"controllerName": "example.com/it"},
    }


def condition(status: str = "True", kind: str = "Active") -> Object:
    return {
        "type": kind,
        "status": status,
        "reason": "Reported",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


def status(name: str, *conditions: Object) -> Object:
    return {k: v for k, v in check(name).items() if k != "spec"} | {
        "status": {"conditions": list(conditions)}
    }


def configmap(name: str, data: dict[str, str] | None = None, **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": data or {"k": "v"},
    }


def owner(obj: Object) -> Object:
    return {key: obj[key] for key in ("apiVersion", "kind")} | {
        key: obj["metadata"][key] for key in ("name", "uid")
    }


def crd(kind: str, schema: Object, *, group: str = "example.com", **version: Any) -> Object:
    """A namespaced CustomResourceDefinition of one version, v1."""
    definition = plain_crd(group, kind, schema=schema)
    definition["spec"]["versions"][0] |= version
    return definition


def spec_schema(**properties: Any) -> Object:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
