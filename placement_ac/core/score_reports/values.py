"""
Compute the scores of one cluster from its worker's queues and from the jobs that it runs.

Pure. 100 is best. A score that is missing or has expired counts 0 for OCM, so 0 is given to a cluster that is
full, and less only to one that can never run such a job, or has lent more than it has.
"""

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from heapq import nlargest
from typing import Final

from placement_ac.core.api.constants import READY
from placement_ac.core.api.objects import Workload
from placement_ac.core.inputs.queue_facts import FlavorQuota, QueueFacts
from placement_ac.core.inputs.score_reports import ScoreInputs, WorkerReading

GPU_FREE: Final = "gpuFree"
CPU_FREE: Final = "cpuFree"
QUEUE_FREE: Final = "queueFree"
WAITING: Final = "waiting"
PLACEMENT_SECONDS: Final = "placementSeconds"
RELIABLE: Final = "reliable"
GPU_HEALTHY: Final = "gpuHealthy"

BEST: Final = 100
NONE: Final = -100
"""Of a cluster that has none of the resource."""
WAITING_HALF: Final = 10
"""So many waiting jobs halve a score."""
PLACING_HALF_SECONDS: Final = 60.0
"""So long a wait until jobs are placed halves a score."""
LAST_JOBS: Final = 10
"""How many jobs count for that: those that were placed last."""


def score_values(inputs: ScoreInputs, reading: WorkerReading) -> dict[str, int]:
    """Return the scores of a cluster; the queues of the reading are known."""
    facts = (reading.facts.queues[queue] for queue in sorted(inputs.queues & reading.facts.queues.keys()))
    # Of several LocalQueues of a ClusterQueue one that is not on hold counts.
    by_name = {each.cluster_queue: each for each in sorted(facts, key=lambda each: each.active)}
    queues = [each for each in by_name.values() if each.exists]
    resources = {resource for queue in queues for resource in queue.quotas}
    seconds = nlargest(LAST_JOBS, filter(None, map(_placing, inputs.workloads)))
    waited = sum(wait for _, wait in seconds) / len(seconds) if seconds else 0.0
    pending = sum(queue.pending for queue in queues)
    values = {
        GPU_FREE: _free(queues, inputs.policy.gpus),
        CPU_FREE: _free(queues, ("cpu",)),
        QUEUE_FREE: min((_free(queues, (resource,)) for resource in resources), default=NONE),
        WAITING: round(BEST * WAITING_HALF / (WAITING_HALF + pending)),
        PLACEMENT_SECONDS: round(BEST * PLACING_HALF_SECONDS / (PLACING_HALF_SECONDS + waited)),
        RELIABLE: round(BEST * (1.0 if inputs.reliability is None else inputs.reliability)),
    }
    if reading.gpu_health is not None:
        values[GPU_HEALTHY] = round(BEST * reading.gpu_health)
    return {name: max(NONE, min(value, BEST)) for name, value in values.items()}


def _free(queues: Iterable[QueueFacts], resources: Collection[str]) -> int:
    """Return how much of the nominal quota is not reserved, in percent; a queue on hold has nothing free."""
    nominal = free = 0
    for queue in queues:
        for quota in _quotas(queue, resources):
            nominal += quota.nominal
            free += quota.nominal - quota.reserved if queue.active else 0
    return max(round(BEST * free / nominal), NONE) if nominal else NONE


def _quotas(queue: QueueFacts, resources: Collection[str]) -> Iterator[FlavorQuota]:
    return (quota for resource in resources for quota in queue.quotas.get(resource, ()))


def _placing(workload: Workload) -> tuple[datetime, float] | None:
    """Return when a Workload was placed, and how many seconds after it might have been."""
    # Kueue's check turns Ready when a worker has admitted the job, after all others.
    turned = [state.since for state in workload.check_states if state.state == READY and state.since]
    if len(turned) < len(workload.check_states) or not turned or not workload.quota_since:
        return None
    placed = max(turned)
    return placed, max((placed - workload.quota_since).total_seconds(), 0.0)  # clocks differ
