"""`placement-ac demo`: the three stories, on an embedded hub with workers, in seconds."""

import asyncio
import signal
import sys
import threading
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from typing import Literal

import click
from rich.console import Console

from placement_ac.core.api.constants import DRAIN, IMMEDIATE, RemovalPolicy
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login
from placement_ac.lab.demo.credentials import Making
from placement_ac.lab.demo.environment import Stage
from placement_ac.lab.demo.renderers import JsonShow, LiveShow, PlainShow
from placement_ac.lab.demo.runner import Show, play
from placement_ac.lab.demo.steps import Programme
from placement_ac.lab.demo.stories import programme
from placement_ac.lab.demo.story3 import CARELESS, Way
from placement_ac.lab.demo.viewer import Viewer
from placement_ac.lab.standins.manifests import FIELD_MANAGER
from placement_ac.observability import logs


@click.command(
    "demo",
    epilog="Exit code 0: all came out right; 1: something did not.\n\nExample:  placement-ac demo --story 1",
)
@click.option("--story", type=click.IntRange(1, 3), help="Show this one alone.  [default: all three]")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["json"]),
    help="One JSON document per step, a line each; a last one counts the job's copies.",
)
@click.option(
    "--removal-policy",
    type=click.Choice([DRAIN, IMMEDIATE], case_sensitive=False),
    default=DRAIN,
    show_default=True,
    help="What becomes of the job of story 3 when its cluster leaves: waited for, or sent back.",
)
@click.option(
    "--unsafe",
    is_flag=True,
    help="Show in story 3 what a careless list does, in the controller's place: the job runs twice.",
)
@click.option(
    "--credentials",
    type=click.Choice(["found", "made"]),
    default="found",
    show_default=True,
    help="Whether somebody has put the workers' credentials on the hub, or OCM is asked to make them.",
)
@click.option("--keep", is_flag=True, help="Leave the hub running, with a kubeconfig to use with kubectl.")
@click.option("-v", "--verbose", is_flag=True, help="Show the controller's log as well (on stderr).")
def command(
    story: int | None,
    output: str | None,
    removal_policy: RemovalPolicy,
    unsafe: bool,
    credentials: Literal["found", "made"],
    keep: bool,
    verbose: bool,
) -> None:
    """Show the three stories on an embedded hub."""
    if unsafe and (story in (1, 2) or removal_policy == IMMEDIATE):
        raise click.UsageError("--unsafe is for story 3, and goes with no other removal policy")
    logs.configure("text", "info" if verbose else "error")
    way: Way = CARELESS if unsafe else removal_policy
    made = credentials == "made"
    shown = programme(story, way, made=made)
    with Stage(jobs=shown.ending is not None, made=made, removal_policy=removal_policy) as stage:
        right = asyncio.run(_play(stage, shown, output))
        if keep:
            _keep(stage, to_stderr=output == "json")
    sys.exit(0 if right else 1)


async def _play(stage: Stage, shown: Programme, output: str | None) -> bool:
    login = Login(stage.kubeconfig)
    ledger = stage.fleet.counter if stage.fleet else None
    async with AsyncExitStack() as opened:
        client = await opened.enter_async_context(Client(login, field_manager=FIELD_MANAGER))
        making = await opened.enter_async_context(Making(login, stage.workers)) if stage.made else None
        seen = await opened.enter_async_context(Viewer(login, client, ledger, making))
        with _show(output) as show:
            return await play(shown, client, stage, seen, show)


def _show(output: str | None) -> AbstractContextManager[Show]:
    if output == "json":
        return nullcontext(JsonShow())
    console = Console()
    return LiveShow(console) if console.is_terminal else nullcontext(PlainShow())


def _keep(stage: Stage, *, to_stderr: bool) -> None:
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    click.echo(
        f"The hub goes on at {stage.hub.secure_url}; stop it with Ctrl-C. Look around with:\n"
        f"  export KUBECONFIG={stage.kubeconfig}\n"
        "  kubectl get placementdecisions -n kueue-system\n"
        "  kubectl get multikueueclusters\n"
        "  kubectl get workloads\n"
        "  kubectl describe admissioncheck placement-demo2",
        err=to_stderr,
    )
    stop.wait()
