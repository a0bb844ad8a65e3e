"""
Capacity: only the clusters whose quota can ever be enough for the job.

Reads the requests of the podSets, and the ClusterQueue on the worker behind the LocalQueue of the job's
namespace and name. Abstains where the worker's queues are not known, and for a resource that the ClusterQueue
does not name: Kueue does not count it with `quotaCheckStrategy: IgnoreUndeclared`, which we cannot read.
Kueue admits all podSets or none (`flavorassigner.go`: "previously considered podsets requests").
"""

from placement_ac.core.api.objects import Workload
from placement_ac.core.api.quantities import format_milli
from placement_ac.core.dispatch.facts import Cluster, queue_of
from placement_ac.core.inputs.queue_facts import QueueFacts


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
    for podset in job.job.requests:
        for resource, asked in podset:
            most = max(_amounts(facts, resource), default=None)
            if most is not None and asked > most:
                return _too_little(resource, asked, most)
    return _too_little_together(job, facts) if len(job.job.requests) > 1 else None


def _too_little_together(job: Workload, facts: QueueFacts) -> str | None:
    """Return the resource of which all flavors have less than all podSets ask for."""
    for resource, asked in job.job.total_requests:
        amounts = _amounts(facts, resource)
        if amounts and asked > sum(amounts):
            return _too_little(resource, asked, sum(amounts), f" by {len(job.job.requests)} podSets")
    return None


def _too_little(resource: str, asked: int, most: int, by: str = "") -> str:
    wanted = f"{format_milli(asked)} {resource} asked{by}"
    return f"had too little quota: {wanted}, {format_milli(most)} at most"


def _amounts(facts: QueueFacts, resource: str) -> list[int]:
    """Return the most of a resource that each flavor can give; []: it is not named, or a cohort has more."""
    amounts = [flavor.most for flavor in facts.quotas.get(resource, ())]
    known = [amount for amount in amounts if amount is not None]
    return known if len(known) == len(amounts) else []
