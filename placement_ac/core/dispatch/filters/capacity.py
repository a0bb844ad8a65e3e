"""
Capacity: only the clusters whose quota can ever be enough for the job.

Reads the requests of the podSets, and the ClusterQueue on the worker behind the LocalQueue of the job's
namespace and name. Abstains where the worker's queues are not known, and for a resource that the ClusterQueue
does not name: Kueue does not count it with `quotaCheckStrategy: IgnoreUndeclared`, which we cannot read.
"""

from placement_ac.core.api.objects import Workload
from placement_ac.core.api.quantities import format_milli
from placement_ac.core.dispatch.facts import Cluster, queue_of
from placement_ac.core.inputs.queue_facts import QueueFacts


def capacity(job: Workload, cluster: Cluster) -> str | None:
    """Refuse a cluster without the LocalQueue, or where no flavor has as much as a podSet asks for."""
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
            most = _most(facts, resource)
            if most is not None and asked > most:
                wanted = f"{format_milli(asked)} {resource} asked"
                return f"had too little quota: {wanted}, {format_milli(most)} at most"
    return None


def _most(facts: QueueFacts, resource: str) -> int | None:
    """Return the most of a resource that any flavor can give; None: it is not named, or a cohort has more."""
    amounts = [flavor.most for flavor in facts.quotas.get(resource, ())]
    known = [amount for amount in amounts if amount is not None]
    return max(known, default=None) if len(known) == len(amounts) else None
