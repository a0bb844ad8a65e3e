"""Read on the hub what is known of a worker: its managed cluster, its API servers, its MultiKueueCluster."""

from collections.abc import Iterable
from dataclasses import dataclass

from kubectl_placement.access.api_servers import ApiServer, servers_of_cluster, servers_of_profile
from kubectl_placement.hub.dump import MissingRight, Object
from placement_ac.core.api.constants import (
    CLUSTER_PROFILE,
    LABEL_CLUSTER,
    MANAGED_CLUSTER,
    MULTIKUEUE_CLUSTER,
    Kind,
)
from placement_ac.core.api.errors import NotFound, Refused
from placement_ac.core.api.fields import get_str, labels_of
from placement_ac.kube.client import Client

KINDS = (MULTIKUEUE_CLUSTER, MANAGED_CLUSTER, CLUSTER_PROFILE)
FORBIDDEN = 403


@dataclass(frozen=True, slots=True)
class ClusterTarget:
    """A worker as far as the caller may read about it."""

    name: str
    """Of the MultiKueueCluster."""
    managed_cluster: str
    """"": unknown."""
    servers: tuple[ApiServer, ...]
    unread: tuple[MissingRight, ...]
    """The missing rights to what may name its API servers."""
    cluster_object: Object | None = None
    """The MultiKueueCluster; None: unknown."""

    @property
    def label(self) -> str:
        """The names, for people."""
        other = f" (MultiKueueCluster {self.name})" if self.managed_cluster not in ("", self.name) else ""
        return f"{self.managed_cluster or self.name}{other}"


async def read_target(hub: Client, name: str, kueue_namespace: str) -> ClusterTarget:
    """Return what the hub says of a MultiKueueCluster. Raises ApiError if the hub does not answer."""
    served = await hub.discover(KINDS)
    unread: list[MissingRight] = []

    async def get(kind: Kind, named: str, namespace: str = "") -> Object | None:
        if kind not in served:
            return None
        try:
            return await hub.get(served[kind], named, namespace or None)
        except NotFound:
            return None
        except Refused as error:
            if error.status != FORBIDDEN:
                raise
            unread.append(MissingRight("get", kind, namespace, named))
            return None

    cluster_object = await get(MULTIKUEUE_CLUSTER, name)
    managed = managed_cluster_of(cluster_object)
    # The name of a MultiKueueCluster is not that of its managed cluster: it might lead to another one.
    found = await get(MANAGED_CLUSTER, managed) if managed else None
    profile = await get(CLUSTER_PROFILE, managed, kueue_namespace) if managed else None
    servers = (*servers_of_cluster(found or {}), *servers_of_profile(profile or {}))
    return ClusterTarget(name, managed, tuple(dict.fromkeys(servers)), tuple(unread), cluster_object)


def managed_cluster_of(cluster_object: Object | None) -> str:
    """Return the managed cluster that a MultiKueueCluster names; "": none.

    Ours have OCM's label; one with a ClusterProfile has that of the cluster, which OCM names like it.
    """
    label = labels_of(cluster_object or {}).get(LABEL_CLUSTER)
    named = label if isinstance(label, str) else ""
    return named or get_str(cluster_object, "spec", "clusterSource", "clusterProfileRef", "name")


def rights_text(rights: Iterable[MissingRight]) -> str:
    """Return how to check the missing rights, for a message."""
    return " and ".join(f"`{right.check_command}`" for right in rights)
