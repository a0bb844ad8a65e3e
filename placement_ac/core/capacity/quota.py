"""
The quota of a Placement's clusters by flavor and resource, and their sums.

Pure. On a worker, the ClusterQueues count that serve the LocalQueues of the hub: as our ManifestWork has set
them, else as the worker says. A quota that was known stays known while the worker cannot be asked. A worker's
admin may set any quota there, so no more of it counts than the cluster's nodes can allocate by its
ManagedCluster, or than an admin of the hub lets it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from placement_ac.core.api.constants import ANNOTATION_QUOTA_MAX, MULTIKUEUE_CLUSTER, READABLE_SOURCES
from placement_ac.core.api.quantities import LARGEST, format_milli, milli
from placement_ac.core.api.text import joined, shortened
from placement_ac.core.inputs.capacity import CapacityInputs, WrittenQueues
from placement_ac.core.inputs.queue_facts import Queue, QueueFacts, WorkerFacts
from placement_ac.core.inputs.state import Snapshot

Quota = Mapping[str, Mapping[str, int]]
"""Flavor → resource → the amount in thousandths."""

QUOTA_AGAIN_SECONDS: Final = 60.0
"""How often a worker is asked for quota that we have not set."""
QUOTA_RETRY_SECONDS: Final = 15.0
"""How often a worker is asked that could not be asked."""
_NOTHING_WRITTEN: Final = WrittenQueues()


@dataclass(frozen=True, slots=True)
class ClusterQuota:
    """The quota of one cluster."""

    cluster: str
    quota: Quota | None = None
    """None: it is not known."""
    why: str = ""
    """Why it is not known, or which field is wrong."""
    invalid: bool = False
    """Whether a quantity there is wrong."""
    is_ours: bool = False
    """Whether it is one that we have written there."""
    remark: str = ""
    """How much of which resource counts, if not all does, and which annotation is wrong."""
    ask: str = ""
    """The MultiKueueCluster whose worker is to be asked now; "": none."""
    ask_after: float | None = None
    """Seconds until the worker is to be asked again."""


def cluster_quota(snapshot: Snapshot, cluster: str, name: str) -> ClusterQuota:
    """Return the quota of a cluster, `name` being its MultiKueueCluster."""
    inputs = snapshot.capacity
    written = inputs.written.get(cluster, _NOTHING_WRITTEN)
    if written.problem:
        return ClusterQuota(cluster, why=written.problem, invalid=True, is_ours=True)
    ours = {queue for queues in inputs.queues.values() for queue in queues} & written.queues.keys()
    set_by_us, unset = [written.queues[queue] for queue in ours], _not_set_by_us(inputs, written)
    if not unset:
        return ClusterQuota(cluster, _quota(set_by_us))
    obstacle, facts = _obstacle(snapshot, cluster, name), snapshot.fleet.queue_facts.get(name)
    ask, ask_after = ("", None) if obstacle else _question(name, facts)
    if facts and facts.invalid:
        return ClusterQuota(cluster, None, facts.problem, invalid=True, ask=ask, ask_after=ask_after)
    if facts is None or (facts.problem and not facts.queues):
        why = obstacle or (facts.problem if facts else "it has not answered yet")
        return ClusterQuota(cluster, None, why, ask=ask, ask_after=ask_after)
    read = [facts.queues[queue] for queue in unset & facts.queues.keys()]
    found = [queue for queue in (*read, *set_by_us) if queue.exists]
    if not found:
        why = "create LocalQueues there: it has none of the hub's with a ClusterQueue"
        return ClusterQuota(cluster, None, why, ask=ask, ask_after=ask_after)
    most, wrong = _most(snapshot, cluster, name)
    quota, bounded = _bounded(_quota(found), most)
    remark = "; ".join(filter(None, (joined(bounded), wrong)))
    return ClusterQuota(cluster, quota, ask=ask, ask_after=ask_after, remark=remark)


def _most(snapshot: Snapshot, cluster: str, name: str) -> tuple[Mapping[str, int], str]:
    """Return how much of each resource may count, and what to correct in the annotation."""
    managed, worker = snapshot.fleet.managed.get(cluster), snapshot.objects.clusters.get(name)
    most = dict(managed.allocatable) if managed else {}
    text = worker.meta.annotations.get(ANNOTATION_QUOTA_MAX, "") if worker else ""
    wrong = ""
    for entry in filter(None, text.split(",")):
        resource, _, value = (part.strip() for part in entry.partition("="))
        amount = milli(value)
        if resource and amount is not None and amount >= 0:
            most[resource] = amount
        else:
            form = "RESOURCE=QUANTITY, comma-separated"
            where = f"{ANNOTATION_QUOTA_MAX} of {MULTIKUEUE_CLUSTER.kind} {name}"
            wrong = f"correct the annotation {where}: {shortened(entry)!r} is not {form}"
    return most, wrong


def _bounded(quota: Quota, most: Mapping[str, int]) -> tuple[Quota, list[str]]:
    """Return at most so much of each resource, the first flavors by name first, and what was cut."""
    left, has = dict(most), dict[str, int]()
    bounded: dict[str, dict[str, int]] = {}
    for flavor, resource, amount in sorted(_entries(quota)):
        counts = min(amount, left.get(resource, amount))
        bounded.setdefault(flavor, {})[resource] = counts
        has[resource] = has.get(resource, 0) + amount
        if resource in left:
            left[resource] -= counts
    cut = [
        f"{resource} {format_milli(most[resource])} of {format_milli(amount)}"
        for resource, amount in sorted(has.items())
        if amount > most.get(resource, amount)
    ]
    return bounded, cut


def _not_set_by_us(inputs: CapacityInputs, written: WrittenQueues) -> frozenset[Queue]:
    """Return the LocalQueues of which only the worker knows the ClusterQueue.

    One that has just come to the hub is not in the ManifestWork yet: it uses the same as its siblings.
    """
    unset: set[Queue] = set()
    for queues in inputs.queues.values():
        unset |= queues & written.others if queues & written.queues.keys() else queues
    return frozenset(unset)


def _obstacle(snapshot: Snapshot, cluster: str, name: str) -> str:
    """Return why a worker cannot be asked now; "" if it can."""
    obj = snapshot.objects.clusters.get(name)
    if obj is None or name not in snapshot.objects.listed:
        return "it is not listed yet"
    if obj.source[0] not in READABLE_SOURCES:
        return "give Kueue its kubeconfig in a Secret: a file of Kueue's cannot be read"
    return "OCM cannot reach it" if cluster in snapshot.fleet.unreachable else ""


def _question(name: str, facts: WorkerFacts | None) -> tuple[str, float | None]:
    """Return the MultiKueueCluster if its worker is to be asked now, and else after how many seconds."""
    left = (QUOTA_RETRY_SECONDS if facts.problem else QUOTA_AGAIN_SECONDS) - facts.age if facts else 0.0
    return ("", left) if left > 0 else (name, None)


def _quota(queues: Iterable[QueueFacts]) -> Quota:
    """Return the quota of ClusterQueues, each once: several LocalQueues may use it."""
    return sums(_by_flavor(queue) for queue in {queue.cluster_queue: queue for queue in queues}.values())


def _by_flavor(queue: QueueFacts) -> Quota:
    found: dict[str, dict[str, int]] = {}
    for resource, quotas in queue.quotas.items():
        for quota in quotas:
            found.setdefault(quota.flavor, {})[resource] = quota.nominal
    return found


def sums(quotas: Iterable[Quota]) -> dict[str, dict[str, int]]:
    """Return the sums, flavor by flavor and resource by resource."""
    total: dict[str, dict[str, int]] = {}
    for flavor, resource, amount in (entry for quota in quotas for entry in _entries(quota)):
        there = total.setdefault(flavor, {})
        there[resource] = min(there.get(resource, 0) + amount, LARGEST)
    return total


def _entries(quota: Quota) -> Iterator[tuple[str, str, int]]:
    for flavor, resources in quota.items():
        for resource, amount in resources.items():
            yield flavor, resource, amount
