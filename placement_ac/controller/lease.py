"""
Leader election on a Lease: one replica writes, the others keep their caches filled.

Every write calls `write_timeout` first. Its clock runs while the process is stopped, so that a leader that
resumes late writes nothing. The Lease has a client of its own, so that no burst of writes delays a renewal.
The rules of the election are in `core.leader_election`.
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

from placement_ac.core.api.constants import EVENT, LEASE
from placement_ac.core.api.errors import ApiError, Conflict, NotFound, NotLeading, error_place
from placement_ac.core.leader_election import LeaderElection, LeaseDurations, Marks
from placement_ac.kube.client import Client, Object, RequestObserver
from placement_ac.kube.login import Login

log = structlog.get_logger(__name__)

UNREACHABLE_RETRY_SECONDS: Final = 0.5
"""The longest pause while the API server does not answer."""
RELEASE_SECONDS: Final = 1.0
"""The most time that releasing the Lease may take at a stop; otherwise it expires."""
CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A monotonic clock that runs while the machine sleeps, where the system has one."""


class Lease:
    """Takes part in the election; `on_change` is called when leading starts or stops.

    `marks` returns the labels and annotations of the Lease while this process holds it.
    """

    def __init__(
        self,
        login: Login,
        durations: LeaseDurations,
        *,
        namespace: str,
        name: str,
        on_change: Callable[[bool], None],
        marks: Marks = dict,
        request_observer: RequestObserver = lambda *_: None,
    ) -> None:
        self._login = login
        self._request_observer = request_observer
        self._durations = durations
        self._namespace, self._name = namespace, name
        self._resource = LEASE._replace(only=name).at("v1")
        self._on_change = on_change
        identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        self._election = LeaderElection(
            identity, durations, namespace=namespace, name=name, began=_now(), marks=marks
        )
        self._reported_leading = False
        """Whether this process leads, as it was last reported."""
        self._reported_holder = ""
        self._up_to_date = False
        """Whether the Lease has not changed since it was last read."""
        self._failure = ""
        """Why the Lease cannot be read or written; "": it can."""
        self._unreachable = False
        """Whether the API server did not answer the last request."""
        self._retry_after = 0.0
        """How long the API server asked to wait, when it answered the last request. Unit: seconds."""
        self._lease_changed = asyncio.Event()
        self._announcing: asyncio.Task[None] | None = None
        """Posts the event about our lead."""

    @property
    def leading(self) -> bool:
        return self._election.leads(_now())

    def without_leader(self) -> str:
        """Return why nobody leads; "" if somebody does, or if the API server does not answer."""
        if self.leading or self._unreachable:
            return ""
        why = self._election.without_leader(_now())
        return f"{why}: {self._failure}" if why and self._failure else why

    def write_timeout(self) -> float:
        """Return for how many seconds from now a write may go on. Raises NotLeading."""
        now = _now()
        if not self._election.leads(now):
            raise NotLeading("another replica leads, or the leader is unknown")
        return self._election.ends() - now

    @asynccontextmanager
    async def run_election(self) -> AsyncIterator[None]:
        """Take part in the election, and release the Lease at the end: all writes must be done by then."""
        # Half of the renew deadline, so that a request that hangs leaves time for another.
        async with Client(
            self._login, timeout=self._durations.renew / 2, on_request_end=self._request_observer
        ) as client:
            tasks = [
                asyncio.create_task(part) for part in (self._renew_forever(client), self._watch_lease(client))
            ]
            try:
                yield
            finally:
                tasks += [self._announcing] if self._announcing else []
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                await self._release(client)

    async def _renew_forever(self, client: Client) -> None:
        while True:
            try:
                pause = await self._try_acquire_or_renew(client)
            except Exception as error:  # of on_change: the election goes on
                log.error("the callback of the leader election failed", error=error_place(error))  # noqa: TRY400  it would quote
                pause = self._durations.retry
            if self._retry_after:
                await asyncio.sleep(pause)
                continue
            try:
                async with asyncio.timeout(pause):  # not wait_for: kopf would take its task for its own
                    await self._lease_changed.wait()
            except TimeoutError:
                pass  # the usual case: the Lease has not changed
            self._lease_changed.clear()

    async def _try_acquire_or_renew(self, client: Client) -> float:
        """Return how many seconds to wait before the next try."""
        now = _now()
        until = self._election.leads_until() - now if self._election.leads(now) else None
        self._retry_after = 0.0
        try:
            async with asyncio.timeout(until):
                await self._acquire_or_renew(client)
            self._unreachable = False
            if self._failure:
                log.info("the Lease can be read and written again")
            self._failure = ""
        except TimeoutError:
            self._up_to_date, self._unreachable = False, True  # leading has ended with the request under way
        except ApiError as error:
            self._unreachable, self._retry_after = not error.status, error.retry_after or 0.0
            self._log_failure(error.message)
        except Exception as error:  # whatever it is: the election goes on
            self._unreachable = False
            self._log_failure(error_place(error))
        self._report_transition()
        return self._pause()

    async def _acquire_or_renew(self, client: Client) -> None:
        try:
            await self._acquire_or_renew_once(client)
        except (Conflict, NotFound):  # another replica has changed it
            self._up_to_date = False
            await self._acquire_or_renew_once(client)

    async def _acquire_or_renew_once(self, client: Client) -> None:
        self._report_transition()  # the end of one term, before another one may begin
        if not (self._up_to_date and self.leading):
            self._election.saw(await self._get(client), _now())
            self._up_to_date = True
        claim, led = self._election.claim(_now(), datetime.now(UTC)), self.leading
        if claim is not None:
            began = _now()
            self._election.wrote(await client.put(self._resource, claim), began)
            if self.leading and not led:
                self._announcing = asyncio.create_task(self._announce(client))

    async def _announce(self, client: Client) -> None:
        """Post that this process leads; without the right to, only the log says so."""
        event = self._election.became_leader(datetime.now(UTC))
        if event is None or not self.leading:
            return
        try:
            await client.create(EVENT.at("v1"), event)
        except ApiError as error:
            log.debug("the event about the lead could not be posted", error=error.message)

    async def _get(self, client: Client) -> Object | None:
        try:
            return await client.get(self._resource, self._name, self._namespace)
        except NotFound:
            return None

    def _log_failure(self, error: str) -> None:
        if not self._failure:
            log.warning("the Lease cannot be read or written; trying again", error=error)
        self._up_to_date, self._failure = False, error

    def _pause(self) -> float:
        now, retry = _now(), self._durations.retry
        if self._unreachable:
            retry = min(retry, UNREACHABLE_RETRY_SECONDS)
        retry = max(retry, self._retry_after)
        if self._election.leads(now):
            return min(retry, self._election.leads_until() - now)
        free_in = self._election.free_in(now)
        return max(min(retry, free_in), self._retry_after) if free_in else retry

    def _report_transition(self) -> None:
        leading, holder = self.leading, self._election.holder
        if leading != self._reported_leading:
            self._reported_leading = leading
            log.info("leading") if leading else log.warning("lost the lead", holder=holder)
            self._on_change(leading)
        if holder != self._reported_holder:
            self._reported_holder = holder
            if holder and not leading:
                log.info("standing by", holder=holder)

    async def _watch_lease(self, client: Client) -> None:
        """Wake the election when the Lease changes. A watch may fail: the Lease is also polled."""
        while True:
            try:
                watch = client.watch(self._resource, "", namespace=self._namespace)
                async with aclosing(watch) as events:
                    async for change, lease in events:
                        if self._election.is_news(change, lease):
                            self._up_to_date = False
                            self._lease_changed.set()
            except ApiError as error:
                log.debug("cannot watch the Lease; trying again", error=error.message)
                await asyncio.sleep(error.retry_after or 0.0)
            await asyncio.sleep(self._durations.retry)

    async def _release(self, client: Client) -> None:
        self._election.stop_leading()
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                try:
                    await self._release_once(client)
                except (Conflict, NotFound):  # a cancelled renewal may have been carried out
                    self._election.saw(await self._get(client), _now())
                    await self._release_once(client)
        except (ApiError, TimeoutError) as error:
            log.info("the Lease could not be released; it will expire", error=error_place(error))

    async def _release_once(self, client: Client) -> None:
        if released := self._election.release(datetime.now(UTC)):
            await client.put(self._resource, released)
            log.info("gave the lead up")


def _now() -> float:
    return time.clock_gettime(CLOCK)
