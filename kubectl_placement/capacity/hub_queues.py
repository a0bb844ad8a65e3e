"""The rows of the hub's own ClusterQueues, beside those of the workers. Pure. Amounts are in thousandths."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from kubectl_placement.capacity.views import Row, rows_of
from kubectl_placement.hub.dump import Dump
from placement_ac.core.api.constants import CLUSTER_QUEUE, LOCAL_QUEUE
from placement_ac.core.api.fields import get_list, name_of
from placement_ac.core.capacity_report.compute import WorkerState, capacity_report
from placement_ac.core.inputs.queue_facts import worker_facts


def hub_rows(dump: Dump, names: Collection[str], gpus: tuple[str, ...], now: datetime) -> tuple[Row, ...]:
    """Return rows of the hub's ClusterQueues of these names; for what jobs wait there is not known.

    Nor is it known what jobs use there before Kueue has written it.
    """
    queues = [queue for queue in dump.of(CLUSTER_QUEUE) if name_of(queue) in names]
    facts = worker_facts(dump.of(LOCAL_QUEUE), queues)
    known = {queue: one for queue, one in facts.queues.items() if one.exists}
    report = capacity_report([WorkerState("", (), known, now, facts.problem, waiting=None)], gpus)
    counted = {name_of(queue) for queue in queues if get_list(queue, "status", "flavorsReservation")}
    return tuple(
        replace(row, on_hub=True, largest=None)
        if row.name in counted
        else replace(row, on_hub=True, largest=None, used=None, free=None)
        for row in rows_of(report, "queue")
    )
