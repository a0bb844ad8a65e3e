"""
Execute the engine's operations for one Workload on the hub and on the workers.

Writes to the hub as Kueue does: most of a Workload's status by server-side apply as "kueue-admission";
PodsReady and the initial entries of the checks as "kueue". Fields that another manager owns are
therefore not cleared when Kueue omits them (external-dispatcher.txt).
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from placement_ac.core.api.constants import FINALIZER_IN_USE, JOB, KUEUE_ADMISSION, WORKLOAD
from placement_ac.core.api.errors import Refused
from placement_ac.core.api.fields import key_of
from placement_ac.kube.client import Client, Object
from placement_lab.standins.informer import HubInformer, Name
from placement_lab.standins.kueue_jobs import PODS_READY, pods_ready
from placement_lab.standins.kueue_remote import RemoteClient
from placement_lab.standins.multikueue import (
    CreateCopy,
    CreateJob,
    DeactivateCopy,
    DeleteCopy,
    DeleteJob,
    ForgetRound,
    Operation,
    RemoveFinalizer,
    SetActive,
    StartRound,
    SuspendJob,
    WorkloadInputs,
    WriteJobStatus,
    WriteStatus,
    refusal,
)

_ENTRY: Final = ("name", "state", "message", "lastTransitionTime")


@dataclass(slots=True)
class WorkloadWriter:
    """Writes to one hub and its workers. All methods raise ApiError."""

    client: Client
    informer: HubInformer
    remotes: Mapping[str, RemoteClient]
    rounds: dict[Name, float] = field(default_factory=dict)
    """The time of the Incremental dispatcher's last nomination, by Workload."""

    async def execute(self, operations: tuple[Operation, ...], inputs: WorkloadInputs) -> None:
        """Execute the operations in order; stops at the first error (after a Conflict, decide again)."""
        workload = inputs.workload
        for operation in operations:
            if isinstance(operation, WriteStatus | SetActive | RemoveFinalizer):
                workload = await self._on_workload(operation, workload, inputs)
            elif isinstance(operation, SuspendJob | WriteJobStatus):
                await self._on_job(operation, inputs.job)
            elif isinstance(operation, StartRound | ForgetRound):
                self._on_round(operation, inputs)
            else:
                await self._on_worker(operation, inputs)

    # -- the Workload on the hub

    async def _on_workload(
        self, operation: WriteStatus | SetActive | RemoveFinalizer, workload: Object, inputs: WorkloadInputs
    ) -> Object:
        match operation:
            case SetActive(active):
                return await self._merge(workload, {"spec": {"active": active}})
            case RemoveFinalizer():
                kept = [
                    finalizer
                    for finalizer in workload["metadata"].get("finalizers") or ()
                    if finalizer != FINALIZER_IN_USE
                ]
                return await self._merge(workload, {"metadata": {"finalizers": kept}})
            case WriteStatus(status):
                return await self._write_status(workload, status, inputs.job)

    async def _merge(self, workload: Object, patch: Object) -> Object:
        metadata = patch.get("metadata", {}) | {"resourceVersion": workload["metadata"]["resourceVersion"]}
        namespace, name = key_of(workload)
        resource = self.informer.resources[WORKLOAD]
        written = await self.client.merge(resource, name, patch | {"metadata": metadata}, namespace=namespace)
        if "deletionTimestamp" not in workload["metadata"]:
            self.informer.remember(WORKLOAD, written)
        return written

    async def _write_status(self, workload: Object, status: Object, job: Object | None) -> Object:
        why = refusal(workload, workload | {"status": status})
        if why is not None:
            raise Refused(why, status=403)
        if _names(status) != _names(workload.get("status") or {}):
            workload = await self.write_as_kueue(workload, status.get("admissionChecks") or (), job)
        conditions = [
            condition for condition in status.get("conditions") or () if condition["type"] != PODS_READY
        ]
        return await self._apply(workload, status | {"conditions": conditions}, KUEUE_ADMISSION)

    async def write_as_kueue(self, workload: Object, checks: Iterable[Object], job: Object | None) -> Object:
        """Write the fields that Kueue writes as "kueue": the checks' entries and PodsReady."""
        entries = [{key: check[key] for key in _ENTRY} for check in checks]
        status: Object = {"conditions": [pods_ready(workload, job, time.time())], "admissionChecks": entries}
        return await self._apply(workload, status, "kueue")

    async def _apply(self, workload: Object, status: Object, manager: str) -> Object:
        metadata = workload["metadata"]
        identity = {key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion")}
        written = await self.client.apply(
            self.informer.resources[WORKLOAD],
            {"metadata": identity, "status": status},
            subresource="status",
            force=True,
            manager=manager,
        )
        self.informer.remember(WORKLOAD, written)
        return written

    # -- Jobs, rounds and workers

    async def _on_job(self, operation: SuspendJob | WriteJobStatus, job: Object | None) -> None:
        if job is None:
            return
        namespace, name = key_of(job)
        resource, before = self.informer.resources[JOB], job.get("status") or {}
        if isinstance(operation, SuspendJob):
            patch: Object = {"spec": {"suspend": operation.suspend}}
            await self.client.merge(resource, name, patch, namespace=namespace)
            status: Object = {"startTime": None} if operation.suspend and "startTime" in before else {}
        else:
            status = dict.fromkeys(before.keys() - operation.status.keys()) | operation.status
        if status:
            written = await self.client.merge(
                resource, name, {"status": status}, namespace=namespace, subresource="status"
            )
            self.informer.remember(JOB, written)

    def _on_round(self, operation: StartRound | ForgetRound, inputs: WorkloadInputs) -> None:
        if isinstance(operation, StartRound):
            self.rounds[key_of(inputs.workload)] = inputs.now
        else:
            self.rounds.pop(key_of(inputs.workload), None)

    async def _on_worker(
        self,
        operation: CreateCopy | DeactivateCopy | DeleteCopy | CreateJob | DeleteJob,
        inputs: WorkloadInputs,
    ) -> None:
        remote, key = self.remotes[operation.cluster], key_of(inputs.workload)
        match operation:
            case CreateCopy(_, body):
                await remote.create(WORKLOAD, body)
            case CreateJob(_, body):
                await remote.create(JOB, body)
            case DeactivateCopy(cluster, status):
                await remote.write_status(WORKLOAD, inputs.workers[cluster].copy or {}, status)
            case DeleteCopy():
                await remote.delete(WORKLOAD, key)
            case DeleteJob():
                await remote.delete_job(key)


def _names(status: Object) -> set[str]:
    return {admission_check["name"] for admission_check in status.get("admissionChecks") or ()}
