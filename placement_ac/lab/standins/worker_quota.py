"""
A worker's Kueue with a ClusterQueue: Workloads reserve what they ask for, and its status tells the sum.

Only what a dispatcher reads is simulated: one flavor, no cohort, no preemption.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from placement_ac.core.api.constants import KUEUE, WORKLOAD, Kind
from placement_ac.core.api.job_spec import job_spec
from placement_ac.core.api.quantities import format_milli, milli
from placement_ac.kube.client import Object
from placement_ac.lab.standins.key_queue import Key
from placement_ac.lab.standins.kueue import CLUSTER_QUEUE, LOCAL_QUEUE
from placement_ac.lab.standins.kueue_jobs import JOB
from placement_ac.lab.standins.multikueue import has_quota
from placement_ac.lab.standins.multikueue.objects import FINISHED, is_condition_true
from placement_ac.lab.standins.worker import QUEUE, KueueWorker

FLAVOR: Final = "default"
_STATUS: Final[Key] = ("status", "", QUEUE)


def queue_manifests(quota: Mapping[str, str], local_queues: Iterable[str]) -> Iterator[Object]:
    """Yield the ClusterQueue with this quota (resource → quantity), and its LocalQueues in `default`."""
    api_version = f"{KUEUE}/v1beta2"
    resources = [{"name": name, "nominalQuota": amount} for name, amount in quota.items()]
    group = {"coveredResources": [*quota], "flavors": [{"name": FLAVOR, "resources": resources}]}
    yield {
        "apiVersion": api_version,
        "kind": CLUSTER_QUEUE.kind,
        "metadata": {"name": QUEUE},
        "spec": {"namespaceSelector": {}, "resourceGroups": [group]},
    }
    for name in local_queues:
        yield {
            "apiVersion": api_version,
            "kind": LOCAL_QUEUE.kind,
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"clusterQueue": QUEUE},
        }


class QuotaWorker(KueueWorker):
    """Simulates Kueue on a worker with the ClusterQueue of `queue_manifests`."""

    kinds = (WORKLOAD, JOB, CLUSTER_QUEUE)

    def keys_for(self, kind: Kind, namespace: str, name: str) -> Iterable[Key]:
        yield _STATUS
        if kind == CLUSTER_QUEUE:
            yield from self._waiting_keys()
        else:
            yield from super().keys_for(kind, namespace, name)

    async def reconcile(self, key: Key) -> None:
        if key != _STATUS:
            await super().reconcile(key)
        elif queue := self._queue_object():
            status = self._status()
            if status != queue.get("status"):
                await self.replace_status(CLUSTER_QUEUE, queue, status)

    def _has_room(self, copy: Object | None) -> bool:
        queue = self._queue_object()
        if copy is None or queue is None or not super()._has_room(copy):
            return False
        used, asked = self._used(), _requests(copy)
        [flavor] = queue["spec"]["resourceGroups"][0]["flavors"]
        quota = {one["name"]: milli(one["nominalQuota"]) or 0 for one in flavor["resources"]}
        return all(used.get(name, 0) + amount <= quota.get(name, 0) for name, amount in asked.items())

    def _queue_object(self) -> Object | None:
        return self.objects(CLUSTER_QUEUE).get(("", QUEUE))

    def _used(self) -> dict[str, int]:
        used: dict[str, int] = {}
        for copy in self.objects(WORKLOAD).values():
            if has_quota(copy):
                for name, amount in _requests(copy).items():
                    used[name] = used.get(name, 0) + amount
        return used

    def _status(self) -> Object:
        copies = [one for one in self.objects(WORKLOAD).values() if not is_condition_true(one, FINISHED)]
        reserving = sum(map(has_quota, copies))
        totals = [
            {"name": name, "total": format_milli(amount)} for name, amount in sorted(self._used().items())
        ]
        return {
            "flavorsReservation": [{"name": FLAVOR, "resources": totals}],
            "pendingWorkloads": len(copies) - reserving,
            "reservingWorkloads": reserving,
        }


def _requests(copy: Object) -> dict[str, int]:
    total: dict[str, int] = {}
    for podset in job_spec(copy).requests:
        for name, amount in podset:
            total[name] = total.get(name, 0) + amount
    return total
