"""
Find the user server of OCM's cluster-proxy on the hub: by its Route, or by its Service's load balancer.

It gets the caller's token, so an address counts only if a cluster-scoped object of OCM names its namespace:
whoever may create Routes or Services in another one could name a server of their own. Names and namespaces
are those of the charts of open-cluster-management-io/cluster-proxy and of stolostron/backplane-operator.
"""

from collections.abc import Sequence
from typing import Final

from kubectl_placement.access.no_access import Closed
from kubectl_placement.access.target import FORBIDDEN, rights_text
from kubectl_placement.hub.dump import MissingRight
from placement_ac.core.api.constants import Kind, Resource
from placement_ac.core.api.errors import NotFound, Refused
from placement_ac.core.api.fields import get_list, get_str
from placement_ac.kube.client import Client, Object

NAME: Final = "cluster-proxy-addon-user"
NAMESPACES: Final = ("open-cluster-management-addon", "multicluster-engine")
PORT: Final = 9092
CONFIGURATION: Final = Kind(
    "proxy.open-cluster-management.io",
    "ManagedProxyConfiguration",
    "managedproxyconfigurations",
    False,
    ("v1alpha1",),
)
CONFIGURATION_NAME: Final = "cluster-proxy"
ROUTE: Final = Kind("route.openshift.io", "Route", "routes", True, ("v1",))
SERVICE: Final = Kind("", "Service", "services", True, ("v1",))


async def find_user_server(hub: Client) -> str | Closed:
    """Return the URL of the user server, or why it is unknown. Raises ApiError if the hub does not answer."""
    served = await hub.discover((CONFIGURATION, ROUTE, SERVICE))
    unread: list[MissingRight] = []
    configuration = await _get(hub, served.get(CONFIGURATION), None, CONFIGURATION_NAME, [])
    its_namespace = get_str(configuration, "spec", "proxyServer", "namespace")
    inside = ""
    for namespace in (its_namespace,) if its_namespace else NAMESPACES:
        route = await _get(hub, served.get(ROUTE), namespace, NAME, unread)
        service = await _get(hub, served.get(SERVICE), namespace, NAME, unread)
        if url := _address(route, service):
            return url if its_namespace else _unconfirmed(url, namespace)
        inside = inside or (namespace if service else "")
    return _unknown(inside, unread)


def _address(route: Object | None, service: Object | None) -> str:
    if host := get_str(route, "spec", "host"):
        return f"https://{host}"
    for entry in get_list(service, "status", "loadBalancer", "ingress"):
        if host := get_str(entry, "hostname") or get_str(entry, "ip"):
            return f"https://{host}:{PORT}"
    return ""


def _unconfirmed(url: str, namespace: str) -> Closed:
    """Return that the caller must say once that this is the proxy."""
    right = f"{CONFIGURATION.plural}.{CONFIGURATION.group}/{CONFIGURATION_NAME}"
    return Closed(
        "cluster-proxy",
        f"if {url} is its user server, name it with --cluster-proxy {url}, or in your access file",
        f"it would get your token, and whoever may create Routes or Services in namespace {namespace} can "
        f"name one there; you cannot read which namespace is its own (`kubectl auth can-i get {right}`)",
    )


def _unknown(inside: str, unread: Sequence[MissingRight]) -> Closed:
    """Return why the URL is unknown. `inside`: the namespace of a Service that has no address."""
    fix, why = "name it with --cluster-proxy URL", []
    if inside:
        how = f"`kubectl -n {inside} port-forward service/{NAME} {PORT}` makes it https://localhost:{PORT}"
        why.append(f"Service {inside}/{NAME} has no address outside of the hub; {how}")
    if unread:
        kinds = " or ".join(dict.fromkeys(right.kind.kind for right in unread))
        fix += f", or get the right to read its {kinds} on the hub"
        why.append(f"you may not read its {kinds} {NAME} there (check: {rights_text(unread)})")
    return Closed("cluster-proxy", fix, "; ".join(why) or "no user server of it is found on the hub")


async def _get(
    hub: Client, resource: Resource | None, namespace: str | None, name: str, unread: list[MissingRight]
) -> Object | None:
    """Return the object of that kind; None: there is none, or the right to it is missing, and is added."""
    if resource is None:
        return None
    try:
        return await hub.get(resource, name, namespace)
    except NotFound:
        return None
    except Refused as error:
        if error.status == FORBIDDEN:
            unread.append(MissingRight("get", resource.of, namespace or "", name))
        return None
