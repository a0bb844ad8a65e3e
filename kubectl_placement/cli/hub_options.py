"""
The options that several commands share, and how the commands that only read a hub read it.

Those commands write nothing.
"""

from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeVar

import click

from kubectl_placement.doctor.kueue import HubKueue
from kubectl_placement.hub.controller_settings import (
    LEASE_SELECTOR,
    NAMESPACE,
    SELECTORS,
    ControllerSettings,
    config_map_name,
    deployments,
    find_settings,
)
from kubectl_placement.hub.controller_state import lease_key
from kubectl_placement.hub.dump import Dump, MissingRight, Object, condition_of
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.hub.kinds import (
    CRD,
    CRDS_READ,
    DECISION_KINDS,
    PROVISIONED_KINDS,
    QUEUE_KINDS,
    SETTINGS_KINDS,
)
from kubectl_placement.jobs.finished_jobs import short_ttl
from kubectl_placement.jobs.waiting_jobs import owner_of
from kubectl_placement.readers.hub_reader import (
    PAUSE_SECONDS,
    Labelled,
    Namespaces,
    OneObject,
    read_kinds,
    watch_kinds,
)
from kubectl_placement.readers.manifests import read_dump
from placement_ac.cli.login_options import FILE, LOGIN, HubLogin, option_group, with_client
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import (
    CLUSTER_PROFILE,
    CONFIG_MAP,
    DEPLOYMENT,
    EVENT,
    EVENTS_NAMESPACE,
    JOB,
    LABEL_QUEUE,
    LEASE,
    MANAGED_BY,
    MANIFEST_WORK,
    PLACEMENT,
    SECRET,
    Kind,
    Resource,
)
from placement_ac.core.api.fields import get_str, key_of
from placement_ac.core.decisions import SOURCE
from placement_ac.core.inputs.kinds import WATCHED_KINDS
from placement_ac.kube.client import Client

T = TypeVar("T")

STATUS_KINDS: Final = (*WATCHED_KINDS, *QUEUE_KINDS, *PROVISIONED_KINDS, MANIFEST_WORK)
EXPLAIN_KINDS: Final = (*DECISION_KINDS, *QUEUE_KINDS, *PROVISIONED_KINDS, MANIFEST_WORK)
ALL_NAMESPACES_KINDS: Final = (PLACEMENT, SOURCE.kind)
"""Kinds read in all namespaces: OCM's Balance counts the decisions of all Placements."""
NOWHERE_ELSE: Final[Namespaces] = MappingProxyType({})
"""Each kind is read where it usually is."""


@dataclass(frozen=True, slots=True)
class HubSource(HubLogin):
    """Where to read: an API server or a dump."""

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


