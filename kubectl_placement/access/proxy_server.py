"""
Find the user server of OCM's cluster-proxy on the hub: by its Route, or by its Service's load balancer.

Names and namespaces are those of the charts of open-cluster-management-io/cluster-proxy and of
stolostron/backplane-operator.
"""

from typing import Final

from kubectl_placement.access.no_access import Closed
from placement_ac.core.api.constants import Kind
from placement_ac.core.api.errors import NotFound, Refused
from placement_ac.core.api.fields import get_list, get_str
from placement_ac.kube.client import Client, Object

NAME: Final = "cluster-proxy-addon-user"
NAMESPACES: Final = ("open-cluster-management-addon", "multicluster-engine")
PORT: Final = 9092
ROUTE: Final = Kind("route.openshift.io", "Route", "routes", True, ("v1",))
SERVICE: Final = Kind("", "Service", "services", True, ("v1",))


async def find_user_server(hub: Client) -> str | Closed:
    """Return the URL of the user server, or why it is unknown. Raises ApiError if the hub does not answer."""
    ask = "name it with --cluster-proxy URL"
    inside = ""
    for namespace in NAMESPACES:
        route = await _get(hub, ROUTE, namespace)
        if host := get_str(route, "spec", "host"):
            return f"https://{host}"
        service = await _get(hub, SERVICE, namespace)
        for entry in get_list(service, "status", "loadBalancer", "ingress"):
            if host := get_str(entry, "hostname") or get_str(entry, "ip"):
                return f"https://{host}:{PORT}"
        inside = inside or (namespace if service else "")
    if inside:
        how = f"`kubectl -n {inside} port-forward service/{NAME} {PORT}` makes it https://localhost:{PORT}"
        return Closed(
            "cluster-proxy", ask, f"Service {inside}/{NAME} has no address outside of the hub; {how}"
        )
    return Closed("cluster-proxy", ask, "no user server of it is found on the hub")


async def _get(hub: Client, kind: Kind, namespace: str) -> Object | None:
    try:
        return await hub.get(kind.at(kind.versions[0]), NAME, namespace)
    except (NotFound, Refused):
        return None
