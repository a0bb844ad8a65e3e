"""Read what Kueue adds to the requests of new jobs: defaults of LimitRanges, overheads of RuntimeClasses."""

from collections.abc import Iterable
from dataclasses import replace

from kubectl_placement.cli.hub_options import HubReading
from kubectl_placement.hub.dump import Object
from kubectl_placement.jobs.new_job import DEFAULT_NAMESPACE, needs_defaults
from kubectl_placement.readers.hub_reader import OneObject, Place, read_kinds
from placement_ac.core.api.constants import LIMIT_RANGE, RUNTIME_CLASS, Kind
from placement_ac.core.api.fields import namespace_of
from placement_ac.kube.client import Client


async def with_job_defaults(client: Client, reading: HubReading, jobs: Iterable[Object]) -> HubReading:
    """Return the reading with the LimitRanges and RuntimeClasses that matter to jobs. Raises ApiError."""
    spaces, classes = set[str](), set[str]()
    for manifest in jobs:
        limits, names = needs_defaults(manifest)
        spaces |= {namespace_of(manifest) or DEFAULT_NAMESPACE} if limits else set()
        classes |= names
    places: dict[Kind, list[Place]] = {LIMIT_RANGE: sorted(spaces)} if spaces else {}
    if classes:
        places[RUNTIME_CLASS] = [OneObject("", name) for name in sorted(classes)]
    if not places:
        return reading
    found = await read_kinds(client, tuple(places), places)
    return replace(reading, view=replace(reading.view, dump=reading.dump.with_kinds_of(found)))
