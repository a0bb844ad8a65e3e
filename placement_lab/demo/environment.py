"""
The environment of the demo: the embedded hub, the stand-ins and the controller, each in its own thread.

The controller is the real one; all components use the hub's HTTP API. Stories with a job also have worker
hubs, and the stand-in for Kueue connects to them. If credentials are provisioned, another stand-in simulates
OCM's agents. For our dispatcher, the workers have queues with quota; where they are set up, they are bare.
"""

import asyncio
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import yaml

from placement_ac.config.layout import as_file
from placement_ac.config.settings import Settings
from placement_ac.controller.manager import Manager
from placement_ac.core.api.constants import DRAIN, OUR_CONTROLLER, RemovalPolicy
from placement_ac.kube.client import Object
from placement_ac.kube.login import Login
from placement_lab.demo.reasons import Explainer
from placement_lab.demo.story4 import DISPATCH_SETTINGS, QUEUE4, worker_file, worker_quota
from placement_lab.demo.story5 import FOLDER, QUEUE5, REPORT_SETTINGS, SHORT_SCORES
from placement_lab.demo.unsafe import UnsafeController
from placement_lab.demo.worker_setup import NEW, SETUP_SETTINGS
from placement_lab.hub import Hub
from placement_lab.short_waits import short_waits
from placement_lab.standins.fleet import WorkerFleet
from placement_lab.standins.informer import StandIn
from placement_lab.standins.kueue import NAMESPACE as KUEUES_NAMESPACE
from placement_lab.standins.kueue_webhooks import JOB_WEBHOOK
from placement_lab.standins.manifests import apply, connect
from placement_lab.standins.multikueue import ALL_AT_ONCE, PACES, KueueSettings
from placement_lab.standins.runner import OCM_ACCESS_PROVIDER, StandInFactory, StandIns
from placement_lab.standins.worker_quota import Quota

CLUSTERS: Final = ("cluster1", "cluster2", "cluster3")
"""The clusters of samples/fleet that have a worker hub, where a job is shown."""
SPEED: Final = 20.0
"""The factor by which the stand-in for Kueue is faster than Kueue."""
AGENT_POLL_SECONDS: Final = 0.1
"""How often the stand-in for OCM's work agents reads objects again; OCM: every 10 to 19 s."""
PROVISIONING_SETTINGS: Final = {"credentials_provision": "managed-serviceaccount", "frameworks": "batch/job"}
"""The controller's settings if credentials are provisioned. The workers serve no other kind of job."""


def _kueue(login: Login, dispatcher: str = ALL_AT_ONCE) -> StandIn:
    from placement_lab.standins.kueue_manager import Kueue  # noqa: PLC0415  # only needed for stories with a job

    return Kueue(
        login,
        settings=KueueSettings(dispatcher=dispatcher, pace=PACES["0.20"]),
        speed=SPEED,
        throttled=True,
        cluster_profiles=True,
        access_providers=(OCM_ACCESS_PROVIDER,),
    )


def _quotas() -> dict[str, Quota]:
    return {name: worker_quota(worker_file(name)) for name in CLUSTERS}


