"""
Probe whether workers are fit, before they are listed: with their Secret or ClusterProfile alone.

An error becomes a problem of the `Fitness`, in words for an admin. Results are cached, and a worker that does
not answer delays no other.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final
from weakref import WeakValueDictionary

import structlog
from cachetools import TLRUCache

from placement_ac.core.api.errors import ApiError, error_place
from placement_ac.core.inputs import fitness
from placement_ac.core.inputs.fitness import Fitness, Queues, Unknown, WorkerQueues, WorkerRequirements
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.core.selection.probe_schedule import valid_for
from placement_ac.observability.logs import LogDeduplicator
from placement_ac.workers.connector import (
    MAX_CACHED,
    CredentialObject,
    Version,
    WorkerConnector,
    WorkerError,
    WorkerLogin,
    WorkerTimeout,
)
from placement_ac.workers.limiter import ProbeLimiter
from placement_ac.workers.queries import HubLocalQueues, WorkerQueries

log = structlog.get_logger(__name__)

WORKER_KUEUE_NAMESPACE: Final = "kueue-system"
SLOT_FRACTION: Final = 1 / 5
"""The part of the timeout after which a worker that has not answered frees its slot for another."""

_QueuesKey = tuple[Version, frozenset[tuple[str, frozenset[str]]]]


class Probe:
    """Probes whether workers meet `requirements` within the timeout of `connector`, in `parallel` slots."""

    def __init__(
        self,
        connector: WorkerConnector,
        requirements: WorkerRequirements,
        *,
        parallel: int = 8,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._connector = connector
        self._requirements = requirements
        self._clock = clock
        self._limiter = ProbeLimiter(parallel, slot_seconds=connector.timeout * SLOT_FRACTION)
        self._locks: WeakValueDictionary[Version, asyncio.Lock] = WeakValueDictionary()
        self._logged = LogDeduplicator()
        self._fitness: TLRUCache[Version, Fitness] = TLRUCache(MAX_CACHED, _valid_until)
        self._fitness_with_queues: TLRUCache[_QueuesKey, Fitness] = TLRUCache(MAX_CACHED, _valid_until)

    async def ask(self, source: CredentialSource, queues: Queues) -> Fitness:
        """Return how fit the worker of `source` is for jobs from this hub's LocalQueues `queues`.

        Raises nothing but CancelledError.
        """
        try:
            credential = await self._connector.get_credential(source, self._connector.deadline())
            return self._cached(credential, queues) or await self._ask_once(source, credential, queues)
        except WorkerError as why:  # the hub did not return it: that may change without a new version
            return self._unfit(str(why))

    def _unfit(self, why: str) -> Fitness:
        return Fitness(problems=(why,), asked_at=self._clock())

    def _cached(self, credential: CredentialObject, queues: Queues) -> Fitness | None:
        known = self._fitness.get(credential.version)
        if known is None or known.problems or not queues:
            return known
        return self._fitness_with_queues.get(_queues_key(credential, queues))

    async def _ask_once(
        self, source: CredentialSource, credential: CredentialObject, queues: Queues
    ) -> Fitness:
        lock = self._locks.setdefault(credential.version, asyncio.Lock())
        try:
            async with lock, self._limiter.slot(source):
                cached = self._cached(credential, queues)  # by another call, while this one waited
                result = cached or await self._query(credential, queues)
        except WorkerError as why:
            unfit = self._unfit(str(why))
        except Exception as error:  # a worker may answer anything, and must not stop the others
            place = error_place(error)
            level = self._logged.level(source, place, logging.ERROR)
            log.log(level, "asking a worker failed", name=source.name, error=place)
            unfit = self._unfit(
                f"what the worker of {credential.described_as} answered has another shape than Kubernetes'"
            )
        else:
            self._logged.ended(source)
            return result
        self._fitness[credential.version] = unfit
        return unfit

    async def _query(self, credential: CredentialObject, queues: Queues) -> Fitness:
        deadline = self._connector.deadline()
        login = await self._connector.login(credential, deadline)
        async with self._connector.client(login) as client:
            queries = WorkerQueries(client, login.described_as)
            result = self._fitness.get(credential.version)
            if result is None:
                result = self._fitness[credential.version] = await self._evaluate(queries, login, deadline)
            if result.problems or not queues:
                return result
            result = fitness.with_queues(result, await self._worker_queues(queries, login, deadline), queues)
        self._fitness_with_queues[_queues_key(credential, queues)] = result
        return result

    async def _evaluate(self, queries: WorkerQueries, login: WorkerLogin, deadline: float) -> Fitness:
        findings = queries.findings(self._requirements, WORKER_KUEUE_NAMESPACE)
        try:
            answer = await self._connector.within(
                deadline, findings, "the worker did not answer all that it was asked"
            )
        except ApiError as error:
            raise self._connector.problem(error, login, "in") from None
        return replace(fitness.evaluate(answer, self._requirements), asked_at=self._clock())

    async def _worker_queues(
        self, queries: WorkerQueries, login: WorkerLogin, deadline: float
    ) -> WorkerQueues:
        """Return what there is on the worker; no worker is unfit because its queues cannot be read."""
        try:
            return await self._connector.within(deadline, queries.queues(), "the worker did not answer")
        except WorkerTimeout as why:
            unknown = Unknown(str(why))
        except ApiError as error:
            unknown = Unknown(str(self._connector.problem(error, login, "in")))
        return WorkerQueues(unknown, unknown)


async def probe_checks(
    probe: Probe, queues: HubLocalQueues, source: CredentialSource, checks: Collection[str]
) -> Fitness:
    """Return how fit the worker of `source` is for the jobs that go through these checks."""
    return await probe.ask(source, await queues.for_checks(checks))


def _queues_key(credential: CredentialObject, queues: Queues) -> _QueuesKey:
    return credential.version, frozenset(queues.items())


def _valid_until(_: object, result: Fitness, now: float) -> float:
    return now + valid_for(result)
