"""`placement-ac demo`: the three stories, on an embedded hub, in seconds."""

import asyncio
import signal
import sys
import threading
from contextlib import AbstractContextManager, nullcontext

import click
from rich.console import Console

from placement_ac import logs
from placement_ac.demo.play import Show, play
from placement_ac.demo.shows import JsonShow, LiveShow, PlainShow
from placement_ac.demo.stage import Stage
from placement_ac.demo.viewer import Viewer
from placement_ac.kube import Client
from placement_ac.login import Login
from placement_ac.sim.manifests import FIELD_MANAGER


@click.command("demo", epilog="Exit code 0: every step came out right; 1: one did not.")
@click.option("--story", type=click.IntRange(1, 3), help="Show this one alone.  [default: all three]")
@click.option("-o", "--output", type=click.Choice(["json"]), help="One JSON document per step, a line each.")
@click.option("--keep", is_flag=True, help="Leave the hub running, with a kubeconfig to use with kubectl.")
@click.option("-v", "--verbose", is_flag=True, help="Show the controller's log as well (on stderr).")
def command(story: int | None, output: str | None, keep: bool, verbose: bool) -> None:
    """Show the three stories on an embedded hub."""
    logs.configure("text", "info" if verbose else "error")
    with Stage() as stage:
        right = asyncio.run(_play(stage, story, output))
        if keep:
            _keep(stage, to_stderr=output == "json")
    sys.exit(0 if right else 1)


async def _play(stage: Stage, story: int | None, output: str | None) -> bool:
    login = Login(stage.kubeconfig)
    async with Client(login, field_manager=FIELD_MANAGER) as client, Viewer(login, client) as seen:
        with _show(output) as show:
            return await play(story, client, seen, show)


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
        "  kubectl describe admissioncheck placement-demo2",
        err=to_stderr,
    )
    stop.wait()
