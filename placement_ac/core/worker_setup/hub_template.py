"""
The queues on workers without a template: those of the hub, with the cluster's own quota.

Pure. A ClusterQueue of the hub covers resources; on a worker its quota is what the cluster can allocate of
them, less the reserve. Queues that cover the same resource share it in proportion to their quota on the hub.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from placement_ac.core.api.constants import CLUSTER_QUEUE, RESOURCE_FLAVOR
from placement_ac.core.api.fields import Obj, get_dict, get_list, get_str, get_strs
from placement_ac.core.api.label_selector import CLAIM
from placement_ac.core.api.quantities import milli
from placement_ac.core.api.text import joined
from placement_ac.core.inputs.state import Body
from placement_ac.core.inputs.worker_setup import HubClusterQueue, WorkerSetupInputs
from placement_ac.core.worker_setup.template import TemplateProblem, whole_quantity

COPIED: Final = ("cohort", "cohortName", "queueingStrategy", "flavorFungibility", "preemption", "fairSharing")
"""The fields of a ClusterQueue that are the hub's on a worker, too."""
RESERVED: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
"""The resources that a node's own Pods need: the reserve is for them, a GPU is never left idle."""


def hub_manifests(inputs: WorkerSetupInputs, queue: HubClusterQueue) -> Iterator[Body]:
    """Yield the ResourceFlavors and the ClusterQueue of one of the hub. Raises TemplateProblem."""
    groups = []
    for group in get_list(queue.spec, "resourceGroups"):
        flavor = _flavor(inputs, queue, group)
        yield _manifest(inputs, RESOURCE_FLAVOR.kind, flavor, inputs.flavors[flavor])
        covered = get_strs(group, "coveredResources")
        quotas = [{"name": name, "nominalQuota": _quota(inputs, queue, name)} for name in covered]
        groups.append({"coveredResources": covered, "flavors": [{"name": flavor, "resources": quotas}]})
    spec = {field: queue.spec[field] for field in COPIED if field in queue.spec}
    yield _manifest(
        inputs, CLUSTER_QUEUE.kind, queue.name, spec | {"namespaceSelector": {}, "resourceGroups": groups}
    )


def _manifest(inputs: WorkerSetupInputs, kind: str, name: str, spec: Obj) -> Body:
    body: Body = {"apiVersion": inputs.hub.check_version, "kind": kind, "metadata": {"name": name}}
    return body | ({"spec": dict(spec)} if spec else {})


def _flavor(inputs: WorkerSetupInputs, queue: HubClusterQueue, group: Obj) -> str:
    """Return the one flavor of a resource group that the cluster has, by the labels of its nodes."""
    names = [get_str(flavor, "name") for flavor in get_list(group, "flavors")]
    if missing := [name for name in names if name not in inputs.flavors]:
        raise TemplateProblem(f"create ResourceFlavor {missing[0]}: ClusterQueue {queue.name} names it")
    labels = inputs.managed_cluster.labels if inputs.managed_cluster else {}
    fitting = [name for name in names if _fits(get_dict(inputs.flavors[name], "nodeLabels"), labels)]
    if len(fitting) != 1:
        which = f"{joined(fitting)} fit" if fitting else f"none of {joined(names)} fits"
        raise TemplateProblem(
            f"name a template, or label {inputs.cluster} as the nodes of one flavor of ClusterQueue"
            f" {queue.name} are: {which} its labels"
        )
    flavor = fitting[0]
    if topology := get_str(inputs.flavors[flavor], "topologyName"):
        raise TemplateProblem(f"name a template with Topology {topology}: ResourceFlavor {flavor} names it")
    return flavor


def _fits(wanted: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether a cluster may have nodes with these labels: it contradicts none."""
    known = {key: labels.get(key, labels.get(f"{CLAIM}{key}")) for key in wanted}
    return all(known[key] in (None, value) for key, value in wanted.items())


def _quota(inputs: WorkerSetupInputs, queue: HubClusterQueue, resource: str) -> str:
    """Return the queue's share of what the cluster can allocate."""
    there = inputs.managed_cluster.allocatable.get(resource, 0) if inputs.managed_cluster else 0
    free = int(there * (1 - inputs.policy.reserve)) if resource in RESERVED else there
    shares = {one.name: _nominal(one.spec, resource) for one in inputs.queues if covers(one.spec, resource)}
    total = sum(shares.values())
    mine = free * shares[queue.name] // total if total else free // len(shares)
    return whole_quantity(resource, mine)


def covers(spec: Obj, resource: str) -> bool:
    """Whether a ClusterQueue covers a resource."""
    groups = get_list(spec, "resourceGroups")
    return any(resource in get_strs(group, "coveredResources") for group in groups)


def _nominal(spec: Obj, resource: str) -> int:
    return sum(
        milli(quota.get("nominalQuota")) or 0
        for (_, name), quota in quotas_of({"spec": spec})
        if name == resource
    )


def quotas_of(cluster_queue: Obj) -> Iterator[tuple[tuple[str, str], Any]]:
    """Yield flavor and resource, and the quota there."""
    for group in get_list(cluster_queue, "spec", "resourceGroups"):
        for flavor in get_list(group, "flavors"):
            for quota in get_list(flavor, "resources"):
                yield (get_str(flavor, "name"), get_str(quota, "name")), quota
