"""Worker clusters: hubs, the Secrets with their kubeconfigs, and the connector that asks them."""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from placement_ac.core.api import decode
from placement_ac.core.api.constants import SECRET
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.kubeconfig.source import ClusterAccess
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login
from placement_ac.workers.connector import WorkerConnector
from placement_lab.hub import Hub
from tests.support.crds import strict_crds, with_kueue_in
from tests.support.driver import CORE, NS, Driver
from tests.support.exec_plugins import TOKEN

Raw = dict[str, Any]
LIMITED = "SeCrEt-43"
"""The token of an account without rights."""
ECHO = {"kind": "Status", "message": f"who is {TOKEN}?", "reason": TOKEN}
"""An error of a worker that quotes the credentials."""


def kueue_crds(*kinds: str, versions: tuple[str, ...] = ()) -> list[Raw]:
    """The CRDs of these kinds of Kueue, in all their versions or in those alone."""
    found = [crd for crd in strict_crds() if crd["spec"]["names"]["kind"] in kinds]
    return with_kueue_in(found, *versions) if versions else found


@contextmanager
def serving(**options: Any) -> Iterator[Driver]:
    """An admin of a worker, which is a hub with these options."""
    with Hub(token=TOKEN, **options) as hub, Driver(hub) as driver:
        hub.add_user("limited", LIMITED, groups=())
        yield driver


def kubeconfig(worker: Driver, user: Raw | None = None, **cluster: Any) -> Raw:
    content = worker.hub.kubeconfig()
    content["users"][0]["user"] = user or {"token": TOKEN}
    content["clusters"][0]["cluster"] |= cluster
    return content


def put_kubeconfig(admin: Driver, content: object, name: str = "s") -> None:
    """A Secret with that kubeconfig, new or changed."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    data = {"kubeconfig": base64.b64encode(text).decode()}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}
    admin.ask("PATCH", f"{CORE}/namespaces/{NS}/secrets/{name}", body, "apply", force="true")


def put_secret(
    admin: Driver, worker: Driver, name: str = "s", *, user: Raw | None = None, **cluster: Any
) -> None:
    """A Secret with a kubeconfig of that worker, new or changed."""
    put_kubeconfig(admin, kubeconfig(worker, user, **cluster), name)


def by_secret(name: str = "s", cluster: str = "p-w") -> KueueObject:
    """A MultiKueueCluster whose kubeconfig is in that Secret."""
    source = {"kubeConfig": {"location": name, "locationType": "Secret"}}
    return decode.kueue_object({"metadata": {"name": cluster}, "spec": {"clusterSource": source}})


def with_connector(admin: Driver, asking: Callable[[WorkerConnector], Awaitable[Any]], **options: Any) -> Any:
    """Return what `asking` returns, given a connector with these options on the admin's hub."""

    async def run() -> Any:
        cluster = admin.hub.kubeconfig()["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster.get("certificate-authority-data", "")).decode()
        access = ClusterAccess(cluster["server"], authority=authority, token=admin.hub.token)
        async with Client(Login(access=access)) as client:
            return await asking(WorkerConnector(client, SECRET.at("v1"), NS, **options))

    return asyncio.run(run())
