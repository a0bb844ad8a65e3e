"""
MultiKueue's reconciliation of one Workload of the hub and its copies on the workers.

Pure. Follows the steps of Kueue's `reconcileGroup` (workload.go at the commit of the recordings): the first
rule with a result decides. Only listed and connected workers are changed; copies on others stay.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from placement_ac.core.api.constants import MULTIKUEUE_CONTROLLER, READY, RETRY
from placement_lab.standins.multikueue import builders, dispatcher
from placement_lab.standins.multikueue import transitions as step
from placement_lab.standins.multikueue.inputs import RemoteWorker, WorkloadInputs
from placement_lab.standins.multikueue.objects import (
    ADMITTED,
    DEACTIVATION_TARGET,
    EVICTED,
    FINISHED,
    QUOTA_RESERVED,
    REJECTED,
    Obj,
    cluster_of,
    condition_field,
    deep_copy,
    is_condition_true,
    is_deleted,
    is_suspended,
    job_is_finished,
    set_check,
    set_condition,
)
from placement_lab.standins.multikueue.operations import (
    NO_OPERATIONS,
    CreateJob,
    DeactivateCopy,
    DeleteCopy,
    DeleteJob,
    Operation,
    ReconcileResult,
    WriteJobStatus,
    WriteStatus,
)

SYNC_SECONDS: Final = 2.0
"""Kueue `syncDeferredRequeueAfter`: the retry interval while the hub's Job is still suspended."""
RETRY_SECONDS: Final = 1.0
"""The retry interval of a rejected write; Kueue: "about 20 times in 3 s", with exponential backoff."""

_NOT_OWNED: Final = ReconcileResult(requeue_after=RETRY_SECONDS, failed=True)
"""Kueue fails with 'remote object is not owned by MultiKueue' and records nothing (issue 12404)."""


def reconcile_group(inputs: WorkloadInputs) -> ReconcileResult:
    """Return MultiKueue's next step; without a config it does nothing (config-deleted.log)."""
    state = inputs.state
    if inputs.clusters is None or state is None or state["state"] == REJECTED:
        return NO_OPERATIONS
    if is_deleted(inputs.workload):
        return ReconcileResult(tuple(remove_all(inputs.remotes)))
    if why := _owner_is_not_ours(inputs):
        return _answer(inputs, REJECTED, f'{why}, Previously: "{state["state"]}"')
    for rule in RULES:
        decision = rule(inputs)
        if decision is not None:
            return decision
    return dispatcher.dispatch(inputs)


def remove(name: str, worker: RemoteWorker) -> list[Operation]:
    """Return the operations that delete the worker's Job, then its copy."""
    job: list[Operation] = [DeleteJob(name)] if worker.job else []
    copy: list[Operation] = [DeleteCopy(name)] if worker.copy else []
    return job + copy


def remove_all(workers: Mapping[str, RemoteWorker]) -> list[Operation]:
    return [operation for name, worker in workers.items() for operation in remove(name, worker)]


def longest_with(workers: Mapping[str, RemoteWorker], kind: str) -> str:
    """Return the worker whose copy has had the condition True for the longest time, "" if none has."""
    since = {
        name: condition_field(worker.copy, kind, "lastTransitionTime")
        for name, worker in workers.items()
        if worker.copy and is_condition_true(worker.copy, kind)
    }
    return min(since, key=lambda name: since[name], default="")


def _workload_has_no_quota(inputs: WorkloadInputs) -> ReconcileResult | None:
    """Delete all copies of a Workload that is finished or has no quota on the hub."""
    if is_condition_true(inputs.workload, QUOTA_RESERVED) and not is_condition_true(
        inputs.workload, FINISHED
    ):
        return None
    again = inputs.settings.worker_lost_seconds if inputs.unavailable else None
    return ReconcileResult(tuple(remove_all(inputs.remotes)), again)


def _copy_is_finished(inputs: WorkloadInputs) -> ReconcileResult | None:
    name = longest_with(inputs.remotes, FINISHED)
    if not name:
        return None
    copy = inputs.remotes[name].copy or {}
    if condition_field(copy, FINISHED, "reason") in inputs.settings.sync_failures:
        return _copy_is_out_of_sync(inputs, name)
    if inputs.remotes[name].has_foreign_job:
        return _NOT_OWNED
    workload = deep_copy(inputs.workload)
    step.finish(
        workload, condition_field(copy, FINISHED, "reason"), condition_field(copy, FINISHED), inputs.now
    )
    return ReconcileResult((*_sync_job(inputs, name), WriteStatus(workload["status"])))


