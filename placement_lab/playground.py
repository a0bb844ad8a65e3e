"""
Workers for `placement-ac hub --workers`: embedded hubs that run Jobs, registered as managed clusters.

The hub has what OCM, and an admin, create on a real one: the ManagedClusters, the samples' cluster set with
its binding, and a Secret with a kubeconfig for each worker.
"""

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Final, Self

from placement_ac.kube.client import Object
from placement_ac.kube.login import Login
from placement_lab.hub import Hub
from placement_lab.standins.fleet import NAMESPACE, WorkerFleet
from placement_lab.standins.informer import StandIn
from placement_lab.standins.kueue_webhooks import JOB_WEBHOOK
from placement_lab.standins.manifests import apply, connect, load, samples
from placement_lab.standins.multikueue import PACES, KueueSettings
from placement_lab.standins.runner import OCM_ACCESS_PROVIDER

SPEED: Final = 20.0
"""The factor by which the stand-in for Kueue is faster than Kueue."""
CLUSTER_SET: Final = {"cluster.open-cluster-management.io/clusterset": "spoke"}
"""The label of the clusters in the samples' cluster set."""
QUEUES: Final = ("user-queue-demo1", "user-queue-demo2", "user-queue-demo4")
"""The samples' LocalQueues: a worker needs one of the same name as the hub's."""


class Playground:
    """Runs `workers` workers with `gpus` GPUs each, and registers them on `hub`; a context manager.

    `dispatcher`: the dispatcher in Kueue's configuration.
    """

    def __init__(self, hub: Hub, workers: int, gpus: int, dispatcher: str) -> None:
        self._hub, self._dispatcher = hub, dispatcher
        self._size = {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": str(gpus)}
        names = [f"cluster{number}" for number in range(1, workers + 1)]
        quota = {"default-flavor": self._size}
        quotas = dict.fromkeys(names, quota)
        self._fleet = WorkerFleet(names, quotas=quotas, queues=QUEUES, sleeps=True, kubelets=True)

    def __enter__(self) -> Self:
        self._fleet.__enter__()
        try:
            self._hub.add_webhook(JOB_WEBHOOK)
            apply(connect(self._hub.kubeconfig()), self._registrations())
        except BaseException:
            self._fleet.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._fleet.__exit__(kind, error, trace)

    def _registrations(self) -> Iterator[Object]:
        """Yield the objects with which the hub knows the workers."""
        for name in (NAMESPACE, *self._fleet.names):
            yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        yield from load(samples() / "fleet" / "cluster-set.yaml")
        for cluster in self._fleet.managed_clusters():
            cluster["metadata"]["labels"] = CLUSTER_SET
            cluster["status"] |= {"capacity": self._size, "allocatable": self._size}
            yield cluster
        yield from self._fleet.secrets()

    def kueue(self, login: Login) -> StandIn:
        """Return the stand-in for Kueue that sends Jobs to the workers."""
        from placement_lab.standins.kueue_manager import Kueue  # noqa: PLC0415  # imported only if used

        return Kueue(
            login,
            settings=KueueSettings(dispatcher=self._dispatcher, pace=PACES["0.20"]),
            speed=SPEED,
            throttled=True,
            cluster_profiles=True,
            access_providers=(OCM_ACCESS_PROVIDER,),
        )

    def kubeconfig(self) -> dict[str, Any]:
        """Return the hub's kubeconfig with a context for each worker, which has the worker's name."""
        config = self._hub.kubeconfig()
        for name, worker in self._fleet.hubs.items():
            theirs = worker.kubeconfig()
            config["clusters"] += [cluster | {"name": name} for cluster in theirs["clusters"]]
            config["users"] += [user | {"name": name} for user in theirs["users"]]
            config["contexts"].append({"name": name, "context": {"cluster": name, "user": name}})
        return config
