"""The position of a job among those that wait in its queue. Pure."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import queue_of
from placement_ac.core.expected_start.model import Order
from placement_ac.core.inputs.queue_facts import Queue

_EPOCH: Final = datetime.fromtimestamp(0, UTC)


class QueuePosition(NamedTuple):
    """The position, from 1, of so many."""

    position: int
    number: int


def position_of(
    workload: Workload, every: Iterable[Workload], cluster_queues: Mapping[Queue, str]
) -> QueuePosition | None:
    """Return the position of a Workload, as Kueue orders them: by `order_of`.

    None: it does not wait. `cluster_queues`: LocalQueue → its ClusterQueue; of a LocalQueue that is not in
    it, only its own jobs count.
    """
    if not _waits(workload):
        return None
    mine = _queue(workload, cluster_queues)
    own = order_of(workload, _EPOCH)
    others = [one for one in every if _waits(one) and _queue(one, cluster_queues) == mine]
    before = sum(order_of(one, _EPOCH) < own for one in others if one.meta.uid != workload.meta.uid)
    return QueuePosition(before + 1, max(len(others), before + 1))


def _waits(workload: Workload) -> bool:
    return workload.active and not workload.finished and not workload.cluster


def _queue(workload: Workload, cluster_queues: Mapping[Queue, str]) -> Queue:
    queue = queue_of(workload)
    return ("", cluster_queues[queue]) if queue in cluster_queues else queue


def order_of(workload: Workload, now: datetime) -> Order:
    """Return the place of a Workload in its queue, in Kueue's order: priority, then waiting time.

    Since it was created, or evicted by a check or because its Pods were not ready in time.
    """
    since = workload.requeued_at or workload.created
    return -workload.priority, (since - now).total_seconds() if since else 0.0, workload.meta.uid
