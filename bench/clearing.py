"""
External hubs: check that the hub is unused, and delete the objects of the bench.

Objects of the bench have the label of its scenes; MultiKueueConfigs and MultiKueueClusters, which controller
and floor create, are recognized by name.
"""

import re
from collections.abc import AsyncIterator, Mapping
from typing import Final

import click

from bench.scene import MINE, NS, all_of, newest
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    LABEL_MANAGED_BY,
    MANAGED_BY,
    MANAGED_CLUSTER,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PLACEMENT,
    PLACEMENT_DECISION,
    SECRET,
    Kind,
)
from placement_ac.core.api.errors import NotFound
from placement_ac.kube.client import Client, Object

NAMES: Final[Mapping[Kind, str]] = {
    MULTIKUEUE_CONFIG: r"p\d+",
    MULTIKUEUE_CLUSTER: r"p\d+-cluster-\d{4,}",
}
SHARED: Final = re.compile(r"cluster-\d{4,}")
"""The MultiKueueClusters that all checks share; others may use such names, without the controller's label."""
KINDS: Final = (ADMISSION_CHECK, PLACEMENT_DECISION, PLACEMENT, *NAMES, MANAGED_CLUSTER, SECRET)
"""The kinds of a scene, in order of deletion: causes first."""
IN_USE: Final = (ADMISSION_CHECK, PLACEMENT, MANAGED_CLUSTER, *NAMES)
"""Kinds of which an unused hub has no objects."""


def is_mine(kind: Kind, item: Object) -> bool:
    name, labels = item["metadata"]["name"], item["metadata"].get("labels") or {}
    if kind is MULTIKUEUE_CLUSTER and SHARED.fullmatch(name):
        return labels.get(LABEL_MANAGED_BY) == MANAGED_BY
    if kind in NAMES:
        return re.fullmatch(NAMES[kind], name) is not None
    return MINE.items() <= labels.items()


async def refuse_what_is_in_use(client: Client) -> None:
    """Raise ClickException if the hub has objects of these kinds that are not the bench's."""
    for kind in IN_USE:
        listing = await client.list(newest(kind))
        others = [item["metadata"]["name"] for item in listing.items if not is_mine(kind, item)]
        if others:
            named = ", ".join(others[:3]) + ("" if len(others) < 4 else f" and {len(others) - 3} more")
            raise click.ClickException(f"that hub is in use: it has {kind.plural} of others: {named}")


async def clear(client: Client) -> None:
    """Delete all objects of the bench except the namespace."""
    for kind in KINDS:
        found = [name async for name in _mine(client, kind)]
        await all_of(_delete(client, kind, name) for name in found)


async def _mine(client: Client, kind: Kind) -> AsyncIterator[str]:
    listing = await client.list(newest(kind), NS if kind.namespaced else None)
    for item in listing.items:
        if is_mine(kind, item):
            yield item["metadata"]["name"]


async def _delete(client: Client, kind: Kind, name: str) -> None:
    try:
        await client.delete(newest(kind), name, NS if kind.namespaced else None)
    except NotFound:
        return  # the garbage collector was faster