def _copy_is_out_of_sync(inputs: WorkloadInputs, name: str) -> ReconcileResult:
    """Retry while Ready; afterwards the copy hides all later steps, until quota is missed (issue 14521)."""
    if _state(inputs) != READY:
        return NO_OPERATIONS
    why = f'Remote workload on worker cluster "{name}" is out of sync with its user job'
    return _retry(inputs, f'{why}, resetting for re-dispatch, Previously: "Ready"')


def _copy_is_evicted(inputs: WorkloadInputs) -> ReconcileResult | None:
    """Wait for the Job to stop if the hub evicted the Workload; if the worker did, retry on the hub."""
    name = longest_with(inputs.remotes, EVICTED)
    if not name:
        return None
    if is_condition_true(inputs.workload, EVICTED):
        if inputs.remotes[name].has_foreign_job:
            return _NOT_OWNED
        return ReconcileResult(tuple(_sync_job(inputs, name)), _sync_delay(inputs, name))
    if _state(inputs) != READY:
        return None
    where = cluster_of(inputs.workload)
    why = f'Workload evicted on worker cluster: "{where}", resetting for re-admission. Previously: "Ready"'
    return _retry(inputs, why)


def _copy_differs_from_workload(inputs: WorkloadInputs) -> ReconcileResult | None:
    """Delete copies whose spec differs, including `active`."""
    wanted = _spec(inputs.workload)
    gone = {name: it for name, it in inputs.remotes.items() if it.copy and _spec(it.copy) != wanted}
    return ReconcileResult(tuple(remove_all(gone)), 0.0) if gone else None


def _spec(workload: Obj) -> Obj:
    spec = {field: value for field, value in workload["spec"].items() if field != "preemptionGates"}
    return spec | {"active": spec.get("active", True)}


def _admitted_copy_is_missing(inputs: WorkloadInputs) -> ReconcileResult | None:
    """Retry at once if the copy is deleted or unlisted; after `worker_lost_seconds` if it is lost."""
    if longest_with(inputs.remotes, ADMITTED) or _state(inputs) != READY:
        return None
    where = cluster_of(inputs.workload)
    if where in inputs.unavailable:
        left = inputs.settings.worker_lost_seconds - (inputs.now - _lost_since(inputs, where))
        if left > 0:
            return ReconcileResult(requeue_after=left)
        return _retry(inputs, 'Admitting remote lost, Previously: "Ready"')
    if not where:
        why = "Admission check is Ready but no admitting cluster is recorded; this is unexpected"
        return _retry(inputs, f'{why}, please report it, Previously: "Ready"')
    return _retry(inputs, 'Admitting remote no longer exists, Previously: "Ready"')


def _lost_since(inputs: WorkloadInputs, name: str) -> float:
    """Return when the connection was lost; `now` for a missing MultiKueueCluster, which never times out."""
    worker = inputs.workers.get(name)
    return inputs.now if worker is None or worker.lost_since is None else worker.lost_since


def _owner_is_not_ours(inputs: WorkloadInputs) -> str:
    """Return why MultiKueue does not send this Job, "" if it does: its webhook has not set `managedBy`."""
    manager = (inputs.job or {"spec": {"managedBy": MULTIKUEUE_CONTROLLER}})["spec"].get("managedBy", "")
    if manager == MULTIKUEUE_CONTROLLER:
        return ""
    wanted = f'Expecting spec.managedBy to be "{MULTIKUEUE_CONTROLLER}" not "{manager}"'
    return f"The owner is not managed by Kueue: {wanted}"


def _retry(inputs: WorkloadInputs, message: str) -> ReconcileResult:
    return _answer(inputs, RETRY, message)


def _answer(inputs: WorkloadInputs, state: str, message: str) -> ReconcileResult:
    workload = deep_copy(inputs.workload)
    set_check(workload, inputs.check, inputs.now, state=state, message=message)
    return ReconcileResult((WriteStatus(workload["status"]),))


