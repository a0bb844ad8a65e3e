"""
Waiting: where the fewest jobs wait.

Reads the number of jobs that are nominated to the cluster. Where the worker's queues are known, it reads the
number that its ClusterQueue reports, with jobs of other hubs, and adds those that came since.
"""

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster, queue_of


def waiting(job: Workload, cluster: Cluster) -> float | None:
    """Return 100 where no job waits, 50 for one, 33 for two …"""
    facts = (cluster.queue_facts or {}).get(queue_of(job))
    number = facts.pending + len(cluster.newcomers) if facts else len(cluster.waiting)
    return 100.0 / (1 + number)
