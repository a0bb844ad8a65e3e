"""
A stand-in for the Kueue and the Job controller of one worker: quota, admission and running Jobs.

Decides by `multikueue.reconcile_copy`. It has no ClusterQueue object: quota is counted in slots, one per
Workload. `worker_quota` simulates one with a ClusterQueue.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import ClassVar, Final

from placement_ac.core.api.constants import JOB, WORKLOAD, Kind
from placement_ac.core.api.copy_owner import copy_owner
from placement_ac.core.api.errors import Conflict, NotFound
from placement_ac.core.api.fields import key_of
from placement_ac.kube.client import Object
from placement_ac.kube.login import Login
from placement_lab.standins.deletion import delete_with_dependents
from placement_lab.standins.informer import Key, Name, StandIn
from placement_lab.standins.kueue_jobs import (
    completed,
    end_of_sleep,
    failed,
    job_status,
    removed_at,
    started_at,
)
from placement_lab.standins.kueue_workloads import owned_by, ownership
from placement_lab.standins.multikueue import (
    Operation,
    QueueState,
    SetActive,
    SuspendJob,
    WriteStatus,
    has_quota,
    reconcile_copy,
    runs,
)
from placement_lab.standins.multikueue.objects import FINISHED, deep_copy, is_condition_true
from placement_lab.standins.multikueue.transitions import evict, finish

QUEUE: Final = "cluster-queue"
"""The name of a worker's only ClusterQueue, as in the recordings."""
SLOTS: Final = 100
TIMEOUT_SECONDS: Final = 10.0