def _copy_is_admitted(inputs: WorkloadInputs) -> ReconcileResult | None:
    """Keep the copy that was admitted first: delete the others, create its Job, and record the cluster."""
    name = longest_with(inputs.remotes, ADMITTED)
    if not name:
        return None
    others = {other: remote for other, remote in inputs.remotes.items() if other != name}
    done = remove_all({other: remote for other, remote in others.items() if remote.copy})
    if is_condition_true(inputs.workload, EVICTED):
        return ReconcileResult((*done, *_deactivate(inputs, name)))
    if inputs.settings.nominates_admitted and dispatcher.all_at_once_would(inputs, name):
        return dispatcher.dispatch(inputs)
    if inputs.remotes[name].has_foreign_job:
        return replace(_NOT_OWNED, operations=tuple(done))
    done += _sync_job(inputs, name)
    again = _sync_delay(inputs, name) or inputs.settings.worker_lost_seconds
    if cluster_of(inputs.workload) not in ("", name):
        # Kueue fails with 'attempting to change immutable ClusterName' and writes nothing.
        return ReconcileResult(tuple(done), requeue_after=RETRY_SECONDS, failed=True)
    return ReconcileResult((*done, *_record(inputs, name)), again)


def _record(inputs: WorkloadInputs, name: str) -> list[Operation]:
    workload = deep_copy(inputs.workload)
    status = workload["status"]
    if _state(inputs) not in (RETRY, REJECTED):
        set_check(
            workload,
            inputs.check,
            inputs.now,
            state=READY,
            message=f'The workload was admitted on "{name}"',
        )
        status["clusterName"] = name
        status.pop("nominatedClusterNames", None)
    return [WriteStatus(status)] if status != inputs.workload["status"] else []


def _deactivate(inputs: WorkloadInputs, name: str) -> list[Operation]:
    copy = deep_copy(inputs.remotes[name].copy or {})
    if is_condition_true(copy, DEACTIVATION_TARGET):
        return []
    message = f"Evicted on manager: {condition_field(inputs.workload, EVICTED)}"
    set_condition(copy, DEACTIVATION_TARGET, True, "EvictedOnManagerCluster", message, inputs.now)
    return [DeactivateCopy(name, copy["status"])]


def _state(inputs: WorkloadInputs) -> str:
    return str((inputs.state or {}).get("state", ""))


def _sync_job(inputs: WorkloadInputs, name: str) -> list[Operation]:
    """Create the worker's Job, or copy its status to the hub's Job if that is safe."""
    job = inputs.remotes[name].job
    if inputs.job is None:
        return []
    if job is None:
        settings = inputs.settings
        made = builders.worker_job(
            inputs.job, inputs.workload, settings.origin, clears_ttl=settings.clears_ttl
        )
        return [CreateJob(name, made)]
    theirs = job.get("status") or {}
    if _sync_must_wait(inputs.job, job) or _without_zeros(theirs) == _without_zeros(inputs.job.get("status")):
        return []
    return [WriteJobStatus(theirs)]


def _without_zeros(status: Obj | None) -> Obj:
    """Return what an API server stores of a Job's status: it leaves out `active: 0`."""
    return {field: value for field, value in (status or {}).items() if value}


def _sync_must_wait(ours: Obj, theirs: Obj) -> bool:
    """Whether the status cannot be copied yet.

    Kueue defers it while the hub's Job alone is suspended. An API server refuses it while that Job is not
    suspended and would lose its startTime; there Kueue retries until its Job reconciler has suspended it.
    """
    if not is_suspended(ours):
        return _has_started(ours) and not _has_started(theirs)
    return not is_suspended(theirs) and not job_is_finished(theirs)


def _has_started(job: Obj) -> bool:
    return "startTime" in (job.get("status") or {})


def _sync_delay(inputs: WorkloadInputs, name: str) -> float | None:
    job = inputs.remotes[name].job
    return SYNC_SECONDS if inputs.job and job and _sync_must_wait(inputs.job, job) else None


# The order is Kueue's (steps 2 to 6b; 8 is `dispatcher.dispatch`).
RULES: Final[tuple[Callable[[WorkloadInputs], ReconcileResult | None], ...]] = (
    _workload_has_no_quota,
    _copy_is_finished,
    _copy_is_evicted,
    _copy_differs_from_workload,
    _admitted_copy_is_missing,
    _copy_is_admitted,
)
