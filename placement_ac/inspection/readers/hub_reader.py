"""
Read a hub: list all kinds concurrently, and note which rights are missing.

It only lists and gets; it writes and watches nothing.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from placement_ac.core.api.constants import MULTIKUEUE_CONFIG, Kind, Resource
from placement_ac.core.api.errors import NotFound, Refused
from placement_ac.inspection.hub.dump import Dump, MissingRight, Object
from placement_ac.kube.client import Client, gather_all

FORBIDDEN: Final = 403
Namespaces = Mapping[Kind, Sequence[str]]
"""The namespaces of each kind; a kind without an entry is listed in all namespaces."""


@dataclass(frozen=True, slots=True)
class KindList:
    """The objects of a kind in a namespace ("": in all), and the resourceVersion of the list."""

    resource: Resource
    namespace: str
    items: tuple[Object, ...]
    version: str


async def read_kinds(client: Client, kinds: Collection[Kind], namespaces: Namespaces) -> Dump:
    """Return the hub's objects of `kinds`. Raises ApiError if it does not answer."""
    return (await read_lists(client, kinds, namespaces))[0]


async def read_lists(
    client: Client, kinds: Collection[Kind], namespaces: Namespaces
) -> tuple[Dump, tuple[KindList, ...]]:
    """Return the dump, and the lists that it consists of."""
    served = await client.discover(kinds)
    scopes = [
        (kind, namespace) for kind in kinds if kind in served for namespace in (namespaces.get(kind) or ("",))
    ]
    answers, schemas = await asyncio.gather(
        gather_all(_list(client, served[kind], namespace) for kind, namespace in scopes),
        _schemas(client, served),
    )
    lists = tuple(answer for answer in answers if isinstance(answer, KindList))
    missing = tuple(answer for answer in answers if isinstance(answer, MissingRight))
    dump = Dump(dict.fromkeys(kinds, ()), served, missing, schemas, live=True)
    return dump.with_objects(objects_by_kind((one.resource.of, one.items) for one in lists)), lists


def objects_by_kind(parts: Iterable[tuple[Kind, Iterable[Object]]]) -> dict[Kind, tuple[Object, ...]]:
    """Return the objects of each kind from all its namespaces."""
    found: dict[Kind, list[Object]] = {}
    for kind, items in parts:
        found.setdefault(kind, []).extend(items)
    return {kind: tuple(items) for kind, items in found.items()}


def with_kind(resource: Resource, item: Object) -> Object:
    """Return an item of a list with apiVersion and kind, which a list omits."""
    return {"apiVersion": resource.api_version, "kind": resource.of.kind} | item


async def _schemas(client: Client, served: Mapping[Kind, Resource]) -> dict[Kind, Object]:
    if MULTIKUEUE_CONFIG not in served:
        return {}
    schema = await client.schema(served[MULTIKUEUE_CONFIG])
    return {MULTIKUEUE_CONFIG: schema} if schema else {}


async def _list(client: Client, resource: Resource, namespace: str) -> KindList | MissingRight:
    try:
        found = await client.list(resource, namespace or None)
    except NotFound:
        return KindList(resource, namespace, (), "")
    except Refused as refused:
        if refused.status == FORBIDDEN:
            return MissingRight("list", resource.of, namespace)
        raise
    items = tuple(with_kind(resource, item) for item in found.items)
    return KindList(resource, namespace, items, found.resource_version)
