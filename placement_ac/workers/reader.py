"""
Reads objects of workers with the credentials that Kueue uses, and turns whatever goes wrong into a problem.

No connection is kept open. A problem is in words for an admin; neither it nor a log line quotes content of a
Secret, a plugin or a worker. A worker that does not answer delays no other.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import ClassVar, Final, Generic, Self, TypeVar

import structlog
from cachetools import TTLCache

from placement_ac.core.api.constants import Kind, Resource
from placement_ac.core.api.errors import ApiError, error_place
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.kube.client import PAGE_SIZE, Client, Listing
from placement_ac.observability.logs import LogDeduplicator
from placement_ac.workers.connector import (
    MAX_CACHED,
    MAX_TOTAL_BYTES,
    HubForbidden,
    Version,
    WorkerConnector,
    WorkerError,
    WorkerLogin,
    WorkerTimeout,
    source_of,
)
from placement_ac.workers.limiter import ProbeLimiter

log = structlog.get_logger(__name__)
T = TypeVar("T")
ReadObjects = Callable[[Client, WorkerLogin, Sequence[Resource]], Awaitable[T]]
"""Returns what is to be read of a worker, as `WorkerReader.read_objects`."""

DISCOVERY_SECONDS: Final = 600.0
"""How long the versions in which a worker serves the kinds are cached."""


class Problem(str):
    """Why a worker could not be read, or what is wrong with its answer; it begins with the worker's name."""

    why: str
    """The same without the name of its MultiKueueCluster."""

    def __new__(cls, name: str, why: str) -> Self:
        problem = super().__new__(cls, f"MultiKueueCluster {name}: {why}")
        problem.why = why
        return problem


class Silence(Problem):
    """The worker did not answer in time."""


class HubRefusal(Problem):
    """The hub does not let us read the credentials."""


class WorkerReader(ABC, Generic[T]):
    """Reads workers, each within the timeout of `connector`, `parallel` at once."""

    kinds: ClassVar[tuple[Kind, ...]]
    """The kinds that are read; a worker that does not serve them has no Kueue."""
    permission: ClassVar[str]
    """The permission that the account needs on a worker."""
    total_bytes: ClassVar[int] = MAX_TOTAL_BYTES
    too_deep: ClassVar[str]
    """The problem of an object that is nested too deeply, with {} for its kind: it is not absent."""

    def __init__(self, connector: WorkerConnector, *, parallel: int = 8) -> None:
        self.connector = connector
        self.limiter = ProbeLimiter(parallel)
        self._logged = LogDeduplicator()
        self._served: TTLCache[Version, Sequence[Resource]] = TTLCache(MAX_CACHED, DISCOVERY_SECONDS)

    @abstractmethod
    async def read_objects(self, client: Client, login: WorkerLogin, resources: Sequence[Resource]) -> T:
        """Return what is to be read of a worker that serves `kinds`. Raises ApiError, WorkerError."""

    async def answer(self, cluster: KueueObject, read: ReadObjects[T] | None = None) -> T | Problem:
        """Return what the worker of a MultiKueueCluster has. Raises nothing but CancelledError.

        `read`: in place of `read_objects`.
        """
        return await self.answer_by(cluster.meta.name, lambda: source_of(cluster), read)

    async def answer_by(
        self, name: str, get_source: Callable[[], CredentialSource], read: ReadObjects[T] | None = None
    ) -> T | Problem:
        """Return the same of the worker whose credentials `get_source` names; `name` is for the log."""
        try:
            async with self.limiter.slot(name):
                deadline = self.connector.deadline()
                credential = await self.connector.get_credential(get_source(), deadline)
                login = await self.connector.login(credential, deadline)
                value = await self.connector.within(
                    deadline, self._query(login, read), "the worker did not answer"
                )
        except HubForbidden as why:
            return HubRefusal(name, str(why))
        except WorkerTimeout as why:
            return Silence(name, str(why))
        except WorkerError as why:
            return Problem(name, str(why))
        except Exception as error:  # a worker may answer anything, and must not stop the others
            place = error_place(error)
            level = self._logged.level(name, place, logging.ERROR)
            log.log(level, "asking a worker failed", name=name, error=place)
            return Problem(name, f"unexpected {type(error).__name__}")
        self._logged.ended(name)
        return value

    async def _query(self, login: WorkerLogin, read: ReadObjects[T] | None) -> T:
        try:
            async with self.connector.client(login, self.total_bytes) as client:
                resources = await self._resources(client, login)
                return await (read or self.read_objects)(client, login, resources)
        except ApiError as error:
            if error.status == 404:  # what it serves may have changed
                self._served.pop(login.version, None)
            raise self.problem(error, login) from None

    async def _resources(self, client: Client, login: WorkerLogin) -> Sequence[Resource]:
        known = self._served.get(login.version)
        if known is None:
            served = await client.discover(self.kinds)
            if len(served) < len(self.kinds):
                names = " and ".join(f"{kind.kind}s" for kind in self.kinds)
                raise WorkerError(f"the worker serves no {names}: is Kueue installed there?")
            known = self._served[login.version] = tuple(served.values())
        return known

    def problem(self, error: ApiError, login: WorkerLogin) -> WorkerError:
        """Return an error of the worker in our own words."""
        return self.connector.problem(error, login, self.permission)

    async def pages(
        self, client: Client, resource: Resource, label_selector: str = ""
    ) -> AsyncGenerator[Listing]:
        """Yield the pages of a list. Raises ApiError, WorkerError."""
        kind = resource.of.kind
        async for page in client.pages(resource, limit=PAGE_SIZE, label_selector=label_selector):
            if page.kind != f"{kind}List":  # another server knows of none
                raise WorkerError(f"what the worker answered is no list of {kind}s")
            if page.skipped:
                raise WorkerError(self.too_deep.format(kind))
            yield page
            del page  # two pages at a time would take twice the memory
