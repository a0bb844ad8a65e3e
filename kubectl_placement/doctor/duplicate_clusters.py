"""
The rule that each worker has one name in a list, and one connection of Kueue.

Pure. No text quotes a kubeconfig.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kubectl_placement.doctor.finding import Finding, fail, ok, warn
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from kubectl_placement.hub.kubeconfigs import endpoint_of, server_and_user
from placement_ac.core.api.constants import MULTIKUEUE_CLUSTER, SECRET, SHARED
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.api.text import count_text, joined

Place = tuple[str, ...]
"""Where credentials lead; it holds secrets."""


@hub_rule(
    "duplicate-clusters",
    "each worker has one name in a Placement, and Kueue one connection to it: no two clusters have the same"
    " claim `id.k8s.io`, show the same objects, or have the same server, TLS name, proxy and CA",
    "kubectl get managedclusters NAME NAME --show-labels",
    MULTIKUEUE_CLUSTER,
)
def duplicate_clusters(setup: HubSetup) -> Iterator[Finding]:
    found = [
        *(one for placement in setup.checks_by_placement for one in _second_names(setup, placement)),
        *(one for placement in setup.checks_by_placement for one in _same_endpoints(setup, placement)),
    ]
    yield from found or _connections(setup)


def _second_names(setup: HubSetup, placement: str) -> Iterator[Finding]:
    """Yield the clusters that the controller knows to be the same worker as another one."""
    snapshot, targets = setup.view.snapshot(placement), setup.view.targets(placement)
    for cluster, keeper in targets.selection.second_names.items():
        names = [snapshot.hub.multikueue_cluster_name(placement, name) for name in (cluster, keeper)]
        both = set(names) <= set(snapshot.objects.listed)
        result = "both are listed, and Kueue deletes jobs there" if both else "it is left out"
        yield (fail if both else warn)(
            f"clusters {cluster} and {keeper} of Placement {placement} are the same worker; {result}: "
            f"{targets.selection.left_out[cluster]}",
            _show(cluster, keeper),
            f"Placement {placement}",
        )


def _same_endpoints(setup: HubSetup, placement: str) -> Iterator[Finding]:
    """Yield the clusters that may be one worker: many clusters may stand behind one host, with one CA."""
    snapshot, targets = setup.view.snapshot(placement), setup.view.targets(placement)
    found: dict[Place, list[str]] = {}
    for cluster in dict.fromkeys((*targets.selection.ranked, *targets.listed)):
        if cluster in targets.selection.second_names:
            continue  # that is known
        source = snapshot.credentials.usable(cluster)
        secret = setup.dump.find(SECRET, source.name, setup.kueue_namespace) if source else None
        if source and source.kind == SECRET.kind and (place := endpoint_of(secret)):
            found.setdefault(place, []).append(cluster)
    for clusters in found.values():
        claims = {managed.claim for name in clusters if (managed := snapshot.fleet.managed.get(name))}
        if len(clusters) > 1 and len(claims - {""}) < len(clusters):  # else their claims tell them apart
            yield warn(
                f"if clusters {joined(clusters)} of Placement {placement} are one cluster, keep one of the "
                "names: their kubeconfigs have the same server, TLS name, proxy and CA, and Kueue deletes "
                "jobs by a second name of the same worker",
                _show(*clusters),
                f"Placement {placement}",
            )


def _show(*clusters: str) -> str:
    return f"kubectl get managedclusters {shlex.join(clusters)} --show-labels"


def _connections(setup: HubSetup) -> Iterator[Finding]:
    """Yield whether Kueue keeps more than one connection to a worker."""
    objects = [obj for obj in setup.view.cluster_objects.values() if obj.source[1]]
    workers = _by_worker(setup, objects)
    kept = count_text(len(objects), "connection")
    connections = f"Kueue keeps {kept} for {count_text(len(workers), 'worker')}"
    if len(objects) == len(workers):
        yield ok(connections)
    elif len({obj.cluster or obj.meta.name for obj in objects}) == len(objects):
        double = next(names for names in workers.values() if len(names) > 1)
        yield warn(
            f"give MultiKueueClusters {joined(double)} credentials for different workers, or keep one: "
            f"they lead to the same worker with the same user, and {connections}",
            f"kubectl get multikueueclusters {shlex.join(double)} -o yaml",
        )
    elif setup.settings.cluster_names == SHARED:
        yield ok(f"{connections}, until those of other names have gone")
    else:
        yield warn(
            f"set cluster-names to {SHARED}: {connections}, one for each Placement and cluster",
            setup.set_setting("cluster_names", SHARED),
        )


def _by_worker(setup: HubSetup, objects: Iterable[KueueObject]) -> Mapping[Place, list[str]]:
    """Return the names of the MultiKueueClusters, together if they surely have the same server and user."""
    groups: dict[Place, list[str]] = {}
    known: dict[str, Place | None] = {}
    for obj in objects:
        kind, name = obj.source
        if kind == SECRET.kind and name not in known:
            known[name] = server_and_user(setup.dump.find(SECRET, name, setup.kueue_namespace))
        place = known.get(name) if kind == SECRET.kind else None
        groups.setdefault(place or obj.source, []).append(obj.meta.name)
    return groups


RULES: Final = (duplicate_clusters,)
