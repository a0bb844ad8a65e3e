"""
What a change of the list costs in Kueue.

Pure. By Kueue's code (pkg/controller/admissionchecks/multikueue/workload.go): when `spec.clusters` of a
MultiKueueConfig changes, its order included, Kueue reconciles every Workload of the multikueue check, and
gets each of them from every connected cluster of the new list. A new MultiKueueConfig requeues no Workload,
and without one no cluster is asked, so neither counts.
"""

from collections.abc import Iterable, Iterator

from placement_ac.core.api.constants import MULTIKUEUE_CONFIG
from placement_ac.core.inputs.state import Snapshot
from placement_ac.core.plan.diff import Action, Apply


def list_writes(seen: Snapshot, done: Iterable[Action]) -> tuple[int, ...]:
    """Return, for each of these writes that changed a list, the requests to workers that it causes."""
    return tuple(_requests(seen, done))


def kueue_workloads(seen: Snapshot) -> int:
    """Return the number of unfinished Workloads that Kueue reconciles when the list changes."""
    checks = {check.meta.name for check in seen.checks.multikueue}
    carriers = (any(entry.check in checks for entry in one.check_states) for one in seen.workloads)
    return sum(carriers)


def _requests(seen: Snapshot, done: Iterable[Action]) -> Iterator[int]:
    before = seen.objects.config
    for action in done:
        if before is None or not isinstance(action, Apply) or action.kind is not MULTIKUEUE_CONFIG:
            continue
        clusters = tuple(action.body["spec"]["clusters"])
        if clusters != before.listed:
            yield kueue_workloads(seen) * len(clusters)
