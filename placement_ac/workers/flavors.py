"""
Reads the ResourceFlavors that the queues of a worker use: which Pods may use them.

Whatever cannot be read is not known, and is no problem of the worker: each flavor counts then for each job.
Answers are cached, as they seldom change.
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import Final

from cachetools import TTLCache

from placement_ac.core.api.constants import RESOURCE_FLAVOR, Resource
from placement_ac.core.api.errors import ApiError, TooLarge
from placement_ac.core.api.fields import name_of
from placement_ac.core.inputs.flavors import Flavor, flavor_of
from placement_ac.core.inputs.queue_facts import WorkerFacts, flavors_in
from placement_ac.kube.client import PAGE_SIZE, Client
from placement_ac.workers.connector import MAX_CACHED, Version

FLAVORS_SECONDS: Final = 60.0
"""How long it is known which Pods may use the flavors of a worker, or that it does not let us see them."""


class FlavorReader:
    """Reads workers, with a client for each question."""

    def __init__(self) -> None:
        self._known: TTLCache[Version, Mapping[str, Flavor]] = TTLCache(MAX_CACHED, FLAVORS_SECONDS)
        """Those that queues used; empty: the worker does not let us see them."""

    async def read(
        self, client: Client, version: Version, served: str, facts: WorkerFacts, seconds: float
    ) -> Mapping[str, Flavor]:
        """Return the flavors of a worker's queues by name, as far as it answers in time.

        `version`: of the credentials; `served`: in which the worker serves Kueue's kinds. Raises nothing but
        CancelledError.
        """
        names = flavors_in(facts.queues)
        if names and version not in self._known and seconds > 0:
            try:
                async with asyncio.timeout(seconds):
                    self._known[version] = await _flavors(client, RESOURCE_FLAVOR.at(served), names)
            except TimeoutError:
                pass
            except ApiError as error:
                if error.status or isinstance(error, TooLarge):
                    self._known[version] = {}
        return self._known.get(version, {})


async def _flavors(client: Client, resource: Resource, names: Collection[str]) -> Mapping[str, Flavor]:
    """Return those of these flavors that are as Kueue lets them be. Raises ApiError."""
    found: dict[str, Flavor | None] = {}
    async for page in client.pages(resource, limit=PAGE_SIZE):
        if page.first:
            found.clear()
        if page.kind != f"{resource.of.kind}List":
            raise TooLarge("a list of another kind")
        found |= {name_of(item): flavor_of(item) for item in page.items if name_of(item) in names}
    return {name: flavor for name, flavor in found.items() if flavor}
