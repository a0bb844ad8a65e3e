"""
A stand-in for OCM's work agents: it applies ManifestWorks on the workers, and reports what became of them.

The objects and the feedback are read again every `poll` seconds (OCM: 10 to 19). `work_rules` has the rules;
`ocm_addons` has the agents of ClusterPermissions.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from placement_ac.core.api.constants import Kind, Resource
from placement_ac.core.api.errors import Conflict, NotFound
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login
from placement_lab.standins.cluster_permissions import WORK, owner_of
from placement_lab.standins.informer import Key, StandIn
from placement_lab.standins.multikueue.objects import is_deleted
from placement_lab.standins.work_rules import WorkRules

POLL_SECONDS: Final = 10.0


class WorkAgents(StandIn):
    """Simulates the agents of all workers. `logins`: an admin's login for the worker of each cluster.

    `pause` and `resume` may be called from any thread except the stand-in's own.
    """

    name = "ocm-work"
    kinds = (WORK,)
    parallel = 8
    """Each worker has an agent of its own: none waits for another."""

    def __init__(
        self, login: Login, logins: Mapping[str, Callable[[], Login]], *, poll: float = POLL_SECONDS
    ) -> None:
        super().__init__(login)
        self._logins = dict(logins)
        self._poll = poll
        self._clients: dict[str, Client] = {}
        self._opening = asyncio.Lock()
        self._paused: set[str] = set()
        self._rules = WorkRules(self, time.time)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            await super().run()
        finally:
            for client in self._clients.values():
                await client.__aexit__(None, None, None)

    def pause(self, cluster: str) -> None:
        """Stop acting for a cluster, like an agent that is disconnected from the hub."""
        self._paused.add(cluster)

    def resume(self, cluster: str) -> None:
        self._paused.discard(cluster)
        if self._loop:
            self._loop.call_soon_threadsafe(self._enqueue_all, cluster)

    def add(self, cluster: str, login: Callable[[], Login]) -> None:
        """Take in another worker."""
        self._logins[cluster] = login

    def _enqueue_all(self, cluster: str) -> None:
        for namespace, name in self.objects(WORK):
            if namespace == cluster:
                self.enqueue((namespace, name))

    # -- the stand-in

    def keys_for(self, _: Kind, namespace: str, name: str) -> Iterable[Key]:
        return [(namespace, name)]

    async def reconcile(self, key: Key) -> None:
        cluster, name = key
        work = self.objects(WORK).get((cluster, name))
        if work is None or owner_of(work) or cluster not in self._logins or cluster in self._paused:
            return
        try:
            await self._rules.reconcile(await self._client(cluster), work)
        except (Conflict, NotFound):
            await asyncio.sleep(0.01)
            self.enqueue(key)
        else:
            if not is_deleted(work):
                self.enqueue(key, after=self._poll)

    async def _client(self, cluster: str) -> Client:
        async with self._opening:
            if cluster not in self._clients:
                client = _AgentClient(self._logins[cluster](), field_manager=self.name)
                self._clients[cluster] = await client.__aenter__()
            return self._clients[cluster]


class _AgentClient(Client):
    """Remembers what the worker serves, and asks only for what it does not know, like OCM's agent."""

    _served: Mapping[Kind, Resource] = MappingProxyType({})

    async def discover(self, kinds: Iterable[Kind]) -> dict[Kind, Resource]:
        wanted = tuple(kinds)
        if unknown := [kind for kind in wanted if kind not in self._served]:
            self._served = {**self._served, **await super().discover(unknown)}
        return {kind: self._served[kind] for kind in wanted if kind in self._served}
