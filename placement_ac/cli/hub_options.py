"""
The options that the commands which only read a hub share, and how they read it.

They write nothing. A missing right is reported on stderr, with the command that checks it.
"""

import asyncio
import errno
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from placement_ac.cli.output import without_controls
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import (
    CLUSTER_PROFILE,
    EVENT,
    EVENTS_NAMESPACE,
    LEASE,
    PLACEMENT,
    PLACEMENT_DECISION,
    SECRET,
    Kind,
)
from placement_ac.core.api.errors import PlacementAcError
from placement_ac.inspection.hub.controller_settings import NAMESPACE, ControllerSettings, find_settings
from placement_ac.inspection.hub.dump import Dump, MissingRight, dump_of
from placement_ac.inspection.hub.hub_view import HubView
from placement_ac.inspection.hub.kinds import CONFIG_MAP, CONTROLLER_KINDS, DEPLOYMENT
from placement_ac.inspection.readers.hub_reader import PAUSE_SECONDS, Namespaces, read_kinds, watch_kinds
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login

T = TypeVar("T")

ALL_NAMESPACES_KINDS: Final = (PLACEMENT, PLACEMENT_DECISION)
"""Kinds read in all namespaces: OCM's Balance counts the decisions of all Placements."""
FAILED: Final = 1
"""The exit code of every error, usage errors included: for some commands 2 has another meaning."""
INTERRUPTED: Final = 130
"""The exit code after Ctrl-C, as in shells."""


class _UsageError(click.UsageError):
    exit_code = FAILED


class ReadCommand(click.Command):
    """A command whose usage errors have exit code 1, like its other errors."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            raise _UsageError(error.format_message(), error.ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PlacementAcError as error:
            message = "\n".join(map(without_controls, str(error).splitlines()))
            raise click.ClickException(message) from None
        except click.UsageError as error:
            raise _UsageError(error.format_message(), error.ctx) from None
        except KeyboardInterrupt:
            raise click.exceptions.Exit(INTERRUPTED) from None
        except OSError as error:
            if error.errno in (None, errno.EPIPE):  # the reader has closed the pipe: click exits quietly
                raise
            _drop_unprintable_output()
            raise click.ClickException(without_controls(str(error))) from None


def _drop_unprintable_output() -> None:
    """Flush stdout or drop its buffer: else Python would flush again at exit and exit with 120."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


@dataclass(frozen=True, slots=True)
class HubSource:
    """Where to read: an API server or a dump."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: tuple[str, ...] = ()
    """Of Placements; (): the controller's setting."""
    kueue_namespace: str | None = None
    controller_namespace: str = NAMESPACE
    config: Path | None = None
    dump_files: tuple[str, ...] = ()

    @property
    def given_settings(self) -> dict[str, Any]:
        """The settings given on the command line."""
        return {
            "placement_namespace": ",".join(self.namespace) or None,
            "kueue_namespace": self.kueue_namespace,
            "config": self.config,
        }


@dataclass(frozen=True, slots=True)
class HubReading:
    """The hub that was read, and the controller's settings."""

    view: HubView
    controller: ControllerSettings

    @property
    def dump(self) -> Dump:
        return self.view.dump