SETTINGS_OPTIONS: Final = (
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
"""The options that say which settings count."""
DUMP_OPTION: Final = click.Option(
    ["--from-dump", "dump_files"],
    multiple=True,
    metavar="FILE",
    help="Read what `placement-ac dump` or `kubectl get … -o yaml` wrote, not a hub; may be repeated.",
)
_WHERE: Final = (
    *LOGIN,
    click.Option(
        ["-n", "--namespace"],
        callback=lambda _, __, value: tuple(filter(None, (value or "").split(","))),
        metavar="NAMESPACE,…",
        help="The namespaces of Placements.  [default: the controller's setting]",
    ),
    *SETTINGS_OPTIONS,
)
hub_options = option_group("where", HubSource, *_WHERE, DUMP_OPTION)
"""The options that say where to read, for commands that only read."""
live_hub_options = option_group("where", HubSource, *_WHERE)
"""The same for a command that reads only a hub."""


def read_once(where: HubSource, kinds: Collection[Kind]) -> HubReading:
    """Read the hub or the dump once. Raises ApiError, LoginFailed, InvalidManifest, BadSettings."""
    if where.dump_files:
        return _hub_reading(read_dump(where.dump_files), where)
    return with_client(where, lambda client: read_hub(client, where, kinds))


async def read_hub(
    client: Client,
    where: HubSource,
    kinds: Collection[Kind],
    schemas: Collection[Resource] = (),
    within: Namespaces = NOWHERE_ELSE,
) -> HubReading:
    """Read the hub: first the controller and its settings, then all else concurrently.

    `within`: other places of some kinds than usual.
    """
    ours = await _read_controller(client, where)
    others = [kind for kind in kinds if kind not in SETTINGS_KINDS]
    places = {**namespaces_of(ours.view.settings), **within}
    return _merged(ours, await read_kinds(client, others, places, schemas))


def installation_namespaces(reading: HubReading) -> tuple[str, ...]:
    """Return the namespaces of the controller and of Kueue."""
    return tuple(dict.fromkeys((reading.controller_namespace, reading.view.settings.kueue_namespace)))


async def read_installations(client: Client, reading: HubReading) -> Dump:
    """Read the Lease, the Deployments of all namespaces, and the settings of controller and Kueue.

    Another controller may be in any of them. Without that right: the Deployments of their namespaces.
    Of the ConfigMaps, a viewer may read those that they mount.
    """
    settings = reading.view.settings
    dump = await read_kinds(client, (LEASE, DEPLOYMENT), {**namespaces_of(settings), DEPLOYMENT: ()})
    if any(right.kind == DEPLOYMENT for right in dump.missing):
        namespaces = installation_namespaces(reading)
        fewer = await read_kinds(client, (DEPLOYMENT,), {DEPLOYMENT: namespaces})
        dump = replace(dump.with_kinds_of(fewer), missing=(*dump.missing, *fewer.missing))
    kueue = HubKueue(dump, settings.kueue_namespace, settings.kueue_version)
    of_kueue = OneObject(kueue.namespace, kueue.config_name)
    ours = _mounted(dump) or (OneObject(reading.controller_namespace, MANAGED_BY),)
    maps = dict.fromkeys((*ours, of_kueue))
    return dump.with_kinds_of(await read_kinds(client, (CONFIG_MAP,), {CONFIG_MAP: tuple(maps)}))


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

    async def read(client: Client) -> HubReading:
        return await with_all_namespaces(client, await read_hub(client, where, kinds, schemas), namespaces)

    return with_client(where, read)


async def with_all_namespaces(
    client: Client, reading: HubReading, namespaces: Collection[str] = ()
) -> HubReading:
    """Return the reading with the present Placements and decisions of all namespaces.

    Without that right: of the watched namespaces and of `namespaces`.
    """
    whole = await read_kinds(client, ALL_NAMESPACES_KINDS, {})
    elsewhere = whole.missing
    if elsewhere:
        watched = reading.view.settings.placement_namespace
        spaces = tuple(dict.fromkeys((*watched, *namespaces)))
        whole = await read_kinds(client, ALL_NAMESPACES_KINDS, dict.fromkeys(ALL_NAMESPACES_KINDS, spaces))
    view = replace(reading.view, dump=reading.dump.with_kinds_of(whole))
    return replace(reading, view=view, elsewhere=elsewhere)


def may_run_again(where: HubSource, reading: HubReading, workload: Object) -> bool:
    """Whether a worker may remove the Workload's Job before the hub's Kueue has seen its end.

    False if that is unknown: a dump has no Jobs.
    """
    owner, namespace = owner_of(workload), key_of(workload)[0]
    is_finished = condition_of(workload, "Finished").get("status") == "True"
    if where.dump_files or is_finished or get_str(owner, "kind") != JOB.kind:
        return False
    place = OneObject(namespace, get_str(owner, "name"))

    async def read(client: Client) -> bool:
        jobs = (await read_kinds(client, (JOB,), {JOB: (place,)})).of(JOB)
        if all(short_ttl(job) is None for job in jobs):
            return False
        settings, dump = reading.view.settings, await read_installations(client, reading)
        return not HubKueue(dump, settings.kueue_namespace, settings.kueue_version).clears_ttl

    return with_client(where, read)


async def watch_hub(
    client: Client,
    where: HubSource,
    kinds: Collection[Kind],
    pause: float = PAUSE_SECONDS,
    within: Namespaces = NOWHERE_ELSE,
) -> AsyncGenerator[HubReading]:
    """Read the hub, and again `pause` seconds after each change. The controller's settings are read once.

    `within`: other places of some kinds than usual.

    Raises ApiError if the hub does not answer or a right is lost.
    """
    ours = await _read_controller(client, where)
    others = [kind for kind in kinds if kind not in SETTINGS_KINDS]
    places = {**namespaces_of(ours.view.settings), **within}
    async with aclosing(watch_kinds(client, others, places, pause)) as dumps:
        async for dump in dumps:
            yield _merged(ours, dump)


async def _read_controller(client: Client, where: HubSource) -> HubReading:
    """Read the controller's Deployment, the ConfigMap that it mounts, and its Lease.

    A viewer may read no other ConfigMap and no other Lease.
    """
    dump = await _read_deployments(client, where)
    maps = _mounted(dump) or (OneObject(where.controller_namespace or NAMESPACE, MANAGED_BY),)
    dump = dump.with_kinds_of(await read_kinds(client, (CONFIG_MAP,), {CONFIG_MAP: maps}))
    by_deployment = _hub_reading(dump, where)
    named = OneObject(*lease_key(by_deployment.view.settings))
    lease = await read_kinds(client, (LEASE,), {LEASE: (named,)})
    if not by_deployment.controller.deployment and not lease.of(LEASE):
        anywhere = await read_kinds(client, (LEASE,), {LEASE: (Labelled("", LEASE_SELECTOR),)})
        lease = lease if anywhere.missing else anywhere
    return _hub_reading(dump.with_kinds_of(lease), where)


async def _read_deployments(client: Client, where: HubSource) -> Dump:
    """Read the controller's Deployment by its labels in all namespaces, and by its image where it should be.

    Without the right to all namespaces: in its own, and in Kueue's.
    """
    here = where.controller_namespace or NAMESPACE
    if where.controller_namespace:
        return await read_kinds(client, (DEPLOYMENT,), {DEPLOYMENT: (here,)})
    anywhere = [Labelled("", selector) for selector in SELECTORS]
    dump = await read_kinds(client, (DEPLOYMENT,), {DEPLOYMENT: (here, *anywhere)})
    if not any(right.kind == DEPLOYMENT and not right.namespace for right in dump.missing):
        return dump
    kueue = where.kueue_namespace or str(Settings.model_fields["kueue_namespace"].default)
    fewer = await read_kinds(client, (DEPLOYMENT,), {DEPLOYMENT: tuple(dict.fromkeys((here, kueue)))})
    return replace(fewer, missing=(*dump.missing, *fewer.missing))


def _mounted(dump: Dump) -> tuple[OneObject, ...]:
    """Return the ConfigMaps that the controller's Deployments mount."""
    config_maps = (
        OneObject(key_of(deployment)[0], config_map_name(deployment)) for deployment in deployments(dump)
    )
    return tuple(dict.fromkeys(config_maps))


def _hub_reading(dump: Dump, where: HubSource) -> HubReading:
    given = {
        "placement_namespace": ",".join(where.namespace) or None,
        "kueue_namespace": where.kueue_namespace,
        "config": where.config,
    }
    controller = find_settings(dump, given, where.controller_namespace)
    settings, known = controller.loaded.settings, controller.known
    reading = HubReading(HubView(dump, settings, datetime.now(UTC), settings_known=known), controller)
    if not where.namespace or not (controller.deployment or controller.lease):
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
        LEASE: (OneObject(*lease_key(settings)),),
        SECRET: (settings.kueue_namespace,),
        CLUSTER_PROFILE: (settings.kueue_namespace,),
        PLACEMENT: settings.placement_namespace,
        SOURCE.kind: settings.placement_namespace,
        EVENT: (EVENTS_NAMESPACE,),
        JOB: (Labelled("", LABEL_QUEUE),),
        CRD: tuple(OneObject("", name) for name in CRDS_READ),
    }
