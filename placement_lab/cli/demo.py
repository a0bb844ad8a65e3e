"""`placement-ac demo`: the stories, on embedded hubs with workers, in seconds."""

import asyncio
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import timedelta
from typing import Any, Final, Literal

import click

from kubectl_placement.cli.console import console
from kubectl_placement.cli.ui import opened_in_browser
from kubectl_placement.cli.ui_thread import UiThread
from placement_ac.cli.login_options import duration
from placement_ac.core.api.constants import DRAIN, IMMEDIATE, RemovalPolicy
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login
from placement_ac.observability import logs
from placement_lab.demo.credentials import CredentialViewer
from placement_lab.demo.environment import DemoEnvironment
from placement_lab.demo.renderers import JsonRenderer, TerminalRenderer, TextRenderer
from placement_lab.demo.runner import Renderer, ScenarioResult, finish, run_scenario
from placement_lab.demo.steps import Scenario
from placement_lab.demo.stories import scenario
from placement_lab.demo.story3 import UNSAFE, Story3Mode
from placement_lab.demo.story4 import STORY_4
from placement_lab.demo.story5 import STORY_5
from placement_lab.demo.viewer import Viewer
from placement_lab.demo.worker_setup import WORKER_SETUP
from placement_lab.standins.manifests import connect

UI_PAUSE: Final = timedelta(seconds=4)
"""The pause after each step with --ui: time to look."""
STORY_OF_DISPATCHER: Final = 4
STORY_OF_SCORES: Final = 5
"""These have environments of their own."""


@click.command(
    "demo",
    epilog="Exit code 0: every step succeeded; 1: a step failed.\n\nExample:  placement-ac demo --story 1",
)
@click.option(
    "--story",
    type=click.IntRange(1, 5),
    help="Show this one alone; 4 and 5 have hubs of their own.  [default: 1 to 4, or 1 to 3 with --unsafe, "
    "--credentials made, --keep or --ui]",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["json"]),
    help="One JSON document per step, a line each; a last one counts the copies of jobs.",
)
@click.option(
    "--removal-policy",
    type=click.Choice([DRAIN, IMMEDIATE], case_sensitive=False),
    default=DRAIN,
    show_default=True,
    help="In story 3, wait for the job on the cluster that leaves, or send it back.",
)
@click.option(
    "--unsafe",
    is_flag=True,
    help="In story 3, replace the controller by a loop that ignores running jobs: the job runs twice.",
)
@click.option(
    "--credentials",
    type=click.Choice(["found", "made"]),
    default="found",
    show_default=True,
    help="Use credentials that are on the hub (found), or let OCM issue them (made).",
)
@click.option(
    "--worker-setup",
    is_flag=True,
    help="Show story 1 from bare workers instead: OCM puts namespaces, queues and quota onto each.",
)
@click.option(
    "--ui",
    is_flag=True,
    help="Open a page in the browser that follows the hub, as `placement-ac ui` does. Implies --keep.",
)
@click.option(
    "--pause",
    type=duration,
    help="Wait this long after each step, such as 5s.  [default: 4s with --ui, or 0s]",
)
@click.option("--keep", is_flag=True, help="Leave the hub running, with a kubeconfig to use with kubectl.")
@click.option("-v", "--verbose", is_flag=True, help="Show the controller's log as well (on stderr).")
def command(
    story: int | None,
    output: str | None,
    removal_policy: RemovalPolicy,
    unsafe: bool,
    credentials: Literal["found", "made"],
    worker_setup: bool,
    ui: bool,
    pause: timedelta | None,
    keep: bool,
    verbose: bool,
) -> None:
    """Show the stories on embedded hubs."""
    if unsafe and (story not in (None, 3) or removal_policy == IMMEDIATE):
        raise click.UsageError("--unsafe is for story 3, and goes with no other removal policy")
    if credentials == "made" and story in (STORY_OF_DISPATCHER, STORY_OF_SCORES):
        raise click.UsageError("--credentials made is for stories 1 to 3")
    if worker_setup and (unsafe or credentials == "made" or story not in (None, 1)):
        raise click.UsageError("--worker-setup is for story 1, with credentials that are found")
    logs.configure("text", "info" if verbose else "error")
    mode: Story3Mode = UNSAFE if unsafe else removal_policy
    parts = tuple(_parts(story, mode, provisioned=credentials == "made", one_hub=keep or ui))
    parts = ((WORKER_SETUP, {"sets_up": True}),) if worker_setup else parts
    seconds = (pause or (UI_PAUSE if ui else timedelta())).total_seconds()
    played: list[ScenarioResult] = []
    with ExitStack() as opened:
        with _renderer(output) as renderer:
            for chosen, options in parts:
                opened.close()  # the environment before
                environment = opened.enter_context(DemoEnvironment(**options))
                if ui:
                    opened.enter_context(_page(environment, output))
                first = 1 + sum(len(result.steps) for result in played)
                played.append(asyncio.run(_run(environment, chosen, renderer, seconds, first)))
            succeeded = finish(renderer, played)
        if keep or ui:
            _keep(environment, chosen.steps[-1].placement, to_stderr=output == "json")
    sys.exit(0 if succeeded else 1)


