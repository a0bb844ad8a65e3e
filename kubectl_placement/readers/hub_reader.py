"""
Read a hub: list all kinds concurrently, note which rights are missing, and watch the hub for changes.

It only gets, lists and watches; it writes nothing. If a watch ends, it lists everything again.
"""

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, NamedTuple

from kubectl_placement.hub.dump import Dump, MissingRight, Object
from placement_ac.core.api.constants import MULTIKUEUE_CONFIG, Kind, Resource
from placement_ac.core.api.errors import Gone, NotFound, Refused, Unavailable
from placement_ac.core.api.fields import Key, key_of
from placement_ac.kube.client import Client, Listing, gather_all
from placement_ac.kube.reflector import BOOKMARK, Reflector

UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403
PAUSE_SECONDS: Final = 0.5
"""Delay after a change, so that changes made together are yielded together."""
QUIET_SECONDS: Final = 60.0
"""The state is yielded after this time without a change: credentials and tolerations expire."""
RETRY_SECONDS: Final = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Delays between attempts to list again while the hub does not answer; then the watcher gives up."""


class OneObject(NamedTuple):
    """The only object of a kind that is read in a namespace: a right to it alone is enough."""

    namespace: str
    name: str


class Labelled(NamedTuple):
    """The objects of a kind with these labels, in a namespace ("": in all)."""

    namespace: str
    selector: str


Place = str | OneObject | Labelled
"""A namespace ("": all), or a part of the objects there."""
Namespaces = Mapping[Kind, Sequence[Place]]
"""Where each kind is read; without an entry, in all namespaces. Labelled ones are not watched."""


@dataclass(frozen=True, slots=True)
class _KindList:
    """The objects of a kind in a namespace ("": in all), and the resourceVersion of the list.

    `resource` has the name of the only object that is read, if there is one. A watch keeps `objects` up to
    date.
    """

    kind: Kind
    resource: Resource
    namespace: str
    objects: dict[Key, Object]
    version: str


async def read_kinds(
    client: Client, kinds: Collection[Kind], namespaces: Namespaces, schemas: Collection[Resource] = ()
) -> Dump:
    """Return the hub's objects of `kinds`, with these schemas. Raises ApiError if it does not answer."""
    return (await _read_lists(client, kinds, namespaces, schemas))[0]


async def _read_lists(
    client: Client, kinds: Collection[Kind], namespaces: Namespaces, schemas: Collection[Resource] = ()
) -> tuple[Dump, list[_KindList]]:
    """Return the dump, and the lists that it consists of."""
    served = await client.discover(kinds)
    scopes = [(kind, place) for kind in kinds if kind in served for place in (namespaces.get(kind) or ("",))]
    wanted = {*schemas, *(served[kind] for kind in (MULTIKUEUE_CONFIG,) if kind in served)}
    answers, definitions = await asyncio.gather(
        gather_all(_list(client, served[kind], place) for kind, place in scopes),
        _schemas(client, wanted),
    )
    lists = [answer for answer in answers if isinstance(answer, _KindList)]
    missing = tuple(dict.fromkeys(answer for answer in answers if isinstance(answer, MissingRight)))
    dump = Dump(dict.fromkeys(kinds, ()), served, missing, definitions, live=True, server=client.server)
    return dump.with_objects(_objects_by_kind(lists)), lists


def _objects_by_kind(lists: Iterable[_KindList]) -> dict[Kind, tuple[Object, ...]]:
    """Return the objects of each kind from all its namespaces."""
    tables: dict[Kind, dict[Key, Object]] = {}
    for kind_list in lists:
        tables.setdefault(kind_list.kind, {}).update(kind_list.objects)
    return {kind: tuple(objects.values()) for kind, objects in tables.items()}


def _with_kind(resource: Resource, item: Object) -> Object:
    """Return an item of a list with apiVersion and kind, which a list omits."""
    return {"apiVersion": resource.api_version, "kind": resource.of.kind} | item


async def _schemas(client: Client, resources: Iterable[Resource]) -> dict[Resource, Object]:
    return {resource: schema for resource in resources if (schema := await client.schema(resource))}


