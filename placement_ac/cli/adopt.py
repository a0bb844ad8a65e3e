"""`placement-ac adopt`: take over what the Go kueue-addon has made."""

import asyncio
from pathlib import Path

import click

from placement_ac.admin.adopt import ControllerRuns, carry_out, check_that_it_is_stopped, steps
from placement_ac.core.api.errors import ApiError, LoginFailed
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login


@click.command("adopt", epilog="Example:  placement-ac adopt --dry-run")
@click.argument("clusters", nargs=-1, metavar="[CLUSTER]...")
@click.option("--kubeconfig", type=click.Path(dir_okay=False, path_type=Path), help="The kubeconfig.")
@click.option("--context", help="The context in the kubeconfig.")
@click.option(
    "--kueue-namespace", default="kueue-system", show_default=True, help="Where Kueue reads Secrets."
)
@click.option("--dry-run", is_flag=True, help="Only print what would be written.")
@click.option("--force", is_flag=True, help="Do not ask whether the kueue-addon still runs.")
def command(
    clusters: tuple[str, ...],
    kubeconfig: Path | None,
    context: str | None,
    kueue_namespace: str,
    dry_run: bool,
    force: bool,
) -> None:
    """Hand over what the Go kueue-addon has made, under the names that it has.

    For all clusters, with the lists of our checks, or for the credentials of each CLUSTER alone. A
    controller with --credentials-provision=managed-serviceaccount takes it from there.
    """
    try:
        asyncio.run(_adopt(Login(kubeconfig, context), kueue_namespace, clusters, dry_run, force))
    except (ApiError, LoginFailed, ControllerRuns) as error:
        raise click.ClickException(str(error)) from None


async def _adopt(
    login: Login, kueue_namespace: str, clusters: tuple[str, ...], dry_run: bool, force: bool
) -> None:
    async with Client(login) as client:
        if not force:
            await check_that_it_is_stopped(client)
        todo = await steps(client, kueue_namespace, clusters)
        for step in todo:
            if not dry_run:
                await carry_out(client, step)
            click.echo(f"{step.summary}{' (dry run)' if dry_run else ''}")
    if not todo:
        click.echo("nothing to hand over")
