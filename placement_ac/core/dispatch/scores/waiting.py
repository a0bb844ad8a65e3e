"""
Waiting: where the fewest jobs wait.

Reads the number of jobs that are nominated to the cluster and, where the worker's queues are known, the
number that its ClusterQueue reports: jobs of other hubs and of the worker's own users are among them.
"""

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster, queue_of


def waiting(job: Workload, cluster: Cluster) -> float | None:
    """Return 100 where no job waits, 50 for one, 33 for two …"""
    facts = (cluster.queue_facts or {}).get(queue_of(job))
    pending = facts.pending if facts else 0
    return 100.0 / (1 + max(len(cluster.waiting), pending))
