"""
Which LocalQueues of the hub a ManifestWork has room for: namespaces share it.

Pure. etcd keeps no object of more than 1.5 MiB, and whoever may create LocalQueues can make any number. If
they are too many, the namespaces that have the most give up the rest of theirs, so that those of all others
still arrive. Those that a ManifestWork has already come first, so that no other queue pushes them out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from placement_ac.core.api.constants import LOCAL_QUEUE
from placement_ac.core.api.fields import get_list, name_of, namespace_of
from placement_ac.core.inputs.queue_facts import Queue
from placement_ac.core.inputs.worker_setup import WorkerSetupInputs

QUEUES_BYTES: Final = 1_300_000
"""Of all LocalQueues of a ManifestWork with what OCM reports of them; the rest is for all else in it."""
QUEUE_BYTES: Final = 1_700
"""About what a LocalQueue takes there besides its names: 700 in the spec, and OCM's report."""
TIMES_NAMED: Final = 5
"""How often its name and its namespace are there."""


@dataclass(frozen=True, slots=True)
class QueueShares:
    """`within`: the LocalQueues of the hub that a ManifestWork gets."""

    within: frozenset[Queue]
    surplus: Mapping[str, tuple[Queue, ...]] = field(default_factory=dict)
    """Namespace → those that it does not get."""


def queue_shares(inputs: WorkerSetupInputs) -> QueueShares:
    """Return which LocalQueues the ManifestWork of a cluster gets."""
    wanted = {queue for of in inputs.queues for queue in of.local_queues}
    manifests = get_list(inputs.work.spec, "workload", "manifests") if inputs.work else ()
    there = {(namespace_of(one), name_of(one)) for one in manifests if one.get("kind") == LOCAL_QUEUE.kind}
    sizes: dict[str, int] = {}
    for queue in wanted | there:
        sizes[queue[0]] = sizes.get(queue[0], 0) + _bytes(queue)
    if sum(sizes.values()) <= QUEUES_BYTES:
        return QueueShares(frozenset(wanted))
    share = _share(sizes)
    left = dict.fromkeys(sizes, share)
    within = set[Queue]()
    surplus: dict[str, list[Queue]] = {}
    # Those that are gone from the hub may stay while they have jobs, so they count, too.
    for queue in sorted(wanted | there, key=lambda one: (one in wanted, one not in there, one)):
        left[queue[0]] -= _bytes(queue)
        if queue in wanted and left[queue[0]] >= 0:
            within.add(queue)
        elif queue in wanted:
            surplus.setdefault(queue[0], []).append(queue)
    return QueueShares(frozenset(within), {name: tuple(surplus[name]) for name in sorted(surplus)})


def _share(sizes: Mapping[str, int]) -> int:
    """Return the most that a namespace may have, so that all together fit."""
    left = QUEUES_BYTES
    for number, size in zip(range(len(sizes), 0, -1), sorted(sizes.values()), strict=True):
        if size * number > left:
            return left // number
        left -= size
    return QUEUES_BYTES


def _bytes(queue: Queue) -> int:
    return QUEUE_BYTES + TIMES_NAMED * sum(map(len, queue))
