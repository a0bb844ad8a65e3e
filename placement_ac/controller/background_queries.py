"""Queries worker clusters in tasks of their own, each query once at a time; an answer requeues the key."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine
from dataclasses import replace
from typing import Final

import structlog

from placement_ac.controller.key_state import KeyStates
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.inputs.fitness import Fitness
from placement_ac.core.inputs.job_facts import NO_NEEDS, JobNeeds
from placement_ac.core.inputs.queue_facts import WorkerFacts, WorkloadsThere
from placement_ac.core.inputs.state import Key, Plan, ProbeRequest, ProbeResult, Snapshot, WorkerCopies
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.core.plan.fact_questions import has_answered, not_asked_enough, workloads_on
from placement_ac.observability.logs import LogDeduplicator

log = structlog.get_logger(__name__)

ReadCopies = Callable[[KueueObject], Awaitable[WorkerCopies]]
"""Reads the copies on the cluster of a MultiKueueCluster; raises nothing."""
AskWorker = Callable[[str, float], Callable[[WorkerFacts], None]]
"""Called with a MultiKueueCluster, and when its worker is asked; returns the callback for the answer."""
"""Takes in the queues of a MultiKueueCluster's worker, when it was asked, and the Placement's Workloads of
then."""
ReadQueues = Callable[[KueueObject, JobNeeds], Awaitable[WorkerFacts]]
"""Reads the queues of the cluster of a MultiKueueCluster, and what it has of jobs' needs; raises nothing."""
ProbeCluster = Callable[[CredentialSource, Collection[str]], Awaitable[Fitness]]
"""Probes whether the cluster of a CredentialSource is fit for the jobs of these checks; raises nothing."""

QUEUES: Final = "queues"
ANSWERS_SECONDS: Final = 0.25
"""Answers for which nothing waits are taken in together: one plan for all workers, not one for each."""
READING: Final = {
    "copies": ("cannot read a cluster's copies", "reading a cluster's copies works again"),
    "queues": ("cannot read a cluster's queues", "reading a cluster's queues works again"),
}
"""The log messages about what is read."""


class BackgroundQueries:
    """The running queries.

    `read_queues` None: no cluster is asked for its queues. `probe` None: no cluster is probed.
    `add_after(key, seconds)` requeues a key; `ask_worker` also gets the queues (None: nobody does).
    """

    def __init__(
        self,
        states: KeyStates,
        read_copies: ReadCopies,
        read_queues: ReadQueues | None,
        probe: ProbeCluster | None,
        add_after: Callable[[Key, float], None],
        ask_worker: AskWorker | None = None,
    ) -> None:
        self._ask_worker = ask_worker
        self._states = states
        self._read_copies = read_copies
        self._read_queues = read_queues
        self._probe = probe
        self._add_after = add_after
        self._logged = LogDeduplicator()
        self._tasks: dict[tuple[Key, object], asyncio.Task[None]] = {}

    def start(self, key: Key, snapshot: Snapshot, wanted: Plan) -> None:
        """Start the queries that `wanted` asks for, unless they are running."""
        for name in wanted.ask_for_copies:
            self._start((key, name), self._query_copies(key, name, snapshot.objects.clusters.get(name)))
        if self._read_queues and wanted.ask_for_facts:
            names = [fact for fact in wanted.ask_for_facts if (key, (QUEUES, fact)) not in self._tasks]
            there = workloads_on(snapshot, names)
            needs = next(iter(there.values())).needs if there else NO_NEEDS
            more = not_asked_enough(snapshot, needs) if there else frozenset()
            for name, then in there.items():
                cluster = snapshot.objects.clusters[name]
                is_late = has_answered(snapshot, name) and name not in more
                query = self._query_queues(
                    key,
                    cluster,
                    then,
                    self._read_queues,
                    ANSWERS_SECONDS if is_late else 0.0,
                )
                self._start((key, (QUEUES, name)), query)
        checks = [check.meta.name for check in (*snapshot.checks.ours, *snapshot.checks.multikueue)]
        if self._probe:
            for request in wanted.probe_requests:
                self._start((key, request), self._query_fitness(key, request, checks, self._probe))

    def cancel(self) -> list[asyncio.Task[None]]:
        """Cancel and return the running queries."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        self._tasks.clear()
        return tasks

    def _start(self, query: tuple[Key, object], work: Coroutine[object, object, None]) -> None:
        if query in self._tasks:
            work.close()
            return

        def ended(task: asyncio.Task[None]) -> None:
            if self._tasks.get(query) is task:  # not a later one, which was started after `cancel`
                del self._tasks[query]

        task = self._tasks[query] = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(ended)

    async def _query_fitness(
        self, key: Key, request: ProbeRequest, checks: Collection[str], probe: ProbeCluster
    ) -> None:
        began = self._states.now()
        fitness = await probe(request.source, checks)
        probes = self._states.of(key).probes
        probes[request.cluster] = began, ProbeResult(fitness, request.source, request.source.version)
        self._add_after(key, 0.0)

    async def _query_copies(self, key: Key, name: str, cluster: KueueObject | None) -> None:
        began = self._states.now()
        if cluster:
            copies = await self._read_copies(cluster)
        else:
            copies = WorkerCopies({}, "its MultiKueueCluster is not there")
        self._log_problem("copies", name, copies.problem)
        self._states.of(key).copies[name] = began, copies
        self._add_after(key, 0.0)

    async def _query_queues(
        self,
        key: Key,
        cluster: KueueObject,
        then: WorkloadsThere,
        read_queues: ReadQueues,
        late: float,
    ) -> None:
        began, name = self._states.now(), cluster.meta.name
        take = self._ask_worker(name, began) if self._ask_worker else None
        queues = replace(await read_queues(cluster, then.needs), then=then)
        if queues.problem and name in (before := self._states.of(key).queues):
            queues = replace(queues, queues=before[name][1].queues)  # a CapacityProvider's sum stays
        self._log_problem("queues", name, queues.problem)
        self._states.of(key).queues[name] = began, queues
        if take:
            take(queues)
        self._add_after(key, late)

    def _log_problem(self, what: str, name: str, problem: str) -> None:
        """Log a problem once while it stays the same, and once more when it is over."""
        failing, works_again = READING[what]
        if problem:
            log.log(self._logged.level((what, name), problem), failing, cluster=name, error=problem)
        elif self._logged.ended((what, name)):
            log.info(works_again, cluster=name)
