"""
Reads what jobs need of a worker beside its queues: whether it serves their kinds, and which names are taken.

Whatever cannot be read is not known, and is no problem of the worker: the filters abstain then. Answers are
cached, as they seldom change.
"""

import asyncio
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from cachetools import TTLCache

from placement_ac.core.api.constants import CONFIG_MAP, LABEL_ORIGIN, Resource
from placement_ac.core.api.copy_owner import copy_owner
from placement_ac.core.api.errors import ApiError, NotFound, TooLarge
from placement_ac.core.api.fields import get_list, get_str, key_of
from placement_ac.core.api.kueue_gates import KUEUE_CONFIG_MAP
from placement_ac.core.api.kueue_integrations import integrations_of_config_map
from placement_ac.core.inputs.job_facts import (
    NO_NEEDS,
    JobFacts,
    JobId,
    JobNeeds,
    resource_of,
)
from placement_ac.kube.client import PAGE_SIZE, Client
from placement_ac.workers.connector import MAX_CACHED, Version

KINDS_SECONDS: Final = 120.0
"""How long it is known whether a worker serves a kind, or does not let us see it; its integrations, too."""
NAMES_SECONDS: Final = 10.0
"""How long the names are known that are taken there: several Placements may ask."""
NAMES_MAX: Final = 2000
"""Of more jobs of a kind that no MultiKueue has sent, no name is known."""


_PLURAL: Final = re.compile(r"[a-z0-9-]{1,253}")
"""A subresource has a slash."""


class _Served(NamedTuple):
    """Whether a worker serves a kind; None: it is not known. `plural`: its name in paths."""

    served: bool | None
    plural: str = ""


class NeedsReader:
    """Reads workers, with a client for each question.

    `kueue_namespace`: that of Kueue there, to read its integrations; "": they are not read.
    """

    def __init__(self, kueue_namespace: str = "") -> None:
        self._kueue_namespace = kueue_namespace
        self._integrations: TTLCache[Version, frozenset[str] | None] = TTLCache(MAX_CACHED, KINDS_SECONDS)
        self._served: TTLCache[tuple[Version, str], _Served] = TTLCache(16 * MAX_CACHED, KINDS_SECONDS)
        self._refused: TTLCache[tuple[Version, str], bool] = TTLCache(16 * MAX_CACHED, KINDS_SECONDS)
        """Kinds that a worker does not let us list."""
        self._taken: TTLCache[tuple[Version, str], frozenset[JobId]] = TTLCache(
            16 * MAX_CACHED, NAMES_SECONDS
        )

    async def read(self, client: Client, version: Version, needs: JobNeeds, seconds: float) -> JobFacts:
        """Return what a worker has of `needs`, as far as it answers in time; `version`: of the credentials.

        Raises nothing but CancelledError.
        """
        found: dict[str, _Served] = {}
        taken: dict[str, frozenset[JobId]] = {}
        if (needs != NO_NEEDS or self._kueue_namespace) and seconds > 0:
            try:
                async with asyncio.timeout(seconds):
                    await self._read_kinds(client, version, needs, found)
                    await self._read_integrations(client, version)
                    await self._read_names(client, version, _served(needs.waiting, found), taken)
            except (TimeoutError, ApiError):
                pass  # the rest is not known
        served = {kind: one.served for kind, one in found.items() if one.served is not None}
        return JobFacts(served, taken, self._integrations.get(version))

    async def _read_kinds(
        self, client: Client, version: Version, needs: JobNeeds, found: dict[str, _Served]
    ) -> None:
        for kind in sorted(needs.kinds):
            key = version, kind
            if key not in self._served:
                self._served[key] = await _ask_for_kind(client, kind)
            found[kind] = self._served[key]

    async def _read_integrations(self, client: Client, version: Version) -> None:
        """Read Kueue's configuration there, unless it is known. Raises ApiError without an answer."""
        if not self._kueue_namespace or version in self._integrations:
            return
        found = None
        try:
            config_map = await client.get(CONFIG_MAP.at("v1"), KUEUE_CONFIG_MAP, self._kueue_namespace)
            found = await asyncio.to_thread(integrations_of_config_map, config_map)
        except ApiError as error:
            if not (error.status or isinstance(error, TooLarge)):
                raise
        self._integrations[version] = found

    async def _read_names(
        self,
        client: Client,
        version: Version,
        resources: Iterable[tuple[str, Resource]],
        taken: dict[str, frozenset[JobId]],
    ) -> None:
        for kind, resource in resources:
            key = version, kind
            if key not in self._taken and key not in self._refused:
                try:
                    self._taken[key] = await _names(client, resource)
                except ApiError as error:
                    if not (error.status or isinstance(error, TooLarge)):
                        raise
                    self._refused[key] = True
            if key in self._taken:
                taken[kind] = self._taken[key]


def _served(kinds: Iterable[str], found: dict[str, _Served]) -> list[tuple[str, Resource]]:
    """Return the resources of these kinds that the worker serves."""
    named = [(kind, resource_of(kind), found[kind].plural) for kind in sorted(kinds) if kind in found]
    return [
        (kind, resource.of._replace(plural=plural).at(resource.version))
        for kind, resource, plural in named
        if resource and plural
    ]


async def _ask_for_kind(client: Client, kind: str) -> _Served:
    """Return whether a worker serves a kind. Raises ApiError without an answer."""
    resource = resource_of(kind)
    if resource is None:
        return _Served(None)
    try:
        answer = await client.request("GET", f"/apis/{resource.api_version}")
    except NotFound:
        return _Served(False)
    except ApiError as error:
        if not error.status:
            raise
        return _Served(None)
    if answer.get("kind") != "APIResourceList":  # another server
        return _Served(None)
    names = [
        get_str(one, "name")
        for one in get_list(answer, "resources")
        if get_str(one, "kind") == resource.of.kind and _PLURAL.fullmatch(get_str(one, "name"))
    ]
    return _Served(bool(names), names[0] if names else "")


async def _names(client: Client, resource: Resource) -> frozenset[JobId]:
    """Return the jobs of a kind that no MultiKueue has sent. Raises ApiError.

    Every copy has the label, so the worker leaves them out of the list.
    """
    names: set[JobId] = set()
    pages = client.pages(resource, limit=PAGE_SIZE, label_selector=f"!{LABEL_ORIGIN}", metadata_only=True)
    async for page in pages:
        if page.kind != "PartialObjectMetadataList":
            raise TooLarge("a list of another kind")
        if page.first:
            names.clear()
        names.update(key_of(item) for item in page.items if not copy_owner(item).is_sent)
        if len(names) > NAMES_MAX:
            raise TooLarge(f"more than {NAMES_MAX:,} jobs")
    return frozenset(names)
