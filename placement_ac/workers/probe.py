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
    CACHED,
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
PATIENCE: Final = 1 / 5
"""The part of the timeout after which a worker that has not answered lets others begin."""

_Asked = tuple[Version, frozenset[tuple[str, frozenset[str]]]]


class Probe:
    """Asks workers whether they meet `needs`, each within the timeout of `entrance`.

    `parallel`: how many are begun with at once. `kueue_namespace`: where Kueue runs on the workers.
    """

    def __init__(
        self,
        entrance: WorkerConnector,
        needs: WorkerRequirements,
        *,
        parallel: int = 8,
        kueue_namespace: str = "kueue-system",
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._entrance = entrance
        self._needs = needs
        self._kueue_namespace = kueue_namespace
        self._clock = clock
        self._lanes = ProbeLimiter(parallel, patience=entrance.timeout * PATIENCE)
        self._asking: WeakValueDictionary[Version, asyncio.Lock] = WeakValueDictionary()
        self._unexpected = LogDeduplicator()
        self._known: TLRUCache[Version, Fitness] = TLRUCache(CACHED, _believed_until)
        self._placed: TLRUCache[_Asked, Fitness] = TLRUCache(CACHED, _believed_until)

    async def ask(self, source: CredentialSource, queues: Queues) -> Fitness:
        """Return how fit the worker of `source` is for jobs from this hub's LocalQueues `queues`.

        Raises nothing but CancelledError.
        """
        try:
            door = await self._entrance.find(source, self._entrance.deadline())
            return self._remembered(door, queues) or await self._asked(source, door, queues)
        except WorkerError as why:  # the hub does not have it: that may change without a new version
            return self._unfit(str(why))

    def _unfit(self, why: str) -> Fitness:
        return Fitness(problems=(why,), asked_at=self._clock())

    def _remembered(self, door: CredentialObject, queues: Queues) -> Fitness | None:
        fit = self._known.get(door.version)
        if fit is None or fit.problems or not queues:
            return fit
        return self._placed.get(_key(door, queues))

    async def _asked(self, source: CredentialSource, door: CredentialObject, queues: Queues) -> Fitness:
        asking = self._asking.setdefault(door.version, asyncio.Lock())
        try:
            async with asking, self._lanes.place(source):
                known = self._remembered(door, queues)  # by somebody who asked while this one waited
                fit = known or await self._told(door, queues)
        except WorkerError as why:
            unfit = self._unfit(str(why))
        except Exception as error:  # a worker may answer anything, and must not stop the others by it
            place = error_place(error)
            level = self._unexpected.level(source, place, logging.ERROR)
            log.log(level, "asking a worker failed", name=source.name, error=place)
            unfit = self._unfit(
                f"what the worker of {door.described_as} answered has another shape than Kubernetes'"
            )
        else:
            self._unexpected.ended(source)
            return fit
        self._known[door.version] = unfit
        return unfit

    async def _told(self, door: CredentialObject, queues: Queues) -> Fitness:
        deadline = self._entrance.deadline()
        way = await self._entrance.login(door, deadline)
        async with Client(way.login, timeout=2 * self._entrance.timeout) as client:
            ask = WorkerQueries(client, way.described_as)
            fit = self._known.get(door.version)
            if fit is None:
                fit = self._known[door.version] = await self._judged(ask, way, deadline)
            if fit.problems or not queues:
                return fit
            whole = fitness.with_queues(fit, await self._places(ask, way, deadline), queues)
        self._placed[_key(door, queues)] = whole
        return whole

    async def _judged(self, ask: WorkerQueries, way: WorkerLogin, deadline: float) -> Fitness:
        late = "the worker did not answer all that it was asked"
        try:
            asking = ask.findings(self._needs, self._kueue_namespace)
            found = await self._entrance.within(deadline, asking, late)
        except ApiError as error:
            if error.status == 401:
                self._entrance.refused(way)
            raise WorkerError(worker_error_text(error, way.described_as, "in")) from None
        return replace(fitness.evaluate(found, self._needs), asked_at=self._clock())

    async def _places(self, ask: WorkerQueries, way: WorkerLogin, deadline: float) -> WorkerQueues:
        """Return what there is on the worker; none is unfit because it does not tell."""
        try:
            return await self._entrance.within(deadline, ask.queues(), "the worker did not tell")
        except WorkerTimeout as why:
            unknown = Unknown(str(why))
        except ApiError as error:
            unknown = Unknown(worker_error_text(error, way.described_as, "in"))
        return WorkerQueues(unknown, unknown)


def _key(door: CredentialObject, queues: Queues) -> _Asked:
    return door.version, frozenset(queues.items())


def _believed_until(_: object, fit: Fitness, now: float) -> float:
    return now + (BAD_SECONDS if fit.problems or fit.warnings else GOOD_SECONDS)
