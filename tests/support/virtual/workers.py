"""The workers on a virtual clock: their quota, their own Kueue, and the Jobs that run there."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from placement_ac.core.api.errors import Unavailable
from placement_lab.standins import multikueue as mk
from placement_lab.standins.multikueue import objects as of
from tests.support.virtual.bare import BareWorker, QueueUse, own_use
from tests.support.virtual.clock import Delays, Obj, VirtualClock

QUEUE = "cluster-queue"
"""The ClusterQueue of a worker that does not begin bare."""


@dataclass
class VirtualWorker:
    """A worker cluster with quota for `slots` jobs, or GPUs. `held`: its queue admits nothing.

    `reachable`: by Kueue and by the controller.

    `frozen`: its API server is down, so its Kueue does nothing; running Jobs continue.
    `known`: there is a MultiKueueCluster for it. `bare`: its objects, if it begins without any queue; they
    say how many slots it has.
    """

    slots: int
    held: bool = False
    reachable: bool = True
    frozen: bool = False
    known: bool = True
    connected: bool = True
    lost_since: float | None = None
    copies: dict[str, Obj] = field(default_factory=dict)
    jobs: dict[str, Obj] = field(default_factory=dict)
    bare: BareWorker | None = None


class VirtualWorkers(VirtualClock, ABC):
    """The workers of a hub: `workers` by the names of their MultiKueueClusters.

    Kueue's manager on the hub follows with `_wake_all`, `_remote_event` and `connections`.
    """

    def __init__(self, seed: int, workers: Mapping[str, int], delays: Delays | None) -> None:
        super().__init__(seed, delays)
        self.workers = {name: VirtualWorker(slots) for name, slots in workers.items()}
        self.connections: list[Callable[[str, bool], None]] = []
        """Called with (worker, connected) when Kueue's connection to the worker changes."""
        self.on_start: list[Callable[[str, str], None]] = []
        """Called with (job, worker) when a Job starts to run."""
        self.max_copies: dict[str, int] = defaultdict(int)
        self.starts: dict[str, list[tuple[float, str]]] = defaultdict(list)
        self._sizes: dict[str, int] = defaultdict(lambda: 1)
        self._used: dict[str, QueueUse] = {}
        """Worker, by its first name → what its Kueue counts, as far as it is known."""
        self._queues: dict[str, str] = {}
        """Job → its LocalQueue."""
        self.on_use: list[Callable[[str], None]] = []
        """Called with a worker whose jobs or quota have changed."""
        self._first_names: dict[str, str] = {}

    @abstractmethod
    def _wake_all(self) -> None:
        """Let Kueue's manager look at all Workloads."""

    @abstractmethod
    def _remote_event(self, name: str) -> None:
        """Let Kueue's manager look at a Workload whose copy has changed."""

    def copies(self, worker: str) -> list[Obj]:
        """Return the Workloads of a worker, as its API server lists them."""
        if not self.workers[worker].reachable:
            raise Unavailable(f"{worker} does not answer")
        return [of.deep_copy(one) for one in self.workers[worker].copies.values()]

    def hold(self, *workers: str) -> None:
        """Stop the workers' ClusterQueues: they admit nothing new and keep reserved quota."""
        for name in workers:
            for one in self._names_of(name):
                self._set_held(one, True)

    def release(self, *workers: str) -> None:
        for name in workers:
            for one in self._names_of(name):
                self._set_held(one, False)
            self._wake_worker(name)

    def _set_held(self, name: str, held: bool) -> None:
        worker = self.workers[name]
        worker.held = held
        if worker.bare:
            worker.bare.held = held
            self.queues_changed(name)

    def begin_bare(self, *workers: str) -> None:
        """Take all queues from these workers."""
        for name in workers:
            bare = self.workers[name].bare = BareWorker(lambda: self.now, partial(self.use, name))
            bare.on_change.append(lambda *_, name=name: self.queues_changed(name))

    def queues_changed(self, worker: str) -> None:
        """Let a worker's Kueue take in that a queue, a quota, or a job of its own has changed."""
        self._room_changed(worker)
        self._wake_worker(worker)

    def finish(self, name: str, worker: str | None = None) -> None:
        """Let the Job complete where it runs (`worker`: only there)."""
        for where in sorted(self.running(name)):
            if worker in (None, where):
                done = {"type": "Complete", "status": "True", "message": "Job finished successfully"}
                self._set_job(where, name, status={"succeeded": 1, "active": 0, "conditions": [done]})

    def fail(self, name: str, worker: str) -> None:
        """Let the Job fail where it runs: its Pods have failed more often than its backoffLimit."""
        why = "Job has reached the specified backoff limit"
        failed = {"type": "Failed", "status": "True", "message": why}
        for where in self._names_of(worker):
            if name in self.workers[where].jobs and mk.runs(self.workers[where].jobs[name]):
                self._set_job(where, name, status={"failed": 1, "active": 0, "conditions": [failed]})
                return

    def preempt(self, name: str, worker: str) -> None:
        """Let the worker's own Kueue preempt the copy."""
        before = self.workers[worker].copies[name]
        self._set_copy(worker, name, status=mk.preempted_status(before, self.now))

    def time_out(self, name: str, worker: str) -> None:
        """Let the worker's own Kueue evict the copy: its Pods were not ready in time."""
        before = self.workers[worker].copies[name]
        self._set_copy(worker, name, status=mk.timed_out_status(before, self.now))

    def lose(self, worker: str, *, frozen: bool = True) -> None:
        """Disconnect a worker. `frozen`: its API server is down; else only the network is."""
        for name in self._names_of(worker):
            found = self.workers[name]
            found.reachable, found.frozen, found.connected = False, frozen, False
            found.lost_since = self.now if found.lost_since is None else found.lost_since
            self._notify_connection(name)
        self._wake_all()

    def find(self, worker: str) -> None:
        """Let a lost worker answer again; Kueue connects some seconds later."""
        for name in self._names_of(worker):
            self.workers[name].reachable, self.workers[name].frozen = True, False
            self.later(self._draw("reconnect"), partial(self._connect, name))
        self._wake_worker(worker)

    def remove_cluster(self, worker: str) -> None:
        """Delete the worker's MultiKueueCluster."""
        found = self.workers[worker]
        found.known, found.connected, found.lost_since = False, False, None
        self._notify_connection(worker)
        self._wake_all()

    def add_alias(self, worker: str, name: str) -> None:
        """Give a worker a second name, that of another MultiKueueCluster with the same credentials."""
        found = self.workers[worker]
        self.workers[name] = VirtualWorker(found.slots, copies=found.copies, jobs=found.jobs, bare=found.bare)
        self.workers[name].known = self.workers[name].connected = False
        self._first_names[name] = worker

    def _names_of(self, worker: str) -> list[str]:
        jobs = self.workers[worker].jobs
        return [name for name, one in self.workers.items() if one.jobs is jobs]

    def first_name(self, name: str) -> str:
        """Return the name under which a worker is counted."""
        return self._first_names.get(name, name)

    def add_cluster(self, worker: str) -> None:
        self.workers[worker].known = True
        self.later(self._draw("cache"), lambda: self._connect(worker))

    def _connect(self, worker: str) -> None:
        found = self.workers[worker]
        if found.known and found.reachable:
            found.connected, found.lost_since = True, None
            self._notify_connection(worker)
            for name in list(found.copies):
                self._remote_event(name)
            self._wake_all()

    def _notify_connection(self, worker: str) -> None:
        for listener in self.connections:
            listener(worker, self.workers[worker].connected)

    # Counting

    def running(self, name: str) -> set[str]:
        """Return the workers on which the Job runs: unsuspended and unfinished, reachable or not."""
        found = self.workers.items()
        return {
            self.first_name(where) for where, one in found if name in one.jobs and mk.runs(one.jobs[name])
        }

    def squatting(self, name: str) -> set[str]:
        """Return the workers on which a copy holds quota without a Job to run."""
        found = self.workers.items()
        return {
            self.first_name(where)
            for where, one in found
            if name in one.copies and mk.has_quota(one.copies[name]) and name not in one.jobs
        }

    def squatters(self, worker: str) -> set[str]:
        """Return the jobs whose copies hold quota on a worker."""
        return {name for name, one in self.workers[worker].copies.items() if mk.has_quota(one)}

    def has_copy(self, name: str) -> set[str]:
        return {self.first_name(where) for where, one in self.workers.items() if name in one.copies}

    def use(self, where: str) -> QueueUse:
        """Return what a worker's Kueue counts: the slots by ClusterQueue, the jobs by LocalQueue."""
        first = self.first_name(where)
        if first not in self._used:
            worker = self.workers[where]
            gpus, admitted, reserving, pending = own_use(worker.bare.own.values() if worker.bare else ())
            for name, copy in worker.copies.items():
                queue = copy["metadata"]["namespace"], self._queues.get(name, "")
                if mk.has_quota(copy):
                    cluster_queue = copy["status"]["admission"]["clusterQueue"]
                    gpus[cluster_queue] += self._sizes[name]
                    admitted[cluster_queue] += 1
                    reserving[queue] += 1
                elif not of.is_condition_true(copy, of.FINISHED):
                    pending[queue] += 1
            self._used[first] = QueueUse(gpus, admitted, reserving, pending)
        return self._used[first]

    def slots_used(self, where: str) -> int:
        """Return the slots of a worker that are used by copies with quota, and by its own jobs."""
        return sum(self.use(where).gpus.values())

    def slots_left(self, where: str, queue: str = QUEUE) -> int:
        """Return the free slots of a ClusterQueue on a worker; 0 while it is held."""
        worker = self.workers[where]
        if worker.bare:
            return worker.bare.room(queue)
        return 0 if worker.held else worker.slots - self.slots_used(where)

    def queue_there(self, where: str, name: str) -> str:
        """Return the ClusterQueue that is to admit a job on a worker, "" if there is none."""
        bare, copy = self.workers[where].bare, self.workers[where].copies.get(name)
        if bare is None or copy is None:
            return QUEUE
        return bare.cluster_queue_of(copy["metadata"]["namespace"], self._queues[name])

    def _room_changed(self, where: str) -> None:
        self._used.pop(self.first_name(where), None)
        for listener in self.on_use:
            listener(where)

    def _count(self, name: str) -> None:
        self.max_copies[name] = max(self.max_copies[name], len(self.running(name)))

    # Their own Kueue

    def _wake_worker(self, where: str) -> None:
        worker = self.workers[where]
        if worker.bare and not worker.frozen:
            worker.bare.admit_own()
            self._room_changed(where)
        for name in list(dict.fromkeys([*worker.copies, *worker.jobs])):
            self.later(self._draw("worker"), partial(self._look_there, where, name))

    def _copy_changed(self, where: str, name: str) -> None:
        self.later(self._draw("worker"), lambda: self._look_there(where, name))
        if any(self.workers[one].connected for one in self._names_of(where)):
            self._remote_event(name)

    def _set_job(self, where: str, name: str, **fields: Any) -> None:
        jobs = self.workers[where].jobs
        jobs[name] = jobs[name] | fields
        self._count(name)
        self._copy_changed(where, name)

    def _set_copy(self, where: str, name: str, **fields: Any) -> None:
        copies = self.workers[where].copies
        before, after = copies[name], copies[name] | fields
        copies[name] = self._numbered(after | {"metadata": dict(after["metadata"])})
        self._room_changed(where)
        self._copy_changed(where, name)
        if mk.has_quota(before) and not mk.has_quota(after):
            self._wake_worker(where)

    def _look_there(self, where: str, name: str) -> None:
        worker = self.workers[where]
        if worker.frozen:
            return
        queue = self.queue_there(where, name)
        has_room = bool(queue) and self.slots_left(where, queue) >= self._sizes[name]
        decision = mk.reconcile_copy(
            worker.copies.get(name),
            worker.jobs.get(name),
            queue=mk.QueueState(queue, active=has_room),
            now=self.now,
        )
        for operation in decision.operations:
            match operation:
                case mk.WriteStatus(status):
                    self._set_copy(where, name, status=status)
                    self._log(name, lambda: f"{where}: {short(worker.copies[name])}")
                case mk.SetActive(active):
                    self._set_copy(where, name, spec=worker.copies[name]["spec"] | {"active": active})
                case mk.SuspendJob(suspend):
                    self._suspend_there(where, name, suspend)

    def _suspend_there(self, where: str, name: str, suspend: bool) -> None:
        job = self.workers[where].jobs[name]
        fields: Obj = {"spec": job["spec"] | {"suspend": suspend}}
        if suspend:
            fields["status"] = {"active": 0}
        else:
            self.starts[name].append((self.now, where))
            for listener in self.on_start:
                listener(name, where)
            self.later(self._draw("start"), partial(self._pods_start, where, name))
        self._log(name, lambda: f"{where}: {'suspended' if suspend else 'runs'}")
        self._set_job(where, name, **fields)

    def _pods_start(self, where: str, name: str) -> None:
        job = self.workers[where].jobs.get(name)
        if job and mk.runs(job) and not of.job_is_busy(job):
            self._set_job(where, name, status={"active": 1, "startTime": of.format_time(self.now)})


def short(workload: Obj) -> str:
    """Return the status as one line, for the log."""
    conditions = (workload.get("status") or {}).get("conditions") or ()
    parts = [condition["type"] for condition in conditions if condition["status"] == "True"]
    parts += [f"{one['name']}={one['state']}" for one in of.checks_of(workload)]
    if names := of.nominated_of(workload):
        parts.append(f"nominated={','.join(names)}")
    if cluster := of.cluster_of(workload):
        parts.append(f"on={cluster}")
    return " ".join(parts)
