"""Asks worker clusters beside the work, each question once at a time; the answer brings the key back."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine
from functools import partial

import structlog

from placement_ac.controller.key_memory import KeyMemories
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.inputs.fitness import Fitness
from placement_ac.core.inputs.state import Key, Plan, ProbeRequest, ProbeResult, Snapshot, WorkerCopies
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.observability.logs import LogDeduplicator

log = structlog.get_logger(__name__)

ReadCopies = Callable[[KueueObject], Awaitable[WorkerCopies]]
"""Asks the cluster behind a MultiKueueCluster for its copies; raises nothing."""
ProbeCluster = Callable[[CredentialSource, Collection[str]], Awaitable[Fitness]]
"""Asks the cluster behind a Source whether it is fit for what goes through these checks; raises nothing."""


class WorkerQueries:
    """The questions that are under way.

    `examine` None: no cluster is probed. `later(key, seconds)` brings a key back.
    """

    def __init__(
        self,
        memories: KeyMemories,
        ask: ReadCopies,
        examine: ProbeCluster | None,
        later: Callable[[Key, float], None],
    ) -> None:
        self._memories = memories
        self._ask = ask
        self._examine = examine
        self._later = later
        self._told = LogDeduplicator()
        self._asking: dict[tuple[Key, object], asyncio.Task[None]] = {}

    def ask(self, key: Key, seen: Snapshot, wanted: Plan) -> None:
        """Ask whatever `wanted` wants to know and nobody has asked yet."""
        for name in wanted.ask_for_copies:
            self._begin((key, name), self._ask_for_copies(key, name, seen.objects.clusters.get(name)))
        checks = [check.meta.name for check in (*seen.checks.ours, *seen.checks.multikueue)]
        for question in wanted.probe_requests:
            if self._examine:
                self._begin((key, question), self._probe(key, question, checks, self._examine))

    def cancel(self) -> list[asyncio.Task[None]]:
        """Ask nobody any more; returns what was under way."""
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        self._asking.clear()
        return tasks

    def _begin(self, what: tuple[Key, object], work: Coroutine[object, object, None]) -> None:
        if what in self._asking:
            work.close()
        else:
            task = self._asking[what] = asyncio.get_running_loop().create_task(work)
            task.add_done_callback(partial(self._ended, what))

    def _ended(self, what: tuple[Key, object], task: asyncio.Task[None]) -> None:
        """Let it be asked again, however it ended; unless all was cancelled and it is asked already."""
        if self._asking.get(what) is task:
            del self._asking[what]

    async def _probe(
        self, key: Key, question: ProbeRequest, checks: Collection[str], examine: ProbeCluster
    ) -> None:
        began = self._memories.now()
        fit = ProbeResult(await examine(question.source, checks), question.source, question.source.version)
        self._memories.for_answers(key).probes[question.cluster] = began, fit
        self._later(key, 0.0)

    async def _ask_for_copies(self, key: Key, name: str, cluster: KueueObject | None) -> None:
        began = self._memories.now()
        said = await self._ask(cluster) if cluster else WorkerCopies({}, "its MultiKueueCluster is not there")
        if said.problem:
            level = self._told.level(name, said.problem)
            log.log(level, "a cluster cannot be asked for its copies", cluster=name, error=said.problem)
        elif self._told.ended(name):
            log.info("a cluster can be asked for its copies again", cluster=name)
        self._memories.for_answers(key).copies[name] = began, said
        self._later(key, 0.0)
