"""
A hub's Kueue and its workers on a virtual clock, for property tests: no HTTP, no sleeping, no threads.

It carries out the decisions of `standins.multikueue` on plain API objects, with late caches and random
delays from one seed. It is no API server: it checks only versions, Kueue's webhook and the owners of
nominations. A worker consists of its Kueue, its free slots and its running Jobs.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from placement_ac.core.api.constants import JOB, WORKLOAD
from placement_ac.core.api.errors import Conflict, NotFound, Refused, Unavailable
from placement_lab.standins import multikueue as mk
from placement_lab.standins.multikueue import objects as of
from tests.support.virtual.clock import Delays, Obj
from tests.support.virtual.workers import short
from tests.support.virtual.workloads import CHECK, VirtualWorkloads

LONGEST_BACKOFF = 6
"""The failures in a row after which Kueue waits no longer: about a minute here, 1,000 s there."""
MOST_BUSY_SECONDS = 0.5
"""The longest time before MultiKueue looks at an evicted Workload (`Delays.left_behind`)."""


@dataclass
class _Turn:
    """One controller's queue for one Workload: at most one running and one waiting reconcile."""

    due: float | None = None
    at_work: bool = False
    failures: int = 0
    """In a row."""


class VirtualKueue(VirtualWorkloads):
    """Kueue's manager on the hub, and with it the whole: `workers`: slots by cluster name.

    `config`: the MultiKueueConfig; `configs`: multikueue check → its config, if there are several.
    `listed`: spec.clusters at the start (all workers). `throttled` may be set at any time: MultiKueue then
    reconciles as many Workloads at once as the settings' pace says, and each GET of a copy and each write to
    a worker waits for the limiter of Kueue's client.
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
        super().__init__(seed, workers, delays, configs or {CHECK: config})
        self.settings = settings or mk.KueueSettings()
        self.throttled = False
        self._limiters = defaultdict(partial(mk.WorkerRateLimiter, self.settings.pace))
        self._groups: dict[str, None] = {}
        self._groups_at_work: set[str] = set()
        self.evictions_after_placement: dict[str, int] = defaultdict(int)
        self._cached: dict[str, Obj] = {}
        self._rounds: dict[str, float] = {}
        self._turns: dict[tuple[str, str], _Turn] = defaultdict(_Turn)
        self._busy: set[str] = set()
        self._cached_clusters: dict[str, tuple[str, ...] | None] = {}
        for name in self._config_of.values():
            self.set_config(list(workers) if listed is None else listed, config=name)
            self._cached_clusters[name] = self._clusters(name)
        self.later(self.settings.gc_seconds, self._collect)

    # The manager's view

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

    def _is_free_again(self, name: str) -> None:
        if name not in self._busy:
            return
        self._busy.discard(name)
        self._ask("multikueue", name, self._draw("look"))

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

    def _workload_arrives(self, name: str, seen: Obj) -> None:
        if _version(seen) > _version(self._cached.get(name)):
            self._cached[name] = seen
            self._wake(name)

    # When it reconciles

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
            queue=mk.QueueState(checks=checks, active=usable and is_active),
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
                self._room_changed(where)
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


def _changes(before: Obj, after: Obj) -> str:
    return f"{short(after)}" if before else f"new {short(after)}"
