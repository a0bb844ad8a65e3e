"""
Watch a hub: read it once, then watch it, and yield its state after each change.

It only lists and watches; it writes nothing. If a watch ends, it lists everything again.
"""

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final

from placement_ac.core.api.constants import Kind
from placement_ac.core.api.errors import Gone, NotFound, Refused, Unavailable
from placement_ac.inspection.hub.dump import Dump, Key, Object, key_of
from placement_ac.inspection.readers.hub_reader import (
    FORBIDDEN,
    KindList,
    Namespaces,
    objects_by_kind,
    read_lists,
    with_kind,
)
from placement_ac.kube.client import Client

PAUSE_SECONDS: Final = 0.5
"""Delay after a change, so that changes made together are yielded together."""
QUIET_SECONDS: Final = 60.0
"""The state is yielded after this time without a change: credentials and tolerations expire."""
RETRY_SECONDS: Final = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Delays between attempts to list again while the hub does not answer; then the watcher gives up."""
UNAUTHORIZED: Final = 401


async def watch_kinds(
    client: Client, kinds: Collection[Kind], namespaces: Namespaces, pause: float = PAUSE_SECONDS
) -> AsyncGenerator[Dump]:
    """Yield the hub's objects of `kinds`, and again `pause` seconds after each change, until closed.

    The pause is at least as long as the consumer took. Raises ApiError if the hub does not answer at first or
    for too long, and Refused if a right is lost.
    """
    dump, lists = await read_lists(client, kinds, namespaces)
    rights = set(dump.missing)
    while True:
        async with aclosing(_watch_lists(client, dump, lists, pause)) as dumps:
            async for one in dumps:
                yield one
        dump, lists = await _list_again(client, kinds, namespaces)
        if lost := [str(right) for right in dump.missing if right not in rights]:
            raise Refused(f"a right was revoked: {', '.join(lost)}", status=FORBIDDEN)


async def _list_again(
    client: Client, kinds: Collection[Kind], namespaces: Namespaces
) -> tuple[Dump, tuple[KindList, ...]]:
    for seconds in RETRY_SECONDS:
        await asyncio.sleep(seconds)
        try:
            return await read_lists(client, kinds, namespaces)
        except Unavailable as error:
            if error.status == UNAUTHORIZED:
                raise
    return await read_lists(client, kinds, namespaces)


@dataclass(frozen=True)
class _WatchedKind:
    """The objects that a watch keeps up to date."""

    listed: KindList
    things: dict[Key, Object] = field(default_factory=dict)


async def _watch_lists(
    client: Client, dump: Dump, lists: Iterable[KindList], pause: float
) -> AsyncGenerator[Dump]:
    """Yield `dump` after each change; returns when a watch ends."""
    tables = [_WatchedKind(one, {key_of(item): item for item in one.items}) for one in lists]
    changed = asyncio.Event()
    now = asyncio.get_running_loop().time
    watches = [asyncio.create_task(_watch(client, table, changed)) for table in tables]
    try:
        while not any(watch.done() for watch in watches):
            began = now()
            yield dump.with_objects(
                objects_by_kind((table.listed.resource.of, table.things.values()) for table in tables)
            )
            took = now() - began
            await _first_of(changed, watches)
            await asyncio.sleep(max(pause, took))
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


async def _first_of(changed: asyncio.Event, watches: Iterable[asyncio.Task[None]]) -> None:
    """Return after a change, the end of a watch, or QUIET_SECONDS."""
    change = asyncio.create_task(changed.wait())
    try:
        await asyncio.wait((change, *watches), timeout=QUIET_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        change.cancel()


async def _watch(client: Client, table: _WatchedKind, changed: asyncio.Event) -> None:
    """Keep `table` up to date; raises ApiError when the watch fails."""
    one, version = table.listed, table.listed.version
    while True:
        async with aclosing(client.watch(one.resource, version, one.namespace or None)) as events:
            async for change, item in events:
                version = str(item["metadata"].get("resourceVersion") or version)
                if change == "BOOKMARK":
                    continue
                if change == "DELETED":
                    table.things.pop(key_of(item), None)
                else:
                    table.things[key_of(item)] = with_kind(one.resource, item)
                changed.set()
        await asyncio.sleep(PAUSE_SECONDS)  # spares a server that ends every watch at once
