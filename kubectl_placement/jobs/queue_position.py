"""The position of a job among those that wait in its queue, in Kueue's order. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from kubectl_placement.hub.dump import Object, condition_of
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.jobs.not_managed import never_starts
from placement_ac.core.api.constants import LOCAL_QUEUE, WORKLOAD
from placement_ac.core.api.decode import created_at, workload
from placement_ac.core.api.fields import get_int, get_str, get_time, key_of, namespace_of

_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_TO_THE_END: Final = ("AdmissionCheck", "PodsReadyTimeout")
"""Kueue: after an eviction for these reasons a Workload queues anew, from the time of the eviction."""


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """The place of a job among those that wait in a queue; the first is 1."""

    queue: str
    place: int
    jobs: int


def local_queue_position(view: HubView, raw: Object) -> QueuePosition | None:
    """Return the position of a Workload in its LocalQueue; None: it does not wait, or is in none."""
    queue = _local_queue(raw)
    same = (one for one in view.dump.of(WORKLOAD) if _local_queue(one) == queue)
    return _position(queue[1], raw, same)


def cluster_queue_position(view: HubView, raw: Object) -> QueuePosition | None:
    """Return the position of a Workload in its ClusterQueue; None: it does not wait, or that is unknown."""
    names = {key_of(one): get_str(one, "spec", "clusterQueue") for one in view.dump.of(LOCAL_QUEUE)}
    name = names.get(_local_queue(raw), "")
    same = (one for one in view.dump.of(WORKLOAD) if names.get(_local_queue(one)) == name)
    return _position(name, raw, same)


def _local_queue(raw: Object) -> tuple[str, str]:
    return namespace_of(raw), get_str(raw, "spec", "queueName")


def _position(queue: str, raw: Object, same: Iterable[Object]) -> QueuePosition | None:
    """Return the position among the Workloads of the same queue."""
    if not queue or not _waits(raw):
        return None
    orders = {key_of(one): _order(one) for one in same if _waits(one)}
    own = orders.setdefault(key_of(raw), _order(raw))
    return QueuePosition(queue, sum(order < own for order in orders.values()) + 1, len(orders))


def _waits(raw: Object) -> bool:
    job = workload(raw)
    return job.active and not job.finished and not job.cluster and never_starts(raw) is None


def _order(raw: Object) -> tuple[int, datetime, str]:
    """Return the place of a Workload in its queue: by priority, then by waiting time.

    It waits since it was created, or evicted by a check or because its Pods were not ready in time.
    """
    evicted = condition_of(raw, "Evicted")
    is_requeued = get_str(evicted, "status") == "True" and get_str(evicted, "reason") in _TO_THE_END
    since = get_time(evicted, "lastTransitionTime") if is_requeued else None
    priority = get_int(raw, "spec", "priority") or 0
    return -priority, since or created_at(raw) or _EPOCH, get_str(raw, "metadata", "uid")
