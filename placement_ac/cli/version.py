"""`placement-ac version`: the versions of this program, the hub, Kueue and OCM."""

import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Final

import click

from placement_ac.cli.documents import Form, aligned, in_json, output
from placement_ac.cli.login_options import HubLogin, kueue_namespace_option, login_options, with_client
from placement_ac.cli.read_command import ReadCommand
from placement_ac.core.api.constants import DEPLOYMENT, KUEUE_MANAGER
from placement_ac.core.api.errors import NotFound, Refused
from placement_ac.core.api.fields import key_of
from placement_ac.core.api.kueue_deployment import KUEUE_SELECTOR, kueue_deployments
from placement_ac.core.api.printable import one_line
from placement_ac.core.api.to_yaml import to_yaml
from placement_ac.core.inputs.fitness import release_of
from placement_ac.kube.client import Client

OCM_NAMESPACE: Final = "open-cluster-management-hub"
OCM_SCHEDULER: Final = "cluster-manager-placement-controller"
"""The Deployment of OCM's scheduler."""
_TITLES: Final = {"placementAc": "placement-ac", "hub": "Kubernetes", "kueue": "Kueue", "ocm": "OCM"}


@click.command("version", cls=ReadCommand, epilog="Example:  placement-ac version")
@login_options
@kueue_namespace_option
@output("json", "yaml")
def command(where: HubLogin, kueue_namespace: str, form: Form) -> None:
    """Print the versions of placement-ac, and of the hub, Kueue and OCM.

    A version that is not known says why.
    """

    async def read(client: Client) -> dict[str, str]:
        return {
            "hub": str((await client.request("GET", "/version")).get("gitVersion", "unknown")),
            "kueue": await _release(client, kueue_namespace, await _kueue_name(client, kueue_namespace)),
            "ocm": await _release(client, OCM_NAMESPACE, OCM_SCHEDULER),
        }

    versions = {"placementAc": version("placement-ac")}
    try:
        versions |= with_client(where, read)
    finally:
        _emit(versions, form)


def _emit(versions: Mapping[str, str], form: Form) -> None:
    if form == "json":
        click.echo(in_json(json.dumps(versions, indent=2, ensure_ascii=False)))
    elif form == "yaml":
        click.echo(to_yaml(dict(versions)), nl=False)
    else:
        rows = ((_TITLES[name], one_line(text)) for name, text in versions.items())
        click.echo(aligned([("WHAT", "VERSION"), *rows]))


async def _kueue_name(client: Client, namespace: str) -> str:
    """Return the name of Kueue's Deployment: a Helm release of another name has another one."""
    try:
        deployments = await client.list(DEPLOYMENT.at("v1"), namespace, label_selector=KUEUE_SELECTOR)
    except Refused:
        return KUEUE_MANAGER
    names = (key_of(deployment)[1] for deployment in kueue_deployments(deployments.items))
    return next(names, KUEUE_MANAGER)


async def _release(client: Client, namespace: str, name: str) -> str:
    """Return the release of a Deployment, by its image or its label, or why it is unknown."""
    try:
        deployment = await client.get(DEPLOYMENT.at("v1"), name, namespace)
    except NotFound:
        return f"unknown: there is no Deployment {namespace}/{name}"
    except Refused as refused:
        no_right = f"no right to get deployments.apps in namespace {namespace}"
        return f"unknown: {no_right if refused.status == 403 else 'refused'}"
    return release_of(deployment) or f"unknown: Deployment {namespace}/{name} has an image without a release"