class ControllerThread:
    """Runs the controller in a thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
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
        """Stop the controller as SIGTERM does, and wait until it has ended."""
        if self._loop and self._stop and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._operate())
        except BaseException as error:  # raised again in the caller's thread
            self.failure = error
        finally:
            self._started.set()

    async def _operate(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        operator = Manager(self._settings)
        self._started.set()
        await operator.run(self._stop)


class DemoEnvironment:
    """The demo's environment, as a context manager. `kubeconfig` is the hub's.

    `jobs`: start workers. `provisioned`: start workers, and let the controller provision their credentials.
    `removal_policy`: the controller's. `dispatched`: start workers with queues, and let our dispatcher
    choose among them. `sets_up`: start bare workers, and have OCM put queues onto them. `reports`: start
    workers with queues, and report their scores.
    """

    def __init__(
        self,
        *,
        jobs: bool = False,
        provisioned: bool = False,
        removal_policy: RemovalPolicy = DRAIN,
        dispatched: bool = False,
        sets_up: bool = False,
        reports: bool = False,
    ) -> None:
        self._stack = ExitStack()
        self._policy = removal_policy
        self._controller: ControllerThread
        self.provisioned = provisioned
        self._refresh: Callable[[str], None]
        quotas, queues = (_quotas(), (QUEUE4,)) if dispatched else ({}, ())
        if reports:
            quotas, queues = dict.fromkeys(CLUSTERS, worker_quota(f"{FOLDER}/worker.yaml")), (QUEUE5,)
        has_workers = jobs or provisioned or dispatched or sets_up or reports
        names = (*CLUSTERS, NEW) if sets_up else CLUSTERS
        fleet = partial(WorkerFleet, names, quotas=quotas, queues=queues, bare=sets_up)
        self.fleet = fleet() if has_workers else None
        self._dispatched, self._sets_up, self._reports = dispatched, sets_up, reports
        self.explainer: Explainer | None = None
        """Explains the choices of our dispatcher, if it nominates."""
        self.settings_file: Path | None = None
        """The controller's settings for commands with `--config`, if they differ from the defaults."""
        self.hub: Hub
        self.kubeconfig: Path

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def _start(self) -> None:
        if self.fleet:
            self._stack.enter_context(self.fleet)
        kueue: str | StandInFactory = self._kueue if self.fleet else "kueue"
        agents: tuple[StandInFactory, ...] = (self._ocm_addons,) if self.provisioned else ()
        agents += (self._work_agents,) if self._sets_up else ()
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="placement-ac-"))
        self.kubeconfig = Path(folder) / "kubeconfig"
        self.hub = self._stack.enter_context(Hub())
        self.hub.add_webhook(JOB_WEBHOOK)
        self.hub.write_kubeconfig(self.kubeconfig)
        # The namespace of the controller's Lease, which exists on a hub with Kueue.
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": KUEUES_NAMESPACE}}
        apply(connect(self.kubeconfig), [namespace])
        if self.fleet and (self._dispatched or self._sets_up or self._reports):
            self.fleet.apply_secrets(self.hub)  # the samples have none for cluster1
        self._stack.enter_context(StandIns(self.kubeconfig, ("ocm", *agents, kueue)))
        # The demo need not wait until decisions have settled, nor for the MultiKueueClusters to be deleted.
        self._stack.enter_context(short_waits(**(SHORT_SCORES if self._reports else {})))
        settings: dict[str, Any] = {"removal_policy": self._policy, "settle": 0.0}
        settings |= PROVISIONING_SETTINGS if self.provisioned else {}
        modes = (
            (self._dispatched, DISPATCH_SETTINGS),
            (self._sets_up, SETUP_SETTINGS),
            (self._reports, REPORT_SETTINGS),
        )
        own = next((of_mode for is_on, of_mode in modes if is_on), {})
        settings |= own
        of_controller = Settings(kubeconfig=self.kubeconfig, **settings)
        if self._dispatched:
            self.explainer = Explainer(of_controller, _quotas(), (QUEUE4,))
        if own:
            self.settings_file = Path(folder) / "config.yaml"
            self.settings_file.write_text(yaml.safe_dump(as_file(own)), "utf-8")
        self._controller = ControllerThread(of_controller)
        self._stack.enter_context(self._controller)

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _kueue(self, login: Login) -> StandIn:
        return _kueue(login, OUR_CONTROLLER if self._dispatched else ALL_AT_ONCE)

    def _ocm_addons(self, login: Login) -> StandIn:
        assert self.fleet  # noqa: S101  # provisioning implies workers
        accounts = self.fleet.ocm_addons(login)
        self._refresh = accounts.refresh
        return accounts

    def _work_agents(self, login: Login) -> StandIn:
        assert self.fleet  # noqa: S101  # a set-up implies workers
        return self.fleet.work_agents(login, poll=AGENT_POLL_SECONDS)

    @property
    def workers(self) -> Mapping[str, Login]:
        """An admin's login for each worker."""
        return {name: self.fleet.login(name) for name in self.fleet.names} if self.fleet else {}

    # -- the actions of steps

    @property
    def kubeconfigs(self) -> Mapping[str, bytes]:
        """Each worker's kubeconfig."""
        return {name: self.fleet.kubeconfig(name) for name in self.fleet.names} if self.fleet else {}

    @property
    def managed_clusters(self) -> Sequence[Object]:
        """ManagedClusters with the workers' addresses; empty unless credentials are provisioned."""
        return self.fleet.managed_clusters() if self.fleet and self.provisioned else ()

    def renew_token(self, cluster: str) -> None:
        """Make OCM's agent on a cluster report a new token."""
        self._refresh(cluster)

    def end_job(self, name: str) -> None:
        """Complete a job wherever it runs."""
        if self.fleet:
            self.fleet.finish(name)

    def replace_controller(self) -> None:
        """Stop the controller and start the unsafe loop instead."""
        self._controller.stop()
        unsafe = StandIns(self.kubeconfig, (UnsafeController,))
        unsafe.start()
        self._stack.callback(unsafe.stop)