async def _list(client: Client, resource: Resource, place: Place) -> _KindList | MissingRight:
    kind = resource.of
    namespace = place if isinstance(place, str) else place.namespace
    name = place.name if isinstance(place, OneObject) else ""
    selector = place.selector if isinstance(place, Labelled) else ""
    if name:
        resource = Resource(kind._replace(only=name), resource.version)
    try:
        listing = await client.list(resource, namespace or None, label_selector=selector)
    except NotFound:
        return _KindList(kind, resource, namespace, {}, "")
    except Refused as refused:
        if refused.status == FORBIDDEN:
            return MissingRight("list", kind, namespace, name)
        raise
    objects = {key_of(item): _with_kind(resource, item) for item in listing.items}
    return _KindList(kind, resource, namespace, objects, listing.resource_version)


# -- watch


async def watch_kinds(
    client: Client, kinds: Collection[Kind], namespaces: Namespaces, pause: float = PAUSE_SECONDS
) -> AsyncGenerator[Dump]:
    """Yield the hub's objects of `kinds`, and again `pause` seconds after each change, until closed.

    Between two dumps, the consumer rests at least as long as it took. Raises ApiError if the hub does not
    answer at first or for too long, and Refused if a right is lost.
    """
    dump, lists = await _read_lists(client, kinds, namespaces)
    rights = set(dump.missing)
    while True:
        async with aclosing(_watch_lists(client, dump, lists, pause)) as dumps:
            async for dump in dumps:
                yield dump
        dump, lists = await _list_again(client, kinds, namespaces)
        if lost := [str(right) for right in dump.missing if right not in rights]:
            raise Refused(f"a right was revoked: {', '.join(lost)}", status=FORBIDDEN)


async def _list_again(
    client: Client, kinds: Collection[Kind], namespaces: Namespaces
) -> tuple[Dump, list[_KindList]]:
    for seconds in RETRY_SECONDS:
        await asyncio.sleep(seconds)
        try:
            return await _read_lists(client, kinds, namespaces)
        except Unavailable as error:
            if error.status == UNAUTHORIZED:
                raise
    return await _read_lists(client, kinds, namespaces)


async def _watch_lists(
    client: Client, dump: Dump, lists: Collection[_KindList], pause: float
) -> AsyncGenerator[Dump]:
    """Yield `dump` after each change; returns when a watch ends."""
    changed = asyncio.Event()
    now = asyncio.get_running_loop().time
    watches = [asyncio.create_task(_watch(client, kind_list, changed)) for kind_list in lists]
    try:
        while not any(watch.done() for watch in watches):
            began = now()
            yield dump.with_objects(_objects_by_kind(lists))
            ended = now()
            await _first_of(changed, watches)
            rested = ended + (ended - began)  # the consumer rests as long as it took
            await asyncio.sleep(max(pause, rested - now()))
            changed.clear()
        for watch in watches:
            if watch.done():
                watch.result()
    except (Gone, NotFound, Unavailable):
        return
    finally:
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)


def _is_renewal(before: Object | None, now: Object) -> bool:
    """Whether a Lease was only renewed: every other second, and nothing that is shown changes."""
    specs = [dict(lease.get("spec") or {}) if lease else {} for lease in (before, now)]
    renewed = [spec.pop("renewTime", None) for spec in specs]
    return all(renewed) and specs[0] == specs[1]


async def _first_of(changed: asyncio.Event, watches: Iterable[asyncio.Task[None]]) -> None:
    """Return after a change, the end of a watch, or QUIET_SECONDS."""
    change = asyncio.create_task(changed.wait())
    try:
        await asyncio.wait((change, *watches), timeout=QUIET_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        change.cancel()


async def _watch(client: Client, kind_list: _KindList, changed: asyncio.Event) -> None:
    """Keep a list up to date. Raises ApiError when the watch fails; ends when all has to be listed again."""
    reflector = Reflector(client, kind_list.resource, kind_list.namespace, version=kind_list.version)
    async with aclosing(reflector.follow()) as parts:
        async for part in parts:
            if isinstance(part, Listing):
                return
            change, item = part
            if change == BOOKMARK:
                continue
            before = kind_list.objects.get(key := key_of(item))
            if change == "DELETED":
                kind_list.objects.pop(key, None)
            else:
                kind_list.objects[key] = _with_kind(kind_list.resource, item)
            if change == "DELETED" or not _is_renewal(before, item):
                changed.set()
