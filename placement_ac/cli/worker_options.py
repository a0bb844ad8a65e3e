"""The options of `placement-ac doctor --workers`: which workers are inspected, and how."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import click

from placement_ac.cli.hub_options import FILE, duration, option_group
from placement_ac.core.api.constants import CLUSTER_PROFILE, SECRET
from placement_ac.core.api.text import joined
from placement_ac.inspection.doctor.setup import HubSetup
from placement_ac.inspection.doctor.worker_inspection import WorkerInspection, worker_targets
from placement_ac.inspection.hub.kinds import LOCAL_QUEUE, RESOURCE_FLAVOR, TOPOLOGY
from placement_ac.inspection.readers.worker_inspector import WorkerInspector
from placement_ac.kube.client import Client
from placement_ac.workers.connector import WorkerConnector
from placement_ac.workers.exec_plugins import AccessProviders

WORKER_QUEUE_KINDS: Final = (LOCAL_QUEUE, RESOURCE_FLAVOR, TOPOLOGY)
"""The hub's kinds that define, beside those that `doctor` reads, which queues a worker should have."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """`clusters`: only these, if any are named. `timeout`: seconds for each worker."""

    clusters: tuple[str, ...] = ()
    timeout: float = 5.0
    access_providers: Path | None = None


def _worker_options(
    workers: bool, cluster: str | None, timeout: timedelta, access_providers: Path | None
) -> WorkerOptions | None:
    names = tuple(name.strip() for name in (cluster or "").split(",") if name.strip())
    if names and not workers:
        raise click.UsageError("use --cluster only with --workers")
    return WorkerOptions(names, timeout.total_seconds(), access_providers) if workers else None


worker_options = option_group(
    "round_",
    _worker_options,
    click.Option(["--workers"], is_flag=True, help="Also inspect each worker."),
    click.Option(["--cluster"], metavar="NAME,…", help="With --workers: inspect only these."),
    click.Option(
        ["--timeout"],
        default="5s",
        show_default=True,
        type=duration,
        help="With --workers: the timeout of each worker.",
    ),
    click.Option(
        ["--access-providers"],
        type=FILE,
        help="With --workers: the access providers of ClusterProfiles, whose plugins are run here.",
    ),
)
"""The options for workers; the command gets them as one `round_`, None without `--workers`."""


async def inspect_workers(
    client: Client, setup: HubSetup, wanted: WorkerOptions
) -> tuple[WorkerInspection, ...]:
    """Inspect the workers of all checks. Raises BadSettings, and UsageError for an unknown cluster."""
    targets = worker_targets(setup)
    there = {one.cluster for one in targets}
    if strange := [name for name in wanted.clusters if name not in there]:
        message = joined(sorted(there)) or "none"
        raise click.UsageError(f"use one of the clusters {message}: no check has {joined(strange)}")
    providers = AccessProviders.load(wanted.access_providers) if wanted.access_providers else None
    namespace = setup.kueue_namespace
    connector = WorkerConnector(
        client,
        SECRET.at("v1"),
        namespace,
        timeout=wanted.timeout,
        providers=providers,
        profile_resource=setup.dump.served.get(CLUSTER_PROFILE),
    )
    visits = WorkerInspector(connector, setup.worker_requirements, namespace, plugins=providers is not None)
    return await visits.inspect([one for one in targets if one.cluster in (wanted.clusters or there)])
