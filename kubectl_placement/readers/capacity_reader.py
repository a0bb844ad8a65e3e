"""
Read the capacity of the workers as the controller has published it, and the Workloads of the hub.

It imports little: a command that only shows what is published starts faster.
"""

from typing import Final

from placement_ac.core.api.constants import (
    CAPACITY_KEY,
    CAPACITY_NAME,
    CAPACITY_QUEUES_NAME,
    CONFIG_MAP,
    WORKLOAD,
)
from placement_ac.core.api.decode import workload_with_job
from placement_ac.core.api.errors import NotFound, PlacementAcError, Refused
from placement_ac.core.api.fields import get_str
from placement_ac.core.api.objects import Workload
from placement_ac.core.capacity_report.document import BadDocument, read_report
from placement_ac.core.capacity_report.model import CapacityReport
from placement_ac.kube.client import Client

FORBIDDEN: Final = 403


class NotPublished(PlacementAcError):
    """There is no answer of the controller; the message says what to do."""


async def read_published(client: Client, namespace: str, *, queues: bool) -> CapacityReport:
    """Return the controller's last answers; `queues`: with the details of queues. Raises NotPublished."""
    name = CAPACITY_QUEUES_NAME if queues else CAPACITY_NAME
    text = await _text(client, namespace, name)
    try:
        return read_report(text)
    except BadDocument as error:
        raise NotPublished(
            f"delete ConfigMap {namespace}/{name}, or use a kubectl-placement of the controller's "
            f"version: this one cannot read it: {error}"
        ) from None


async def _text(client: Client, namespace: str, name: str) -> str:
    try:
        return get_str(await client.get(CONFIG_MAP.at("v1"), name, namespace), "data", CAPACITY_KEY)
    except NotFound:
        raise NotPublished(
            f"use --workers, or name the namespace of the controller's Lease with --kueue-namespace: there "
            f"is no ConfigMap {namespace}/{name}; the controller writes it when it has read the queues of "
            "workers (with --dispatcher or --report-scores)"
        ) from None
    except Refused as refused:
        if refused.status != FORBIDDEN:
            raise
        raise NotPublished(
            f"ask an admin for the role {ROLES[name]}: you may not get ConfigMap {namespace}/{name}"
        ) from None


ROLES: Final = {
    CAPACITY_NAME: "placement-ac-capacity-viewer, placement-ac-job-viewer or placement-ac-viewer",
    CAPACITY_QUEUES_NAME: "placement-ac-viewer",
}
"""ConfigMap → the roles that give it."""


async def read_workloads(client: Client, namespace: str) -> list[Workload]:
    """Return the Workloads of a namespace ("": all). Raises NotPublished, ApiError."""
    served = await client.discover((WORKLOAD,))
    if WORKLOAD not in served:
        raise NotPublished("install Kueue: the hub serves no Workloads")
    try:
        listing = await client.list(served[WORKLOAD], namespace or None)
    except Refused as refused:
        if refused.status != FORBIDDEN:
            raise
        place = f"namespace {namespace}" if namespace else "all namespaces"
        raise NotPublished(f"use -n NAMESPACE: you may not list Workloads in {place}") from None
    return [workload_with_job(item) for item in listing.items]
