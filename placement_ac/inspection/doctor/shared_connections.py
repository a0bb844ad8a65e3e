"""
A rule for the connections that Kueue keeps: one for each MultiKueueCluster, also to one worker.

Pure. No text quotes a kubeconfig.
"""

import base64
import shlex
from collections.abc import Hashable, Iterator, Mapping
from functools import cache
from typing import Final

from placement_ac.core.api.constants import KUBECONFIG_KEY, MULTIKUEUE_CLUSTER, SECRET, SHARED
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.api.text import joined
from placement_ac.core.kubeconfig.read import read_kubeconfig
from placement_ac.core.kubeconfig.source import ClusterAccess
from placement_ac.inspection.doctor.finding import Finding, ok, warn
from placement_ac.inspection.doctor.setup import HubSetup, hub_rule
from placement_ac.scheduling.objects import text


@hub_rule(
    "shared-connections",
    "Kueue keeps one connection to each worker: no two MultiKueueClusters have the same Secret, the same"
    " ClusterProfile, or kubeconfigs with the same server and user",
    "kubectl set env -n CONTROLLER deployment/NAME PLACEMENT_AC_CLUSTER_NAMES='{cluster}'",
    MULTIKUEUE_CLUSTER,
)
def shared_connections(setup: HubSetup) -> Iterator[Finding]:
    objects = [one for one in setup.view.cluster_objects.values() if one.source[1]]
    workers = _by_worker(setup, objects)
    connections = f"Kueue keeps {len(objects):,} connections for {len(workers):,} workers"
    if len(objects) == len(workers):
        yield ok(connections)
    elif len({one.cluster or one.meta.name for one in objects}) < len(objects):
        yield _share(setup, connections)
    else:
        double = next(names for names in workers.values() if len(names) > 1)
        yield warn(
            f"give MultiKueueClusters {joined(double)} credentials for different workers, or keep one: "
            f"they lead to one worker with the same user, and {connections}",
            f"kubectl get multikueueclusters {shlex.join(double)} -o yaml",
        )


def _share(setup: HubSetup, connections: str) -> Finding:
    """Return the finding for a cluster with several MultiKueueClusters."""
    if setup.settings.cluster_names == SHARED:
        return ok(f"{connections}, until those of other names have gone")
    return warn(
        f"set cluster-names to {SHARED}: {connections}, one for each Placement and cluster",
        setup.set_setting("cluster_names", SHARED),
    )


def _by_worker(setup: HubSetup, objects: list[KueueObject]) -> Mapping[Hashable, list[str]]:
    """Return the names of the MultiKueueClusters, together if they surely have the same server and user."""

    @cache
    def worker(kind: str, name: str) -> Hashable:
        return (_server_and_user(setup, name) if kind == SECRET.kind else None) or (kind, name)

    found: dict[Hashable, list[str]] = {}
    for one in objects:
        found.setdefault(worker(*one.source), []).append(one.meta.name)
    return found


def _server_and_user(setup: HubSetup, secret: str) -> Hashable | None:
    """Return what two kubeconfigs with the same server and user share; it holds secrets.

    None: it cannot be read, or only Kueue can use it, and more may tell it apart (an impersonated user).
    """
    raw = setup.dump.find(SECRET, secret, setup.kueue_namespace)
    try:
        content = base64.b64decode(text(raw, "data", KUBECONFIG_KEY), validate=True)
    except ValueError:
        return None
    access = read_kubeconfig(content)
    if not isinstance(access, ClusterAccess):
        return None
    return access.server, access.server_name, access.proxy, access.token, access.certificate


RULES: Final = (shared_connections,)
