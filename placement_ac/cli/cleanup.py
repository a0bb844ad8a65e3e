"""`placement-ac cleanup`: remove the controller's objects after it is uninstalled."""

import asyncio
from pathlib import Path

import click

from placement_ac.admin.cleanup import CleanupBlocked, DeleteOutcome, find, obstacles, remove
from placement_ac.core.api.errors import ApiError, LoginFailed
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login


@click.command("cleanup", epilog="Example:  placement-ac cleanup")
@click.option("--kubeconfig", type=click.Path(dir_okay=False, path_type=Path), help="The kubeconfig.")
@click.option("--context", help="The context in the kubeconfig.")
@click.option(
    "--kueue-namespace",
    default="kueue-system",
    show_default=True,
    help="The namespace in which Kueue reads Secrets.",
)
@click.option("--yes", is_flag=True, help="Delete. Without it, only print what would be deleted.")
@click.option(
    "--force", is_flag=True, help="Do not check whether jobs or a controller still need the objects."
)
def command(
    kubeconfig: Path | None, context: str | None, kueue_namespace: str, yes: bool, force: bool
) -> None:
    """Remove the objects that the controller has created on the hub.

    These are the MultiKueueConfigs, MultiKueueClusters, ClusterPermissions, ManagedServiceAccounts and
    Secrets with our label, and the Lease. AdmissionChecks and Workloads do not change.
    """
    try:
        gone = asyncio.run(_clean_up(Login(kubeconfig, context), kueue_namespace, yes, force))
    except (ApiError, LoginFailed, CleanupBlocked) as error:
        raise click.ClickException(str(error)) from None
    if not gone:
        raise click.exceptions.Exit(1)


async def _clean_up(login: Login, namespace: str, yes: bool, force: bool) -> bool:
    """Return whether all objects are deleted, or would be."""
    async with Client(login) as client:
        things = await find(client, namespace)
        if not things:
            click.echo("nothing to delete")
            return True
        in_the_way = [] if force else await obstacles(client, things, namespace)
        if not yes:
            for thing in things:
                click.echo(f"{thing.label} deleted (dry run)")
            for obstacle in in_the_way:
                click.echo(f"--yes would be refused: {obstacle}", err=True)
            return True
        if in_the_way:
            raise CleanupBlocked(f"{'; '.join(in_the_way)}; or use --force")
        return all([_report(outcome) async for outcome in remove(client, things)])


def _report(outcome: DeleteOutcome) -> bool:
    if outcome.problem:
        click.echo(f"{outcome.thing.label}: {outcome.problem}", err=True)
    else:
        held = f" when finalizer {outcome.held} is removed" if outcome.held else ""
        click.echo(f"{outcome.thing.label} deleted{held}")
    return not outcome.problem
