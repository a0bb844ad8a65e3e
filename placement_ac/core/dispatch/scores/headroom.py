"""
Headroom: where most of the resources that the job asks for is free.

Reads the requests of the podSets, the quota of the ClusterQueue on the worker, and the Workloads of this hub
that wait there, or came since the worker was asked. Abstains where the worker's queues are not known.
"""

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster, queue_of
from placement_ac.core.dispatch.free_quota import total_requests
from placement_ac.core.inputs.queue_facts import FlavorQuota


def headroom(job: Workload, cluster: Cluster) -> float | None:
    """Return the points of the scarcest resource: 50 to 100 if the unused nominal quota is enough.

    25 to 50 if it is with what can be borrowed. Otherwise the job has to wait there: less than 25, and the
    less, the more is asked for already in relation to the quota. 0 for a ClusterQueue that is not active.
    If nobody says how much a cohort lends, it counts as lending as much as the nominal quota.
    """
    asked, queue = total_requests(job.job), queue_of(job)
    if cluster.queue_facts is None or not asked:
        return None
    if queue not in cluster.queue_facts or not cluster.queue_facts[queue].active:
        return 0.0
    free = cluster.free_quota.of(queue)
    return min(
        max((_points(amount, flavor) for flavor in free.get(resource, ())), default=0.0)
        for resource, amount in asked.items()
    )


def _points(asked: int, quota: FlavorQuota) -> float:
    unused = max(quota.nominal - quota.reserved, 0)
    if unused >= asked:
        return 100.0 - 50.0 * asked / unused
    most = 2 * max(quota.nominal, asked) if quota.most is None else quota.most
    if quota.reserved + asked <= most:
        return 25.0 + 25.0 * unused / asked
    return 25.0 * most / (quota.reserved + asked)
