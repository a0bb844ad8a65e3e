"""Inputs of one reconcile of a Workload by MultiKueue; each builder names only what differs."""

from collections.abc import Iterable, Mapping
from typing import Any

from placement_lab.standins.multikueue import (
    CONTROLLERS,
    QueueState,
    ReconcileResult,
    RemoteWorker,
    WorkloadInputs,
    WriteStatus,
    copy_of,
    hub_job,
    worker_job,
    workload_of,
)
from placement_lab.standins.multikueue.objects import format_time, set_condition

Obj = dict[str, Any]
NOW = 1_790_000_000.0
MK = "multikueue"
ALL = ("worker1", "worker2", "worker3")
UNLISTED = 'Admitting remote no longer exists, Previously: "Ready"'


def job(*, suspend: bool = True, active: int = 0) -> Obj:
    item = hub_job("b1", "default", "user-queue")
    item["metadata"]["uid"] = "job-uid"
    item["spec"]["suspend"] = suspend
    item["status"] = {"active": active} if active else {}
    return item


def workload(
    checks: Mapping[str, str] | None = None,
    *,
    true: Iterable[str] = ("QuotaReserved",),
    on: str = "",
    nominated: Iterable[str] = (),
) -> Obj:
    """A Workload with quota; its multikueue check is Pending by default."""
    item = workload_of(job())
    item["metadata"]["generation"] = 1
    states = {MK: "Pending"} if checks is None else checks
    item["status"] = {
        "admissionChecks": [
            {"name": name, "state": state, "message": "", "lastTransitionTime": format_time(NOW - 60)}
            for name, state in states.items()
        ]
    }
    for kind in true:
        set_condition(item, kind, True, kind, f"why {kind}", NOW - 60)
    if "QuotaReserved" in true and "Admitted" not in true:
        message = "The workload has not all checks ready"
        set_condition(item, "Admitted", False, "UnsatisfiedAdmissionChecks", message, NOW - 60)
    if on:
        item["status"]["clusterName"] = on
    if names := list(nominated):
        item["status"]["nominatedClusterNames"] = names
    return item


def placed(on: str = "worker2") -> Obj:
    item = workload({MK: "Ready"}, true=("QuotaReserved", "Admitted"), on=on)
    item["status"]["admissionChecks"][0]["message"] = f'The workload was admitted on "{on}"'
    return item


def worker_with(
    *true: str, since: float = NOW - 5, with_job: bool = False, suspend: bool = False
) -> RemoteWorker:
    """A worker with a copy whose conditions `true` are True, optionally with its Job."""
    found = copy_of(workload(), "multikueue")
    for kind in true:
        set_condition(found, kind, True, kind, "", since)
    remote_job = worker_job(job(), workload(), "multikueue") if with_job else None
    if remote_job:
        remote_job["spec"]["suspend"] = suspend
        remote_job["status"] = {"active": 0 if suspend else 1}
    return RemoteWorker(copy=found, job=remote_job)


ADMITTED = worker_with("QuotaReserved", "Admitted")
WAITS = worker_with()
RUNS = worker_with("QuotaReserved", "Admitted", with_job=True)
EMPTY = RemoteWorker()


def inputs_of(
    of: Obj,
    workers: Mapping[str, RemoteWorker] | None = None,
    *,
    listed: Iterable[str] | None = ALL,
    **fields: Any,
) -> WorkloadInputs:
    checks = tuple(admission_check["name"] for admission_check in of["status"].get("admissionChecks", ()))
    found = dict.fromkeys(ALL, EMPTY) | dict(workers or {})
    return WorkloadInputs(
        workload=of,
        check=MK,
        clusters=None if listed is None else tuple(listed),
        now=NOW,
        workers=found,
        **{"job": job(), "queue": QueueState(checks=checks)} | fields,
    )


def steps(decision: ReconcileResult) -> list[str]:
    """The operations in order: type and, if any, cluster."""
    return [
        " ".join(filter(None, (type(operation).__name__, getattr(operation, "cluster", ""))))
        for operation in decision.operations
    ]


def written(decision: ReconcileResult) -> Obj:
    """The Workload after the only write of its status."""
    statuses = [operation.status for operation in decision.operations if isinstance(operation, WriteStatus)]
    assert len(statuses) == 1, decision
    return workload() | {"status": statuses[0]}


def reconcile(controller: str, at: WorkloadInputs) -> ReconcileResult:
    return CONTROLLERS[controller](at)


def with_retry(after: int) -> Obj:
    running = placed()
    entry = {"name": "placement", "state": "Retry", "message": "placement changed"}
    entry |= {"requeueAfterSeconds": after, "lastTransitionTime": format_time(NOW)}
    running["status"]["admissionChecks"].append(entry)
    return running
