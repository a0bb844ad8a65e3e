"""
The ClusterQueues that list a check, with their LocalQueues, and whether they are active.

Pure.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from placement_ac.core.api.decode import active_of, checks_listed
from placement_ac.core.api.schemas import Condition
from placement_ac.inspection.hub.dump import Dump, Object
from placement_ac.inspection.hub.kinds import CLUSTER_QUEUE, LOCAL_QUEUE
from placement_ac.inspection.status.model import ConditionStatus, QueueRow
from placement_ac.scheduling.objects import integer, name_of, namespace_of, text


@dataclass(frozen=True)
class QueueIndex:
    """All queues of a hub, indexed once."""

    dump: Dump

    def of(self, checks: Collection[str]) -> tuple[QueueRow, ...]:
        """Return the ClusterQueues that list any of `checks`, by name."""
        found = {name_of(queue): queue for check in checks for queue in self._by_check.get(check, ())}
        return tuple(self._row(found[name], checks) for name in sorted(found))

    def _row(self, queue: Object, checks: Collection[str]) -> QueueRow:
        active = active_of(queue)
        return QueueRow(
            name=name_of(queue),
            active=condition_status(active),
            why=inactive_reason(active),
            lists=tuple(sorted(checks_listed(queue).intersection(checks))),
            local_queues=self._local_of(name_of(queue)),
            pending=integer(queue, "status", "pendingWorkloads") or 0,
            admitted=integer(queue, "status", "admittedWorkloads") or 0,
        )

    def _local_of(self, queue: str) -> tuple[str, ...] | None:
        if self.dump.why_hidden(LOCAL_QUEUE):
            return None
        return tuple(sorted(self._local.get(queue, ())))

    @cached_property
    def _by_check(self) -> dict[str, list[Object]]:
        found: dict[str, list[Object]] = {}
        for queue in self.dump.of(CLUSTER_QUEUE):
            for check in checks_listed(queue):
                found.setdefault(check, []).append(queue)
        return found

    @cached_property
    def _local(self) -> dict[str, list[str]]:
        """The LocalQueues of each ClusterQueue, as namespace/name."""
        found: dict[str, list[str]] = {}
        for queue in self.dump.of(LOCAL_QUEUE):
            label = f"{namespace_of(queue)}/{name_of(queue)}"
            found.setdefault(text(queue, "spec", "clusterQueue"), []).append(label)
        return found


def condition_status(condition: Condition | None) -> ConditionStatus:
    """Return the status of a condition; Unknown if there is none."""
    if condition is None or condition.status not in ("True", "False"):
        return "Unknown"
    return "True" if condition.status == "True" else "False"


def inactive_reason(condition: Condition | None) -> str:
    """Return reason and message of a condition that is not True; "" otherwise."""
    if condition is None or condition.status == "True":
        return ""
    return f"{condition.reason}: {condition.message}".strip(": ")
