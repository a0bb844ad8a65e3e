"""Workloads that say where they want to run, and clusters to choose from."""

from collections.abc import Mapping
from typing import Any

from placement_ac.core.api import decode
from placement_ac.core.api.objects import Workload
from placement_ac.core.api.quantities import milli
from placement_ac.core.dispatch.facts import Cluster
from placement_ac.core.inputs.queue_facts import FlavorQuota, Queue, QueueFacts
from tests.support.builders import workload

Raw = dict[str, Any]
DOMAIN = "placement-ac.open-cluster-management.io"
GPU = "nvidia.com/gpu"
QUEUE: Queue = ("default", "user-queue")
"""The LocalQueue of `raw_job`."""


def raw_job(
    name: str = "job",
    *,
    queue: str = "user-queue",
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    pods: tuple[Raw, ...] = (),
    owner: tuple[str, str, str] | None = None,
    **rest: Any,
) -> Raw:
    """A Workload with these annotations and labels, and a podSet for each Pod template in `pods`.

    `owner`: apiVersion, kind and name of its job.
    """
    raw: Raw = workload(name, **rest)
    raw["spec"] |= {
        "queueName": queue,
        "podSets": [{"name": f"p{n}", "template": t} for n, t in enumerate(pods)],
    }
    raw["metadata"] |= {"annotations": dict(annotations or {}), "labels": dict(labels or {})}
    if owner:
        version, kind, called = owner
        raw["metadata"]["ownerReferences"] = [{"apiVersion": version, "kind": kind, "name": called}]
    return raw


def job(name: str = "job", **rest: Any) -> Workload:
    """The same, as the cache keeps it."""
    return decode.workload_with_job(raw_job(name, **rest))


def cluster(name: str = "a", rank: int = 0, number: int = 1, **rest: Any) -> Cluster:
    """The MultiKueueCluster p-NAME of a managed cluster."""
    return Cluster(f"p-{name}", name, rank, number, **rest)


def gpu_pods(*numbers: Any, **others: Any) -> tuple[Raw, ...]:
    """Pod templates, each with so many GPUs, and `others` (such as cpu=1)."""
    amounts = ({GPU: number} | others for number in numbers)
    return tuple({"spec": {"containers": [{"resources": {"requests": amount}}]}} for amount in amounts)


def quota(flavor: str, nominal: Any, reserved: Any = 0, borrowable: Any = 0) -> FlavorQuota:
    """The quota of a flavor, from quantities; `borrowable` None: without a limit."""
    most = None if borrowable is None else milli(borrowable)
    return FlavorQuota(flavor, milli(nominal) or 0, milli(reserved) or 0, most)


def queues(*quotas: tuple[Any, ...], queue: Queue = QUEUE, **rest: Any) -> dict[Queue, QueueFacts]:
    """A worker's only LocalQueue; `quotas`: resource, and the arguments of `quota`; `rest`: of QueueFacts."""
    found: dict[str, tuple[FlavorQuota, ...]] = {}
    for resource, *amounts in quotas:
        found[resource] = (*found.get(resource, ()), quota(*amounts))
    return {queue: QueueFacts("cluster-queue", found, **rest)}
