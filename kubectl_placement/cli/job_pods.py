"""
The Pods of a job on its cluster, as far as the caller has access there.

`PodReader` is all that a story needs to know of that access.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

from kubectl_placement.access.methods import AccessOptions
from kubectl_placement.access.no_access import NoAccess
from kubectl_placement.access.open import open_cluster
from kubectl_placement.access.pods import NotOurs, read_job
from kubectl_placement.access.unread import ObjectReader
from kubectl_placement.cli.job_access import show_message
from kubectl_placement.hub.dump import Object
from kubectl_placement.jobs.place import place_of
from kubectl_placement.story.pods import PodsThere, pods_there
from placement_ac.core.api.constants import EVENT
from placement_ac.core.api.errors import ApiError, BadSettings
from placement_ac.kube.client import Client

EVENTS: Final = EVENT.at("v1")
Notes = tuple[str, ...]


class PodReader(Protocol):
    """Reads the Pods of a Workload that runs on a cluster, as the caller; why not is an answer, too.

    Returns them, and a note for each missing right, with what gives it.
    """

    async def __call__(self, hub: Client, workload: Object, cluster: str) -> tuple[PodsThere, Notes]: ...


def pods_by_access(options: AccessOptions) -> PodReader:
    """Return a reader by the caller's access to clusters. It raises for no cluster that does not answer."""

    async def read(hub: Client, workload: Object, cluster: str) -> tuple[PodsThere, Notes]:
        place = place_of(workload)
        try:
            async with open_cluster(hub, place.cluster, place.job.namespace, options, show_message) as opened:
                reader = ObjectReader(opened, place.job.namespace)
                there, events = await asyncio.gather(read_job(opened, place), _events(reader))
        except (ApiError, NoAccess, NotOurs, BadSettings) as error:
            return PodsThere(cluster, problem=str(error)), ()
        unread = (*there.unread, *reader.unread.values())
        return pods_there(cluster, there.pods, events), tuple(map(str, unread))

    return read


async def _events(reader: ObjectReader) -> Sequence[Object]:
    """Return the events of the namespace there; none if they cannot be read."""
    try:
        return await reader.list(EVENTS, "the last event of each Pod is unknown")
    except ApiError:
        return ()
