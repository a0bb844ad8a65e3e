"""Read which namespaces and resources the hub's Kueue manages, as far as the caller may."""

from collections.abc import Iterable
from dataclasses import replace

from kubectl_placement.cli.hub_options import HubReading, read_installations
from kubectl_placement.doctor.kueue import HubKueue
from kubectl_placement.hub.dump import Dump
from kubectl_placement.hub.managed_namespaces import selects_namespaces, unmanaged, unmanaged_text
from kubectl_placement.readers.hub_reader import OneObject, read_kinds
from placement_ac.core.api.constants import NAMESPACE
from placement_ac.core.api.fields import get_dict, name_of
from placement_ac.kube.client import Client


async def read_unmanaged(client: Client, reading: HubReading, names: Iterable[str]) -> HubReading:
    """Return the reading with those of these namespaces that Kueue leaves alone. Raises ApiError."""
    kueue = _kueue(reading, await read_installations(client, reading))
    places = [OneObject("", name) for name in sorted({*names} - {""})]
    if not places or not selects_namespaces(kueue.config):
        return _with_unmanaged(reading, kueue, Dump())
    return _with_unmanaged(reading, kueue, await read_kinds(client, (NAMESPACE,), {NAMESPACE: places}))


def unmanaged_in_dump(reading: HubReading) -> HubReading:
    """Return the reading with the namespaces of its dump that Kueue leaves alone."""
    return _with_unmanaged(reading, _kueue(reading, reading.dump), reading.dump)


def _kueue(reading: HubReading, dump: Dump) -> HubKueue:
    settings = reading.view.settings
    return HubKueue(dump, settings.kueue_namespace, settings.kueue_version)


def _with_unmanaged(reading: HubReading, kueue: HubKueue, there: Dump) -> HubReading:
    namespaces = {name_of(raw): raw for raw in there.of(NAMESPACE)}
    left = unmanaged(kueue.config, kueue.gates, kueue.release, namespaces)
    texts = {name: unmanaged_text(kueue.config, name) for name in left}
    resources = None if kueue.config_problem else get_dict(kueue.config, "resources")
    return replace(reading, view=replace(reading.view, unmanaged=texts, kueue_resources=resources))
