"""
Rules that compare the hub with all its workers together.

Pure. A worker that is not listed, that leaves, or whose queues are not known counts for nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kubectl_placement.doctor.finding import Cause, DoctorRule, Finding, of_cluster, ok, warn
from kubectl_placement.doctor.setup import HubSetup
from kubectl_placement.doctor.worker_inspection import InspectedWorker
from kubectl_placement.status.check_status import check_statuses
from kubectl_placement.status.hub_quota import listed_now, shared_queues, warnings_of
from placement_ac.core.api.constants import CLUSTER_QUEUE, LOCAL_QUEUE
from placement_ac.core.api.text import joined
from placement_ac.core.inputs.queue_facts import Queue, QueueFacts, worker_facts

_QUEUES: Final = ("worker-queues", "worker-cluster-queues")
"""The checks that find which queues a worker lacks."""


@dataclass(frozen=True)
class Fleet:
    """The hub and its inspected workers."""

    setup: HubSetup
    workers: tuple[InspectedWorker, ...]


def _hub_quota(fleet: Fleet) -> Iterator[Finding]:
    dump = fleet.setup.dump
    there = {worker.cluster: _queues_of(worker) for worker in fleet.workers}
    groups = shared_queues(dump, listed_now(dump, check_statuses(fleet.setup.view)), there)
    for group in groups:
        for one in warnings_of(dump, group):
            causes = [Cause(check, of_cluster(cluster)) for cluster in one.lacking for check in _QUEUES]
            yield warn(one.message, one.fix, causes=causes)
    if groups:
        names = joined(name for group in groups for name in group.on_hub)
        yield ok(f"the quota of {names} is about the sum of that on their listed workers")


hub_quota: Final = DoctorRule(
    "hub-quota",
    "the quota of the hub's ClusterQueues is about the sum of that on their listed workers: neither more, so"
    " that jobs get quota and wait, nor less than half of it, so that GPUs idle",
    "kubectl patch clusterqueue NAME --type=json -p='[…]'",
    _hub_quota,
)
RULES: Final = (hub_quota,)


def examine_fleet(fleet: Fleet) -> tuple[Finding, ...]:
    """Return the findings of each rule."""
    return tuple(finding for rule in RULES for finding in rule.findings(fleet))


def _queues_of(worker: InspectedWorker) -> Mapping[Queue, QueueFacts] | None:
    """Return the queues of a worker; None: they are not known."""
    if not worker.knows(LOCAL_QUEUE, CLUSTER_QUEUE):
        return None
    objects = worker.objects
    return worker_facts(objects[LOCAL_QUEUE].values(), objects[CLUSTER_QUEUE].values()).known
