"""
Which of a Placement's Workloads a worker's answer counts: those that had quota there, and those that waited.

Pure. Kueue takes a while to bring a copy to a worker, and to record on the hub that it has quota there. So of
the Workloads that were nominated to a worker when it was asked, some had quota already, some waited, and the
copies of some were not there yet. The answer says how many have quota and how many wait; the first to come
are the first with quota. It counts jobs of others as well: where they wait, all of ours seem to wait.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from placement_ac.core.api.objects import Workload
from placement_ac.core.inputs.queue_facts import QueueFacts, WorkerFacts

LATE_SECONDS: Final = timedelta(seconds=60)
"""How long Kueue may take to bring a copy. With 0.19's pace, a burst takes longer."""


class Counted(NamedTuple):
    """The Workloads on a worker, by what its answer says of them."""

    came: list[Workload]
    """Those that run there, and whose quota it does not count."""
    newcomers: list[Workload]
    """Those that wait there, and that it does not count: they came since, or their copies were late."""
    have_quota: frozenset[str]
    """The uids of those that have quota there, though the hub still lets them wait."""


def counted(
    facts: WorkerFacts,
    running: Iterable[Workload],
    waiting: Iterable[Workload],
    asked_at: datetime,
    nominated_at: Callable[[Workload], datetime],
) -> Counted:
    """Return what an answer says of the Workloads that run on its worker, or wait there, now."""
    then, came, newcomers = facts.then, list[Workload](), list[Workload]()
    known: defaultdict[str, int] = defaultdict(int)
    """ClusterQueue → how many ran there, as the hub knew."""
    undecided: defaultdict[str, list[Workload]] = defaultdict(list)
    """ClusterQueue → those that were nominated there."""
    queues: dict[str, QueueFacts] = {}
    for workload in (*running, *waiting):
        queue = facts.queues.get((workload.meta.namespace, workload.job.queue))
        if workload.meta.uid in then.running:
            known[queue.cluster_queue if queue else ""] += 1
            newcomers += [] if workload.cluster else [workload]  # it was evicted since
        elif queue and queue.active and workload.meta.uid in then.waiting:
            undecided[queue.cluster_queue].append(workload)
            queues[queue.cluster_queue] = queue
        elif workload.cluster:
            came.append(workload)
        elif workload.meta.uid not in then.waiting:
            newcomers.append(workload)
    have_quota = set[str]()
    for name, there in undecided.items():
        there.sort(key=lambda workload: (not workload.cluster, nominated_at(workload)))
        surplus = queues[name].reserving - known[name]
        first, last = _split(queues[name].pending, surplus, len(there))
        have_quota |= {workload.meta.uid for workload in there[:first]}
        came += [workload for workload in there[first:] if workload.cluster]
        newcomers += _late(there[last:], asked_at, nominated_at)
    return Counted(came, newcomers, frozenset(have_quota))


def _split(pending: int, surplus: int, number: int) -> tuple[int, int]:
    """Return where those begin that wait for quota there, and where those whose copies were not there.

    `surplus`: how many more have quota there than the hub knew of.
    """
    do_not_wait = max(number - pending, 0)
    first = min(do_not_wait, max(surplus, 0))
    return first, number - (do_not_wait - first)


def _late(
    workloads: Sequence[Workload], asked_at: datetime, nominated_at: Callable[[Workload], datetime]
) -> list[Workload]:
    return [one for one in workloads if not one.cluster and asked_at - nominated_at(one) <= LATE_SECONDS]
