"""
Estimate how much work a change of the list is for Kueue.

Pure. By Kueue's code (pkg/controller/admissionchecks/multikueue/workload.go): when `spec.clusters` of a
MultiKueueConfig changes, its order included, Kueue reconciles every Workload of the multikueue check, and
gets each of them from every connected cluster of the new list. A new MultiKueueConfig requeues no Workload,
and without one no cluster is asked, so neither counts.
"""

from collections.abc import Iterable

from placement_ac.core.api.constants import MULTIKUEUE_CONFIG
from placement_ac.core.inputs.state import Snapshot
from placement_ac.core.plan.diff import Action, Apply


def list_writes(snapshot: Snapshot, done: Iterable[Action]) -> tuple[int, ...]:
    """Return, for each of these writes that changed a list, the requests to workers that it causes."""
    before = snapshot.objects.config
    if before is None:
        return ()
    configs = (action for action in done if isinstance(action, Apply) and action.kind is MULTIKUEUE_CONFIG)
    lists = (tuple(config.body["spec"]["clusters"]) for config in configs)
    return tuple(kueue_workloads(snapshot) * len(names) for names in lists if names != before.listed)


def kueue_workloads(snapshot: Snapshot) -> int:
    """Return the number of unfinished Workloads that Kueue reconciles when the list changes."""
    checks = {check.meta.name for check in snapshot.checks.multikueue}
    return sum(
        any(entry.check in checks for entry in workload.check_states) for workload in snapshot.workloads
    )
