"""
The options that several commands share, and how the commands that only read a hub read it.

Those commands write nothing.
"""

import asyncio
import errno
import os
import sys
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

import click
from pydantic import TypeAdapter, ValidationError

from placement_ac.config.settings import BadSettings, Seconds, Settings
from placement_ac.core.api.constants import (
    CLUSTER_PROFILE,
    EVENT,
    EVENTS_NAMESPACE,
    LEASE,
    MANAGED_BY,
    PLACEMENT,
    PLACEMENT_DECISION,
    SECRET,
    WATCHED_KINDS,
    Kind,
    Resource,
)
from placement_ac.core.api.errors import PlacementAcError
from placement_ac.core.api.printable import one_line
from placement_ac.inspection.doctor.kueue import HubKueue
from placement_ac.inspection.explain.subject import UnknownType
from placement_ac.inspection.hub.controller_settings import (
    LEASE_SELECTOR,
    NAMESPACE,
    SELECTORS,
    ControllerSettings,
    config_map_name,
    deployments,
    find_settings,
)
from placement_ac.inspection.hub.controller_state import lease_key_of
from placement_ac.inspection.hub.dump import Dump, MissingRight, key_of
from placement_ac.inspection.hub.hub_view import HubView
from placement_ac.inspection.hub.kinds import (
    CONFIG_MAP,
    DECISION_KINDS,
    DEPLOYMENT,
    PROVISIONED_KINDS,
    QUEUE_KINDS,
    SETTINGS_KINDS,
)
from placement_ac.inspection.readers.hub_reader import (
    PAUSE_SECONDS,
    Labelled,
    Namespaces,
    OneObject,
    read_kinds,
    watch_kinds,
)
from placement_ac.inspection.readers.manifests import read_dump
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login
from placement_ac.observability import logs

T = TypeVar("T")

STATUS_KINDS: Final = (*WATCHED_KINDS, *QUEUE_KINDS, *PROVISIONED_KINDS)
EXPLAIN_KINDS: Final = (*DECISION_KINDS, *QUEUE_KINDS, *PROVISIONED_KINDS)
ALL_NAMESPACES_KINDS: Final = (PLACEMENT, PLACEMENT_DECISION)
"""Kinds read in all namespaces: OCM's Balance counts the decisions of all Placements."""
PYTHONS_CODE: Final = 1
"""Python's exit code after an exception that nobody has handled."""
INTERRUPTED: Final = 130
"""The exit code after Ctrl-C, as in shells."""


class ReadCommand(click.Command):
    """A command whose errors have one exit code; that of usage errors is click's, as for every command."""

    error_code: ClassVar[int] = PYTHONS_CODE

    def invoke(self, ctx: click.Context) -> Any:
        logs.configure("text", "error")  # to stderr: stdout is for the answer
        try:
            return super().invoke(ctx)
        except PlacementAcError as error:
            raise self._coded(_in_click(error, ctx)) from None
        except click.ClickException as error:
            raise self._coded(error) from None
        except KeyboardInterrupt:
            raise click.exceptions.Exit(INTERRUPTED) from None
        except OSError as error:
            if error.errno is None:
                self._exit_with_traceback()
                raise
            _drop_unprintable_output()
            if error.errno == errno.EPIPE:  # the reader has closed the pipe, and wants no message
                raise click.exceptions.Exit(self.error_code) from None
            raise self._coded(click.ClickException(one_line(str(error)))) from None
        except (click.exceptions.Exit, click.exceptions.Abort):
            raise
        except Exception:  # a bug: with Python's exit code, `plan` would say that something changes
            self._exit_with_traceback()
            raise

    def _exit_with_traceback(self) -> None:
        """Report the error that is being handled, and exit with our code; Python would exit with its own."""
        if self.error_code != PYTHONS_CODE:
            traceback.print_exc()
            raise click.exceptions.Exit(self.error_code) from None

    def _coded(self, error: click.ClickException) -> click.ClickException:
        if not isinstance(error, click.UsageError):
            error.exit_code = self.error_code  # type: ignore[misc]  # click reads it of the instance
        return error


def _in_click(error: PlacementAcError, ctx: click.Context) -> click.ClickException:
    """Return an error as click's: one of usage for a value that the caller has given."""
    message = "\n".join(map(one_line, str(error).splitlines()))
    is_of_usage = isinstance(error, BadSettings | UnknownType)
    return click.UsageError(message, ctx) if is_of_usage else click.ClickException(message)


