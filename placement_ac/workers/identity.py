"""
Asks workers for their identity: the uids of objects there, as far as the account may see them.

Namespace kube-system tells it for good. Kueue's published rights for a worker do not include it; from 0.18 on
they include ClusterQueues. An account with fewer rights sees the copies of Workloads alone. The hub as a
worker of itself has no copies that Kueue could delete through a second name, and is no worker (see `doctor`).
"""

from collections.abc import Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Final

from placement_ac.core.api.constants import CLUSTER_QUEUE, LABEL_ORIGIN, NAMESPACE, WORKLOAD, Resource
from placement_ac.core.api.errors import NotFound, Refused
from placement_ac.core.api.fields import get_str
from placement_ac.core.inputs.identity import WorkerIdentity
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.kube.client import PAGE_SIZE, Client
from placement_ac.workers.connector import WorkerError, WorkerLogin
from placement_ac.workers.reader import Problem, WorkerReader

UIDS_MAX: Final = 100
"""Of each kind, in the order of the list, which is the same for every account."""
_Uids = tuple[str, frozenset[str], frozenset[str]]
"""Of Namespace kube-system, of ClusterQueues, of copies; empty: the account may not see them."""


class IdentityReader(WorkerReader[_Uids]):
    """Reads the uids of objects on workers."""

    kinds = (CLUSTER_QUEUE, WORKLOAD)
    permission = f"list workloads.{WORKLOAD.group} in all namespaces"
    too_deep = "look for the {} there that the log names: it is nested too deeply to be read"

    async def read(self, source: CredentialSource, asked_at: datetime) -> WorkerIdentity:
        """Return the identity of the worker of `source`. Raises nothing but CancelledError."""
        answer = await self.answer_by(source.name, lambda: source)
        if isinstance(answer, Problem):
            return WorkerIdentity(source.version, asked_at, problem=answer.why)
        namespace, queues, copies = answer
        return WorkerIdentity(source.version, asked_at, namespace, queues, copies)

    async def read_objects(self, client: Client, login: WorkerLogin, resources: Sequence[Resource]) -> _Uids:
        if login.login.server == self.connector.hub.server:
            raise WorkerError(f"{login.described_as} leads to this hub")
        queues, workloads = resources
        return (
            await _kube_system(client),
            await self._uids(client, queues),
            await self._uids(client, workloads, LABEL_ORIGIN),
        )

    async def _uids(self, client: Client, resource: Resource, label_selector: str = "") -> frozenset[str]:
        uids: dict[str, None] = {}
        pages = client.pages(resource, limit=PAGE_SIZE, label_selector=label_selector, metadata_only=True)
        try:
            async with aclosing(pages):
                async for page in pages:
                    uids |= dict.fromkeys(get_str(item, "metadata", "uid") for item in page.items)
                    if len(uids) >= UIDS_MAX:
                        break
        except (NotFound, Refused):
            return frozenset()
        return frozenset(list(uids)[:UIDS_MAX]) - {""}


async def _kube_system(client: Client) -> str:
    try:
        return get_str(await client.get(NAMESPACE.at("v1"), "kube-system"), "metadata", "uid")
    except (NotFound, Refused):
        return ""
