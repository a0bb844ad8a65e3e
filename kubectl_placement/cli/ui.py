"""`placement-ac ui`: a page on this machine that follows the hub."""

import asyncio
import gc
import html
import signal
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Final

import click

from kubectl_placement.cli.hub_options import HubReading, HubSource, hub_options, read_once
from kubectl_placement.cli.missing_kinds import report_missing, require_checks_known
from kubectl_placement.cli.ui_feed import KINDS, Feed
from kubectl_placement.cli.ui_server import serve
from placement_ac.cli.login_options import login_to
from placement_ac.cli.read_command import ReadCommand
from placement_ac.kube.client import COMMAND_RETRIES, Client

_REDIRECT: Final = (
    '<!DOCTYPE html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
    '<meta http-equiv="refresh" content="0; url={url}"><a href="{url}">placement-ac ui</a>\n'
)


@click.command("ui", cls=ReadCommand, epilog="Example:  placement-ac ui --open")
@hub_options
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="The port on 127.0.0.1; 0 selects a free one.",
)
@click.option(
    "--prometheus",
    metavar="URL",
    default="",
    help="Also show the GPUs used in the last day, by metrics.",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
def command(where: HubSource, port: int, prometheus: str, opens: bool) -> None:
    """Show the hub on a page in the browser that follows each change.

    From checks to Placements, clusters and Workloads, with the last hour of a check, and explanations. The
    page only reads, with your own rights. It is served until Ctrl-C, on this machine only; whoever
    has its address can read it there.
    """
    if prometheus and where.dump_files:
        raise click.UsageError("use --prometheus without --from-dump")
    asyncio.run(run(where, port, opens, prometheus))


async def run(where: HubSource, port: int, opens: bool, prometheus: str = "") -> None:
    """Serve the page until SIGINT or SIGTERM. Raises PlacementAcError and ClickException."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        feed = Feed(where, prometheus)
        stack.callback(feed.close)
        url = await start(stack, feed, port, stop)
        if url:
            gc.freeze()  # what has been read stays: a collection that visits all of it delays a change
            click.echo(f"The page is at {url}; press Ctrl-C to stop it.")
            with opened_in_browser(url) if opens else nullcontext():
                await stop.wait()


async def start(stack: AsyncExitStack, feed: Feed, port: int, stop: asyncio.Event) -> str:
    """Read the hub, follow it until `stack` ends, and serve it; return the URL, "" if `stop` was first."""
    where = feed.where
    if where.dump_files:
        reading = await asyncio.to_thread(read_once, where, KINDS)
        _report(reading)
        await feed.take(reading)
    else:
        client = await stack.enter_async_context(Client(login_to(where), retries=COMMAND_RETRIES))
        following = asyncio.create_task(feed.follow(client, _report))
        following.add_done_callback(lambda _: stop.set())
        stack.push_async_callback(_cancel, following)
        waits = [asyncio.create_task(work) for work in (feed.next_revision(0), stop.wait())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        if not feed.revision:
            return ""
    return await stack.enter_async_context(serve(feed, port))


async def _cancel(task: asyncio.Task[None]) -> None:
    """Cancel a task; raises what it has failed with before."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def _report(reading: HubReading) -> None:
    """Report missing rights. Raises ClickException if nothing can be shown."""
    require_checks_known(reading)
    report_missing(reading)


@contextmanager
def opened_in_browser(url: str) -> Iterator[None]:
    """Open a page in a browser with a window of its own, if there is one: others take the terminal.

    Every user of the machine sees the arguments of a browser's process, and the URL has a secret: the browser
    gets a file that leads to it, which only this user may read, and which is there as long as the `with`.
    """
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        browser = None
    if browser is None or type(browser) is webbrowser.GenericBrowser:
        yield
        return
    with tempfile.NamedTemporaryFile("w", prefix="placement-ac-", suffix=".html") as file:  # mode 0600
        file.write(_REDIRECT.format(url=html.escape(url)))
        file.flush()
        browser.open(Path(file.name).as_uri())
        yield