def _drop_unprintable_output() -> None:
    """Flush the outputs or drop their buffers: else Python would flush again at exit and exit with 120."""
    for output in (sys.stdout, sys.stderr):
        try:
            output.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, output.fileno())
            os.close(nowhere)


@dataclass(frozen=True, slots=True)
class HubSource:
    """Where to read: an API server or a dump."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: tuple[str, ...] = ()
    """Of Placements; (): the controller's setting."""
    kueue_namespace: str | None = None
    controller_namespace: str = ""
    """"": any."""
    config: Path | None = None
    dump_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HubReading:
    """The hub that was read, and the controller's settings."""

    view: HubView
    controller: ControllerSettings
    elsewhere: tuple[MissingRight, ...] = ()
    """The missing rights to read all namespaces: fewer were read instead."""
    watched: tuple[str, ...] = ()
    """The namespaces of Placements that the controller watches, if `-n` names others."""

    @property
    def dump(self) -> Dump:
        return self.view.dump

    @property
    def missing_rights(self) -> tuple[MissingRight, ...]:
        return (*self.view.missing_rights, *self.elsewhere)

    @property
    def controller_namespace(self) -> str:
        """The namespace in which the controller is, or would be installed."""
        return self.controller.namespace or NAMESPACE


def option_group(
    argument: str, group: Callable[..., Any], *options: click.Option
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds `options`; the command gets `group(**values)` as one `argument`."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def called(**values: Any) -> Any:
            mine = {option.name: values.pop(option.name) for option in options}
            return command(**{argument: group(**mine)}, **values)

        params = [*getattr(command, "__click_params__", ()), *reversed(options)]
        called.__click_params__ = params  # type: ignore[attr-defined]  # as click keeps them, in reverse order
        return called

    return add


def duration(value: str) -> timedelta:
    """Return the value of an option: the `type` of such options. Raises BadParameter."""
    try:
        return timedelta(seconds=TypeAdapter(Seconds).validate_python(value))
    except (ValidationError, OverflowError):
        raise click.BadParameter("use a duration like 90s, 5m or 1h30m") from None


FILE: Final = click.Path(dir_okay=False, path_type=Path)
_LOGIN: Final = (
    click.Option(["--kubeconfig"], type=FILE, help="The kubeconfig."),
    click.Option(["--context"], help="The context in the kubeconfig."),
)
_WHERE: Final = (
    *_LOGIN,
    click.Option(
        ["-n", "--namespace"],
        callback=lambda _, __, value: tuple(filter(None, (value or "").split(","))),
        metavar="NAMESPACE,…",
        help="The namespaces of Placements.  [default: the controller's setting]",
    ),
    click.Option(["--kueue-namespace"], help="The namespace of Kueue.  [default: the controller's setting]"),
    click.Option(
        ["--controller-namespace"],
        default="",
        help="The namespace of the controller.  [default: any]",
    ),
    click.Option(
        ["--settings", "--config", "config"],
        type=FILE,
        help="Use this settings file, not the controller's settings.",
    ),
)
hub_options = option_group(
    "where",
    HubSource,
    *_WHERE,
    click.Option(
        ["--from-dump", "dump_files"],
        multiple=True,
        metavar="FILE",
        help="Read what `placement-ac dump` or `kubectl get … -o yaml` wrote, not a hub; may be repeated.",
    ),
)
"""The options that say where to read, for commands that only read."""
live_hub_options = option_group("where", HubSource, *_WHERE)
"""The same for a command that reads only a hub."""
login_options = option_group("where", HubSource, *_LOGIN)
kueue_namespace_option = click.option(
    "--kueue-namespace",
    default="kueue-system",
    show_default=True,
    help="The namespace in which Kueue reads Secrets.",
)


def read_once(where: HubSource, kinds: Collection[Kind]) -> HubReading:
    """Read the hub or the dump once. Raises ApiError, LoginFailed, InvalidManifest, BadSettings."""
    if where.dump_files:
        return _hub_reading(read_dump(where.dump_files), where)
    return with_client(where, lambda client: read_hub(client, where, kinds))


def login_to(where: HubSource) -> Login:
    """Return the login to the hub; a credential plugin's messages are shown, as by kubectl."""
    return Login(where.kubeconfig, where.context, show=lambda text: click.echo(text, nl=False, err=True))


def with_client(where: HubSource, work: Callable[[Client], Awaitable[T]], *, announces: bool = False) -> T:
    """Run `work` with a client of the hub.

    `announces`: name the hub first, on stderr; for commands that write.
    """

    async def work_with_client() -> T:
        login = login_to(where)
        if announces:
            click.echo(f"Hub: {one_line(login.described_as)}", err=True)
        async with Client(login) as client:
            return await work(client)

    return asyncio.run(work_with_client())


async def read_hub(
    client: Client, where: HubSource, kinds: Collection[Kind], schemas: Collection[Resource] = ()
) -> HubReading:
    """Read the hub: first the controller and its settings, then all else concurrently."""
    ours = await _read_controller(client, where)
    others = [kind for kind in kinds if kind not in SETTINGS_KINDS]
    return _merged(ours, await read_kinds(client, others, namespaces_of(ours.view.settings), schemas))


def installation_namespaces(found: HubReading) -> tuple[str, ...]:
    """Return the namespaces of the controller and of Kueue."""
    return tuple(dict.fromkeys((found.controller_namespace, found.view.settings.kueue_namespace)))


async def read_installations(client: Client, reading: HubReading) -> Dump:
    """Read the Lease, the Deployments of all namespaces, and the settings of controller and Kueue.

    Another controller may be in any of them. Without that right: the Deployments of their namespaces.
    Of the ConfigMaps, a viewer may read those that they mount.
    """
    settings = reading.view.settings
    found = await read_kinds(client, (LEASE, DEPLOYMENT), {**namespaces_of(settings), DEPLOYMENT: ()})
    if any(right.kind == DEPLOYMENT for right in found.missing):
        namespaces = installation_namespaces(reading)
        fewer = await read_kinds(client, (DEPLOYMENT,), {DEPLOYMENT: namespaces})
        found = replace(found.with_kinds_of(fewer), missing=(*found.missing, *fewer.missing))
    kueue = HubKueue(found, settings.kueue_namespace, settings.kueue_version)
    of_kueue = OneObject(kueue.namespace, kueue.config_name)
    ours = _mounted(found) or (OneObject(reading.controller_namespace, MANAGED_BY),)
    maps = dict.fromkeys((*ours, of_kueue))
    return found.with_kinds_of(await read_kinds(client, (CONFIG_MAP,), {CONFIG_MAP: tuple(maps)}))


def read_all_namespaces(
    where: HubSource,
    kinds: Collection[Kind] = EXPLAIN_KINDS,
    namespaces: Collection[str] = (),
    schemas: Collection[Resource] = (),
) -> HubReading:
    """Read the hub or the dump once, with Placements and decisions of all namespaces, and these schemas.

    Without that right: of the watched namespaces and of `namespaces`.
    """
    if where.dump_files:
        return read_once(where, kinds)
    return with_client(where, lambda client: _read_all_namespaces(client, where, kinds, namespaces, schemas))


async def _read_all_namespaces(
    client: Client,
    where: HubSource,
    kinds: Collection[Kind],
    namespaces: Collection[str],
    schemas: Collection[Resource],
) -> HubReading:
    return await with_all_namespaces(client, await read_hub(client, where, kinds, schemas), namespaces)


async def with_all_namespaces(
    client: Client, found: HubReading, namespaces: Collection[str] = ()
) -> HubReading:
    """Return the reading with the present Placements and decisions of all namespaces.

    Without that right: of the watched namespaces and of `namespaces`.
    """
    whole = await read_kinds(client, ALL_NAMESPACES_KINDS, {})
    elsewhere = whole.missing
    if elsewhere:
        watched = found.view.settings.placement_namespace
        spaces = tuple(dict.fromkeys((*watched, *namespaces)))
        whole = await read_kinds(client, ALL_NAMESPACES_KINDS, dict.fromkeys(ALL_NAMESPACES_KINDS, spaces))
    kept = (right for right in found.dump.missing if right.kind not in whole.objects)
    dump = replace(
        found.dump, objects={**found.dump.objects, **whole.objects}, missing=(*kept, *whole.missing)
    )
    return replace(found, view=replace(found.view, dump=dump), elsewhere=elsewhere)


async def watch_hub(
    client: Client, where: HubSource, kinds: Collection[Kind], pause: float = PAUSE_SECONDS
) -> AsyncGenerator[HubReading]:
    """Read the hub, and again `pause` seconds after each change. The controller's settings are read once.

    Raises ApiError if the hub does not answer or a right is lost.
    """
    ours = await _read_controller(client, where)
    others = [kind for kind in kinds if kind not in SETTINGS_KINDS]
    async with aclosing(watch_kinds(client, others, namespaces_of(ours.view.settings), pause)) as dumps:
        async for dump in dumps:
            yield _merged(ours, dump)


async def _read_controller(client: Client, where: HubSource) -> HubReading:
    """Read the controller's Deployment, the ConfigMap that it mounts, and its Lease.

    A viewer may read no other ConfigMap and no other Lease.
    """
    found = await _read_deployments(client, where)
    maps = _mounted(found) or (OneObject(where.controller_namespace or NAMESPACE, MANAGED_BY),)
    found = found.with_kinds_of(await read_kinds(client, (CONFIG_MAP,), {CONFIG_MAP: maps}))
    by_deployment = _hub_reading(found, where)
    named = OneObject(*lease_key_of(by_deployment.view.settings))
    lease = await read_kinds(client, (LEASE,), {LEASE: (named,)})
    if not by_deployment.controller.deployment and not lease.of(LEASE):
        anywhere = await read_kinds(client, (LEASE,), {LEASE: (Labelled("", LEASE_SELECTOR),)})
        lease = lease if anywhere.missing else anywhere
    return _hub_reading(found.with_kinds_of(lease), where)


async def _read_deployments(client: Client, where: HubSource) -> Dump:
    """Read the controller's Deployment by its labels in all namespaces, and by its image where it should be.

    Without the right to all namespaces: in its own, and in Kueue's.
    """
    here = where.controller_namespace or NAMESPACE
    if where.controller_namespace:
        return await read_kinds(client, (DEPLOYMENT,), {DEPLOYMENT: (here,)})
    anywhere = [Labelled("", selector) for selector in SELECTORS]
    found = await read_kinds(client, (DEPLOYMENT,), {DEPLOYMENT: (here, *anywhere)})
    if not any(right.kind == DEPLOYMENT and not right.namespace for right in found.missing):
        return found
    kueue = where.kueue_namespace or str(Settings.model_fields["kueue_namespace"].default)
    fewer = await read_kinds(client, (DEPLOYMENT,), {DEPLOYMENT: tuple(dict.fromkeys((here, kueue)))})
    return replace(fewer, missing=(*found.missing, *fewer.missing))


def _mounted(dump: Dump) -> tuple[OneObject, ...]:
    """Return the ConfigMaps that the controller's Deployments mount."""
    found = (OneObject(key_of(one)[0], config_map_name(one)) for one in deployments(dump))
    return tuple(dict.fromkeys(found))


def _hub_reading(dump: Dump, where: HubSource) -> HubReading:
    given = {
        "placement_namespace": ",".join(where.namespace) or None,
        "kueue_namespace": where.kueue_namespace,
        "config": where.config,
    }
    found = find_settings(dump, given, where.controller_namespace)
    reading = HubReading(HubView(dump, found.loaded.settings, datetime.now(UTC)), found)
    if not where.namespace or not (found.deployment or found.lease):
        return reading
    own = find_settings(dump, given | {"placement_namespace": None}, where.controller_namespace)
    watched = own.loaded.settings.placement_namespace
    return replace(reading, watched=() if set(watched) == set(where.namespace) else watched)


def _merged(ours: HubReading, dump: Dump) -> HubReading:
    """Return the reading of the controller's kinds with those of `dump`.

    A missing right to the controller's objects is not reported: the defaults are used.
    """
    whole = replace(
        dump, objects={**ours.dump.objects, **dump.objects}, served={**ours.dump.served, **dump.served}
    )
    return replace(ours, view=replace(ours.view, dump=whole, now=datetime.now(UTC)))


def namespaces_of(settings: Settings) -> Namespaces:
    """Return the namespaces in which each kind is read; those that are not named are read in all."""
    return {
        LEASE: (OneObject(*lease_key_of(settings)),),
        SECRET: (settings.kueue_namespace,),
        CLUSTER_PROFILE: (settings.kueue_namespace,),
        PLACEMENT: settings.placement_namespace,
        PLACEMENT_DECISION: settings.placement_namespace,
        EVENT: (EVENTS_NAMESPACE,),
    }
