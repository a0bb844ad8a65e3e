"""
Why a job that is nominated to a cluster still waits there: the resource of which too little is free now.

Pure. It reads what the worker's queues reported, without the jobs that wait there. Of a resource that the
queue does not name, there is never any, unless Kueue ignores it (`quotaCheckStrategy`).
"""

from collections.abc import Sequence

from placement_ac.core.api.objects import Workload
from placement_ac.core.api.quantities import format_milli
from placement_ac.core.api.text import count_text, joined
from placement_ac.core.dispatch.facts import Cluster, queue_of, unnamed_resources
from placement_ac.core.dispatch.usable_flavors import asks_of
from placement_ac.core.inputs.queue_facts import FlavorQuota, QueueFacts


def shortage(job: Workload, cluster: Cluster) -> str:
    """Return what is short, as `0 of 8 nvidia.com/gpu free (8 used by 2 jobs)`; "": nothing, or unknown."""
    facts = (cluster.queue_facts or {}).get(queue_of(job))
    if facts is None:
        return ""
    if facts.selects_no_namespace:
        return f"ClusterQueue {facts.cluster_queue} has no namespaceSelector"
    if not facts.active:
        return f"ClusterQueue {facts.cluster_queue} is not active"
    if unnamed := joined(unnamed_resources(job, facts)):
        return f"ClusterQueue {facts.cluster_queue} has no quota of {unnamed}: it never runs there"
    for podset, own in asks_of(job.job):
        for resource, asked in podset:
            named = facts.quotas.get(resource, ())
            flavors = own.of(named)
            if named and not flavors:
                return f"ClusterQueue {facts.cluster_queue} has no flavor of {resource} that its Pods may use"
            if flavors and not any(_has_room(flavor, asked) for flavor in flavors):
                return f"{_used(resource, flavors)} by {count_text(facts.reserving, 'job')})"
    return _shortage_together(job, facts) if len(job.job.requests) > 1 else ""


def _shortage_together(job: Workload, facts: QueueFacts) -> str:
    """Return what is short for all podSets together: Kueue admits all of them, or none."""
    for resource, asked in job.job.total_requests:
        flavors = facts.quotas.get(resource, ())
        left = [flavor.most - flavor.reserved for flavor in flavors if flavor.most is not None]
        if flavors and len(left) == len(flavors) and asked > sum(max(amount, 0) for amount in left):
            return f"{_used(resource, flavors)} by {count_text(facts.reserving, 'job')})"
    return ""


def _has_room(flavor: FlavorQuota, asked: int) -> bool:
    return flavor.most is None or flavor.most - flavor.reserved >= asked


def _used(resource: str, flavors: Sequence[FlavorQuota]) -> str:
    free = sum(max(flavor.nominal - flavor.reserved, 0) for flavor in flavors)
    nominal, used = sum(flavor.nominal for flavor in flavors), sum(flavor.reserved for flavor in flavors)
    return f"{format_milli(free)} of {format_milli(nominal)} {resource} free ({format_milli(used)} used"
