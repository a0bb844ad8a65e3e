"""The options of `placement-ac doctor --workers`: which workers are inspected, and how."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
from pydantic import TypeAdapter, ValidationError

from placement_ac.config.settings import Seconds
from placement_ac.core.api.constants import CLUSTER_PROFILE, SECRET
from placement_ac.core.api.text import joined
from placement_ac.inspection.doctor.setup import HubSetup
from placement_ac.inspection.doctor.worker_inspection import WorkerInspection, WorkerTarget, worker_targets
from placement_ac.inspection.hub.kinds import LOCAL_QUEUE, RESOURCE_FLAVOR, TOPOLOGY
from placement_ac.inspection.readers.worker_inspector import WorkerInspector
from placement_ac.kube.client import Client
from placement_ac.workers.connector import WorkerConnector
from placement_ac.workers.exec_plugins import AccessProviders

WORKER_QUEUE_KINDS: Final = (LOCAL_QUEUE, RESOURCE_FLAVOR, TOPOLOGY)
"""The hub's kinds that define, beside those that `doctor` reads, which queues a worker should have."""
_SECONDS: Final = TypeAdapter[float](Seconds)


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """`clusters`: only these, if any are named. `timeout`: seconds for each worker."""

    clusters: tuple[str, ...] = ()
    timeout: float = 5.0
    access_providers: Path | None = None


def worker_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for workers; the command gets them as one `round_`, None without `--workers`."""

    def called(**options: Any) -> Any:
        wanted, clusters = options.pop("workers"), options.pop("cluster") or ""
        names = tuple(name.strip() for name in clusters.split(",") if name.strip())
        found = WorkerOptions(names, options.pop("timeout"), options.pop("access_providers"))
        if names and not wanted:
            raise click.UsageError("use --cluster only with --workers")
        return command(round_=found if wanted else None, **options)

    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]  # as click keeps them
    for option in reversed(_OPTIONS):
        called = option(called)
    return called


def _duration(_: click.Context, __: click.Parameter, value: str) -> float:
    try:
        return _SECONDS.validate_python(value)
    except ValidationError as error:
        raise click.BadParameter(error.errors()[0]["msg"]) from None


_OPTIONS: Final = (
    click.option("--workers", is_flag=True, help="Also inspect each worker."),
    click.option("--cluster", metavar="NAME,…", help="With --workers: inspect only these."),
    click.option(
        "--timeout",
        default="5s",
        show_default=True,
        metavar="DURATION",
        callback=_duration,
        help="With --workers: the timeout of each worker.",
    ),
    click.option(
        "--access-providers",
        type=click.Path(dir_okay=False, path_type=Path),
        help="With --workers: the access providers of ClusterProfiles, whose plugins are run here.",
    ),
)


async def inspect_workers(
    client: Client, setup: HubSetup, wanted: WorkerOptions
) -> tuple[WorkerInspection, ...]:
    """Inspect the workers of all checks. Raises BadSettings, and UsageError for an unknown cluster."""
    chosen = _chosen(worker_targets(setup), wanted.clusters)
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
    return await visits.inspect(chosen)


def _chosen(known: Collection[WorkerTarget], names: Collection[str]) -> list[WorkerTarget]:
    there = {one.cluster for one in known}
    if strange := [name for name in names if name not in there]:
        message = joined(sorted(there)) or "none"
        raise click.UsageError(f"use one of the clusters {message}: no check has {joined(strange)}")
    return [one for one in known if not names or one.cluster in names]