def hub_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where to read; the command gets them as one `where`."""

    def called(**options: Any) -> Any:
        mine = {
            "kubeconfig": options.pop("kubeconfig"),
            "context": options.pop("context"),
            "namespace": tuple(filter(None, (options.pop("namespace") or "").split(","))),
            "kueue_namespace": options.pop("kueue_namespace"),
            "controller_namespace": options.pop("controller_namespace"),
            "config": options.pop("config"),
            "dump_files": options.pop("from_dump"),
        }
        return command(where=HubSource(**mine), **options)

    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]  # as click keeps them
    for option in reversed(_OPTIONS):
        called = option(called)
    return called


_file = click.Path(dir_okay=False, path_type=Path)
_OPTIONS: Final = (
    click.option("--kubeconfig", type=_file, help="The kubeconfig."),
    click.option("--context", help="The context in the kubeconfig."),
    click.option(
        "-n",
        "--namespace",
        metavar="NAMESPACE,…",
        help="The namespaces of Placements.  [default: the controller's setting]",
    ),
    click.option("--kueue-namespace", help="The namespace of Kueue.  [default: the controller's setting]"),
    click.option(
        "--controller-namespace",
        default=NAMESPACE,
        show_default=True,
        help="The namespace of the controller.",
    ),
    click.option("--config", type=_file, help="Use this settings file, not the controller's settings."),
    click.option(
        "--from-dump",
        multiple=True,
        metavar="FILE",
        help="Read the output of `kubectl get … -o yaml`, not a hub; may be given several times.",
    ),
)


def read_once(where: HubSource, kinds: Collection[Kind]) -> HubReading:
    """Read the hub or the dump once. Raises ApiError, LoginFailed, InvalidManifest, BadSettings."""
    if where.dump_files:
        from placement_ac.inspection.readers.manifests import read_manifests  # noqa: PLC0415  # not needed for a hub

        dump = dump_of(read_manifests(where.dump_files))
        return _hub_reading(dump, find_settings(dump, where.given_settings))
    return with_client(where, lambda client: read_hub(client, where, kinds))


def with_client(where: HubSource, work: Callable[[Client], Awaitable[T]]) -> T:
    """Run `work` with a client of the hub."""

    async def work_with_client() -> T:
        async with Client(Login(where.kubeconfig, where.context)) as client:
            return await work(client)

    return asyncio.run(work_with_client())


async def read_hub(client: Client, where: HubSource, kinds: Collection[Kind]) -> HubReading:
    """Read the hub: first the controller and its settings, then all else concurrently."""
    ours, found = await _read_controller(client, where)
    dump = await read_kinds(client, _others(kinds), namespaces_of(found.loaded.settings))
    return _hub_reading(_merged_dump(ours, dump), found)


async def read_all_namespaces(
    client: Client, where: HubSource, kinds: Collection[Kind], namespaces: Collection[str] = ()
) -> HubReading:
    """Read the hub, with Placements and decisions of all namespaces.

    Without that right: of the watched namespaces and of `namespaces`; a line on stderr says so.
    """
    found = await read_hub(client, where, kinds)
    whole = await read_kinds(client, ALL_NAMESPACES_KINDS, {})
    if whole.missing:
        report_missing(whole.missing, "Placements in other namespaces are not counted")
        watched = found.view.settings.placement_namespace
        spaces = tuple(dict.fromkeys((*watched, *namespaces)))
        whole = await read_kinds(client, ALL_NAMESPACES_KINDS, dict.fromkeys(ALL_NAMESPACES_KINDS, spaces))
    return HubReading(replace(found.view, dump=_both(found.dump, whole)), found.controller)


def _both(one: Dump, other: Dump) -> Dump:
    """Return the first dump with the kinds of the second."""
    kept = tuple(right for right in one.missing if right.kind not in other.objects)
    return replace(one, objects={**one.objects, **other.objects}, missing=(*kept, *other.missing))


async def watch_hub(
    client: Client, where: HubSource, kinds: Collection[Kind], pause: float = PAUSE_SECONDS
) -> AsyncGenerator[HubReading]:
    """Read the hub, and again `pause` seconds after each change. The controller's settings are read once.

    Raises ApiError if the hub does not answer or a right is lost.
    """
    ours, found = await _read_controller(client, where)
    followed = watch_kinds(client, _others(kinds), namespaces_of(found.loaded.settings), pause)
    async with aclosing(followed) as dumps:
        async for dump in dumps:
            yield _hub_reading(_merged_dump(ours, dump), found)


async def _read_controller(client: Client, where: HubSource) -> tuple[Dump, ControllerSettings]:
    ours = await read_kinds(
        client, CONTROLLER_KINDS, _scopes((where.controller_namespace,), CONTROLLER_KINDS)
    )
    return ours, find_settings(ours, where.given_settings)


def _others(kinds: Collection[Kind]) -> list[Kind]:
    return [kind for kind in kinds if kind not in CONTROLLER_KINDS]


def _merged_dump(ours: Dump, dump: Dump) -> Dump:
    return Dump(
        {**ours.objects, **dump.objects},
        {**ours.served, **dump.served},
        dump.missing,  # without a right to the controller's objects, the defaults are used
        dump.schemas,
        live=True,
    )


def namespaces_of(settings: Settings) -> Namespaces:
    """Return the namespaces in which each kind is read."""
    kueue = (settings.kueue_namespace,)
    return {
        SECRET: kueue,
        CLUSTER_PROFILE: kueue,
        PLACEMENT: settings.placement_namespace,
        PLACEMENT_DECISION: settings.placement_namespace,
        DEPLOYMENT: kueue,
        CONFIG_MAP: kueue,
        LEASE: kueue,
        EVENT: (EVENTS_NAMESPACE,),
    }


def _scopes(namespaces: Sequence[str], kinds: Collection[Kind]) -> Namespaces:
    return dict.fromkeys(kinds, namespaces)


def _hub_reading(dump: Dump, found: ControllerSettings) -> HubReading:
    return HubReading(HubView(dump, found.loaded.settings, datetime.now(UTC)), found)


def report_missing(missing: Collection[MissingRight], what: str = "") -> None:
    """Report missing rights on stderr; `what`: their effect."""
    for right in missing:
        message = f"; {what}" if what else ""
        click.echo(f"missing right: {right}{message} (check: {right.check_command})", err=True)
