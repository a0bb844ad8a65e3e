"""
A worker's Kueue with ClusterQueues: Workloads reserve quota by flavor, and their status reports the sums.

Only what a dispatcher reads is simulated: no cohort, no preemption.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from placement_ac.core.api.constants import CONDITION_ACTIVE, JOB, KUEUE, WORKLOAD, Kind
from placement_ac.core.api.fields import key_of
from placement_ac.core.api.pod_requests import PODS, podset_requests
from placement_ac.core.api.quantities import format_milli, milli
from placement_ac.kube.client import Object
from placement_lab.standins.informer import Key
from placement_lab.standins.kueue import CLUSTER_QUEUE, LOCAL_QUEUE, RESOURCE_FLAVOR
from placement_lab.standins.kueue_rules import ActiveCondition, KueueCache, judge_queue, stop_policy
from placement_lab.standins.multikueue import QueueState, has_quota
from placement_lab.standins.multikueue.objects import (
    ADMITTED,
    FINISHED,
    is_condition_true,
    set_condition,
)
from placement_lab.standins.multikueue.queues import DRAIN
from placement_lab.standins.worker import QUEUE, KueueWorker

Quota = Mapping[str, Mapping[str, str]]
"""Flavor → resource → its nominal quota, in the order in which Kueue tries the flavors."""
Used = Counter[tuple[str, str]]
"""Flavor and resource → how much Workloads have, in thousandths."""


def flavor_manifests(quota: Quota) -> Iterator[Object]:
    """Yield the ResourceFlavors that this quota names."""
    for name in quota:
        yield {"apiVersion": f"{KUEUE}/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": name}}


def queue_manifests(quota: Quota, local_queues: Iterable[str]) -> Iterator[Object]:
    """Yield the ClusterQueue with this quota, and its LocalQueues in `default`.

    All flavors are in one resource group, so each has the same resources.
    """
    api_version = f"{KUEUE}/v1beta2"
    flavors = [
        {
            "name": flavor,
            "resources": [{"name": name, "nominalQuota": amount} for name, amount in amounts.items()],
        }
        for flavor, amounts in quota.items()
    ]
    covered = list(dict.fromkeys(name for amounts in quota.values() for name in amounts))
    yield {
        "apiVersion": api_version,
        "kind": CLUSTER_QUEUE.kind,
        "metadata": {"name": QUEUE},
        "spec": {
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": covered, "flavors": flavors}],
        },
    }
    for name in local_queues:
        yield {
            "apiVersion": api_version,
            "kind": LOCAL_QUEUE.kind,
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"clusterQueue": QUEUE},
        }


class QuotaWorker(KueueWorker):
    """Simulates Kueue on a worker that has ClusterQueues and LocalQueues, such as those of `queue_manifests`.

    A copy gets quota of the ClusterQueue that its LocalQueue names; without one it waits.
    """

    kinds = (WORKLOAD, JOB, RESOURCE_FLAVOR, CLUSTER_QUEUE, LOCAL_QUEUE)

    def keys_for(self, kind: Kind, namespace: str, name: str) -> Iterable[Key]:
        for queue_kind in (CLUSTER_QUEUE, LOCAL_QUEUE):
            yield from ((queue_kind.kind, *key) for key in self.objects(queue_kind))
        if kind in (RESOURCE_FLAVOR, CLUSTER_QUEUE, LOCAL_QUEUE):
            yield from self._waiting_keys()
            queues = (*self.objects(CLUSTER_QUEUE).values(), *self.objects(LOCAL_QUEUE).values())
            if any(stop_policy(queue) == DRAIN for queue in queues):
                yield from (("workload", *key) for key in self.objects(WORKLOAD))
        else:
            yield from super().keys_for(kind, namespace, name)

    async def reconcile(self, key: Key) -> None:
        kind = next(
            (queue_kind for queue_kind in (CLUSTER_QUEUE, LOCAL_QUEUE) if queue_kind.kind == key[0]), None
        )
        if kind is None:
            await super().reconcile(key)
        elif queue := self.objects(kind).get((key[1], key[2])):
            status = self._cluster_queue_status(queue) if kind == CLUSTER_QUEUE else self._local_status(queue)
            if status != queue.get("status"):
                await self.replace_status(kind, queue, status)

    def _queue_for(self, copy: Object | None) -> QueueState:
        local = self._local_queue_of(copy)
        name = cluster_queue_of(local)
        queue = self.objects(CLUSTER_QUEUE).get(("", name))
        if copy is None or local is None or queue is None:
            return QueueState(name, exists=queue is not None, local_exists=local is not None)
        used = used_quota(filter(has_quota, self._copies(name)))
        groups: list[Object] = [] if has_quota(copy) else queue["spec"].get("resourceGroups") or []
        flavors = assigned_quota(copy, groups, used) if groups else {}
        return QueueState(
            name,
            active=self._judge(queue).active and not self._held,
            has_room=flavors is not None and self._has_slot(),
            flavors=flavors or {},
            lacks=why_no_quota(copy, groups, used) if flavors is None else "",
            stop=stop_policy(queue),
            local_stop=stop_policy(local),
        )

    def _local_queue_of(self, copy: Object | None) -> Object | None:
        if copy is None:
            return None
        return self.objects(LOCAL_QUEUE).get((key_of(copy)[0], copy["spec"].get("queueName", "")))

    def _judge(self, queue: Object) -> ActiveCondition:
        flavors = {name for _, name in self.objects(RESOURCE_FLAVOR)}
        return judge_queue(queue, KueueCache({}, {}, {}, flavors, {}))

    def _copies(self, cluster_queue: str) -> list[Object]:
        """Return the unfinished copies that a ClusterQueue gives quota, or is to give some."""
        return [
            copy
            for copy in self.objects(WORKLOAD).values()
            if cluster_queue_of(self._local_queue_of(copy)) == cluster_queue
            and not is_condition_true(copy, FINISHED)
        ]

    def _cluster_queue_status(self, queue: Object) -> Object:
        copies = self._copies(queue["metadata"]["name"])
        admitted = [copy for copy in copies if has_quota(copy) and is_condition_true(copy, ADMITTED)]
        return {
            "flavorsReservation": _by_flavor(queue, used_quota(filter(has_quota, copies))),
            "flavorsUsage": _by_flavor(queue, used_quota(admitted)),
            **_counts(copies),
            "conditions": [active_condition(queue, self._judge(queue))],
        }

    def _local_status(self, queue: Object) -> Object:
        key = key_of(queue)
        copies = self._copies(queue["spec"]["clusterQueue"])
        return _counts([copy for copy in copies if (key_of(copy)[0], copy["spec"].get("queueName")) == key])


def cluster_queue_of(local_queue: Object | None) -> str:
    """Return the name of the ClusterQueue of a LocalQueue, "" if there is no LocalQueue."""
    return str(local_queue["spec"]["clusterQueue"]) if local_queue else ""


def active_condition(queue: Object, wanted: ActiveCondition) -> Object:
    """Return the condition Active of a ClusterQueue."""
    before = (queue.get("status") or {}).get("conditions") or ()
    item: Object = {"metadata": queue["metadata"], "status": {"conditions": list(before)}}
    set_condition(item, CONDITION_ACTIVE, wanted.active, wanted.reason, wanted.message, time.time())
    return dict(item["status"]["conditions"][0])


def _counts(copies: list[Object]) -> Object:
    reserving = [copy for copy in copies if has_quota(copy)]
    return {
        "pendingWorkloads": len(copies) - len(reserving),
        "reservingWorkloads": len(reserving),
        "admittedWorkloads": sum(is_condition_true(copy, ADMITTED) for copy in reserving),
    }


def assigned_quota(copy: Object, groups: Iterable[Object], used: Used) -> Mapping[str, Object] | None:
    """Return podSet → `flavors` and `resourceUsage` of its assignment; None if there is no room.

    Of each resource group, a podSet gets the first flavor with room for all that it asks for of that group.
    """
    used, assigned = used.copy(), {}
    groups = list(groups)
    for podset in copy["spec"].get("podSets") or ():
        asked = dict(podset_requests(podset))
        if not any(PODS in group["coveredResources"] for group in groups):
            asked.pop(PODS, None)
        flavors = _flavors_for(asked, groups, used)
        if flavors is None:
            return None
        used.update({(flavor, name): asked[name] for name, flavor in flavors.items()})
        usage = {name: format_milli(amount) for name, amount in asked.items()}
        assigned[podset.get("name", "main")] = {"flavors": flavors, "resourceUsage": usage} if asked else {}
    return assigned


def _flavors_for(asked: Mapping[str, int], groups: Iterable[Object], used: Used) -> dict[str, str] | None:
    """Return resource → flavor for a podSet; None if a resource is not covered or has no room."""
    flavors: dict[str, str] = {}
    for group in groups:
        wanted = [name for name in asked if name in group["coveredResources"]]
        fits = (
            flavor["name"]
            for flavor in group["flavors"]
            if all(asked[name] <= _unused(flavor, name, used) for name in wanted)
        )
        if wanted and (flavor := next(fits, "")):
            flavors |= dict.fromkeys(wanted, flavor)
    return flavors if flavors.keys() == asked.keys() else None


def why_no_quota(workload: Object, groups: Iterable[Object], used: Used) -> str:
    """Return Kueue's message if the first podSet of a Workload gets no quota, "" if it does.

    Source: Kueue's `flavorassigner.go`. All resources of the first group without room count, in each flavor.
    """
    podset: Object = next(iter(workload["spec"].get("podSets") or ()), {})
    asked = {name: amount for name, amount in podset_requests(podset) if name != PODS}
    by_resource = {name: group for group in groups for name in group["coveredResources"]}
    for name in asked:
        group = by_resource.get(name)
        wanted = {k: v for k, v in asked.items() if by_resource.get(k) is group}
        if group is None or _flavors_for(wanted, [group], used) is None:
            none = [f"resource {name} unavailable in ClusterQueue"]
            lacking = sorted(_lacking(wanted, group, used)) if group else none
            return f"couldn't assign flavors to pod set {podset.get('name', 'main')}: {', '.join(lacking)}"
    return ""


def _lacking(asked: Mapping[str, int], group: Object, used: Used) -> Iterator[str]:
    for flavor in group["flavors"]:
        for name, amount in asked.items():
            where, most = f"{name} in flavor {flavor['name']}", _unused(flavor, name, Counter())
            if amount > most:
                yield (
                    f"insufficient quota for {where}, previously considered podsets requests (0) + current "
                    f"podset request ({format_milli(amount)}) > maximum capacity ({format_milli(most)})"
                )
            elif (more := amount - _unused(flavor, name, used)) > 0:
                yield f"insufficient unused quota for {where}, {format_milli(more)} more needed"


def _unused(flavor: Object, resource: str, used: Used) -> int:
    nominal = (milli(it["nominalQuota"]) or 0 for it in flavor["resources"] if it["name"] == resource)
    return next(nominal, 0) - used[flavor["name"], resource]


def used_quota(copies: Iterable[Object]) -> Used:
    """Return the quota that these copies have, by their assignments."""
    used: Used = Counter()
    for copy in copies:
        for assignment in copy["status"]["admission"]["podSetAssignments"]:
            for name, flavor in assignment.get("flavors", {}).items():
                used[flavor, name] += milli(assignment["resourceUsage"][name]) or 0
    return used


def _by_flavor(queue: Object, used: Used) -> list[Object]:
    """Return all flavors of a ClusterQueue with the total of each resource, as Kueue reports them."""
    return [
        {
            "name": flavor["name"],
            "resources": [
                {"name": resource["name"], "total": format_milli(used[flavor["name"], resource["name"]])}
                for resource in flavor["resources"]
            ],
        }
        for group in queue["spec"]["resourceGroups"]
        for flavor in group["flavors"]
    ]