class KueueWorker(StandIn):
    """Simulates Kueue on a worker. `slots`: the number of Workloads that can have quota at the same time.

    `pods`: also simulate the Job controller, which gives a running Job a start time and an active Pod, and
    the TTL controller, which removes a finished one after its `ttlSecondsAfterFinished`.
    `sleeps`: also complete a Job whose container sleeps, when it has slept; others run until `finish`.
    `hold`, `release`, `resize`, `break_down`, `recover`, `enable_integrations`, `finish`, `end_copy`,
    `evict`: from any thread but the stand-in's own.
    """

    name = "kueue"
    kinds: ClassVar[tuple[Kind, ...]] = (WORKLOAD, JOB)

    def __init__(
        self, login: Login, *, slots: int = SLOTS, held: bool = False, pods: bool = True, sleeps: bool = False
    ) -> None:
        super().__init__(login)
        self._sleeps = sleeps
        self._slots = slots
        self._held = held
        self._pods = pods
        self._fails_after: float | None = None
        self._starts_pods = True
        self._starts_jobs = True
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self) -> None:
        self._loop = asyncio.get_running_loop()
        await super().run()

    # -- from other threads

    def hold(self) -> None:
        """Stop reserving quota; Workloads keep theirs (stopPolicy Hold)."""
        self._set(held=True)

    def release(self) -> None:
        """Reserve quota again."""
        self._set(held=False)

    def resize(self, slots: int) -> None:
        """Set the number of slots; no Workload is preempted if it decreases."""
        self._set(slots=slots)

    def break_down(self, fails_after: float | None) -> None:
        """Let each Job fail so many seconds after its start, from now on; None: its Pods never start."""
        self._fails_after, self._starts_pods = fails_after, fails_after is not None

    def recover(self) -> None:
        """Let Jobs run that start from now on."""
        self._fails_after, self._starts_pods = None, True

    def enable_integrations(self, *frameworks: str) -> None:
        """From now on, start the jobs of these integrations alone; copies of others are still admitted."""
        self._starts_jobs = "batch/job" in frameworks

    def finish(self, name: str, namespace: str = "default") -> bool:
        """Complete the Job if it runs here; return whether it did. Raises ApiError, TimeoutError."""
        return self._wait_for(self._written(lambda: self._finish((namespace, name))))

    def end_copy(self, name: str, reason: str, namespace: str = "default") -> bool:
        """Finish the copy of a Job with this reason, as if the worker's Kueue had found them out of sync.

        Return whether the Job was here. Raises ApiError, TimeoutError.
        """
        return self._wait_for(self._written(lambda: self._end_copy((namespace, name), reason)))

    def evict(self, name: str, reason: str, namespace: str = "default") -> bool:
        """Let the worker's Kueue evict the copy of a Job, as for a `PodsReadyTimeout`.

        Return whether the Job was here. Raises ApiError, TimeoutError.
        """
        return self._wait_for(self._written(lambda: self._evict((namespace, name), reason)))

    def _wait_for(self, work: Coroutine[object, object, bool]) -> bool:
        if self._loop is None:
            work.close()
            return False
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(TIMEOUT_SECONDS)

    def _set(self, *, held: bool | None = None, slots: int | None = None) -> None:
        self._held = self._held if held is None else held
        self._slots = self._slots if slots is None else slots
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._reconcile_waiting)

    async def _written(self, write: Callable[[], Awaitable[bool]]) -> bool:
        """Return what `write` returns: call it again after a Conflict; False if the object has gone."""
        while True:
            try:
                return await write()
            except Conflict:
                await asyncio.sleep(0.01)  # wait for the event of the conflicting write
            except NotFound:
                return False

    async def _finish(self, key: Name) -> bool:
        job = self.objects(JOB).get(key)
        if job is None or not runs(job):
            return False
        await self.patch(JOB, job, {"status": completed(job, time.time())}, "status")
        return True

    def _copy_of(self, key: Name) -> Object | None:
        job = self.objects(JOB).get(key)
        return self.objects(WORKLOAD).get((key[0], copy_owner(job).workload)) if job else None

    async def _evict(self, key: Name, reason: str) -> bool:
        copy = self._copy_of(key)
        if copy is None:
            return False
        evicted = deep_copy(copy)
        evict(evicted, reason, "Exceeded the PodsReady timeout", time.time())
        await self.replace_status(WORKLOAD, copy, evicted["status"])
        return True

    async def _end_copy(self, key: Name, reason: str) -> bool:
        copy = self._copy_of(key)
        if copy is None:
            return False
        ended = deep_copy(copy)
        finish(ended, reason, "The prebuilt workload is out of sync with its user job", time.time())
        await self.replace_status(WORKLOAD, copy, ended["status"])
        return True

    # -- the stand-in

    def keys_for(self, kind: Kind, namespace: str, name: str) -> Iterable[Key]:
        """Return the keys of a Job and its Workload, or of a Workload and all that wait for quota."""
        if kind == JOB:
            if self._pods:
                yield "job", namespace, name
            job = self.objects(JOB).get((namespace, name))
            if job and copy_owner(job).workload:  # Kueue ignores other Jobs
                yield "workload", namespace, copy_owner(job).workload
        else:
            yield "workload", namespace, name
            yield from self._waiting_keys()

    def _waiting_keys(self) -> list[Key]:
        """Return the keys of the Workloads without quota, oldest first."""
        workloads = [item for item in self.objects(WORKLOAD).values() if not has_quota(item)]
        workloads.sort(key=lambda item: (item["metadata"]["creationTimestamp"], key_of(item)))
        return [("workload", *key_of(item)) for item in workloads]

    def _reconcile_waiting(self) -> None:
        for key in self._waiting_keys():
            self.enqueue(key)

    async def reconcile(self, key: Key) -> None:
        what, where = key[0], (key[1], key[2])
        try:
            if what == "job":
                await self._reconcile_job(where)
            else:
                await self._reconcile_workload(where)
        except (Conflict, NotFound):  # outdated cache: reconcile again
            await asyncio.sleep(0.01)
            self.enqueue(key)

    async def _reconcile_job(self, where: Name) -> None:
        job = self.objects(JOB).get(where)
        status = job_status(job, time.time()) if job else None
        if job and status and (self._starts_pods or not status["startTime"]):
            await self.patch(JOB, job, {"status": status}, "status")
        elif job and (end := removed_at(job)):
            await self._remove_at(end, job)
        elif job and self._fails_after is not None and (start := started_at(job)):
            await self._end_at(start + self._fails_after, job, failed)
        elif job and self._sleeps and (end := end_of_sleep(job)):
            await self._end_at(end, job, completed)

    async def _end_at(self, end: float, job: Object, status: Callable[[Object, float], Object]) -> None:
        """End a running Job with this status, or look at it again when it ends."""
        left = end - time.time()
        if left > 0:
            self.enqueue(("job", *key_of(job)), after=left)
        else:
            await self.patch(JOB, job, {"status": status(job, time.time())}, "status")

    async def _remove_at(self, end: float, job: Object) -> None:
        """Remove a finished Job whose time is over, with its copy, which it owns; else look again then.

        Kubernetes' TTL controller removes it with what it owns: first Kueue must have finished the copy, and
        released it from its finalizer.
        """
        namespace, name = key_of(job)
        copy = self.objects(WORKLOAD).get((namespace, copy_owner(job).workload))
        left = end - time.time()
        if left > 0 or (copy and not is_condition_true(copy, FINISHED)):
            self.enqueue(("job", namespace, name), after=max(left, 0.01))
            return
        if copy:
            await self.client.delete(self.informer.resources[WORKLOAD], copy_owner(job).workload, namespace)
        await delete_with_dependents(self.client, self.informer.resources[JOB], name, namespace)

    async def _reconcile_workload(self, where: Name) -> None:
        copy = self.objects(WORKLOAD).get(where)
        job = self._job_of(where) if self._starts_jobs else None
        if copy and job and not owned_by(copy, job):
            copy = await self.patch(WORKLOAD, copy, {"metadata": ownership(copy, job)})
        decision = reconcile_copy(copy, job, queue=self._queue_for(copy), now=time.time())
        for operation in decision.operations:
            copy = await self._execute(operation, copy, job)
        if decision.requeue_after is not None:
            self.enqueue(("workload", *where), after=decision.requeue_after)

    def _queue_for(self, _: Object | None) -> QueueState:
        """Return the state of the queues of a copy."""
        return QueueState(QUEUE, active=self._has_slot())

    def _has_slot(self) -> bool:
        used = sum(has_quota(item) for item in self.objects(WORKLOAD).values())
        return not self._held and used < self._slots

    def _job_of(self, workload: Name) -> Object | None:
        namespace, name = workload
        jobs = self.objects(JOB).items()
        return next(
            (job for key, job in jobs if key[0] == namespace and copy_owner(job).workload == name), None
        )

    async def _execute(self, operation: Operation, copy: Object | None, job: Object | None) -> Object | None:
        """Execute one operation and return the resulting copy."""
        match operation:
            case SuspendJob(suspend) if job:
                await self.patch(JOB, job, {"spec": {"suspend": suspend}})
            case WriteStatus(status) if copy:
                return await self.replace_status(WORKLOAD, copy, status)
            case SetActive(active) if copy:
                return await self.patch(WORKLOAD, copy, {"spec": {"active": active}})
        return copy
