"""
Leader election on a Lease: of several processes one writes, and the others keep a warm world.

Every write passes `left`, the gate: it goes by a clock that goes on while the process is stopped, and so a
leader that wakes up late writes nothing, whatever it has found out by then. Speaks to the API server by a
client of its own, so that no burst of writes holds up a renewal. What is thought is in `election`.
"""

import asyncio
import socket
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import Final

import structlog

from placement_ac.core.api.constants import LEASE
from placement_ac.core.api.errors import ApiError, Conflict, NotFound, NotLeading
from placement_ac.core.leader_election import LeaderElection, LeaseDurations
from placement_ac.kube.client import Client, Object, RequestObserver
from placement_ac.kube.login import Login
from placement_ac.observability.logs import error_place

log = structlog.get_logger(__name__)

AWAY_SECONDS: Final = 0.5
"""The longest pause while the API server does not answer: then the next one may be the first that it does."""
RELEASE_SECONDS: Final = 3.0
"""How long a stop may be held up to give the Lease up; it ends by itself as well."""
CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock that nobody sets, and that goes on while the machine sleeps, where the system has one."""


class Lease:
    """Takes part in the election; `changed` is told when the lead is taken or lost."""

    def __init__(
        self,
        login: Login,
        pace: LeaseDurations,
        *,
        namespace: str,
        name: str,
        changed: Callable[[bool], None],
        answered: RequestObserver = lambda *_: None,
    ) -> None:
        self._login = login
        self._answered = answered
        self._pace = pace
        self._namespace, self._name = namespace, name
        self._resource = LEASE._replace(only=name).at("v1")
        self._changed = changed
        me = f"{socket.gethostname()}_{uuid.uuid4()}"
        self._election = LeaderElection(me, pace, namespace=namespace, name=name)
        self._leading = False
        """What has been told."""
        self._holder = ""
        self._current = False
        """Whether the Lease is still known to be what was seen last."""
        self._failing = False
        self._away = False
        """Whether the API server did not answer the last request."""
        self._woken = asyncio.Event()

    @property
    def leading(self) -> bool:
        return self._election.leads(_now())

    def left(self) -> float:
        """Return for how many seconds from now a write may go on. Raises NotLeading."""
        now = _now()
        if not self._election.leads(now):
            raise NotLeading("another one leads, or nobody is known to")
        return self._election.ends() - now

    @asynccontextmanager
    async def sought(self) -> AsyncIterator[None]:
        """Take part while the `with` lasts, then give the lead up: every write has to be done by then."""
        # Half of the time that is left to renew it: a request that hangs leaves room for another.
        async with Client(self._login, timeout=self._pace.renew / 2, on_request_end=self._answered) as client:
            tasks = [asyncio.create_task(part) for part in (self._elect(client), self._listen(client))]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                await self._give_up(client)

    async def _elect(self, client: Client) -> None:
        while True:
            try:
                pause = await self._turn(client)
            except Exception as error:  # whatever those who are told make of it: the election goes on
                log.error("who was told of the lead failed", error=error_place(error))  # noqa: TRY400  it would quote
                pause = self._pace.retry
            try:
                async with asyncio.timeout(pause):  # not wait_for: kopf would take its task for its own
                    await self._woken.wait()
            except TimeoutError:
                pass  # the usual case: nobody has touched the Lease
            self._woken.clear()

    async def _turn(self, client: Client) -> float:
        """Look, and write what is to be written; return how long to wait, in seconds."""
        now = _now()
        until = self._election.leads_until() - now if self._election.leads(now) else None
        self._away = False
        try:
            async with asyncio.timeout(until):
                await self._look(client)
            if self._failing:
                log.info("the Lease can be read and written again")
            self._failing = False
        except TimeoutError:
            self._current = False  # leading has ended with the request under way
        except ApiError as error:
            self._away = not error.status
            self._fail(error.message)
        except Exception as error:  # whatever it is: who leads no more must go on to stand by
            self._fail(error_place(error))
        self._tell()
        return self._pause()

    async def _look(self, client: Client) -> None:
        try:
            await self._look_once(client)
        except (Conflict, NotFound):  # somebody else has been there
            self._current = False
            await self._look_once(client)

    async def _look_once(self, client: Client) -> None:
        self._tell()  # the end of one term, before another one may begin
        if not (self._current and self.leading):
            self._election.saw(await self._get(client), _now())
            self._current = True
        claim = self._election.claim(_now(), _utc())
        if claim is not None:
            began = _now()
            self._election.wrote(await client.put(self._resource, claim), began)

    async def _get(self, client: Client) -> Object | None:
        try:
            return await client.get(self._resource, self._name, self._namespace)
        except NotFound:
            return None

    def _fail(self, told: str) -> None:
        self._current = False
        if not self._failing:
            self._failing = True
            log.warning("the Lease cannot be read or written; trying again", error=told)

    def _pause(self) -> float:
        now, retry = _now(), self._pace.retry
        if self._away:
            retry = min(retry, AWAY_SECONDS)
        if self._election.leads(now):
            return min(retry, self._election.leads_until() - now)
        free_in = self._election.free_in(now)
        return min(retry, free_in) if free_in else retry

    def _tell(self) -> None:
        leading, holder = self.leading, self._election.holder
        if leading != self._leading:
            self._leading = leading
            log.info("leading") if leading else log.warning("lost the lead", holder=holder)
            self._changed(leading)
        if holder != self._holder:
            self._holder = holder
            if holder and not leading:
                log.info("standing by", holder=holder)

    async def _listen(self, client: Client) -> None:
        """Have the Lease looked at as soon as it changes; a watch may fail, as it is looked at anyway."""
        while True:
            try:
                watch = client.watch(self._resource, "", namespace=self._namespace)
                async with aclosing(watch) as events:
                    async for change, lease in events:
                        if self._election.is_news(change, lease):
                            self._current = False
                            self._woken.set()
            except ApiError as error:
                log.debug("cannot watch the Lease; trying again", error=error.message)
            await asyncio.sleep(self._pace.retry)

    async def _give_up(self, client: Client) -> None:
        self._election.let_go()
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                await self._release(client)
        except (ApiError, TimeoutError) as error:
            log.info("the lead could not be given up; it ends by itself", error=error_place(error))

    async def _release(self, client: Client) -> None:
        released = self._election.release(_utc())
        try:
            if released:
                await client.put(self._resource, released)
                log.info("gave the lead up")
        except (Conflict, NotFound):  # a renewal may have been cut short, and been carried out
            self._election.saw(await self._get(client), _now())
            if released := self._election.release(_utc()):
                await client.put(self._resource, released)
                log.info("gave the lead up")


def _now() -> float:
    return time.clock_gettime(CLOCK)


def _utc() -> datetime:
    return datetime.now(UTC)
