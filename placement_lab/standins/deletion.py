"""Delete an object with what it owns, as kubectl and Kueue do: without it, what a Job owns is orphaned."""

from placement_ac.core.api.constants import Resource
from placement_ac.core.api.fields import Obj
from placement_ac.kube.client import Client


async def delete_with_dependents(
    client: Client, resource: Resource, name: str, namespace: str | None = None
) -> Obj:
    """Delete an object with `propagationPolicy: Background`. Raises NotFound."""
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    return await client.request("DELETE", resource.path(namespace, name), body)
