"""`placement-ac hub`: the embedded hub alone, to try things with kubectl or to test against."""

import re
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click

from placement_ac.core.api.constants import OUR_CONTROLLER
from placement_ac.core.api.errors import LoginFailed
from placement_ac.core.kubeconfig.parse import parse_kubeconfig
from placement_ac.core.kubeconfig.refusals import KubeconfigRefused
from placement_ac.observability import logs
from placement_lab.hub import CONTEXT, Hub, write_kubeconfig
from placement_lab.standins.multikueue import ALL_AT_ONCE, INCREMENTAL
from placement_lab.standins.runner import KNOWN, StandInFactory, StandIns

DISPATCHERS: Final = {"AllAtOnce": ALL_AT_ONCE, "Incremental": INCREMENTAL}
"""Kueue's dispatchers by short names. Its configuration takes any text, and then nominates nothing."""


def _address(value: str) -> tuple[str, int]:
    host, colon, port = value.rpartition(":")
    if not colon or "/" in host or not re.fullmatch("[0-9]{1,5}", port) or int(port) > 65535:
        raise click.BadParameter(f"{value!r} is not ADDRESS:PORT, such as 127.0.0.1:8001; port 0 picks one")
    return host.strip("[]") or "127.0.0.1", int(port)


def _stand_ins(value: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in value.split(",") if name.strip())
    for name in names:
        if name not in KNOWN:
            raise click.BadParameter(f"{name!r} is not a stand-in; known are {', '.join(KNOWN)}")
    return names


def _dispatcher(value: str) -> str:
    name = DISPATCHERS.get(value, value)
    if "/" not in name:
        known = ", ".join((*DISPATCHERS, OUR_CONTROLLER))
        raise click.BadParameter(
            f"{value!r} is no dispatcher; known are {known}, and DOMAIN/NAME of your own"
        )
    if name not in (ALL_AT_ONCE, INCREMENTAL, OUR_CONTROLLER):
        click.echo(f"Kueue nominates no cluster: a dispatcher of yours has to, as {name}", err=True)
    return name


@click.command("hub", epilog="Example:  placement-ac hub --with ocm,kueue")
@click.option(
    "--listen",
    "address",
    default="127.0.0.1:0",
    show_default=True,
    type=_address,
    metavar="ADDRESS:PORT",
    help="The address for HTTP and HTTPS; port 0 selects a free one.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("hub.kubeconfig"),
    show_default=True,
    help="Where to write the kubeconfig, with a token, as soon as the hub is ready.",
)
@click.option(
    "--with",
    "stand_ins",
    default="",
    type=_stand_ins,
    metavar="NAMES",
    help=f"Stand-ins to run on it, comma-separated: {', '.join(KNOWN)}.",
)
@click.option(
    "--workers",
    type=click.IntRange(0, 50),
    default=0,
    metavar="N",
    help="Start N worker clusters, too, with credentials for the hub; they run Jobs. Needs --with ocm,kueue, "
    "which is then the default.",
)
@click.option("--gpus", type=click.IntRange(0), default=8, show_default=True, help="The GPUs of each worker.")
@click.option(
    "--dispatcher-name",
    "dispatcher",
    default="AllAtOnce",
    show_default=True,
    type=_dispatcher,
    metavar="NAME",
    help="Kueue's multiKueue.dispatcherName, with --workers: AllAtOnce, Incremental, or "
    "open-cluster-management.io/placement to run the controller with --dispatcher true.",
)
def command(
    address: tuple[str, int],
    kubeconfig: Path,
    stand_ins: tuple[str, ...],
    workers: int,
    gpus: int,
    dispatcher: str,
) -> None:
    """Start only the embedded hub, until it is interrupted."""
    if workers and stand_ins and set(stand_ins) != set(KNOWN):
        raise click.UsageError(f"add --with {','.join(KNOWN)}: without both, no Job reaches a worker")
    _refuse_to_replace(kubeconfig)
    logs.configure("text", "error")
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with _hub(address) as hub, ExitStack() as stack:
        content = hub.kubeconfig()
        which: tuple[str | StandInFactory, ...] = stand_ins
        if workers:
            from placement_lab.playground import Playground  # noqa: PLC0415  # imported only if used

            playground = stack.enter_context(Playground(hub, workers, gpus, dispatcher))
            content, which = playground.kubeconfig(), ("ocm", playground.kueue)
        stack.callback(_remove, kubeconfig, hub.secure_url)
        _write(kubeconfig, content)
        try:
            stack.enter_context(StandIns(kubeconfig, which))
        except LoginFailed as error:
            raise click.ClickException(str(error)) from None
        click.echo(f"The hub listens on {hub.secure_url}")
        click.echo(f"Use it with: kubectl --kubeconfig {click.format_filename(kubeconfig)} get ns")
        stop.wait()


@contextmanager
def _hub(address: tuple[str, int]) -> Iterator[Hub]:
    """Start a hub, and stop it at the end."""
    try:
        hub = Hub(*address).start()
    except OSError as error:
        raise click.ClickException(f"cannot listen on {address[0]}:{address[1]}: {error.strerror}") from None
    except (ValueError, TypeError):  # of the codec for host names, and of the socket
        raise click.BadParameter(f"{address[0]!r} is no host name", param_hint="--listen") from None
    try:
        yield hub
    finally:
        hub.stop()


def _write(kubeconfig: Path, content: dict[str, Any]) -> None:
    try:
        write_kubeconfig(kubeconfig, content)
    except OSError as error:
        raise click.ClickException(f"cannot write {kubeconfig}: {error.strerror}") from None


def _remove(kubeconfig: Path, server: str) -> None:
    """Remove the kubeconfig unless it is another hub's by now."""
    if _hub_in(kubeconfig) == server:
        kubeconfig.unlink()


def _refuse_to_replace(kubeconfig: Path) -> None:
    """Overwrite only the kubeconfig of an embedded hub that has ended: others are hard to recreate.

    A device would be replaced by a file, and removed in the end.
    """
    try:
        if not kubeconfig.exists():
            return
        if not kubeconfig.is_file():
            raise click.UsageError(f"name another file: {kubeconfig} is not a regular file")
        if not kubeconfig.stat().st_size:
            return
    except OSError as error:
        raise click.ClickException(f"cannot write {kubeconfig}: {error.strerror}") from None
    server = _hub_in(kubeconfig)
    if not server:
        raise click.UsageError(f"name another file: {kubeconfig} exists and is not an embedded hub's")
    if _listens(server):
        raise click.UsageError(f"name another file: {kubeconfig} belongs to the hub that runs at {server}")


def _hub_in(kubeconfig: Path) -> str:
    """Return the server of an embedded hub's kubeconfig; "" for any other file."""
    try:
        config = parse_kubeconfig(kubeconfig.read_bytes())
    except (OSError, KubeconfigRefused):  # a file that cannot be read names no server of ours
        return ""
    servers = [cluster.cluster.server for cluster in config.clusters]
    return servers[0] if servers and config.current_context == CONTEXT else ""


def _listens(server: str) -> bool:
    address = urlsplit(server)
    try:
        socket.create_connection((address.hostname or "", address.port or 0), timeout=1).close()
    except (OSError, ValueError):
        return False
    return True
