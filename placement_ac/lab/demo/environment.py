"""
What a story is played on: the embedded hub, the stand-ins and the controller, each in a thread of its own.

The controller is the real one and speaks to the hub over HTTP, like everybody here. Where a job is shown
there are worker hubs too, and the stand-in for Kueue connects to them. Where credentials are made, it goes in
with these, and a stand-in plays OCM's agents.
"""

import asyncio
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from placement_ac.config.settings import Settings
from placement_ac.controller.manager import Manager
from placement_ac.core.api.constants import DRAIN, RemovalPolicy
from placement_ac.kube.client import Client, Object
from placement_ac.kube.login import Login
from placement_ac.lab.demo.unsafe import Careless
from placement_ac.lab.hub import Hub
from placement_ac.lab.standins.fleet import WorkerFleet
from placement_ac.lab.standins.informer import StandIn
from placement_ac.lab.standins.kueue import NAMESPACE as KUEUES_NAMESPACE
from placement_ac.lab.standins.runner import OCM_ACCESS_PROVIDER, StandInFactory, StandIns

CLUSTERS: Final = ("cluster1", "cluster2", "cluster3")
"""The clusters of samples/fleet that have a worker hub, where a job is shown."""
SPEED: Final = 20.0
"""How much faster than the real one's the times of the stand-in for Kueue pass."""
PROVISION: Final = {"credentials_provision": "managed-serviceaccount", "frameworks": "batch/job"}
"""The controller's settings where credentials are made: the workers know of no other kind of job."""


def _kueue(login: Login) -> StandIn:
    from placement_ac.lab.standins.kueue_manager import Kueue  # noqa: PLC0415  # only where a job is shown

    return Kueue(login, speed=SPEED, cluster_profiles=True, access_providers=(OCM_ACCESS_PROVIDER,))


async def _make_kueues_namespace(kubeconfig: Path) -> None:
    """A hub with Kueue has it already; without it the controller would wait for the place of its Lease."""
    async with Client(Login(kubeconfig)) as client:
        await client.request("POST", "/api/v1/namespaces", {"metadata": {"name": KUEUES_NAMESPACE}})


class ControllerThread:
    """The controller in a thread of its own; `settings` as for `placement-ac run`."""

    def __init__(self, **settings: Any) -> None:
        self._settings = Settings(**settings)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="controller", daemon=True)
        self.failure: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        self.stop()
        if self.failure and error is None:
            raise self.failure

    def stop(self) -> None:
        """Stop it as SIGTERM would, and wait for it."""
        if self._loop and self._stop and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._operate())
        except BaseException as error:  # carried over to the thread that asked for it
            self.failure = error
        finally:
            self._started.set()

    async def _operate(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        operator = Manager(self._settings)
        self._started.set()
        await operator.run(self._stop)


class Stage:
    """All of it, up as long as the `with` lasts. `kubeconfig` leads to the hub.

    `jobs`: there are workers. `made`: the same, and nobody has put credentials for them there.
    `removal_policy`: the controller's.
    """

    def __init__(
        self, *, jobs: bool = False, made: bool = False, removal_policy: RemovalPolicy = DRAIN
    ) -> None:
        self._stack = ExitStack()
        self._policy = removal_policy
        self._controller: ControllerThread
        self.made = made
        self._refresh: Callable[[str], None]
        self.fleet = WorkerFleet(CLUSTERS) if jobs or made else None
        self.hub: Hub
        self.kubeconfig: Path

    def __enter__(self) -> Self:
        try:
            self._open()
        except BaseException:
            self._stack.close()
            raise
        return self

    def _open(self) -> None:
        if self.fleet:
            self._stack.enter_context(self.fleet)
        kueue: str | StandInFactory = _kueue if self.fleet else "kueue"
        accounts: tuple[StandInFactory, ...] = (self._make_accounts,) if self.made else ()
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="placement-ac-"))
        self.kubeconfig = Path(folder) / "kubeconfig"
        self.hub = self._stack.enter_context(Hub())
        self.hub.write_kubeconfig(self.kubeconfig)
        with ThreadPoolExecutor(1) as other:  # a stage may be opened where a loop runs
            other.submit(asyncio.run, _make_kueues_namespace(self.kubeconfig)).result()
        self._stack.enter_context(StandIns(self.kubeconfig, ("ocm", *accounts, kueue)))
        # A MultiKueueCluster that is unlisted is deleted at once: nobody waits a minute to see it.
        settings = {"removal_policy": self._policy, "cluster_retention": 0.0}
        provision = PROVISION if self.made else {}
        self._controller = ControllerThread(kubeconfig=self.kubeconfig, **settings, **provision)
        self._stack.enter_context(self._controller)

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _make_accounts(self, login: Login) -> StandIn:
        assert self.fleet  # noqa: S101  # there are workers where credentials are made
        accounts = self.fleet.ocm_addons(login)
        self._refresh = accounts.refresh
        return accounts

    @property
    def workers(self) -> Mapping[str, Login]:
        """An admin's way into each worker."""
        return {name: self.fleet.login(name) for name in self.fleet.names} if self.fleet else {}

    # -- backstage

    @property
    def kubeconfigs(self) -> Mapping[str, bytes]:
        """The way into each worker."""
        return {name: self.fleet.kubeconfig(name) for name in self.fleet.names} if self.fleet else {}

    @property
    def managed_clusters(self) -> Sequence[Object]:
        """The workers' addresses, as OCM tells them; none where credentials lie there already."""
        return self.fleet.managed_clusters() if self.fleet and self.made else ()

    async def renew(self, cluster: str) -> None:
        """Have OCM's agent on a cluster report a new token."""
        await asyncio.to_thread(self._refresh, cluster)

    async def end_job(self, name: str) -> None:
        """Complete a job wherever it runs."""
        if self.fleet:
            await asyncio.to_thread(self.fleet.finish, name)

    async def be_careless(self) -> None:
        """Stop the controller, and have a careless list in its place."""
        await asyncio.to_thread(self._controller.stop)
        careless = StandIns(self.kubeconfig, (Careless,))
        await asyncio.to_thread(careless.start)
        self._stack.callback(careless.stop)
