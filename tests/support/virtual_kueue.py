"""
A hub's Kueue and its workers on a virtual clock, for property tests: no HTTP, no sleeping, no threads.

It carries out the decisions of `standins.multikueue` on plain API objects, with late caches and random
delays from one seed. It is no API server: it checks only versions, Kueue's webhook and the owners of
nominations. A worker consists of its Kueue, its free slots and its running Jobs.
"""

import heapq
import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from placement_ac.core.api.constants import JOB, KUEUE_ADMISSION, MULTIKUEUE_CONFIG, WORKLOAD, Kind
from placement_ac.core.api.errors import Conflict, NotFound, Refused, Unavailable
from placement_lab.standins import multikueue as mk
from placement_lab.standins.multikueue import objects as of
from placement_lab.standins.multikueue import transitions as step

Obj = dict[str, Any]
Listener = Callable[[str, Kind, Obj], None]

START = 1_790_000_000.0
"""The virtual POSIX time at the start of every run."""
NAMESPACE = "default"
CHECK = "multikueue"
OURS = "placement"
LONGEST_BACKOFF = 6
"""The failures in a row after which Kueue waits no longer: about a minute here, 1,000 s there."""
MOST_BUSY_SECONDS = 0.5
"""The longest time before MultiKueue looks at an evicted Workload (`Delays.left_behind`)."""


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds, each a range to draw from (shared/kueue); `left_behind` is a share of 1.

    `left_behind`: how often quota is reserved again before MultiKueue looks.
    """

    cache: tuple[float, float] = (0.001, 0.05)
    look: tuple[float, float] = (0.001, 0.02)
    operation: tuple[float, float] = (0.002, 0.02)
    schedule: tuple[float, float] = (0.01, 0.05)
    reschedule: tuple[float, float] = (0.15, 2.0)
    worker: tuple[float, float] = (0.01, 0.05)
    start: tuple[float, float] = (0.0, 0.5)
    batch: tuple[float, float] = (0.9, 1.1)
    refused: tuple[float, float] = (0.05, 0.3)
    reconnect: tuple[float, float] = (0.0, 5.0)
    left_behind: float = 1 / 8


@dataclass
class VirtualWorker:
    """A worker cluster with quota for `slots` jobs, or GPUs. `held`: its queue admits nothing.

    `reachable`: by Kueue and by the controller.

    `frozen`: its API server is down, so its Kueue does nothing; running Jobs continue.
    `known`: there is a MultiKueueCluster for it.
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


@dataclass
class _Turn:
    """One controller's queue for one Workload: at most one running and one waiting reconcile."""

    due: float | None = None
    at_work: bool = False
    failures: int = 0
    """In a row."""


