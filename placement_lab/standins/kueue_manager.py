"""
A stand-in for all of Kueue's manager on a hub: `MultiKueue`, and Workloads with their workers.

The pure package `multikueue` decides; this module collects its inputs and calls it: at once after a change
on the hub, and after the batch period for a change on a worker, as Kueue does.

With `throttled`, MultiKueue also takes the time that it takes in Kueue (shared/kueue/flips.md): it reconciles
Workloads in a queue of its own, as many at once as `KueueSettings.pace` says, each with a GET to each listed
worker, within the limit of requests of its pace. A changed list, and another list for a check, enqueue every
Workload of the check after the batch period. Other controllers do not wait.
"""

import asyncio
import base64
import random
import time
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import partial
from typing import Final

import structlog

from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    FINALIZER_IN_USE,
    JOB,
    KUBECONFIG_KEY,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    SECRET,
    WORKLOAD,
    Kind,
)
from placement_ac.core.api.copy_owner import copy_owner
from placement_ac.core.api.errors import Conflict, NotFound, Refused
from placement_ac.core.api.fields import key_of
from placement_ac.kube.client import Object
from placement_ac.kube.login import Login
from placement_lab.standins.deletion import delete_with_dependents
from placement_lab.standins.informer import Key, Name
from placement_lab.standins.kueue import CLUSTER_QUEUE, LOCAL_QUEUE, NAMESPACE, MultiKueue
from placement_lab.standins.kueue_jobs import removed_at, workload_name
from placement_lab.standins.kueue_remote import RemoteClient
from placement_lab.standins.kueue_rules import (
    ActiveCondition,
    checks_of,
    is_active,
    is_multikueue,
    judge_cluster,
    quota_groups,
    source_of,
    stop_policy,
)
from placement_lab.standins.kueue_workloads import (
    as_deleted,
    config_of,
    has_quota_in,
    is_retried,
    owners_of,
    pods_ready_is_outdated,
    queue_label,
    scaled,
    with_type,
)
from placement_lab.standins.kueue_writes import WorkloadWriter
from placement_lab.standins.multikueue import (
    KueueSettings,
    QueueState,
    RemoteWorker,
    WorkloadInputs,
    decide,
    has_quota,
    orphans,
    workload_of,
)
from placement_lab.standins.multikueue.engine import MULTIKUEUE
from placement_lab.standins.multikueue.objects import REJECTED, is_deleted, is_suspended
from placement_lab.standins.multikueue.objects import checks_of as states_of
from placement_lab.standins.multikueue.operations import NO_OPERATIONS, ReconcileResult
from placement_lab.standins.multikueue.reconcile_group import reconcile_group
from placement_lab.standins.worker_quota import assigned_quota, used_quota, why_no_quota

SLOTS: Final = 100
REFUSED_RETRY_SECONDS: Final = 0.15
"""The retry interval of a rejected write. Seen: "about 20 times in 3 s" (external-dispatcher.txt)."""
CONFLICT_RETRY_SECONDS: Final = 0.02
"""The retry interval after a conflict: the event of the conflicting write arrives soon."""
LONGEST_CONSTANT_SECONDS: Final = 2.0
"""Engine waits up to this long are constants of Kueue, which `KueueSettings` does not scale."""
_GARBAGE_COLLECTION: Final[Key] = ("garbage", "", "")
_CONCERN_ALL_WORKLOADS: Final = (
    ADMISSION_CHECK,
    MULTIKUEUE_CONFIG,
    MULTIKUEUE_CLUSTER,
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
)
"""Kinds whose changes may affect every Workload."""

log = structlog.get_logger(__name__)


