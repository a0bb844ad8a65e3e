"""
Nominate clusters for a Workload, and create the copies on them.

Pure. `dispatch` is part of MultiKueue: it nominates (AllAtOnce), and creates and deletes copies according
to the nominations of any dispatcher. `reconcile_incremental` is the separate Incremental dispatcher.
"""

from typing import Final

from placement_ac.core.api.constants import PENDING, READY
from placement_lab.standins.multikueue import builders
from placement_lab.standins.multikueue.inputs import ALL_AT_ONCE, INCREMENTAL, WorkloadInputs
from placement_lab.standins.multikueue.objects import (
    FINISHED,
    QUOTA_RESERVED,
    Obj,
    checks_of,
    cluster_of,
    deep_copy,
    is_condition_true,
    is_deleted,
    nominated_of,
)
from placement_lab.standins.multikueue.operations import (
    NO_OPERATIONS,
    CreateCopy,
    DeleteCopy,
    DeleteJob,
    ForgetRound,
    Operation,
    ReconcileResult,
    StartRound,
    WriteStatus,
)

BACKOFF_SECONDS: Final = 1.0
"""The retry interval for a nominated cluster that is not connected; Kueue: exponential backoff."""


def dispatch(inputs: WorkloadInputs) -> ReconcileResult:
    """Nominate (AllAtOnce), create a copy on every nominated worker, and delete the others."""
    if not may_be_nominated(inputs) or not others_are_ready(inputs):
        return NO_OPERATIONS
    nominated, done = nominated_of(inputs.workload), list[Operation]()
    if inputs.settings.dispatcher == ALL_AT_ONCE:
        wanted = sorted(inputs.remotes)
        if set(wanted) != set(nominated):
            done.append(WriteStatus(_with_nominated(inputs.workload, wanted)))
        nominated = wanted
    done += _copies(inputs, nominated)
    unreachable = [name for name in nominated if name not in inputs.remotes]
    return ReconcileResult(tuple(done), BACKOFF_SECONDS if unreachable else None)


def may_be_nominated(inputs: WorkloadInputs) -> bool:
    """Return whether MultiKueue's check is Pending and the Workload has no cluster."""
    return (inputs.state or {}).get("state") == PENDING and not cluster_of(inputs.workload)


def others_are_ready(inputs: WorkloadInputs) -> bool:
    """Return whether all other checks are Ready."""
    others = [check for check in checks_of(inputs.workload) if check["name"] != inputs.check]
    return all(check["state"] == READY for check in others)


def all_at_once_would(inputs: WorkloadInputs, name: str) -> bool:
    """Return whether AllAtOnce would nominate the cluster `name` now."""
    missing = name not in nominated_of(inputs.workload)
    asked = may_be_nominated(inputs) and others_are_ready(inputs)
    return inputs.settings.dispatcher == ALL_AT_ONCE and missing and asked


def _copies(inputs: WorkloadInputs, nominated: list[str]) -> list[Operation]:
    done: list[Operation] = []
    for name, worker in inputs.remotes.items():
        if name in nominated and worker.copy is None:
            done.append(CreateCopy(name, builders.copy_of(inputs.workload, inputs.settings.origin)))
        elif name not in nominated and worker.copy is not None:
            done += [DeleteJob(name)] if worker.job else []
            done.append(DeleteCopy(name))
    return done


def _with_nominated(workload: Obj, names: list[str]) -> Obj:
    after = deep_copy(workload)
    after["status"]["nominatedClusterNames"] = names
    if not names:
        del after["status"]["nominatedClusterNames"]
    return dict(after["status"])


def reconcile_incremental(inputs: WorkloadInputs) -> ReconcileResult:
    """Return the next step of the Incremental dispatcher, which ignores other checks (Kueue's code)."""
    if inputs.settings.dispatcher != INCREMENTAL:
        return NO_OPERATIONS
    if is_deleted(inputs.workload):
        return _forget(inputs)
    if not may_be_nominated(inputs) or not inputs.clusters:
        return NO_OPERATIONS
    if is_condition_true(inputs.workload, FINISHED) or not is_condition_true(inputs.workload, QUOTA_RESERVED):
        return _forget(inputs)
    return _next_round(inputs, inputs.clusters)


def _forget(inputs: WorkloadInputs) -> ReconcileResult:
    return NO_OPERATIONS if inputs.round_started is None else ReconcileResult((ForgetRound(),))


def _next_round(inputs: WorkloadInputs, clusters: tuple[str, ...]) -> ReconcileResult:
    """Nominate the next `step_size` clusters in the config's order once the round is over."""
    if inputs.round_started is not None:
        left = inputs.settings.round_seconds - (inputs.now - inputs.round_started)
        if left >= 0:
            return ReconcileResult(requeue_after=left + 0.001)
    before = nominated_of(inputs.workload)
    fresh = [name for name in clusters if name not in before][: inputs.settings.step_size]
    if not fresh:
        return NO_OPERATIONS
    return ReconcileResult((WriteStatus(_with_nominated(inputs.workload, before + fresh)), StartRound()))
