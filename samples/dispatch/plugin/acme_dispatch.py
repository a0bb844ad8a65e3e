"""
Two plugins of placement-ac's dispatcher: a filter and a score.

Both get the Workload and the cluster as placement-ac knows them. They must be fast, read nothing else, and
give the same answer for jobs of one namespace that ask for the same.
"""

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster


def licensed(job: Workload, cluster: Cluster) -> str | None:
    """Refuse clusters without a license for the product that the job's Pods have as label `acme.com/product`.

    A reason follows a number of clusters: "2 had no license for solver (Licensed)".
    """
    product = dict(job.job.labels).get("acme.com/product")
    if product is None or f"acme.com/license-{product}" in cluster.labels:
        return None
    return f"had no license for {product}"


def cheap(_: Workload, cluster: Cluster) -> float | None:
    """Return 100 for a cluster that costs nothing, less for others.

    None, to abstain, if its label `acme.com/price` is no number.
    """
    price = cluster.labels.get("acme.com/price", "")
    return max(0.0, 100.0 - float(price)) if price.isdecimal() else None
