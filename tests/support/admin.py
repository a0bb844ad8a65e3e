"""An admin with kubectl, for tests: it writes objects to a hub and waits for their state."""

import asyncio
import json
import tempfile
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar

from kubernetes.dynamic import DynamicClient

from placement_ac.core.api.constants import Resource
from placement_ac.core.api.errors import NotFound
from placement_ac.core.kubeconfig.write import write_kubeconfig
from placement_ac.kube.client import Client, Object
from placement_ac.kube.login import Login
from placement_lab.hub import Hub
from placement_lab.standins import manifests
from placement_lab.standins.deletion import delete_with_dependents

T = TypeVar("T")

DEADLINE_SECONDS = 10.0
STEP_SECONDS = 0.01


def login_to(hub: Hub) -> Login:
    """Return the admin's login of a hub."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kubeconfig"
        hub.write_kubeconfig(path)
        return Login(path)


class Admin:
    """Blocking requests to one hub. Use as a context manager."""

    def __init__(self, login: Login) -> None:
        self._login, self._client = login, Client(login, field_manager="admin")
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        self._runner.run(self._client.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._client.__aexit__())
        self._runner.close()

    def apply(self, *objects: Object) -> list[Object]:
        """Apply objects with their status."""
        return manifests.apply(self._kubernetes, objects)

    @cached_property
    def _kubernetes(self) -> DynamicClient:
        access = self._login._config.access  # noqa: SLF001  # as each request of the login uses it
        content = write_kubeconfig(access.server, access.authority, access.token, "hub")
        return manifests.connect(json.loads(content))

    def create(self, resource: Resource, body: Object) -> Object:
        return self._runner.run(self._client.create(resource, body))

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object | None:
        try:
            return self._runner.run(self._client.get(resource, name, namespace))
        except NotFound:
            return None

    def list(self, resource: Resource) -> tuple[Object, ...]:
        return self._runner.run(self._client.list(resource)).items

    def merge(self, resource: Resource, name: str, patch: Object, **where: Any) -> Object:
        return self._runner.run(self._client.merge(resource, name, patch, **where))

    def apply_status(self, resource: Resource, body: Object, *, manager: str, force: bool = False) -> Object:
        """Apply a status by server-side apply, as another field manager."""
        return self._runner.run(
            self._client.apply(resource, body, subresource="status", force=force, manager=manager)
        )

    def delete(self, resource: Resource, name: str, namespace: str | None = None) -> None:
        self._runner.run(delete_with_dependents(self._client, resource, name, namespace))

    def request(self, method: str, path: str, body: Object | None) -> Object:
        return self._runner.run(self._client.request(method, path, body))

    def until(self, read: Callable[[], T], expected: T) -> None:
        """Fail unless `read` gives `expected` within the deadline."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while (found := read()) != expected and time.monotonic() < deadline:
            self.pause(STEP_SECONDS)
        assert found == expected

    def pause(self, seconds: float) -> None:
        """Wait, so that an unwanted reaction would have time to happen."""
        self._runner.run(asyncio.sleep(seconds))
