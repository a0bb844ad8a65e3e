"""`placement-ac adopt`: take over the objects of the Go kueue-addon."""

import click

from placement_ac.admin.adopt import carry_out, check_that_it_is_stopped, steps
from placement_ac.cli.login_options import HubLogin, kueue_namespace_option, login_options, with_client
from placement_ac.cli.names import cluster_names
from placement_ac.core.api.errors import PlacementAcError
from placement_ac.kube.client import Client


@click.command("adopt", epilog="Example:  placement-ac adopt --dry-run")
@click.argument("clusters", nargs=-1, metavar="[CLUSTER]...", shell_complete=cluster_names)
@login_options
@kueue_namespace_option
@click.option("--dry-run", is_flag=True, help="Only print what would be written.")
@click.option("--force", is_flag=True, help="Do not check whether the kueue-addon still runs.")
def command(
    where: HubLogin, kueue_namespace: str, clusters: tuple[str, ...], dry_run: bool, force: bool
) -> None:
    """Hand over the Go kueue-addon's objects to this controller, under their names.

    For all clusters, with the lists of our checks, or for the credentials of each CLUSTER alone. A
    controller with --credentials-provision=managed-serviceaccount manages them from then on.
    """

    async def adopt(client: Client) -> None:
        if not force:
            await check_that_it_is_stopped(client)
        todo = await steps(client, kueue_namespace, clusters)
        for step in todo:
            if not dry_run:
                await carry_out(client, step)
            click.echo(f"{step.summary}{' (dry run)' if dry_run else ''}")
        if not todo:
            click.echo("nothing to hand over")

    try:
        with_client(where, adopt, announces=True)
    except PlacementAcError as error:
        raise click.ClickException(str(error)) from None
