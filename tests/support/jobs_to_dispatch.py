"""Workloads that say where they want to run, and clusters to choose from."""

from collections.abc import Mapping
from typing import Any

from placement_ac.core.api import decode
from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster
from tests.support.builders import workload

Raw = dict[str, Any]
DOMAIN = "placement-ac.open-cluster-management.io"


def raw_job(
    name: str = "job",
    *,
    queue: str = "user-queue",
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    pods: tuple[Raw, ...] = (),
    **rest: Any,
) -> Raw:
    """A Workload with these annotations and labels, and a podSet for each Pod template in `pods`."""
    raw: Raw = workload(name, **rest)
    raw["spec"] |= {
        "queueName": queue,
        "podSets": [{"name": f"p{n}", "template": t} for n, t in enumerate(pods)],
    }
    raw["metadata"] |= {"annotations": dict(annotations or {}), "labels": dict(labels or {})}
    return raw


def job(name: str = "job", **rest: Any) -> Workload:
    """The same, as the cache keeps it."""
    return decode.workload_with_job(raw_job(name, **rest))


def cluster(name: str = "a", rank: int = 0, number: int = 1, **rest: Any) -> Cluster:
    """The MultiKueueCluster p-NAME of a managed cluster."""
    return Cluster(f"p-{name}", name, rank, number, **rest)
