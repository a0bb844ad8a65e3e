"""
Ask workers whether they are fit to be one: before they are listed, so by a Secret or ClusterProfile alone.

Whatever goes wrong is an answer, in words for an admin. Answers are remembered for a while, and a worker
that does not answer keeps no other waiting.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final
from weakref import WeakValueDictionary

import structlog
from cachetools import TLRUCache

from placement_ac.core.api.errors import ApiError
from placement_ac.core.inputs import fitness
from placement_ac.core.inputs.fitness import Fitness, Queues, Unknown, WorkerQueues, WorkerRequirements
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.kube.client import Client
from placement_ac.observability.logs import LogDeduplicator, error_place
from placement_ac.workers.connector import (
    MAX_CACHED,
    CredentialObject,
    Version,
    WorkerConnector,
    WorkerError,
    WorkerLogin,
    WorkerTimeout,
    worker_error_text,
)
from placement_ac.workers.limiter import ProbeLimiter
from placement_ac.workers.queries import WorkerQueries

log = structlog.get_logger(__name__)

GOOD_SECONDS: Final = 600.0
"""How long it is believed that a worker is fit and lacks nothing."""
BAD_SECONDS: Final = 30.0
"""How long it is believed that it is not, or lacks something."""
SLOT_FRACTION: Final = 1 / 5
"""The part of the timeout after which a worker that has not answered lets others begin."""

_QueuesKey = tuple[Version, frozenset[tuple[str, frozenset[str]]]]


class Probe:
    """Asks workers whether they meet `requirements`, each within the timeout of `connector`.

    `parallel`: how many are begun with at once. `kueue_namespace`: where Kueue runs on the workers.
    """

    def __init__(
        self,
        connector: WorkerConnector,
        requirements: WorkerRequirements,
        *,
        parallel: int = 8,
        kueue_namespace: str = "kueue-system",
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._connector = connector
        self._requirements = requirements
        self._kueue_namespace = kueue_namespace
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
        except WorkerError as why:  # the hub does not have it: that may change without a new version
            return self._unfit(str(why))

    def _unfit(self, why: str) -> Fitness:
        return Fitness(problems=(why,), asked_at=self._clock())

    def _cached(self, credential: CredentialObject, queues: Queues) -> Fitness | None:
        fit = self._fitness.get(credential.version)
        if fit is None or fit.problems or not queues:
            return fit
        return self._fitness_with_queues.get(_queues_key(credential, queues))

    async def _ask_once(
        self, source: CredentialSource, credential: CredentialObject, queues: Queues
    ) -> Fitness:
        asking = self._locks.setdefault(credential.version, asyncio.Lock())
        try:
            async with asking, self._limiter.slot(source):
                known = self._cached(credential, queues)  # by somebody who asked while this one waited
                fit = known or await self._query(credential, queues)
        except WorkerError as why:
            unfit = self._unfit(str(why))
        except Exception as error:  # a worker may answer anything, and must not stop the others by it
            place = error_place(error)
            level = self._logged.level(source, place, logging.ERROR)
            log.log(level, "asking a worker failed", name=source.name, error=place)
            unfit = self._unfit(
                f"what the worker of {credential.described_as} answered has another shape than Kubernetes'"
            )
        else:
            self._logged.ended(source)
            return fit
        self._fitness[credential.version] = unfit
        return unfit

    async def _query(self, credential: CredentialObject, queues: Queues) -> Fitness:
        deadline = self._connector.deadline()
        login = await self._connector.login(credential, deadline)
        async with Client(login.login, timeout=2 * self._connector.timeout) as client:
            queries = WorkerQueries(client, login.described_as)
            fit = self._fitness.get(credential.version)
            if fit is None:
                fit = self._fitness[credential.version] = await self._evaluate(queries, login, deadline)
            if fit.problems or not queues:
                return fit
            whole = fitness.with_queues(fit, await self._worker_queues(queries, login, deadline), queues)
        self._fitness_with_queues[_queues_key(credential, queues)] = whole
        return whole

    async def _evaluate(self, queries: WorkerQueries, login: WorkerLogin, deadline: float) -> Fitness:
        late = "the worker did not answer all that it was asked"
        try:
            asking = queries.findings(self._requirements, self._kueue_namespace)
            found = await self._connector.within(deadline, asking, late)
        except ApiError as error:
            if error.status == 401:
                self._connector.drop_credentials(login)
            raise WorkerError(worker_error_text(error, login.described_as, "in")) from None
        return replace(fitness.evaluate(found, self._requirements), asked_at=self._clock())

    async def _worker_queues(
        self, queries: WorkerQueries, login: WorkerLogin, deadline: float
    ) -> WorkerQueues:
        """Return what there is on the worker; none is unfit because it does not tell."""
        try:
            return await self._connector.within(deadline, queries.queues(), "the worker did not tell")
        except WorkerTimeout as why:
            unknown = Unknown(str(why))
        except ApiError as error:
            unknown = Unknown(worker_error_text(error, login.described_as, "in"))
        return WorkerQueues(unknown, unknown)


def _queues_key(credential: CredentialObject, queues: Queues) -> _QueuesKey:
    return credential.version, frozenset(queues.items())


def _valid_until(_: object, fit: Fitness, now: float) -> float:
    return now + (BAD_SECONDS if fit.problems or fit.warnings else GOOD_SECONDS)
