"""Open a worker as the caller: try each access method in order, and ask the cluster for its Pods."""

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from kubectl_placement.access.access_file import read_access_file
from kubectl_placement.access.methods import ACCESS_METHODS, AccessOptions, Candidate, Search
from kubectl_placement.access.no_access import Closed, NoAccess
from kubectl_placement.access.target import FORBIDDEN, ClusterTarget, read_target
from placement_ac.core.api.constants import Kind
from placement_ac.core.api.errors import ApiError
from placement_ac.kube.budget import AnswerBudget, BudgetedReader, ReadSlots
from placement_ac.kube.client import Client
from placement_ac.kube.exec_plugin import Show

POD: Final = Kind("", "Pod", "pods", True, ("v1",))
PODS: Final = POD.at("v1")
TIMEOUT_SECONDS: Final = 10.0
OBJECT_BYTES: Final = 2_000_000
"""The most of one answer; the largest object has 1.5 MB (etcd)."""
BUDGET: Final = AnswerBudget(
    page_bytes=OBJECT_BYTES,
    answer_bytes=OBJECT_BYTES,
    total_bytes=sys.maxsize,  # a log may be followed for days
    pages=1000,
    seconds=60.0,
    list_bytes=50_000_000,
)
"""The most that is read of a worker, whose admin is not the caller's: a list has room for 5,000 Pods."""
UNAUTHORIZED: Final = 401


@dataclass(frozen=True, slots=True)
class OpenCluster:
    """A worker that the caller is logged in to."""

    target: ClusterTarget
    client: Client
    method: str
    """How, for people."""
    candidate: Candidate

    @property
    def name(self) -> str:
        """The managed cluster, or the MultiKueueCluster where that is unknown."""
        return self.target.managed_cluster or self.target.name


@asynccontextmanager
async def open_cluster(
    hub: Client, name: str, namespace: str, options: AccessOptions, show: Show | None = None
) -> AsyncIterator[OpenCluster]:
    """Yield the worker of a MultiKueueCluster as the caller, who may list Pods in `namespace` there.

    `show` gets what plugins and commands write to stderr. Raises NoAccess, BadSettings for the access file,
    and ApiError if the hub does not answer.
    """
    target = await read_target(hub, name, options.kueue_namespace)
    tried: list[Closed] = []
    async with AsyncExitStack() as stack:
        search = Search(hub, target, options, read_access_file(options.access_config), stack, show)
        for method in ACCESS_METHODS:
            async for found in method(search):
                if isinstance(found, Closed):
                    tried.append(found)
                    continue
                reader = BudgetedReader(BUDGET, ReadSlots(1, TIMEOUT_SECONDS))
                client = await stack.enter_async_context(
                    Client(found.login, timeout=TIMEOUT_SECONDS, reader=reader)
                )
                if (problem := await _problem(client, found, namespace)) is None:
                    yield OpenCluster(target, client, found.method, found)
                    return
                tried.append(problem)
    raise NoAccess(target.label, tried)


async def _problem(client: Client, found: Candidate, namespace: str) -> Closed | None:
    """Return why the cluster does not show Pods of the namespace with this login; None if it does."""
    try:
        await client.request("GET", PODS.path(namespace), query={"limit": "1"})
    except ApiError as error:
        if error.status == FORBIDDEN:
            return Closed(
                found.method, f"get the right to list pods in namespace {namespace} there", error.message
            )
        if error.status == UNAUTHORIZED:
            return Closed(found.method, "log in again", "the cluster does not accept its credentials")
        return Closed(found.method, "check that the cluster can be reached", error.message)
    return None
