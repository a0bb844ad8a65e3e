"""
Reads of the hub for `capacity`, beside the published numbers: settings and workers.

Imported only when it is needed: it takes a third of the time of the command.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from kubectl_placement.capacity.hub_queues import hub_rows
from kubectl_placement.capacity.views import Row
from kubectl_placement.cli.hub_options import HubSource, read_hub
from kubectl_placement.cli.missing_kinds import require_readable
from kubectl_placement.cli.worker_options import WorkerOptions, connector_of
from kubectl_placement.hub.controller_state import lease_key
from kubectl_placement.readers.worker_capacity import read_workers
from kubectl_placement.status.check_status import check_statuses
from placement_ac.cli.login_options import HubLogin
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    WORKLOAD,
)
from placement_ac.core.api.text import joined
from placement_ac.core.capacity_report.model import CapacityReport
from placement_ac.kube.client import Client

QUEUE_KINDS: Final = (ADMISSION_CHECK, CLUSTER_QUEUE, LOCAL_QUEUE)
KINDS: Final = (ADMISSION_CHECK, MULTIKUEUE_CONFIG, MULTIKUEUE_CLUSTER, WORKLOAD)


def _source(login: HubLogin, kueue_namespace: str | None, controller_namespace: str) -> HubSource:
    """Return the options by which settings are found; the login is that of the client."""
    return HubSource(
        login.kubeconfig,
        login.context,
        kueue_namespace=kueue_namespace,
        controller_namespace=controller_namespace,
    )


async def lease_namespace(
    client: Client, login: HubLogin, kueue_namespace: str | None, controller_namespace: str
) -> str:
    """Return the namespace of the controller's Lease. Raises ApiError, BadSettings."""
    where = _source(login, kueue_namespace, controller_namespace)
    reading = await read_hub(client, where, ())
    return lease_key(reading.view.settings)[0]


async def ask_workers(
    client: Client,
    login: HubLogin,
    kueue_namespace: str | None,
    controller_namespace: str,
    answer_within: timedelta,
    access_providers: Path | None,
) -> CapacityReport:
    """Return what the workers say now. Raises ApiError, BadSettings, and ClickException without rights."""
    where = _source(login, kueue_namespace, controller_namespace)
    reading = await read_hub(client, where, KINDS)
    require_readable(reading, (MULTIKUEUE_CONFIG, MULTIKUEUE_CLUSTER))
    wanted = WorkerOptions((), answer_within.total_seconds(), access_providers)
    return await read_workers(connector_of(client, reading.view, wanted), reading.view)


async def queues_of_hub(
    client: Client,
    login: HubLogin,
    kueue_namespace: str | None,
    controller_namespace: str,
    gpus: tuple[str, ...],
) -> tuple[tuple[Row, ...], str]:
    """Return the rows of the hub's ClusterQueues that send jobs to workers, and why there are none.

    Raises ApiError, BadSettings.
    """
    where = _source(login, kueue_namespace, controller_namespace)
    reading = await read_hub(client, where, QUEUE_KINDS)
    if missing := [right for right in reading.dump.missing if right.kind in QUEUE_KINDS]:
        return (), f"you may not {joined(map(str, missing))}"
    names = {queue.name for check in check_statuses(reading.view) for queue in check.queues}
    return hub_rows(reading.dump, names, gpus, datetime.now(UTC)), ""
