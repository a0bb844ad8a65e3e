"""
Capacity: only the clusters whose quota can ever be enough for the job.

Reads the requests of the podSets, and the ClusterQueue on the worker behind the LocalQueue of the job's
namespace and name. Abstains where the worker's queues are not known, and for a resource that the ClusterQueue
does not name: Kueue does not count it with `quotaCheckStrategy: IgnoreUndeclared`, which we cannot read.
Kueue admits all podSets or none (`flavorassigner.go`: "previously considered podsets requests"). Where the
worker lets us list its ResourceFlavors, only those count that the Pods of a podSet may use.
"""

from collections.abc import Iterable, Sequence

from placement_ac.core.api.objects import Workload
from placement_ac.core.api.pod_requests import Requests
from placement_ac.core.api.quantities import format_milli
from placement_ac.core.dispatch.facts import Cluster, queue_of
from placement_ac.core.dispatch.usable_flavors import UsableFlavors, asks_of
from placement_ac.core.inputs.queue_facts import FlavorQuota, QueueFacts


def capacity(job: Workload, cluster: Cluster) -> str | None:
    """Refuse a cluster without the LocalQueue, or where no flavor has what a podSet asks for, or all flavors
    together less than all podSets ask for.
    """
    if cluster.queue_facts is None:
        return None
    queue = queue_of(job)
    facts = cluster.queue_facts.get(queue)
    if facts is None:
        return f"had no LocalQueue {queue[0]}/{queue[1]}"
    if not facts.exists:
        return f"had no ClusterQueue {facts.cluster_queue} for LocalQueue {queue[0]}/{queue[1]}"
    asks = asks_of(job.job)
    for podset, own in asks:
        for resource, asked in podset:
            flavors = facts.quotas.get(resource, ())
            usable = own.of(flavors)
            most = _largest(usable) if usable else 0
            if flavors and most is not None and asked > most:
                return _too_little(resource, asked, most, _of_usable(usable, flavors))
    return _too_little_together(job, asks, facts) if len(asks) > 1 else None


def _too_little_together(
    job: Workload, asks: Sequence[tuple[Requests, UsableFlavors]], facts: QueueFacts
) -> str | None:
    """Return the resource of which all flavors have less than all podSets ask for."""
    for resource, asked in job.job.total_requests:
        owns = {own for podset, own in asks if any(name == resource for name, _ in podset)}
        flavors = facts.quotas.get(resource, ())
        usable = [flavor for flavor in flavors if any(own.includes(flavor) for own in owns)]
        amounts = [flavor.most for flavor in usable]
        known = [amount for amount in amounts if amount is not None]
        if flavors and len(known) == len(amounts) and asked > sum(known):
            by = f" by {len(asks)} podSets"
            return _too_little(resource, asked, sum(known), _of_usable(usable, flavors), by)
    return None


def _too_little(resource: str, asked: int, most: int, usable: str, by: str = "") -> str:
    wanted = f"{format_milli(asked)} {resource} asked{by}"
    return f"had too little quota: {wanted}, {format_milli(most)} at most{usable}"


def _of_usable(usable: Sequence[FlavorQuota], flavors: Sequence[FlavorQuota]) -> str:
    if len(usable) == len(flavors):
        return ""
    return f" in flavors that its Pods may use, by node labels and taints ({len(usable)} of {len(flavors)})"


def _largest(flavors: Iterable[FlavorQuota]) -> int | None:
    """Return the most of a resource that one of these flavors can give; None: a cohort may have more."""
    amounts = [flavor.most for flavor in flavors]
    known = [amount for amount in amounts if amount is not None]
    return max(known) if len(known) == len(amounts) else None
