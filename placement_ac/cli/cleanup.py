"""`placement-ac cleanup`: remove the controller's objects after it is uninstalled."""

import click

from placement_ac.admin.cleanup import CleanupBlocked, DeleteOutcome, find, obstacles, remove
from placement_ac.cli.login_options import HubLogin, kueue_namespace_option, login_options, with_client
from placement_ac.core.api.errors import PlacementAcError
from placement_ac.kube.client import Client


@click.command("cleanup", epilog="Example:  placement-ac cleanup")
@login_options
@kueue_namespace_option
@click.option("--yes", is_flag=True, help="Delete. Without it, only print what would be deleted.")
@click.option(
    "--force", is_flag=True, help="Do not check whether jobs or a controller still need the objects."
)
def command(where: HubLogin, kueue_namespace: str, yes: bool, force: bool) -> None:
    """Remove the objects that the controller has created on the hub.

    These are the MultiKueueConfigs, MultiKueueClusters, ClusterPermissions, ManagedServiceAccounts and
    Secrets with our label, and the Lease. AdmissionChecks and Workloads do not change.
    """
    try:
        gone = with_client(
            where, lambda client: _clean_up(client, kueue_namespace, yes, force), announces=True
        )
    except PlacementAcError as error:
        raise click.ClickException(str(error)) from None
    if not gone:
        raise click.exceptions.Exit(1)


async def _clean_up(client: Client, namespace: str, yes: bool, force: bool) -> bool:
    """Return whether all objects are deleted, or would be."""
    things = await find(client, namespace)
    if not things:
        click.echo("nothing to delete")
        return True
    blockers = [] if force else await obstacles(client, things, namespace)
    if not yes:
        for thing in things:
            click.echo(f"{thing.label} deleted (dry run)")
        for blocker in blockers:
            click.echo(f"--yes would be refused: {blocker}", err=True)
        return True
    if blockers:
        raise CleanupBlocked(f"{'; '.join(blockers)}; or use --force")
    return all([_report(outcome) async for outcome in remove(client, things)])


def _report(outcome: DeleteOutcome) -> bool:
    if outcome.problem:
        click.echo(f"{outcome.thing.label}: {outcome.problem}", err=True)
    else:
        held = f" when finalizer {outcome.held} is removed" if outcome.held else ""
        click.echo(f"{outcome.thing.label} deleted{held}")
    return not outcome.problem
