"""Read the inputs of the set-up of workers: flavors, LocalQueues, and templates, ConfigMaps of any name."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from kubectl_placement.cli.hub_options import HubReading
from kubectl_placement.hub.dump import Object
from kubectl_placement.readers.hub_reader import OneObject, read_kinds
from placement_ac.core.api.constants import ANNOTATION_TEMPLATE, CONFIG_MAP, LOCAL_QUEUE, RESOURCE_FLAVOR
from placement_ac.core.api.fields import get_str, key_of, name_of
from placement_ac.kube.client import Client

_TEMPLATE: Final = ("metadata", "annotations", ANNOTATION_TEMPLATE)


async def with_setup_inputs(
    client: Client, reading: HubReading, manifests: Iterable[Object] = ()
) -> HubReading:
    """Return the reading with all that the set-up is made from, if the controller sets workers up.

    `manifests`: also the ConfigMaps among them, and the templates that their checks name.
    """
    view = reading.view
    if not view.sets_up:
        return reading
    names = set(view.template_names)
    for one in manifests:
        names.add(name_of(one) if one["kind"] == CONFIG_MAP.kind else get_str(one, *_TEMPLATE))
    places = [OneObject(view.settings.kueue_namespace, name) for name in sorted(names - {""})]
    kinds = [kind for kind in (RESOURCE_FLAVOR, LOCAL_QUEUE) if kind not in view.dump.objects]
    found = await read_kinds(client, [*kinds, *([CONFIG_MAP] if places else [])], {CONFIG_MAP: places})
    maps = {key_of(one): one for one in (*view.dump.of(CONFIG_MAP), *found.of(CONFIG_MAP))}
    dump = replace(
        view.dump.with_objects({**found.objects, CONFIG_MAP: tuple(maps.values())}),
        served={**view.dump.served, **found.served},
        missing=(*view.dump.missing, *found.missing),
    )
    return replace(reading, view=replace(view, dump=dump, templates_read=True))