def _parts(
    story: int | None, mode: Story3Mode, *, provisioned: bool, one_hub: bool
) -> Iterator[tuple[Scenario, dict[str, Any]]]:
    """Yield the scenarios to play, each with the options of its environment."""
    if story == STORY_OF_SCORES:
        yield STORY_5, {"reports": True}
    elif story != STORY_OF_DISPATCHER:
        chosen = scenario(story, mode, provisioned=provisioned)
        policy = DRAIN if mode == UNSAFE else mode
        yield (
            chosen,
            {"jobs": chosen.expected is not None, "provisioned": provisioned, "removal_policy": policy},
        )
    alone = story is not None or mode == UNSAFE or provisioned or one_hub
    if story == STORY_OF_DISPATCHER or not alone:
        yield STORY_4, {"dispatched": True}


@contextmanager
def _page(environment: DemoEnvironment, output: str | None) -> Iterator[None]:
    """Serve the page of the hub as long as the `with` lasts, and open it."""
    with UiThread(environment.kubeconfig) as page:
        click.echo(f"The page is at {page.url}", err=output == "json")
        with opened_in_browser(page.url):
            yield


async def _run(
    environment: DemoEnvironment, chosen: Scenario, renderer: Renderer, pause: float, first: int
) -> ScenarioResult:
    login = Login(environment.kubeconfig)
    counter = environment.fleet.counter if environment.fleet else None
    credentials = CredentialViewer(login, environment.workers) if environment.provisioned else nullcontext()
    async with (
        Client(login) as client,
        credentials as credentials_viewer,
        Viewer(client, counter, credentials_viewer) as viewer,
    ):
        return await run_scenario(
            chosen,
            connect(environment.kubeconfig),
            environment,
            viewer,
            renderer,
            pause=pause,
            first=first,
            explainer=environment.explainer,
        )


def _renderer(output: str | None) -> AbstractContextManager[Renderer]:
    if output == "json":
        return nullcontext(JsonRenderer())
    out = console()
    return TerminalRenderer(out) if out.is_terminal else nullcontext(TextRenderer())


def _keep(environment: DemoEnvironment, check: str, *, to_stderr: bool) -> None:
    """Leave the hub running until Ctrl-C, and print how to explore it."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    settings = environment.settings_file
    command = f"\n  placement-ac explain workload large --workers --config {settings}"
    explain = command if environment.explainer else ""
    click.echo(
        f"The hub keeps running at {environment.hub.secure_url}; press Ctrl-C to stop it. To explore it:\n"
        f"  export KUBECONFIG={environment.kubeconfig}\n"
        "  kubectl get placementdecisions -n kueue-system\n"
        "  kubectl get multikueueclusters\n"
        "  kubectl get workloads\n"
        f"  kubectl describe admissioncheck {check}{explain}",
        err=to_stderr,
    )
    stop.wait()
