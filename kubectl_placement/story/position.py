"""The place of a job among those that wait for quota in its LocalQueue. Pure."""

from collections.abc import Iterable

from kubectl_placement.hub.dump import Object, condition_of
from kubectl_placement.story.model import QueuePosition
from kubectl_placement.story.waits import OneJob
from placement_ac.core.api.fields import get_int, get_str, get_value, key_of


def queue_position(job: OneJob, workloads: Iterable[Object]) -> QueuePosition | None:
    """Return its place; None if it has quota, is stopped or has finished.

    Kueue's order: the highest priority first, then the oldest; an evicted one counts from its eviction if
    its Pods were not ready in time.
    """
    if not job.queue or not _waits(job.raw):
        return None
    namespace = job.key[0]
    queued = [
        raw
        for raw in workloads
        if get_str(raw, "spec", "queueName") == job.queue and key_of(raw)[0] == namespace and _waits(raw)
    ]
    order = sorted(queued, key=_order)
    place = next((number for number, raw in enumerate(order, 1) if key_of(raw) == job.key), 0)
    return QueuePosition(job.queue, place, len(order)) if place else None


def _waits(raw: Object) -> bool:
    is_done = any(condition_of(raw, kind).get("status") == "True" for kind in ("QuotaReserved", "Finished"))
    return not is_done and get_value(raw, "spec", "active") is not False


def _order(raw: Object) -> tuple[int, str, str]:
    evicted = condition_of(raw, "Evicted")
    was_late = evicted.get("status") == "True" and evicted.get("reason") == "PodsReadyTimeout"
    since = get_str(evicted, "lastTransitionTime") if was_late else ""
    created = get_str(raw, "metadata", "creationTimestamp")
    return -(get_int(raw, "spec", "priority") or 0), since or created, get_str(raw, "metadata", "uid")
