"""`placement-ac check`: whether the controller can work on a hub with these settings, and does."""

from dataclasses import replace
from functools import partial
from typing import Any

import click

from placement_ac.admin.check import Result, results
from placement_ac.cli.login_options import HubLogin, login_options, with_client
from placement_ac.cli.read_command import ReadCommand
from placement_ac.cli.setting_options import setting_options
from placement_ac.config.load import FILE_SETTING, load
from placement_ac.config.policy import provisioning_policy
from placement_ac.core.api.printable import one_line
from placement_ac.kube.client import Client
from placement_ac.workers.exec_plugins import AccessProviders


@partial(setting_options, shown=(FILE_SETTING,))
@click.command(
    "check",
    cls=ReadCommand,
    epilog="It takes every setting of `run`, as an option, in the environment or in the file."
    "\n\nExample:  placement-ac check --config config.yaml --without-controller",
)
@login_options
@click.option("--without-controller", is_flag=True, help="Do not check whether a controller runs.")
def command(where: HubLogin, without_controller: bool, **flags: Any) -> None:
    """Check that the controller can work with these settings, and does.

    The settings and the files that they name can be used; the hub serves the kinds that they need, and gives
    the account the rights; a controller leads, and has reconciled. Each check is a line, OK or FAIL with what
    to do.
    """
    settings = load(flags | {"kubeconfig": where.kubeconfig, "context": where.context}).settings
    if settings.access_providers:
        AccessProviders.load(settings.access_providers)
    provisioning = provisioning_policy(settings)
    _print(Result("settings"))

    async def check(client: Client) -> list[Result]:
        found = results(client, settings, provisioning, controller=not without_controller)
        return [_print(result) async for result in found]

    login = replace(where, kubeconfig=settings.kubeconfig, context=settings.context)
    found = with_client(login, check)
    if any(result.problem for result in found):
        raise click.exceptions.Exit(1)


def _print(result: Result) -> Result:
    text = result.problem or result.note
    click.echo(
        f"{'FAIL' if result.problem else 'OK  '}  {result.subject}{f': {one_line(text)}' if text else ''}"
    )
    return result
