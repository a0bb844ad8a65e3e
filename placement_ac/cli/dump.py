"""`placement-ac dump`: write what the other commands read, to look at it elsewhere."""

from pathlib import Path
from typing import Final

import click
import yaml

from placement_ac.cli.graph import output_file_option, write
from placement_ac.cli.hub_options import (
    HubSource,
    ReadCommand,
    live_hub_options,
    namespaces_of,
    read_hub,
    with_client,
)
from placement_ac.core.api.constants import Kind
from placement_ac.inspection.hub.controller_settings import mounted_config_map
from placement_ac.inspection.hub.dump import Dump, Object
from placement_ac.inspection.hub.kinds import ALL_KINDS, CONFIG_MAP, DEPLOYMENT
from placement_ac.inspection.hub.redact import redacted
from placement_ac.inspection.hub.requirements import missing_rights_text
from placement_ac.inspection.readers.hub_reader import Namespaces, OneObject, read_kinds
from placement_ac.kube.client import Client

_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""The C implementation, if available."""


@click.command("dump", cls=ReadCommand, epilog="Example:  placement-ac dump --output-file hub.yaml")
@live_hub_options
@output_file_option
def command(where: HubSource, output_file: Path | None) -> None:
    """Write all objects that the other commands read, as YAML, for a support case.

    Secrets are written without their values. The other commands read the file with --from-dump.
    """
    found = with_client(where, lambda client: _read(client, where))
    if problem := missing_rights_text(found.missing):
        click.echo(f"missing rights: {problem}; the dump does not contain these kinds", err=True)
    lists = [_list_of(found, kind) for kind in ALL_KINDS if kind in found.served and found.knows(kind)]
    write(yaml.dump_all(lists, Dumper=_DUMPER, sort_keys=False, explicit_start=True), output_file)


async def _read(client: Client, where: HubSource) -> Dump:
    """Read every kind; first the controller's settings, which say in which namespaces."""
    found = await read_hub(client, where, ())
    here = where.controller_namespace
    ours: Namespaces = {DEPLOYMENT: (here,), CONFIG_MAP: (OneObject(here, mounted_config_map(found.dump)),)}
    return await read_kinds(client, ALL_KINDS, {**namespaces_of(found.view.settings), **ours})


def _list_of(dump: Dump, kind: Kind) -> Object:
    """Return a typed list, which says that the kind was read even if there is no object of it."""
    items = [redacted(kind, obj) for obj in dump.of(kind)]
    return {"apiVersion": dump.served[kind].api_version, "kind": f"{kind.kind}List", "items": items}
