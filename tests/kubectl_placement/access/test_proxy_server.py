"""The user server of cluster-proxy gets the caller's token: which address on the hub is taken for it."""

import asyncio
from collections.abc import Iterable
from typing import cast

import pytest

from kubectl_placement.access.no_access import Closed
from kubectl_placement.access.proxy_server import NAME, find_user_server
from placement_ac.core.api.constants import Kind, Resource
from placement_ac.core.api.errors import NotFound, Refused
from placement_ac.kube.client import Client, Object

ADDON, MCE, OTHER = "open-cluster-management-addon", "multicluster-engine", "proxies"
ROUTE: Object = {"spec": {"host": "proxy.example"}}
SERVICE: Object = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}


class Hub:
    """Has objects by kind and namespace; `hides` the kinds that the caller may not read."""

    def __init__(self, objects: dict[tuple[str, str], Object], hides: tuple[str, ...]) -> None:
        self._objects, self._hides = objects, hides

    async def discover(self, kinds: Iterable[Kind]) -> dict[Kind, Resource]:
        return {kind: kind.at(kind.versions[0]) for kind in kinds}

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        kind = resource.of.kind
        if kind in self._hides:
            raise Refused("no", status=403)
        if name != (NAME if namespace else "cluster-proxy") or (kind, namespace or "") not in self._objects:
            raise NotFound("no", status=404)
        return self._objects[kind, namespace or ""]


def in_namespace(namespace: str) -> dict[tuple[str, str], Object]:
    return {("ManagedProxyConfiguration", ""): {"spec": {"proxyServer": {"namespace": namespace}}}}


CONFIRMED, BY_SERVICE = "https://proxy.example", "https://192.0.2.1:9092"


@pytest.mark.parametrize(
    ("objects", "hides", "expected"),
    [
        pytest.param(in_namespace(MCE) | {("Route", MCE): ROUTE}, (), CONFIRMED, id="its Route"),
        pytest.param(in_namespace(OTHER) | {("Service", OTHER): SERVICE}, (), BY_SERVICE, id="its Service"),
        pytest.param(
            in_namespace(MCE) | {("Route", ADDON): ROUTE}, (), "no user server", id="a Route elsewhere"
        ),
        pytest.param(
            {("Route", ADDON): ROUTE}, (), f"--cluster-proxy {CONFIRMED}", id="nobody says which namespace"
        ),
        pytest.param(
            in_namespace(MCE) | {("Service", MCE): SERVICE},
            ("ManagedProxyConfiguration",),
            f"--cluster-proxy {BY_SERVICE}",
            id="the caller may not read which",
        ),
    ],
)
def test_an_address_counts_in_the_namespace_that_ocm_names(
    objects: dict[tuple[str, str], Object], hides: tuple[str, ...], expected: str
) -> None:
    found = asyncio.run(find_user_server(cast("Client", Hub(objects, hides))))
    if expected.startswith("https://"):
        assert found == expected
    else:
        assert isinstance(found, Closed)
        assert expected in f"{found.fix}: {found.why}"
