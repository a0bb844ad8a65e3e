"""`placement-ac dump`: write what the other commands read, to look at it elsewhere."""

from collections.abc import Collection
from pathlib import Path

import click

from kubectl_placement.cli.hub_options import (
    HubSource,
    installation_namespaces,
    live_hub_options,
    read_hub,
    read_installations,
)
from kubectl_placement.hub.dump import Dump, Object
from kubectl_placement.hub.kinds import ALL_KINDS, CONTROLLER_KINDS, SETTINGS_KINDS
from kubectl_placement.hub.redact import shared_objects
from kubectl_placement.hub.requirements import missing_rights_text
from placement_ac.cli.login_options import FILE, with_client
from placement_ac.cli.read_command import ReadCommand
from placement_ac.core.api.constants import Kind
from placement_ac.core.api.to_yaml import to_yaml
from placement_ac.kube.client import Client


@click.command("dump", cls=ReadCommand, epilog="Example:  placement-ac dump --output-file hub.yaml")
@live_hub_options
@click.option("--output-file", type=FILE, help="Write to this file.  [default: stdout]")
def command(where: HubSource, output_file: Path | None) -> None:
    """Write all objects that the other commands read, as YAML, for a support case.

    Values that may be secret are left out: those of Secrets and ConfigMaps, and variables of containers. The
    other commands read the file with --from-dump.
    """
    dump, namespaces = with_client(where, lambda client: _read(client, where))
    if problem := missing_rights_text(dump.missing):
        click.echo(f"missing rights: {problem}; the dump lacks these objects", err=True)
    lists = [_list_of(dump, kind, namespaces) for kind in ALL_KINDS if _is_written(dump, kind)]
    _write(to_yaml(*lists, explicit_start=True), output_file)


def _write(text: str, file: Path | None) -> None:
    if file is None:
        click.echo(text, nl=False)
        return
    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        raise click.ClickException(f"{file}: {error.strerror}") from None


async def _read(client: Client, where: HubSource) -> tuple[Dump, tuple[str, ...]]:
    """Return every kind, as `status` and `doctor` read it; and the namespaces of controller and Kueue."""
    reading = await read_hub(client, where, [kind for kind in ALL_KINDS if kind not in CONTROLLER_KINDS])
    whole = reading.dump.with_kinds_of(await read_installations(client, reading))
    return whole, installation_namespaces(reading)


def _is_written(dump: Dump, kind: Kind) -> bool:
    """Whether the dump has a list of the kind: it is known, or in part, if the commands cope with a part."""
    return kind in dump.served and (dump.knows(kind) or (kind in SETTINGS_KINDS and bool(dump.of(kind))))


def _list_of(dump: Dump, kind: Kind, namespaces: Collection[str]) -> Object:
    """Return a typed list, which says that the kind was read even if there is no object of it."""
    items = shared_objects(dump, kind, namespaces)
    return {"apiVersion": dump.served[kind].api_version, "kind": f"{kind.kind}List", "items": items}
