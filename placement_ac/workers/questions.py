"""
Put a question to a worker with the credentials that Kueue uses, and turn whatever goes wrong into a problem.

No connection is kept open. A problem is in words for an admin; neither it nor a log line quotes content of a
Secret, a plugin or a worker. A worker that does not answer delays no other.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Self, TypeVar

import structlog

from placement_ac.core.api.errors import error_place
from placement_ac.core.api.objects import KueueObject
from placement_ac.observability.logs import LogDeduplicator
from placement_ac.workers.connector import (
    HubForbidden,
    WorkerConnector,
    WorkerError,
    WorkerLogin,
    source_of,
)
from placement_ac.workers.limiter import ProbeLimiter

log = structlog.get_logger(__name__)
T = TypeVar("T")


class Problem(str):
    """Why a worker could not be asked, or what is wrong with its answer; it begins with the worker's name."""

    why: str
    """The same without the name of its MultiKueueCluster."""

    def __new__(cls, name: str, why: str) -> Self:
        problem = super().__new__(cls, f"MultiKueueCluster {name}: {why}")
        problem.why = why
        return problem


class HubRefusal(Problem):
    """The hub does not let us read the credentials."""


class WorkerQuestions:
    """Asks workers, each within the timeout of `connector`, `parallel` at once."""

    def __init__(self, connector: WorkerConnector, parallel: int) -> None:
        self._connector = connector
        self.limiter = ProbeLimiter(parallel)
        self._logged = LogDeduplicator()

    async def ask(self, cluster: KueueObject, read: Callable[[WorkerLogin], Awaitable[T]]) -> T | Problem:
        """Return what `read` returns for the worker of a MultiKueueCluster. Raises only CancelledError."""
        name = cluster.meta.name
        try:
            async with self.limiter.slot(name):
                answer = await self._within_deadline(cluster, read)
        except HubForbidden as why:
            return HubRefusal(name, str(why))
        except WorkerError as why:
            return Problem(name, str(why))
        except Exception as error:  # a worker may answer anything, and must not stop the others
            place = error_place(error)
            level = self._logged.level(name, place, logging.ERROR)
            log.log(level, "asking a worker failed", name=name, error=place)
            return Problem(name, f"unexpected {type(error).__name__}")
        self._logged.ended(name)
        return answer

    async def _within_deadline(self, cluster: KueueObject, read: Callable[[WorkerLogin], Awaitable[T]]) -> T:
        deadline = self._connector.deadline()
        credential = await self._connector.get_credential(source_of(cluster), deadline)
        login = await self._connector.login(credential, deadline)
        return await self._connector.within(deadline, read(login), "the worker did not answer")
