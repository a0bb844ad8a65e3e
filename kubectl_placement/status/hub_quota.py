"""
Compare the quota of the hub's ClusterQueues with the sum of that on their listed workers.

Pure. A worker that is not listed, that leaves, or whose queues are not known counts for nothing.
"""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kubectl_placement.hub.dump import Dump
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.status.model import CheckStatus, QueueRow, QuotaWarning
from placement_ac.core.api.constants import (
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    MANIFEST_WORK,
    MULTIKUEUE_CONFIG,
    SETUP_NAME,
)
from placement_ac.core.api.decode import manifest_work
from placement_ac.core.api.fields import get_dict, get_list, get_str
from placement_ac.core.api.quantities import format_milli
from placement_ac.core.api.text import joined
from placement_ac.core.inputs.queue_facts import Queue, QueueFacts, worker_facts
from placement_ac.core.worker_setup.queues_there import manifests_in, queues_there

TOO_LITTLE: Final = 2
"""The workers' quota is this many times the hub's, or more: much of it can never be used."""
WorkerQueues = Mapping[str, Mapping[Queue, QueueFacts] | None]
"""Cluster → its queues; None, or no entry: they are not known."""
ListedClusters = tuple[set[Queue], Iterable[str]]
"""The LocalQueues of a check, and its clusters that are listed and stay."""


@dataclass(slots=True)
class SharedQueues:
    """ClusterQueues of the hub whose jobs share ClusterQueues of workers."""

    on_hub: dict[str, QueueFacts]
    on_workers: dict[tuple[str, str], QueueFacts]
    """Cluster and name → its quota."""
    unknown: set[str]
    """The listed clusters whose queues are not known."""
    lacking: set[str]
    """The listed clusters without a queue for the jobs of one of these: their quota is not in the sum."""

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources that the hub's ClusterQueues cover."""
        return tuple(dict.fromkeys(name for facts in self.on_hub.values() for name in facts.quotas))

    @property
    def clusters(self) -> frozenset[str]:
        """The clusters whose quota is known."""
        return frozenset(cluster for cluster, _ in self.on_workers)

    def sums(self, resource: str) -> tuple[int, int]:
        """Return the quota of a resource on the hub and on the workers, in thousandths."""
        return _sum(self.on_hub.values(), resource)[0], _sum(self.on_workers.values(), resource)[0]


def quota_warnings(view: HubView, statuses: Iterable[CheckStatus]) -> tuple[QuotaWarning, ...]:
    """Return where the hub has too much or too little quota, by what the ManifestWorks put onto workers.

    No worker is asked: where workers are not set up, nothing is known. `statuses`: of all checks of ours.
    """
    if not view.sets_up:
        return ()
    groups = shared_queues(view.dump, listed_now(view.dump, statuses), written_queues(view.dump))
    return tuple(warning for group in groups for warning in warnings_of(view.dump, group))


def written_queues(dump: Dump) -> WorkerQueues:
    """Return the queues that the controller's ManifestWorks have put onto workers."""
    found = dump.by_key(MANIFEST_WORK).items()
    works = {cluster: manifest_work(raw) for (cluster, name), raw in found if name == SETUP_NAME}
    return {cluster: queues_there(manifests_in(work), work.states) for cluster, work in works.items()}


def shared_queues(dump: Dump, listed: Iterable[ListedClusters], there: WorkerQueues) -> list[SharedQueues]:
    """Return the ClusterQueues of the hub that send jobs to listed workers, those that share some as one."""
    hub = worker_facts(dump.of(LOCAL_QUEUE), dump.of(CLUSTER_QUEUE)).queues
    groups: list[SharedQueues] = []
    for queues, clusters in listed:
        for key in queues & hub.keys():
            found = SharedQueues({hub[key].cluster_queue: hub[key]}, {}, set(), set())
            for cluster in clusters:
                known = there.get(cluster)
                if known is None:
                    found.unknown.add(cluster)
                elif (facts := known.get(key)) and facts.exists:
                    found.on_workers[cluster, facts.cluster_queue] = facts
                else:
                    found.lacking.add(cluster)
            if clusters:
                groups = _joined(groups, found)
    return groups


def listed_now(dump: Dump, statuses: Iterable[CheckStatus]) -> Iterator[ListedClusters]:
    """Yield those of each check, as Kueue has the list now."""
    for check in statuses:
        if not keeps_quota(dump, check.config or ""):
            rows = (row.name for row in check.clusters if row.state == "listed")
            yield local_queues_of(check.queues), tuple(rows)


