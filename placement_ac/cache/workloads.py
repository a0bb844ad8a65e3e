"""
The table of Workloads: what is kept of all jobs together stays within a budget that namespaces share.

Pure. Whoever may create jobs chooses how much there is to keep of them. Over the budget, the wishes of the
largest jobs of the namespace that has the most are given up, until the rest fits. So those of a namespace
with less than an equal share are kept, whatever the others do.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from placement_ac.cache.index import Id, Table
from placement_ac.core.api.fields import Obj
from placement_ac.core.api.job_spec import JobSpec, kept_bytes, surplus_of
from placement_ac.core.api.objects import Workload

BUDGET_BYTES: Final = 50_000_000
"""Of all that is kept of jobs: an eighth of the memory that the chart gives us."""
FREE_BYTES: Final = 2_048
"""So much of each job does not count: a usual job takes less."""

_Kept = tuple[JobSpec, tuple[str, ...]]
"""The wishes of a job, and the values of its labels; what several Workloads have alike counts once."""


class WorkloadTable(Table[Workload]):
    """The Workloads, and how many bytes of each namespace are kept of them."""

    def __init__(self, read: Callable[[Obj], Workload], **indexes: Callable[[Any], Iterable[str]]) -> None:
        super().__init__(read, **indexes)
        self._kept: dict[str, dict[_Kept, set[Id]]] = {}
        """Namespace → what counts → the Workloads that have it."""
        self._bytes = Counter[str]()
        self._total = 0

    def copy(self) -> "WorkloadTable":
        other = WorkloadTable(self.read)
        other.objects = dict(self.objects)
        other.indexes = {name: index.copy() for name, index in self.indexes.items()}
        for id_, workload in other.objects.items():
            other._count(id_, workload)
        return other

    def put(self, id_: Id, obj: Workload) -> None:
        self._uncount(id_)
        super().put(id_, obj)
        self._count(id_, obj)

    def remove(self, id_: Id) -> None:
        self._uncount(id_)
        super().remove(id_)

    def give_up_surplus(self) -> Iterator[Workload]:
        """Give up the wishes of the Workloads that are over the budget; yield each as it is now."""
        while self._total > BUDGET_BYTES:
            namespace = max(self._bytes, key=lambda name: (self._bytes[name], name))
            ids = max(self._kept[namespace].items(), key=lambda item: (_counted(item[0]), max(item[1])))[1]
            for id_ in tuple(ids):
                before = self.objects[id_]
                spec = surplus_of(namespace, before.job.queue)
                now = replace(before, job=spec, label_values=())
                self.put(id_, now)
                yield now

    def _count(self, id_: Id, workload: Workload) -> None:
        kept = workload.job, workload.label_values
        if number := _counted(kept):
            ids = self._kept.setdefault(id_[0], {}).setdefault(kept, set())
            if not ids:
                self._bytes[id_[0]] += number
                self._total += number
            ids.add(id_)

    def _uncount(self, id_: Id) -> None:
        before = self.objects.get(id_)
        kept = (before.job, before.label_values) if before else None
        if before is None or kept is None or not (number := _counted(kept)):
            return
        of_namespace = self._kept[id_[0]]
        of_namespace[kept].discard(id_)
        if not of_namespace[kept]:
            del of_namespace[kept]
            self._bytes[id_[0]] -= number
            self._total -= number
            if not of_namespace:
                del self._kept[id_[0]], self._bytes[id_[0]]


def gave_up(workload: Workload) -> bool:
    """Whether its wishes were given up, because its namespace has too many."""
    return workload.job == surplus_of(workload.meta.namespace, workload.job.queue)


def _counted(kept: _Kept) -> int:
    return max(kept[0].kept_bytes + kept_bytes(kept[1]) - FREE_BYTES, 0)
