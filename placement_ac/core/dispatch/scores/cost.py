"""
Cost: where the job is cheapest, by the prices that the setting `--cost-labels` reads from clusters.

Reads labels or ClusterClaims of the ManagedClusters, and whether the job asks for GPUs. Abstains where the
cluster has no price.
"""

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster


def cost(job: Workload, cluster: Cluster) -> float | None:
    """Return 100 for the lowest price of the Placement's clusters, 50 for twice that, 33 for three times it.

    The price per GPU counts, where there is one in the settings, for a job that asks for GPUs.
    """
    prices = cluster.prices
    if prices is None:
        return None
    per_gpu = prices.per_gpu is not None and any(
        resource in prices.gpus for podset in job.job.requests for resource, _ in podset
    )
    price = prices.per_gpu if per_gpu else prices.whole
    if price is None or price.own is None or price.lowest is None:
        return None
    return 100.0 * price.lowest / price.own if price.own else 100.0