def keeps_quota(dump: Dump, config: str) -> bool:
    """Whether Kueue itself keeps the quota of the hub: then there is nothing to compare."""
    return get_str(dump.find(MULTIKUEUE_CONFIG, config), "spec", "quotaManagement") == "Automated"


def local_queues_of(queues: Iterable[QueueRow]) -> set[Queue]:
    """Return the LocalQueues of these ClusterQueues."""
    labels = (label.partition("/") for queue in queues for label in queue.local_queues or ())
    return {(namespace, name) for namespace, _, name in labels}


def _joined(groups: Iterable[SharedQueues], found: SharedQueues) -> list[SharedQueues]:
    """Return the groups with another one, joined with those that share a ClusterQueue with it."""
    apart: list[SharedQueues] = []
    for group in groups:
        if group.on_hub.keys() & found.on_hub.keys() or group.on_workers.keys() & found.on_workers.keys():
            found = SharedQueues(
                group.on_hub | found.on_hub,
                group.on_workers | found.on_workers,
                group.unknown | found.unknown,
                group.lacking | found.lacking,
            )
        else:
            apart.append(group)
    return [*apart, found]


def warnings_of(dump: Dump, group: SharedQueues) -> Iterator[QuotaWarning]:
    """Yield the resources of which the hub has more than its workers, or less than half."""
    for resource in group.resources:
        on_hub, may_borrow = _sum(group.on_hub.values(), resource)
        on_workers, workers_borrow = _sum(group.on_workers.values(), resource)
        has = f"ClusterQueue {joined(group.on_hub)} on the hub has {format_milli(on_hub)} of {resource}"
        there = f"{format_milli(on_workers)} on {len(group.clusters)} listed workers"
        lacking: tuple[str, ...] = ()
        if on_hub > on_workers and not workers_borrow and not group.unknown:
            lacking = tuple(sorted(group.lacking))
            cause = f", as {joined(lacking)} have no queue for its jobs" if lacking else ""
            message = f"{has}, more than the {there}{cause}: jobs get quota and wait"
        elif on_hub * TOO_LITTLE < on_workers and not may_borrow:
            message = f"{has}, less than half of the {there}: the rest is idle"
        else:
            continue
        fix = _inspect(lacking) if lacking else _fix(dump, group, resource, on_workers)
        yield QuotaWarning(tuple(group.on_hub), resource, message, fix, lacking)


def _inspect(clusters: Iterable[str]) -> str:
    """Return the command that shows what these clusters lack: a lower quota of the hub would be no fix."""
    options = (word for cluster in clusters for word in ("--cluster", cluster))
    return shlex.join(("placement-ac", "doctor", "--workers", *options))


def _sum(queues: Iterable[QueueFacts], resource: str) -> tuple[int, bool]:
    """Return the nominal quota of a resource, and whether more than that can be used."""
    quotas = [quota for facts in queues for quota in facts.quotas.get(resource, ())]
    return sum(quota.nominal for quota in quotas), any(quota.most != quota.nominal for quota in quotas)


def _fix(dump: Dump, group: SharedQueues, resource: str, amount: int) -> str:
    """Return the command that sets the quota; with several ClusterQueues or flavors an admin divides it.

    Where Kueue has set effective quotas, the spec has no effect: look at what sets them.
    """
    name = next(iter(group.on_hub))
    queue = dump.find(CLUSTER_QUEUE, name)
    if orchestrator := get_dict(queue, "status", "effectiveQuotas", "orchestratorRef"):
        kind = f"{get_str(orchestrator, 'kind').lower()}.{get_str(orchestrator, 'apiGroup')}"
        return shlex.join(("kubectl", "get", kind, get_str(orchestrator, "name"), "-o", "yaml"))
    places = [
        f"/spec/resourceGroups/{at}/flavors/{number}/resources/{index}/nominalQuota"
        for at, part in enumerate(get_list(queue, "spec", "resourceGroups"))
        for number, flavor in enumerate(get_list(part, "flavors"))
        for index, quota in enumerate(get_list(flavor, "resources"))
        if quota.get("name") == resource
    ]
    if len(group.on_hub) > 1 or len(places) != 1:
        return shlex.join(("kubectl", "edit", "clusterqueue", *group.on_hub))
    patch = [{"op": "replace", "path": places[0], "value": format_milli(amount)}]
    as_json = json.dumps(patch, separators=(",", ":"))
    return shlex.join(("kubectl", "patch", "clusterqueue", name, "--type=json", "-p", as_json))
