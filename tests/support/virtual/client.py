"""Requests to a virtual hub: they are late, fail, or lose their answer."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from placement_ac.core.api.constants import Resource
from placement_ac.core.api.errors import ApiError, Unavailable
from tests.support.builders import Raw
from tests.support.virtual.hub import VirtualHub

REQUEST_SECONDS: Final = (0.001, 0.01)
"""Delay of a request to the hub; the response takes as long again."""
EVENT_SECONDS: Final = 0.05
"""The longest delay of an event."""


@dataclass(frozen=True)
class Odds:
    """Random delays and failures: a share `fails` of the requests fails, with or without effect.

    `late`: the longest delay of an event in seconds.
    """

    chance: random.Random
    fails: float = 0.0
    late: float = EVENT_SECONDS

    def draw(self, seconds: tuple[float, float]) -> float:
        return self.chance.uniform(*seconds)

    def event(self) -> float:
        return self.chance.uniform(0.0, self.late)


class VirtualClient:
    """Requests to the virtual hub, with the interface of `kube.Client`."""

    def __init__(self, hub: VirtualHub, odds: Odds) -> None:
        self._hub = hub
        self._odds = odds

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Raw:
        return await self._request(lambda: self._hub.get(resource.of, name))

    async def create(self, resource: Resource, body: Raw) -> Raw:
        """Only events are created."""
        return await self._request(lambda: self._hub.take_event(body))

    async def merge(self, resource: Resource, name: str, patch: Raw, *, namespace: str | None = None) -> Raw:
        """Only events are merged, to increase their count."""
        return await self._request(lambda: self._hub.count_event(name, patch))

    async def apply(
        self,
        resource: Resource,
        body: Raw,
        *,
        subresource: str = "",
        force: bool = False,
        manager: str | None = None,
    ) -> Raw:
        return await self._request(lambda: self._hub.apply(resource.of, body, manager))

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        version: str | None = None,
    ) -> Raw:
        return await self._request(lambda: self._hub.delete(resource.of, name, namespace or "", uid, version))

    async def _request(self, carry_out: Callable[[], Raw]) -> Raw:
        """Send a request; it may be carried out after its sender was cancelled, or be lost."""
        answer: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        kueue, odds = self._hub.kueue, self._odds

        def arrives() -> None:
            lost = odds.chance.random() < odds.fails
            if (answer.cancelled() or lost) and odds.chance.random() < 0.5:
                done: Raw | ApiError = Unavailable("the request was lost")
            else:
                done = _outcome(carry_out)
            if lost:
                done = Unavailable("the answer was lost")
            kueue.later(odds.draw(REQUEST_SECONDS), lambda: _deliver(answer, done))

        kueue.later(odds.draw(REQUEST_SECONDS), arrives)
        try:
            return await answer
        except asyncio.CancelledError:
            answer.cancel()
            raise


def _outcome(carry_out: Callable[[], Raw]) -> Raw | ApiError:
    try:
        return carry_out()
    except ApiError as error:
        return error


def _deliver(answer: asyncio.Future[Raw], done: Raw | ApiError) -> None:
    if answer.done():
        return
    if isinstance(done, ApiError):
        answer.set_exception(done)
    else:
        answer.set_result(done)
