"""
The option `--workers` and those that go with it, and how the commands that have it ask workers.

`doctor` inspects workers; `explain workload` and `plan` read their queues.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import click

from kubectl_placement.cli.hub_options import HubSource
from kubectl_placement.doctor.setup import HubSetup
from kubectl_placement.doctor.worker_inspection import WorkerInspection, worker_targets
from kubectl_placement.hub.dump import Object
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.jobs.waiting_jobs import waiting_job
from kubectl_placement.jobs.worker_quota import WorkloadsByWorker
from kubectl_placement.readers.foreign_jobs import ForeignJobReader
from kubectl_placement.readers.quota_reader import read_quota
from kubectl_placement.readers.worker_inspector import WorkerInspector
from placement_ac.cli.login_options import FILE, duration, option_group, with_client
from placement_ac.core.api.constants import (
    CLUSTER_PROFILE,
    LOCAL_QUEUE,
    RESOURCE_FLAVOR,
    SECRET,
    WORKLOAD,
)
from placement_ac.core.api.fields import get_strs
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.api.text import joined
from placement_ac.core.inputs.state import WorkerCopies
from placement_ac.kube.client import Client
from placement_ac.workers.connector import WorkerConnector
from placement_ac.workers.copies import CopyReader
from placement_ac.workers.exec_plugins import AccessProviders

WORKER_QUEUE_KINDS: Final = (LOCAL_QUEUE, RESOURCE_FLAVOR)
"""The hub's kinds that define, beside those that `doctor` reads, which queues a worker should have."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """`clusters`: only these, if any are named. `timeout`: seconds for each worker."""

    clusters: tuple[str, ...] = ()
    timeout: float = 5.0
    access_providers: Path | None = None


def _worker_options(
    workers: bool, timeout: timedelta, access_providers: Path | None, cluster: str | None = None
) -> WorkerOptions | None:
    names = tuple(name.strip() for name in (cluster or "").split(",") if name.strip())
    if names and not workers:
        raise click.UsageError("use --cluster only with --workers")
    return WorkerOptions(names, timeout.total_seconds(), access_providers) if workers else None


def _access(option: str) -> tuple[click.Option, ...]:
    """Return the options on how workers are asked; `option`: with which one they are."""
    return (
        click.Option(
            ["--timeout"],
            default="5s",
            show_default=True,
            type=duration,
            help=f"With {option}: the timeout of each worker.",
        ),
        click.Option(
            ["--access-providers"],
            type=FILE,
            help=f"With {option}: the access providers of ClusterProfiles, whose plugins are run here.",
        ),
    )


worker_options = option_group(
    "wanted",
    _worker_options,
    click.Option(["--workers"], is_flag=True, help="Also inspect each worker."),
    click.Option(["--cluster"], metavar="NAME,…", help="With --workers: inspect only these."),
    *_access("--workers"),
)
"""The options for workers; the command gets them as one `wanted`, None without `--workers`."""
quota_options = option_group(
    "wanted",
    _worker_options,
    click.Option(
        ["--workers"], is_flag=True, help="Of jobs: also ask the workers for the quota of their queues."
    ),
    *_access("--workers"),
)
"""The same for commands that only read the quota of workers."""


access_options = option_group(
    "wanted",
    lambda timeout, access_providers: WorkerOptions((), timeout.total_seconds(), access_providers),
    *_access("--status"),
)
"""The options of a command that asks one worker."""


def require_hub(where: HubSource, wanted: WorkerOptions | None) -> None:
    """Raise UsageError if workers are to be asked, and there is only a dump."""
    if wanted and where.dump_files:
        raise click.UsageError("use --workers without --from-dump: it needs a hub")


def with_quota(where: HubSource, view: HubView, workers: WorkloadsByWorker, wanted: WorkerOptions) -> HubView:
    """Return the hub with the queues of these workers, which are asked now. Raises BadSettings."""

    async def read(client: Client) -> HubView:
        return await read_quota(connector_of(client, view, wanted), view, workers)

    return with_client(where, read) if workers else view.with_queue_facts({})


async def read_copies(
    client: Client, view: HubView, clusters: Iterable[KueueObject], wanted: WorkerOptions
) -> list[WorkerCopies]:
    """Return the copies on the workers of these MultiKueueClusters. Raises BadSettings."""
    reader = CopyReader(connector_of(client, view, wanted))
    return await asyncio.gather(*map(reader.read, clusters))


def foreign_job_notes(
    where: HubSource, view: HubView, workload: Object, wanted: WorkerOptions
) -> tuple[str, ...]:
    """Return what the workers that a Workload waits for have instead of its job. Raises BadSettings."""
    job, names = waiting_job(workload), get_strs(workload, "status", "nominatedClusterNames")
    if job is None or not (known := [name for name in names if name in view.cluster_objects]):
        return ()
    clusters = {view.managed_cluster_of(name): view.cluster_objects[name] for name in known}

    async def read(client: Client) -> tuple[str, ...]:
        return await ForeignJobReader(connector_of(client, view, wanted), job).notes(clusters)

    return with_client(where, read)


async def inspect_workers(
    client: Client, setup: HubSetup, wanted: WorkerOptions
) -> tuple[WorkerInspection, ...]:
    """Inspect the workers of all checks. Raises BadSettings, and UsageError for an unknown cluster."""
    targets = worker_targets(setup)
    there = {target.cluster for target in targets}
    if strange := [name for name in wanted.clusters if name not in there]:
        message = joined(sorted(there)) or "none"
        raise click.UsageError(f"use one of the clusters {message}: no check has {joined(strange)}")
    connector, plugins = connector_of(client, setup.view, wanted), wanted.access_providers is not None
    visits = WorkerInspector(
        connector,
        setup.worker_requirements,
        setup.kueue_namespace,
        setup.dump.by_key(WORKLOAD),
        setup.view.now,
        plugins=plugins,
    )
    return await visits.inspect(
        [target for target in targets if target.cluster in (wanted.clusters or there)]
    )


def connector_of(client: Client, view: HubView, wanted: WorkerOptions) -> WorkerConnector:
    """Return what connects to workers with the caller's rights to Secrets. Raises BadSettings."""
    return WorkerConnector(
        client,
        SECRET.at("v1"),
        view.settings.kueue_namespace,
        timeout=wanted.timeout,
        providers=AccessProviders.load(wanted.access_providers) if wanted.access_providers else None,
        profile_resource=view.dump.served.get(CLUSTER_PROFILE),
    )