class VirtualKueue:
    """The hub `hub` sees: Workloads and MultiKueueConfigs; `workers`: slots by cluster name.

    `config`: the MultiKueueConfig; `configs`: multikueue check → its config, if there are several.
    `listed`: spec.clusters at the start (all workers). Returned objects are copies. `throttled` may be set at
    any time: MultiKueue then reconciles as many Workloads at once as the settings' pace says, and each GET
    of a copy and each write to a worker waits for the limiter of Kueue's client.
    """

    def __init__(
        self,
        seed: int,
        workers: Mapping[str, int],
        *,
        listed: Sequence[str] | None = None,
        settings: mk.KueueSettings | None = None,
        delays: Delays | None = None,
        config: str = "mk",
        configs: Mapping[str, str] | None = None,
    ) -> None:
        self.random = random.Random(seed)
        self.now = START
        self.settings = settings or mk.KueueSettings()
        self.delays = delays or Delays()
        self.workers = {name: VirtualWorker(slots) for name, slots in workers.items()}
        self.throttled = False
        self._limiters = defaultdict(partial(mk.WorkerRateLimiter, self.settings.pace))
        self._groups: dict[str, None] = {}
        self._groups_at_work: set[str] = set()
        self.listeners: list[Listener] = []
        self.connections: list[Callable[[str, bool], None]] = []
        """Called with (worker, connected) when Kueue's connection to the worker changes."""
        self.on_start: list[Callable[[str, str], None]] = []
        """Called with (job, worker) when a Job starts to run."""
        self.logs = True
        """Whether `log` is kept: it grows with every change."""
        self._ours_active: dict[str, bool] = {}
        self._sizes: dict[str, int] = defaultdict(lambda: 1)
        self._used: dict[str, int] = {}
        """Worker, by its first name → the slots that copies with quota use, as far as it is known."""
        self.max_copies: dict[str, int] = defaultdict(int)
        self.starts: dict[str, list[tuple[float, str]]] = defaultdict(list)
        self.evictions_after_placement: dict[str, int] = defaultdict(int)
        self.log: list[tuple[float, str, str]] = []
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count(1)
        self._version = 0
        self._hub: dict[str, Obj] = {}
        self._jobs: dict[str, Obj] = {}
        self._cached: dict[str, Obj] = {}
        self._checks: dict[str, tuple[str, ...]] = {}
        self._owners: dict[str, set[str]] = defaultdict(set)
        self._first_names: dict[str, str] = {}
        self._rounds: dict[str, float] = {}
        self._turns: dict[tuple[str, str], _Turn] = defaultdict(_Turn)
        self._busy: set[str] = set()
        self._config_of = dict(configs or {CHECK: config})
        self._default_config = next(iter(self._config_of.values()))
        self._configs: dict[str, Obj] = {}
        self._cached_clusters: dict[str, tuple[str, ...] | None] = {}
        for name in self._config_of.values():
            self.set_config(list(workers) if listed is None else listed, config=name)
            self._cached_clusters[name] = self._clusters(name)
        self.later(self.settings.gc_seconds, self._collect)

    @property
    def version(self) -> str:
        """The current resourceVersion of a list."""
        return str(self._version)

    # Time

    def advance(self, seconds: float) -> None:
        """Run everything that is due within `seconds`, in order."""
        end = self.now + seconds
        while self._events and self._events[0][0] <= end:
            self._next()
        self.now = end

    def until(self, reached: Callable[[], bool], limit: float = 30.0) -> float:
        """Advance until `reached` holds; return the seconds that it took, fail after `limit`."""
        start = self.now
        while not reached():
            if not self._events or self._events[0][0] > start + limit:
                raise AssertionError(f"not reached within {limit} s; last of the log: {self.log[-12:]}")
            self._next()
        return self.now - start

    def step(self, most: float | None) -> None:
        """Run the next event, or let `most` seconds pass if none is due by then: for an outer clock."""
        due = self._events[0][0]
        if most is not None and due > self.now + most:
            self.now += most
        else:
            self._next()

    def _next(self) -> None:
        at, _, event = heapq.heappop(self._events)
        self.now = max(self.now, at)
        event()

    def later(self, seconds: float, event: Callable[[], None]) -> None:
        """Schedule `event` in `seconds`."""
        heapq.heappush(self._events, (self.now + seconds, next(self._numbers), event))

    def _draw(self, kind: str) -> float:
        return self.random.uniform(*getattr(self.delays, kind))

    # The user and the controller

    def submit(
        self,
        name: str,
        checks: Iterable[str] = (CHECK, OURS),
        template: Obj | None = None,
        *,
        queue: str = "user-queue",
        requests: Mapping[str, str] | None = None,
        slots: int = 1,
    ) -> Obj:
        """Create a Job with its Workload; return the Workload. `template`: its Pod template's metadata.

        `requests`: of its container; `slots`: how many of a worker's slots it takes.
        """
        self._checks[name], self._sizes[name] = tuple(checks), slots
        job = self._born(mk.hub_job(name, NAMESPACE, queue, requests))
        job["spec"]["template"]["metadata"] = template or {}
        self._jobs[name] = job
        workload = self._born(mk.workload_of(job))
        workload["metadata"]["finalizers"] = ["kueue.x-k8s.io/resource-in-use"]
        self._put(name, workload)
        return of.deep_copy(workload)

    def workload(self, name: str) -> Obj:
        """Return the hub's Workload of the Job `name` (it is called `job-<name>`)."""
        if name not in self._hub:
            raise NotFound(f"no Workload of {name}", status=404)
        return of.deep_copy(self._hub[name])

    def workloads(self) -> list[Obj]:
        return [of.deep_copy(one) for one in self._hub.values()]

    def config(self, name: str | None = None) -> Obj | None:
        """Return the MultiKueueConfig, None when there is none."""
        found = self._configs.get(name or self._default_config)
        return of.deep_copy(found) if found else None

    def set_config(
        self, names: Sequence[str] | None, resource_version: str | None = None, *, config: str | None = None
    ) -> None:
        """Write spec.clusters; None deletes the config. With a version: only if it is the current one."""
        name = config or self._default_config
        before = self._configs.get(name)
        if (
            resource_version is not None
            and (before or {}).get("metadata", {}).get("resourceVersion") != resource_version
        ):
            raise Conflict("the MultiKueueConfig has changed", status=409)
        if names is None:
            self._configs.pop(name, None)
            if before:
                self._notify("remove", MULTIKUEUE_CONFIG, before)
        else:
            self._configs[name] = self._new_config(name, before, list(names))
            self._notify("put", MULTIKUEUE_CONFIG, self._configs[name])
        self.later(self._draw("cache"), partial(self._config_arrives, name))

    def _new_config(self, name: str, before: Obj | None, names: list[str]) -> Obj:
        fresh = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "MultiKueueConfig",
            "metadata": {"name": name},
            "spec": {"clusters": names},
        }
        if before is None:
            return self._born(fresh)
        after = of.deep_copy(before)
        after["spec"] = fresh["spec"]
        after["metadata"]["generation"] += after["spec"] != before["spec"]
        return self._numbered(after)

    def answer(
        self,
        name: str,
        state: str,
        message: str = "",
        *,
        check: str = OURS,
        requeue_after: int | None = None,
        resource_version: str | None = None,
    ) -> None:
        """Force-apply our entry of the Workload's checks; with a version: Conflict if it has changed."""
        workload = self._changed(name, resource_version)
        entry: Obj = {"state": state, "message": message}
        if requeue_after is not None:
            entry["requeueAfterSeconds"] = requeue_after
        if of.check_of(workload, check) is None:
            raise Refused(f"the Workload has no check {check}", status=422)
        of.set_check(workload, check, self.now, **entry)
        self._put(name, workload)

    def answer_when_asked(self, name: str, state: str, check: str = OURS) -> None:
        """Wait until Kueue has added our entry and reserved quota, then answer."""
        self.until(lambda: self.state(name, check) == "Pending" and self.holds(name, of.QUOTA_RESERVED))
        self.answer(name, state, check=check)

    def nominate(
        self,
        name: str,
        clusters: Sequence[str],
        *,
        manager: str = KUEUE_ADMISSION,
        resource_version: str | None = None,
        complete: bool = True,
    ) -> None:
        """Write status.nominatedClusterNames as an external dispatcher does; Refused when clusterName is set.

        `manager`: another one than Kueue's leaves the field to it. `complete`: the apply contains all
        fields that Kueue's manager owns; without it the apply removes them.
        """
        before = self._hub[name]
        workload = self._changed(name, resource_version)
        status = workload["status"]
        status["nominatedClusterNames"] = list(clusters)
        if manager == KUEUE_ADMISSION and not complete:
            status.pop("admission", None)
            status["conditions"] = []
        if refused := mk.refusal(before, workload):
            raise Refused(refused, status=422)
        self._own_nominations(name, workload, manager)
        self._put(name, workload)

    def activate(self, name: str, active: bool) -> None:
        """Set the Workload's spec.active."""
        workload = self._changed(name, None)
        workload["spec"]["active"] = active
        self._put(name, workload)

    def set_ours_active(self, active: bool, check: str = OURS) -> None:
        """Write condition Active of our check; while it is False, queues that list it admit nothing new."""
        if active != self._ours_active.get(check, True):
            self._ours_active[check] = active
            self.later(self._draw("cache"), self._wake_all)

    def evict(self, name: str) -> None:
        """Let the hub's own Kueue preempt the Workload; without quota nothing happens."""
        workload = self._changed(name, None)
        if of.is_condition_true(workload, of.QUOTA_RESERVED) and not of.is_condition_true(
            workload, of.FINISHED
        ):
            step.evict(workload, step.BY_PREEMPTION, "Preempted to accommodate a workload", self.now)
            self._written_by_kueue(name, workload["status"])

    def delete(self, name: str) -> None:
        """Delete the hub's Job; its Workload goes with it."""
        self._jobs.pop(name)
        workload = self._changed(name, None)
        workload["metadata"]["deletionTimestamp"] = of.format_time(self.now)
        self._put(name, workload)

    # The workers

    def copies(self, worker: str) -> list[Obj]:
        """Return the Workloads of a worker, as its API server lists them."""
        if not self.workers[worker].reachable:
            raise Unavailable(f"{worker} does not answer")
        return [of.deep_copy(one) for one in self.workers[worker].copies.values()]

    def hold(self, *workers: str) -> None:
        """Stop the workers' ClusterQueues: they admit nothing new and keep reserved quota."""
        for name in workers:
            for one in self._names_of(name):
                self.workers[one].held = True

    def release(self, *workers: str) -> None:
        for name in workers:
            for one in self._names_of(name):
                self.workers[one].held = False
            self._wake_worker(name)

    def finish(self, name: str, worker: str | None = None) -> None:
        """Let the Job complete where it runs (`worker`: only there)."""
        for where in sorted(self.running(name)):
            if worker in (None, where):
                done = {"type": "Complete", "status": "True", "message": "Job finished successfully"}
                self._set_job(where, name, status={"succeeded": 1, "active": 0, "conditions": [done]})

    def preempt(self, name: str, worker: str) -> None:
        """Let the worker's own Kueue preempt the copy."""
        before = self.workers[worker].copies[name]
        self._set_copy(worker, name, status=mk.preempted_status(before, self.now))

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
        self.workers[name] = VirtualWorker(found.slots, copies=found.copies, jobs=found.jobs)
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

    def placed(self, name: str) -> str:
        """Return status.clusterName, "" when it is not set."""
        return of.cluster_of(self._hub[name]) if name in self._hub else ""

    def nominated(self, name: str) -> list[str]:
        return of.nominated_of(self._hub[name])

    def holds(self, name: str, kind: str) -> bool:
        """Return whether a condition of the hub's Workload is True."""
        return of.is_condition_true(self._hub[name], kind)

    def state(self, name: str, check: str = CHECK) -> str:
        return str((of.check_of(self._hub[name], check) or {}).get("state", ""))

    def _count(self, name: str) -> None:
        self.max_copies[name] = max(self.max_copies[name], len(self.running(name)))

    # The hub's objects

    def _born(self, item: Obj) -> Obj:
        number = next(self._numbers)
        uid = f"00000000-0000-4000-8000-{number:012d}"
        created = of.format_time(self.now)
        item["metadata"] |= {"uid": uid, "generation": 1, "creationTimestamp": created}
        return self._numbered(item)

    def _numbered(self, item: Obj) -> Obj:
        self._version += 1
        item["metadata"]["resourceVersion"] = str(self._version)
        return item

    def _changed(self, name: str, resource_version: str | None) -> Obj:
        workload = self.workload(name)
        if resource_version not in (None, workload["metadata"]["resourceVersion"]):
            raise Conflict("the Workload has changed", status=409)
        return workload

    def _put(self, name: str, after: Obj) -> None:
        before = self._hub.get(name)
        if before is not None and before["spec"] != after["spec"]:
            after["metadata"]["generation"] += 1
        if before == after:
            return
        self._numbered(after)
        self._hub[name] = after
        self._note(name, before or {}, after)
        self._notify("put", WORKLOAD, after)
        self.later(self._draw("cache"), lambda: self._workload_arrives(name, after))

    def _note(self, name: str, before: Obj, after: Obj) -> None:
        evicted = of.is_condition_true(after, of.EVICTED) and not of.is_condition_true(before, of.EVICTED)
        if evicted:
            self.evictions_after_placement[name] += bool(of.cluster_of(before))
            comes_back_at_once = of.is_active(after) and not of.job_is_busy(self._jobs.get(name))
            if comes_back_at_once and self.random.random() < self.delays.left_behind:
                self._busy.add(name)
                self.later(MOST_BUSY_SECONDS, lambda: self._is_free_again(name))
        if (
            of.is_condition_true(after, of.QUOTA_RESERVED)
            and not of.is_condition_true(after, of.EVICTED)
            and name in self._busy
        ):
            self.later(self.delays.cache[1], lambda: self._is_free_again(name))
        self._log(name, lambda: _changes(before, after))

    def _log(self, name: str, what: Callable[[], str]) -> None:
        if self.logs:
            self.log.append((self.now, name, what()))

    def _is_free_again(self, name: str) -> None:
        if name not in self._busy:
            return
        self._busy.discard(name)
        self._ask("multikueue", name, self._draw("look"))

    def _notify(self, what: str, kind: Kind, item: Obj) -> None:
        copied = of.deep_copy(item)  # they all only read it
        for listener in self.listeners:
            listener(what, kind, copied)

    def _own_nominations(self, name: str, after: Obj, manager: str) -> None:
        names = of.nominated_of(after)
        same = names == of.nominated_of(self._hub[name])
        self._owners[name] = (self._owners[name] | {manager} if same else {manager}) if names else set()

    def _written_by_kueue(self, name: str, status: Obj) -> None:
        """Store a status that Kueue applies. Raises Refused as the API server or the webhook does."""
        before = self._hub[name]
        owners = self._owners[name] or {KUEUE_ADMISSION}
        after = self.workload(name) | {"status": mk.keep_what_others_own(before, status, owners)}
        if refused := mk.refusal(before, after):
            raise Refused(refused, status=422)
        if "nominatedClusterNames" in status or not of.nominated_of(after):
            self._own_nominations(name, after, KUEUE_ADMISSION)
        self._put(name, after)

    # The view of Kueue's manager, and when it reconciles

    def _clusters(self, config: str) -> tuple[str, ...] | None:
        found = self._configs.get(config)
        return None if found is None else tuple(found["spec"]["clusters"])

    def _config_arrives(self, config: str) -> None:
        if self._cached_clusters.get(config) != self._clusters(config):
            self._cached_clusters[config] = self._clusters(config)
            for name in [one for one in self._cached if self._config_of_job(one) == config]:
                self._wake(name)

    def _check_of_job(self, name: str) -> str:
        """Return the multikueue check of a Workload."""
        return next((one for one in self._checks[name] if one in self._config_of), CHECK)

    def _config_of_job(self, name: str) -> str:
        return self._config_of.get(self._check_of_job(name), self._default_config)

    def _listed_for(self, name: str) -> tuple[str, ...] | None:
        """Return the list that Kueue sees for a Workload."""
        return self._cached_clusters.get(self._config_of_job(name))

    def slots_used(self, where: str) -> int:
        """Return the slots of a worker that copies with quota use."""
        first = self.first_name(where)
        if first not in self._used:
            copies = self.workers[where].copies.items()
            self._used[first] = sum(self._sizes[name] for name, one in copies if mk.has_quota(one))
        return self._used[first]

    def slots_left(self, where: str) -> int:
        """Return the slots of a worker that are free; 0 while it is held."""
        worker = self.workers[where]
        return 0 if worker.held else worker.slots - self.slots_used(where)

    def _room_changed(self, where: str) -> None:
        self._used.pop(self.first_name(where), None)

    def _workload_arrives(self, name: str, seen: Obj) -> None:
        if _version(seen) > _version(self._cached.get(name)):
            self._cached[name] = seen
            self._wake(name)

    def _wake_all(self) -> None:
        for name in self._cached:
            self._wake(name)

    def _wake(self, name: str) -> None:
        for controller in mk.CONTROLLERS:
            delay = self._schedule_delay(name) if controller == "scheduler" else self._draw("look")
            self._ask(controller, name, delay)

    def _schedule_delay(self, name: str) -> float:
        evicted = of.is_condition_true(self._cached[name], of.EVICTED)
        return self._draw("reschedule" if evicted and name not in self._busy else "schedule")

    def _remote_event(self, name: str) -> None:
        if name in self._cached:
            self._ask("multikueue", name, self._draw("batch") * self.settings.events_batch_seconds)

    def _ask(self, controller: str, name: str, after: float) -> None:
        """Reconcile again, `after` seconds from now at the latest."""
        turn, due = self._turns[controller, name], self.now + after
        if turn.due is None or due < turn.due:
            turn.due = due
            self.later(after, lambda: self._look(controller, name, due))

    def _look(self, controller: str, name: str, due: float) -> None:
        turn = self._turns[controller, name]
        if turn.due != due or turn.at_work:
            return
        turn.due = None
        if name not in self._cached or (controller == "multikueue" and name in self._busy):
            return
        if controller == "multikueue" and self.throttled:
            self._groups[name] = None
            self._read_next_groups()
        else:
            self._reconcile(controller, name)

    def _read_next_groups(self) -> None:
        """Read the copies of the next Workloads in MultiKueue's queue, as many as it reconciles at once."""
        for name in [name for name in self._groups if name not in self._groups_at_work]:
            if len(self._groups_at_work) >= self.settings.pace.workloads_at_once:
                return
            del self._groups[name]
            self._groups_at_work.add(name)
            self.later(self._read_seconds(name), partial(self._reconcile_group, name))

    def _read_seconds(self, name: str) -> float:
        """Return how long the GETs of a Workload's copies wait, one after the other."""
        ready = self.now
        for where in self._listed_for(name) or ():
            if where in self.workers and self.workers[where].connected:
                ready += self._limiters[where].reserve(WORKLOAD, ready)
        return ready - self.now

    def _reconcile_group(self, name: str) -> None:
        if name in self._cached:
            self._reconcile("multikueue", name)
        if not self._turns["multikueue", name].at_work:
            self._end_group(name)

    def _end_group(self, name: str) -> None:
        self._groups_at_work.discard(name)
        self._read_next_groups()

    def _reconcile(self, controller: str, name: str) -> None:
        turn = self._turns[controller, name]
        decision = mk.CONTROLLERS[controller](self._seen(name))
        turn.failures = turn.failures + 1 if decision.failed else 0
        if decision.requeue_after is not None:
            backoff = 2 ** min(turn.failures - 1, LONGEST_BACKOFF) if turn.failures else 1
            self._ask(controller, name, max(decision.requeue_after * backoff, 0.01))
        if decision.operations:
            turn.at_work = True
            version = self._cached[name]["metadata"]["resourceVersion"]
            self._go_on(controller, name, version, list(decision.operations))

    def _seen(self, name: str) -> mk.WorkloadInputs:
        listed = self._listed_for(name)
        order = [where for where in listed or () if where in self.workers]
        self.random.shuffle(order)
        workers = {where: self._worker_seen(where, name) for where in order if self.workers[where].known}
        usable = any(self.workers[one].connected for one in order)
        checks = self._checks[name]
        is_active = all(self._ours_active.get(check, True) for check in checks)
        return mk.WorkloadInputs(
            workload=self._cached[name],
            job=self._jobs.get(name),
            check=self._check_of_job(name),
            clusters=listed,
            now=self.now,
            workers=workers,
            queue=mk.HubQueue(checks=checks, active=usable and is_active),
            settings=self.settings,
            round_started=self._rounds.get(name),
        )

    def _worker_seen(self, where: str, name: str) -> mk.RemoteWorker:
        found = self.workers[where]
        return mk.RemoteWorker(
            connected=found.connected,
            lost_since=found.lost_since,
            copy=found.copies.get(name),
            job=found.jobs.get(name),
        )

    def _go_on(self, controller: str, name: str, version: str, todo: list[mk.Operation]) -> None:
        """Carry out the operations one by one, with delays; reconcile again after the last."""

        def carry_out() -> None:
            try:
                self._carry_out(name, version, todo[0])
            except (Conflict, Refused, Unavailable, NotFound) as error:
                refused = isinstance(error, Refused)
                self._done(controller, name, self._draw("refused" if refused else "look"))
                return
            if todo[1:]:
                self._go_on(controller, name, version, todo[1:])
            else:
                self._done(controller, name, None)

        self.later(self._draw("operation") + self._limiter_wait(todo[0]), carry_out)

    def _limiter_wait(self, operation: mk.Operation) -> float:
        where = getattr(operation, "cluster", "")
        kind = JOB if isinstance(operation, mk.CreateJob | mk.DeleteJob) else WORKLOAD
        return self._limiters[where].reserve(kind, self.now) if where and self.throttled else 0.0

    def _done(self, controller: str, name: str, again: float | None) -> None:
        turn = self._turns[controller, name]
        turn.at_work = False
        if turn.due is not None:
            again = max(turn.due - self.now, self._draw("look"))
            turn.due = None
        if again is not None:
            self._ask(controller, name, again)
        if controller == "multikueue":
            self._end_group(name)

    # Carrying out

    def _carry_out(self, name: str, version: str, operation: mk.Operation) -> None:
        match operation:
            case mk.WriteStatus() | mk.SetActive() | mk.RemoveFinalizer():
                self._write_workload(name, version, operation)
            case mk.SuspendJob(suspend):
                self._suspend_here(name, suspend)
            case mk.WriteJobStatus(status):
                self._write_job(name, status=status)
            case mk.StartRound():
                self._rounds[name] = self.now
            case mk.ForgetRound():
                self._rounds.pop(name, None)
            case _:
                self._on_worker(name, operation)

    def _write_workload(self, name: str, version: str, operation: mk.Operation) -> None:
        workload = self._changed(name, version)
        match operation:
            case mk.WriteStatus(status):
                self._written_by_kueue(name, of.deep_copy(status))
            case mk.SetActive(active):
                workload["spec"]["active"] = active
                self._put(name, workload)
            case mk.RemoveFinalizer():
                uid = workload["metadata"]["uid"]
                self.later(self.delays.cache[1], lambda: self._vanish(name, uid))

    def _vanish(self, name: str, uid: str) -> None:
        """Remove a Workload; Kueue keeps its last state until the copies are removed."""
        gone = self._hub.get(name)
        if gone is None or gone["metadata"]["uid"] != uid:
            return
        del self._hub[name]
        self._owners.pop(name, None)
        self._rounds.pop(name, None)
        self.later(1.0, lambda: self._forget(gone))
        self._log(name, lambda: "deleted")
        self._notify("remove", WORKLOAD, gone)

    def _forget(self, gone: Obj) -> None:
        for name, seen in list(self._cached.items()):
            if seen["metadata"]["uid"] == gone["metadata"]["uid"]:
                del self._cached[name]

    def _suspend_here(self, name: str, suspend: bool) -> None:
        if job := self._jobs.get(name):
            status = dict(job.get("status") or {})
            if suspend:
                status.pop("startTime", None)
            self._write_job(name, spec=job["spec"] | {"suspend": suspend}, status=status)

    def _write_job(self, name: str, **fields: Any) -> None:
        if name in self._jobs:
            self._jobs[name] = self._jobs[name] | fields
            self._wake(name)

    def _on_worker(self, name: str, operation: mk.Operation) -> None:
        where = getattr(operation, "cluster", "")
        worker = self.workers[where]
        if not (worker.connected and worker.reachable):
            raise Unavailable(f"{where} does not answer")
        match operation:
            case mk.CreateCopy(_, workload):
                worker.copies.setdefault(name, self._born(of.deep_copy(workload)))
            case mk.DeactivateCopy(_, status) if name in worker.copies:
                worker.copies[name] = worker.copies[name] | {"status": status}
                self._room_changed(where)
            case mk.DeleteCopy():
                worker.copies.pop(name, None)
                self._room_changed(where)
                self._wake_worker(where)
            case mk.CreateJob(_, job):
                worker.jobs.setdefault(name, self._born(of.deep_copy(job)))
            case mk.DeleteJob():
                worker.jobs.pop(name, None)
        self._log(name, lambda: f"{where}: {type(operation).__name__}")
        self._count(name)
        self._copy_changed(where, name)

    # The workers' own Kueue

    def _wake_worker(self, where: str) -> None:
        worker = self.workers[where]
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
        decision = mk.reconcile_copy(
            worker.copies.get(name),
            worker.jobs.get(name),
            queue="cluster-queue",
            room=self.slots_left(where) >= self._sizes[name],
            now=self.now,
        )
        for operation in decision.operations:
            match operation:
                case mk.WriteStatus(status):
                    self._set_copy(where, name, status=status)
                    self._log(name, lambda: f"{where}: {_short(worker.copies[name])}")
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

    def _collect(self) -> None:
        """Kueue's garbage collection, on every connected worker, listed or not."""
        self.later(self.settings.gc_seconds, self._collect)
        alive = {
            (one["metadata"]["namespace"], one["metadata"]["name"])
            for one in self._hub.values()
            if not of.is_deleted(one)
        }
        for where, worker in self.workers.items():
            if worker.connected and worker.known:
                copies = worker.copies.values()
                gone = {name for _, name in mk.orphans(copies, alive, self.settings.origin)}
                for name in [one for one, raw in worker.copies.items() if raw["metadata"]["name"] in gone]:
                    worker.jobs.pop(name, None)
                    worker.copies.pop(name, None)
                    self._room_changed(where)
                    self._log(name, lambda where=where: f"{where}: collected")
                    self._wake_worker(where)


def _version(item: Obj | None) -> int:
    return int(item["metadata"]["resourceVersion"]) if item else 0


def _short(workload: Obj) -> str:
    """Return the status as one line, for the log."""
    conditions = (workload.get("status") or {}).get("conditions") or ()
    parts = [condition["type"] for condition in conditions if condition["status"] == "True"]
    parts += [f"{one['name']}={one['state']}" for one in of.checks_of(workload)]
    if names := of.nominated_of(workload):
        parts.append(f"nominated={','.join(names)}")
    if cluster := of.cluster_of(workload):
        parts.append(f"on={cluster}")
    return " ".join(parts)


def _changes(before: Obj, after: Obj) -> str:
    return f"{_short(after)}" if before else f"new {_short(after)}"