class Kueue(MultiKueue):
    """Simulates Kueue's manager on a hub, including Workloads and the connections to workers.

    `settings`: Kueue's configuration; `speed` divides its times and the retry intervals for workers.
    `slots`: the number of Workloads that can have quota in a ClusterQueue at the same time. `throttled`: see
    the module; it may also be set later, from any thread. `job_kinds`: the kinds of jobs, beside Jobs, that
    its configuration enables, and that it watches on each worker. For other arguments see `MultiKueue`.
    """

    kinds = (*MultiKueue.kinds, WORKLOAD, JOB)

    def __init__(
        self,
        login: Login,
        *,
        settings: KueueSettings | None = None,
        speed: float = 1.0,
        slots: int = SLOTS,
        throttled: bool = False,
        job_kinds: Iterable[Kind] = (),
        namespace: str = NAMESPACE,
        cluster_profiles: bool = False,
        access_providers: Iterable[str] = (),
    ) -> None:
        super().__init__(
            login,
            namespace=namespace,
            cluster_profiles=cluster_profiles,
            access_providers=access_providers,
        )
        self.slow_to_retry = False
        """MultiKueue skips the time between a Retry and the next quota reservation, so old copies stay on the
        workers: inputs in 1 of 8 tries (gate.txt). May be set from any thread; no effect if `throttled`."""
        self.throttled = throttled
        self._speed = speed
        self.settings = scaled(settings or KueueSettings(), speed)
        self._slots = slots
        self._job_kinds = tuple(job_kinds)
        self._remotes: dict[str, tuple[RemoteClient, asyncio.Task[None]]] = {}
        self._last_states: dict[Name, Object] = {}
        self._rounds: dict[Name, float] = {}
        self._lists: dict[str, tuple[str, ...]] = {}
        self._configs: dict[str, str] = {}
        self._group_queue = self.new_queue(self.settings.pace.workloads_at_once)
        self._judges[MULTIKUEUE_CLUSTER] = self._judge_worker

    async def run(self) -> None:
        async with asyncio.TaskGroup() as self._tasks:
            self.enqueue(_GARBAGE_COLLECTION, after=self.settings.gc_seconds)
            await super().run()

    def enqueue(self, key: Key, *, after: float = 0.0) -> None:
        if key[0] == MULTIKUEUE:
            self._group_queue.add_after(key, after)
        else:
            super().enqueue(key, after=after)

    # -- from changes to keys

    def keys_for(self, kind: Kind, namespace: str, name: str) -> Iterable[Key]:
        if kind == WORKLOAD:
            yield from self._keys_of_workload((namespace, name))
        elif kind == JOB:
            yield "job", namespace, name
            yield from (("workload", *key) for key in self._workloads_of((namespace, name)))
        else:
            yield from super().keys_for(kind, namespace, name)
            if kind == MULTIKUEUE_CONFIG:
                self._on_list(name)
            if kind == ADMISSION_CHECK:
                self._on_check(name)
            if kind in _CONCERN_ALL_WORKLOADS:
                yield from (("workload", *key) for key in self._last_states)

    def _keys_of_workload(self, where: Name) -> Iterable[Key]:
        """Return the keys of the Workload, its Job, and the Workloads that wait for quota."""
        item = self.objects(WORKLOAD).get(where)
        if item is not None:
            self._last_states[where] = item
        yield "workload", *where
        if self.throttled:
            yield MULTIKUEUE, *where
        yield from (("job", where[0], owner) for owner in owners_of(self._last_states.get(where)))
        waiting = (key for key, item in self.objects(WORKLOAD).items() if not has_quota(item))
        yield from (("workload", *key) for key in waiting)

    def _on_list(self, config: str) -> None:
        """Enqueue every Workload of the check for MultiKueue if the list has changed, as Kueue does."""
        item = self.objects(MULTIKUEUE_CONFIG).get(("", config))
        before, now = self._lists.get(config), tuple(item["spec"]["clusters"]) if item else ()
        self._lists[config] = now
        if self.throttled and before is not None and before != now:
            for where in self._workloads_of_config(config):
                self.enqueue((MULTIKUEUE, *where), after=self.settings.events_batch_seconds)

    def _on_check(self, name: str) -> None:
        """Enqueue every Workload of a check for MultiKueue if it names another config, as Kueue does."""
        item = self.objects(ADMISSION_CHECK).get(("", name))
        if item is None or not is_multikueue(item):
            return
        before, self._configs[name] = self._configs.get(name), config_of(item)
        if self.throttled and before != self._configs[name]:
            for where in self._workloads_of_checks({name}):
                self.enqueue((MULTIKUEUE, *where), after=self.settings.events_batch_seconds)

    def _workloads_of_config(self, config: str) -> list[Name]:
        items = self._by_name(ADMISSION_CHECK).items()
        return self._workloads_of_checks(
            {name for name, item in items if is_multikueue(item) and config_of(item) == config}
        )

    def _workloads_of_checks(self, checks: Collection[str]) -> list[Name]:
        states = self._last_states.items()
        return [where for where, item in states if any(state["name"] in checks for state in states_of(item))]

    @property
    def _reconciler_of_copies(self) -> str:
        """The first part of the keys that are enqueued after a change on a worker."""
        return MULTIKUEUE if self.throttled else "workload"

    def _workloads_of(self, job: Name) -> list[Name]:
        return [
            key for key, item in self._last_states.items() if key[0] == job[0] and job[1] in owners_of(item)
        ]

    def _on_worker_change(self, cluster: str, kind: Kind, namespace: str, name: str) -> None:
        """Enqueue the Workloads of a change on a worker after the batch period."""
        keys = [(namespace, name)]
        if cluster not in self._remotes:
            return
        if kind == JOB:
            job = self._remotes[cluster][0].objects(JOB).get((namespace, name))
            keys = [(namespace, copy_owner(job).workload)] if job else self._workloads_of((namespace, name))
        for key in keys:
            if key in self._last_states:
                self.enqueue((self._reconciler_of_copies, *key), after=self.settings.events_batch_seconds)

    def _on_connection_change(self, cluster: str) -> None:
        """Enqueue the cluster and all Workloads after a connection was opened, lost or failed."""
        self.enqueue((MULTIKUEUE_CLUSTER.kind, "", cluster))
        for key in self._last_states:
            self.enqueue((self._reconciler_of_copies, *key), after=self.settings.events_batch_seconds)

    async def reconcile(self, key: Key) -> None:
        where = (key[1], key[2])
        try:
            match key[0]:
                case "workload":
                    await self._reconcile_workload(where)
                case str(controller) if controller == MULTIKUEUE:
                    await self._reconcile_group(where)
                case "job":
                    await self._reconcile_job(where)
                case "garbage":
                    await self._collect_garbage()
                case MULTIKUEUE_CLUSTER.kind:
                    self._connect(key[2])
                    await super().reconcile(key)
                case _:
                    await super().reconcile(key)
        except (Conflict, NotFound) as error:
            log.debug("reconciling again", key=key, error=error.message)
            self.enqueue(key, after=CONFLICT_RETRY_SECONDS)

    # -- the workers

    def _connect(self, name: str) -> None:
        """Connect to the worker with the Secret of the MultiKueueCluster, or disconnect."""
        wanted = self._kubeconfig(self.objects(MULTIKUEUE_CLUSTER).get(("", name)))
        if name in self._remotes:
            remote, task = self._remotes[name]
            if remote.kubeconfig == wanted:
                return
            del self._remotes[name]
            task.cancel()
        if wanted is not None:
            notify = partial(self._on_worker_change, name)
            remote = RemoteClient(
                wanted,
                notify,
                partial(self._on_connection_change, name),
                speed=self._speed,
                pace=self.settings.pace,
                throttled=lambda: self.throttled,
                job_kinds=self._job_kinds,
                origin=self.settings.origin,
            )
            self._remotes[name] = remote, self._tasks.create_task(remote.run())

    def _kubeconfig(self, cluster: Object | None) -> bytes | None:
        """Return the kubeconfig that Kueue connects with, None if it does not connect."""
        if cluster is None or is_deleted(cluster) or not judge_cluster(cluster, self._credentials()).active:
            return None
        reference = source_of(cluster).get("kubeConfig")
        if not reference:
            return None  # access providers are programs, which are not simulated
        secret = self.objects(SECRET)[self._namespace, reference["location"]]
        return base64.b64decode(secret["data"][KUBECONFIG_KEY])

    def _judge_worker(self, cluster: Object) -> ActiveCondition | None:
        condition = judge_cluster(cluster, self._credentials())
        remote = self._remotes.get(cluster["metadata"]["name"])
        if not condition.active or remote is None or remote[0].connected:
            return condition
        return (
            ActiveCondition(False, "ClientConnectionFailed", remote[0].failure) if remote[0].failure else None
        )

    async def _collect_garbage(self) -> None:
        """Delete copies on the workers whose Workload on the hub no longer exists."""
        self.enqueue(_GARBAGE_COLLECTION, after=self.settings.gc_seconds)
        alive = [key for key, item in self.objects(WORKLOAD).items() if not is_deleted(item)]
        for remote, _ in tuple(self._remotes.values()):
            copies = tuple(remote.objects(WORKLOAD).values())
            for key in orphans(copies, alive, self.settings.origin):
                await remote.delete_job(key)
                await remote.delete(WORKLOAD, key)

    # -- Jobs and Workloads

    async def _reconcile_job(self, where: Name) -> None:
        """Create the Workload of a Job that has a queue; remove a Job whose time after its end is over."""
        job = self.objects(JOB).get(where)
        if job is None or is_deleted(job):
            return
        if (end := removed_at(job)) is not None:
            await self._remove_at(end, job)
        elif queue_label(job) and not self._has_workload(job):
            await self._create_workload(job)

    async def _remove_at(self, end: float, job: Object) -> None:
        """Remove a finished Job, as Kubernetes' TTL controller does, or look at it again when it is time."""
        namespace, name = key_of(job)
        if (left := end - time.time()) > 0:
            self.enqueue(("job", namespace, name), after=left)
        else:
            await delete_with_dependents(self.client, self.informer.resources[JOB], name, namespace)

    async def _create_workload(self, job: Object) -> None:
        if not is_suspended(job):
            job = await self.patch(JOB, job, {"spec": {"suspend": True}})
        body = workload_of(with_type(job, JOB, "v1"))
        body["metadata"] |= {"name": workload_name(job), "finalizers": [FINALIZER_IN_USE]}
        made = await self.client.create(self.informer.resources[WORKLOAD], body)
        self.informer.remember(WORKLOAD, made)

    def _has_workload(self, job: Object) -> bool:
        namespace, uid = key_of(job)[0], job["metadata"]["uid"]
        return any(
            owner["uid"] == uid
            for key, item in self.objects(WORKLOAD).items()
            if key[0] == namespace
            for owner in item["metadata"].get("ownerReferences") or ()
        )

    async def _reconcile_workload(self, where: Name) -> None:
        """Decide and execute the next step for one Workload."""
        if where not in self._last_states:
            return
        inputs = self._inputs(where)
        if pods_ready_is_outdated(inputs):
            await self._writer().write_as_kueue(inputs.workload, states_of(inputs.workload), inputs.job)
            return
        throttled = self.throttled
        busy = throttled or (self.slow_to_retry and is_retried(inputs.workload))
        decision = decide(inputs, busy=busy)
        await self._execute(("workload", *where), decision, inputs)
        if not throttled:
            self._forget_deleted(where, decision)

    async def _reconcile_group(self, where: Name) -> None:
        """Reconcile one Workload as MultiKueue alone: GET its copy from each listed worker, then act."""
        if where not in self._last_states:
            return
        inputs, decision = self._inputs(where), NO_OPERATIONS
        if inputs.clusters is not None and inputs.state and inputs.state["state"] != REJECTED:
            inputs = replace(inputs, workers=await self._read_group(inputs, where))
            decision = reconcile_group(inputs)
        await self._execute((MULTIKUEUE, *where), decision, inputs)
        self._forget_deleted(where, decision)

    async def _read_group(self, inputs: WorkloadInputs, where: Name) -> dict[str, RemoteWorker]:
        """Return the workers' copies, read one after the other from those that are listed and connected."""
        remotes = {name: remote for name, (remote, _) in self._remotes.items() if name in inputs.remotes}
        job = self._job_of(where)
        read = {name: await remote.get(where, job) for name, remote in remotes.items()}
        return {name: read.get(name, worker) for name, worker in self._workers_of(where).items()}

    async def _execute(self, key: Key, decision: ReconcileResult, inputs: WorkloadInputs) -> None:
        """Execute the operations, and enqueue the key again if they are refused or if it must wait."""
        try:
            await self._writer().execute(decision.operations, inputs)
        except Refused as error:
            log.debug("refused", key=key, error=error.message)
            self.enqueue(key, after=REFUSED_RETRY_SECONDS / self._speed)
        if decision.requeue_after is not None:
            self.enqueue(key, after=self._scaled_wait(decision.requeue_after))

    def _writer(self) -> WorkloadWriter:
        remotes = {name: remote for name, (remote, _) in self._remotes.items()}
        return WorkloadWriter(self.client, self.informer, remotes, self._rounds)

    def _forget_deleted(self, where: Name, decision: ReconcileResult) -> None:
        if where not in self.objects(WORKLOAD) and not decision.operations:
            self._last_states.pop(where, None)
            self._rounds.pop(where, None)

    def _scaled_wait(self, seconds: float) -> float:
        if seconds > LONGEST_CONSTANT_SECONDS:
            return seconds
        return max(seconds / self._speed, CONFLICT_RETRY_SECONDS)

    def _inputs(self, where: Name) -> WorkloadInputs:
        now = time.time()
        workload = self.objects(WORKLOAD).get(where) or as_deleted(self._last_states[where], now)
        queue = self._queue_of(workload)
        check = self._multikueue_check(queue)
        owners = owners_of(workload)
        job = self.objects(JOB).get((where[0], owners[0])) if owners else None
        return WorkloadInputs(
            workload=with_type(workload, WORKLOAD, "v1beta2"),
            job=with_type(job, JOB, "v1") if job else None,
            check=check,
            clusters=self._clusters_of(check),
            now=now,
            workers=self._workers_of(where),
            queue=queue,
            settings=self.settings,
            round_started=self._rounds.get(where),
        )

    def _workers_of(self, workload: Name) -> dict[str, RemoteWorker]:
        """Return each worker's copy and Job of a Workload, in an order as random as that of a map in Go."""
        remotes = {name: remote for name, (remote, _) in self._remotes.items()}
        order = random.sample(list(remotes), k=len(remotes))  # no secret
        job = self._job_of(workload)
        return {name: remotes[name].worker_of(workload, job) for name in order}

    def _job_of(self, workload: Name) -> Name | None:
        owners = owners_of(self._last_states.get(workload))
        return (workload[0], owners[0]) if owners else None

    def _queue_of(self, workload: Object) -> QueueState:
        asked = workload["spec"].get("queueName", "")
        local = self.objects(LOCAL_QUEUE).get((workload["metadata"]["namespace"], asked)) or {"spec": {}}
        name = local["spec"].get("clusterQueue", "")
        queue = self.objects(CLUSTER_QUEUE).get(("", name))
        local_exists, local_stop = bool(name), stop_policy(local)
        if queue is None:
            checks = tuple(e["name"] for e in states_of(workload))
            return QueueState(name, checks, exists=False, local_exists=local_exists, local_stop=local_stop)
        holders = [item for item in self.objects(WORKLOAD).values() if has_quota_in(name, item)]
        groups, used = [] if has_quota(workload) else quota_groups(queue), used_quota(holders)
        flavors = assigned_quota(workload, groups, used) if groups else {}
        return QueueState(
            name,
            tuple(checks_of(queue)),
            is_active(queue),
            has_room=len(holders) < self._slots and flavors is not None,
            flavors=flavors or {},
            lacks=why_no_quota(workload, groups, used) if flavors is None else "",
            stop=stop_policy(queue),
            local_stop=local_stop,
        )

    def _multikueue_check(self, queue: QueueState) -> str:
        checks = self._by_name(ADMISSION_CHECK)
        return next((name for name in queue.checks if name in checks and is_multikueue(checks[name])), "")

    def _clusters_of(self, check: str) -> tuple[str, ...] | None:
        """Return the clusters of the check's MultiKueueConfig, None if there is no config."""
        item = self.objects(ADMISSION_CHECK).get(("", check)) or {"spec": {}}
        config = self.objects(MULTIKUEUE_CONFIG).get(("", config_of(item)))
        return tuple(config["spec"].get("clusters") or ()) if config else None
