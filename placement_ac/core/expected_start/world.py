"""
The world to simulate, from what the controller knows of the hub: its jobs, their clusters, and the quota.

Pure. Nothing is guessed: of a job whose future depends on something that is not known, it is said why.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Final, NamedTuple

from placement_ac.core.api.constants import READY
from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import queue_of
from placement_ac.core.expected_start.arrivals import arrivals
from placement_ac.core.expected_start.history import Run, RunTimeBook, lasting_run
from placement_ac.core.expected_start.model import (
    Asked,
    Order,
    PoolKey,
    PoolSpec,
    SimulatedJob,
    World,
)
from placement_ac.core.expected_start.pool import Pool
from placement_ac.core.expected_start.position import order_of
from placement_ac.core.expected_start.worker_pools import (
    WorkerPools,
    newest,
    objection,
    pool_spec,
    stays,
    worker_pools,
)
from placement_ac.core.inputs.queue_facts import Queue, QueueFacts, WorkerFacts
from placement_ac.core.inputs.state import Snapshot
from placement_ac.core.plan.conditions import judge
from placement_ac.core.plan.job_fit import JobFit, nominated_at, round_left
from placement_ac.core.plan.nomination import eligible_clusters
from placement_ac.core.plan.plan import keeps_objects
from placement_ac.core.plan.targets import TargetClusters

JOBS_AT_ONCE: Final = 20
"""So many are looked at before others have their turn."""
WAITING_MOST: Final = 2000
"""So many jobs that wait are simulated, in the order of their queue."""
HEADROOM: Final = "Headroom"
NOT_ACTIVE: Final = "it is not active"
KUEUE_DECIDES: Final = "Kueue's own dispatcher decides, so the quota of the workers is not known"
HUB_UNKNOWN: Final = "the queues of the hub are not read, and it waits for quota there"
NO_HUB_QUEUE: Final = "its LocalQueue does not exist on the hub"
LEAVING: Final = "the clusters for which it waits leave, or Kueue is not connected to them"
NO_CLUSTER: Final = "no cluster gets jobs now"
QUOTA_UNKNOWN: Final = "the quota of {names} is not known"
PREEMPTION: Final = "jobs of higher priority preempt others in {queue}"
TOO_LARGE: Final = "no queue for which it waits ever has so much quota free"
TOO_MANY: Final = f"more than {WAITING_MOST:,} jobs wait before it"
OTHER_CHECK: Final = "its check {check} is {state}"
HubQueues = Mapping[Queue, QueueFacts]
"""LocalQueue of the hub → the ClusterQueue behind it."""


class PlacementInputs(NamedTuple):
    """All that the jobs of one Placement depend on."""

    snapshot: Snapshot
    targets: TargetClusters


@dataclass(frozen=True, slots=True)
class Prepared:
    """The world, and the jobs of which it can say nothing."""

    world: World
    unknown: Mapping[str, str]
    """Uid of a job that waits → why its start is not known."""
    without_run_times: frozenset[Queue]
    """LocalQueues of which too few jobs have finished."""


def prepare(
    placements: Sequence[PlacementInputs], history: Iterable[Run], hub: HubQueues | None, now: datetime
) -> Generator[None, None, Prepared]:
    """Return the world of all jobs of these Placements; yield after each few milliseconds.

    `hub`: None if the hub's queues are not known.
    """
    builder = _Builder(placements, list(history), hub, now)
    yield
    return (yield from builder.build())


class _Case(NamedTuple):
    """A Workload, and the Placement whose clusters it may use."""

    workload: Workload
    of: PlacementInputs


class _Builder:
    """Reads the inputs of all Placements once."""

    def __init__(
        self, placements: Sequence[PlacementInputs], history: list[Run], hub: HubQueues | None, now: datetime
    ) -> None:
        self._hub, self._now, self._history = hub, now, history
        cases = {
            one.meta.uid: _Case(one, of)
            for of in placements
            for one in of.snapshot.workloads
            if not one.finished
        }
        self._cases = sorted(cases.values(), key=lambda case: order_of(case.workload, now))
        workloads = [case.workload for case in self._cases]
        self._highest = max([*(w.priority for w in workloads), *(run.priority for run in history)], default=0)
        lasting = [run for run in map(lasting_run, workloads) if run]
        self._runs = [*history, *lasting]
        cluster_queues = {queue: facts.cluster_queue for queue, facts in (hub or {}).items()}
        self._book = RunTimeBook(self._runs, now, cluster_queues)
        self._fits = {
            of.snapshot.name: JobFit(of.snapshot, of.targets)
            for of in placements
            if of.snapshot.policy.dispatcher
        }
        self._eligible = {of.snapshot.name: eligible_clusters(of.snapshot, of.targets) for of in placements}
        self._paused = {of.snapshot.name: keeps_objects(judge(of.snapshot, of.targets)) for of in placements}
        self._pools = self._worker_pools(placements, workloads)
        self._hub_pools = self._pools_of_hub(workloads)
        self._empty: dict[PoolKey, Pool] = {}
        self._ranked: dict[object, tuple[tuple[str, ...], str]] = {}
        self._policy = placements[0].snapshot.policy if placements else None

    def build(self) -> Generator[None, None, Prepared]:
        jobs: list[SimulatedJob] = []
        unknown: dict[str, str] = {}
        waiting = 0
        for number, case in enumerate(self._cases):
            if number % JOBS_AT_ONCE == 0:
                yield
            workload = case.workload
            if not workload.cluster and (why := self._objection(case)):
                unknown[workload.meta.uid] = why
            waiting += not workload.cluster
            if waiting > WAITING_MOST and not workload.cluster:
                unknown.setdefault(workload.meta.uid, TOO_MANY)
            elif job := self._job(case):
                jobs.append(job)
        specs = tuple(chain(self._pools.specs.values(), self._hub_pools.values()))
        world = World(
            specs,
            tuple(jobs),
            arrivals(self._runs, [case.workload for case in self._cases], jobs, self._like, self._now),
            self._policy.step_size if self._policy else 1,
            self._policy.round_timeout if self._policy else 0.0,
            by_headroom=any(
                name == HEADROOM
                for case in self._cases[:1]
                if (fit := self._fits.get(case.of.snapshot.name))
                for name, _ in fit.profile(case.workload).weights
            ),
        )
        ids = {case.workload.meta.uid: queue_of(case.workload) for case in self._cases}
        without = frozenset(ids[job.uid] for job in jobs if job.run_times is None)
        return Prepared(world, unknown, without)

    # -- the pools

    def _worker_pools(
        self, placements: Sequence[PlacementInputs], workloads: Iterable[Workload]
    ) -> WorkerPools:
        facts: dict[str, WorkerFacts] = {}
        clusters: dict[str, str] = {}
        for of in placements:
            for name, found in of.snapshot.fleet.queue_facts.items():
                facts[name] = newest(facts.get(name), found)
            clusters |= {name: cluster for cluster, name in of.targets.listed.items()}
            clusters |= {entry.name: entry.cluster for entry in of.targets.to_list}
        ranked = [entry.name for of in placements for entry in of.targets.to_list]
        facts = {name: facts[name] for name in dict.fromkeys((*ranked, *facts)) if name in facts}
        waits = Counter(name for one in workloads if not one.cluster for name in one.nominated)
        return worker_pools(facts, clusters, stays(workloads, self._history), waits, self._now)

    def _pools_of_hub(self, workloads: Iterable[Workload]) -> dict[PoolKey, PoolSpec]:
        held: dict[str, list[Workload]] = {}
        for workload in workloads:
            facts = (self._hub or {}).get(queue_of(workload))
            if facts and workload.has_quota:
                held.setdefault(facts.cluster_queue, []).append(workload)
        known = {facts.cluster_queue: facts for facts in (self._hub or {}).values()}
        return {
            ("", name): pool_spec(("", name), facts, [one.job for one in held.get(name, ())])
            for name, facts in known.items()
        }

    def _hub_key(self, queue: Queue) -> PoolKey | None:
        facts = (self._hub or {}).get(queue)
        return ("", facts.cluster_queue) if facts and facts.exists else None

    # -- one job

    def _job(self, case: _Case) -> SimulatedJob | None:
        """Return the job for the simulation; None: nothing is known of where it is, or where it goes."""
        workload, queue = case.workload, queue_of(case.workload)
        job = SimulatedJob(
            uid=workload.meta.uid,
            order=order_of(workload, self._now),
            asked=workload.job.requests,
            run_times=self._book.of(queue, workload.job),
            most_seconds=workload.job.seconds,
            hub=self._hub_key(queue),
            has_quota=workload.has_quota,
        )
        if workload.cluster:
            key = self._pools.pool_of.get((workload.cluster, queue))
            age = (self._now - (workload.placed_since or self._now)).total_seconds()
            if key is None:
                return None
            return replace(job, runs_in=key, age=max(age, 0.0), candidates=self._any_pool(queue, job.asked))
        if not workload.active or not case.of.snapshot.policy.dispatcher:
            return None
        waits_in = dict(self._waits_in(case))
        candidates = [key for key in self._candidates(case) if key not in waits_in]
        left = round_left(case.of.snapshot, workload) if workload.nominated else 0.0
        return replace(job, waits_in=waits_in, candidates=tuple(candidates), next_round=left)

    def _like(self, run: Run) -> SimulatedJob:
        """Return a new job like one that has run."""
        return SimulatedJob(
            uid=run.uid,
            order=(-run.priority, 0.0, run.uid),
            asked=run.job.requests,
            run_times=self._book.of(run.queue, run.job),
            most_seconds=run.job.seconds,
            hub=self._hub_key(run.queue),
            has_quota=False,
            candidates=self._any_pool(run.queue, run.job.requests),
        )

    def _any_pool(self, queue: Queue, asked: Asked) -> tuple[PoolKey, ...]:
        """Return the pools of a queue that are large enough for a job."""
        keys = dict.fromkeys(key for (_, other), key in self._pools.pool_of.items() if other == queue)
        good = (key for key in keys if key not in self._pools.objections)
        return tuple(key for key in good if self._holds(key, asked))

    def _waits_in(self, case: _Case) -> Iterator[tuple[PoolKey, Order]]:
        """Yield the pools where it waits, with its place there: that of its copy, by when it was made."""
        workload, snapshot = case.workload, case.of.snapshot
        if not workload.nominated:
            return
        last = nominated_at(snapshot, workload)
        last_round = workload.nominated[-snapshot.policy.step_size :]
        for name in workload.nominated:
            key = self._pools.pool_of.get((name, queue_of(workload)))
            if key is not None and name in self._eligible[snapshot.name]:
                when = last if name in last_round else workload.quota_since or last
                yield key, (-workload.priority, (when - self._now).total_seconds(), workload.meta.uid)

    def _candidates(self, case: _Case) -> list[PoolKey]:
        """Return the pools to which it may be nominated, best first."""
        order, _ = self._ranking(case)
        pools = (self._pools.pool_of.get((name, queue_of(case.workload))) for name in order)
        return [key for key in dict.fromkeys(pools) if key and key not in self._pools.objections]

    def _ranking(self, case: _Case) -> tuple[tuple[str, ...], str]:
        """Return the clusters that fit it, best first, and why none fits; equal jobs share the answer."""
        workload, name = case.workload, case.of.snapshot.name
        key = name, workload.meta.namespace, workload.job, tuple(one.check for one in workload.check_states)
        if key not in self._ranked:
            fit, eligible = self._fits[name], self._eligible[name]
            fits = [one for one in fit.ranking(workload).order if one in eligible]
            order = tuple(one for one in fits if not fit.doubt(workload, one)) or tuple(fits)
            self._ranked[key] = order, "" if order else fit.problem(workload) or NO_CLUSTER
        return self._ranked[key]

    # -- objections

    def _objection(self, case: _Case) -> str:
        """Return why the start of a job that waits cannot be known; "" if it can."""
        workload, snapshot = case.workload, case.of.snapshot
        if not workload.active:
            return NOT_ACTIVE
        if not snapshot.policy.dispatcher:
            return KUEUE_DECIDES
        return self._of_placement(case) or self._of_hub(workload) or self._of_clusters(case)

    def _of_placement(self, case: _Case) -> str:
        workload, snapshot = case.workload, case.of.snapshot
        if self._paused[snapshot.name]:
            return NO_CLUSTER
        if gate := case.of.targets.drain.gate_message:
            return f"it waits: {gate}"
        ours = {check.meta.name for check in (*snapshot.checks.ours, *snapshot.checks.multikueue)}
        others = (one for one in workload.check_states if one.check not in ours and one.state != READY)
        return next((OTHER_CHECK.format(check=one.check, state=one.state) for one in others), "")

    def _of_hub(self, workload: Workload) -> str:
        if workload.has_quota:
            return ""
        if self._hub is None:
            return HUB_UNKNOWN
        facts = self._hub.get(queue_of(workload))
        if facts is None or not facts.exists:
            return NO_HUB_QUEUE
        queue = f"ClusterQueue {facts.cluster_queue} of the hub"
        if why := objection(facts, queue):
            return why
        if facts.preempts and workload.priority < self._highest:
            return PREEMPTION.format(queue=queue)
        return "" if self._holds(("", facts.cluster_queue), workload.job.requests) else TOO_LARGE

    def _of_clusters(self, case: _Case) -> str:
        workload, queue = case.workload, queue_of(case.workload)
        order, problem = self._ranking(case)
        if not order and not workload.nominated:
            return problem
        eligible = self._eligible[case.of.snapshot.name]
        names = [name for name in workload.nominated if name in eligible] or list(order)
        if not names:
            return LEAVING
        pools = {name: self._pools.pool_of.get((name, queue)) for name in names}
        if missing := sorted(name for name, key in pools.items() if key is None):
            return QUOTA_UNKNOWN.format(names=", ".join(missing[:3]))
        keys = [key for key in pools.values() if key is not None]
        if whys := [self._pools.objections[key] for key in keys if key in self._pools.objections]:
            return whys[0]
        for cluster, name in keys:
            if (cluster, name) in self._pools.preempting and workload.priority < self._highest:
                return PREEMPTION.format(queue=f"ClusterQueue {name} of cluster {cluster}")
        every = (*keys, *self._candidates(case))
        return "" if any(self._holds(key, workload.job.requests) for key in every) else TOO_LARGE

    def _holds(self, key: PoolKey, asked: Asked) -> bool:
        """Whether a ClusterQueue could ever have room for a job."""
        if key not in self._empty:
            self._empty[key] = Pool(self._pools.specs[key] if key[0] else self._hub_pools[key])
        return self._empty[key].holds(asked)
