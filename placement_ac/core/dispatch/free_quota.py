"""
The quota of a worker that is free, less what this hub's Workloads ask for that its facts do not count yet.

Pure. Amounts are in thousandths.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.usable_flavors import UsableFlavors, asks_of
from placement_ac.core.inputs.queue_facts import FlavorQuota, Queue, QueueFacts

Free = list[FlavorQuota]
"""The quota of one resource in each flavor, as it will be."""


class FreeQuota:
    """Keeps account of one worker. `coming`: Workloads that its facts do not count yet."""

    def __init__(self, queues: Mapping[Queue, QueueFacts], coming: Iterable[Workload]) -> None:
        self._queues = queues
        self._by_cluster_queue: dict[str, dict[str, Free]] = {}
        for workload in coming:
            self.add(workload)

    def of(self, queue: Queue) -> Mapping[str, Free]:
        """Return resource → its quota, for a LocalQueue that exists."""
        facts = self._queues[queue]
        if facts.cluster_queue not in self._by_cluster_queue:
            copied = {resource: list(flavors) for resource, flavors in facts.quotas.items()}
            self._by_cluster_queue[facts.cluster_queue] = copied
        return self._by_cluster_queue[facts.cluster_queue]

    def add(self, workload: Workload) -> None:
        """Take in that a Workload comes: each podSet in the first flavor with room for it, as Kueue does."""
        for flavors, asked, own in self._asked(workload):
            if usable := own.places(flavors):
                _reserve(flavors, _flavor_for(flavors, usable, asked), asked)

    def remove(self, workload: Workload) -> None:
        """Take in that a Workload leaves: each podSet the first flavor in which so much is reserved."""
        for flavors, asked, own in self._asked(workload):
            holds = (at for at in own.places(flavors) if flavors[at].reserved >= asked)
            if (chosen := next(holds, None)) is not None:
                _reserve(flavors, chosen, -asked)

    def _asked(self, workload: Workload) -> Iterator[tuple[Free, int, UsableFlavors]]:
        """Yield the flavors of each resource that a Workload asks for, how much, and those it may use."""
        queue = workload.meta.namespace, workload.job.queue
        free = self.of(queue) if queue in self._queues else {}
        for podset, own in asks_of(workload.job):
            for resource, asked in podset:
                if flavors := free.get(resource):
                    yield flavors, asked, own


def _reserve(flavors: Free, chosen: int, asked: int) -> None:
    flavors[chosen] = flavors[chosen]._replace(reserved=flavors[chosen].reserved + asked)


def _flavor_for(flavors: Free, usable: Sequence[int], asked: int) -> int:
    """Return the first usable flavor whose nominal quota has room, or else the one with most."""
    unused = {at: flavors[at].nominal - flavors[at].reserved for at in usable}
    return next((at for at, left in unused.items() if left >= asked), max(unused, key=unused.__getitem__))
