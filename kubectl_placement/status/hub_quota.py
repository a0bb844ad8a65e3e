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
from kubectl_placement.status.model import CheckStatus, QuotaWarning
from placement_ac.core.api.constants import (
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    MANIFEST_WORK,
    MULTIKUEUE_CONFIG,
    SETUP_NAME,
)
from placement_ac.core.api.decode import manifest_work
from placement_ac.core.api.fields import get_list, get_str
from placement_ac.core.api.quantities import format_milli
from placement_ac.core.api.text import joined
from placement_ac.core.inputs.queue_facts import Queue, QueueFacts, worker_facts
from placement_ac.core.worker_setup.queues_there import queues_there

TOO_LITTLE: Final = 2
"""The workers' quota is this many times the hub's, or more: much of it can never be used."""
WorkerQueues = Mapping[str, Mapping[Queue, QueueFacts] | None]
"""Cluster → its queues; None, or no entry: they are not known."""


@dataclass(slots=True)
class SharedQueues:
    """ClusterQueues of the hub whose jobs share ClusterQueues of workers."""

    on_hub: dict[str, QueueFacts]
    on_workers: dict[tuple[str, str], QueueFacts]
    """Cluster and name → its quota."""
    unknown: set[str]
    """The listed clusters whose queues are not known."""

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources that the hub's ClusterQueues cover."""
        return tuple(dict.fromkeys(name for facts in self.on_hub.values() for name in facts.quotas))


def quota_warnings(view: HubView, statuses: Iterable[CheckStatus]) -> tuple[QuotaWarning, ...]:
    """Return where the hub has too much or too little quota, by what the ManifestWorks put onto workers.

    No worker is asked: where workers are not set up, nothing is known. `statuses`: of all checks of ours.
    """
    if not view.sets_up:
        return ()
    works = view.dump.by_key(MANIFEST_WORK).items()
    there = {
        cluster: queues_there(manifest_work(raw)) for (cluster, name), raw in works if name == SETUP_NAME
    }
    groups = shared_queues(view.dump, statuses, there)
    return tuple(warning for group in groups for warning in warnings_of(view.dump, group))


def shared_queues(dump: Dump, statuses: Iterable[CheckStatus], there: WorkerQueues) -> list[SharedQueues]:
    """Return the ClusterQueues of the hub that send jobs to listed workers, those that share some as one."""
    hub = worker_facts(dump.of(LOCAL_QUEUE), dump.of(CLUSTER_QUEUE)).queues
    groups: list[SharedQueues] = []
    for queues, clusters in _listed(dump, statuses):
        for key in queues & hub.keys():
            found = SharedQueues({hub[key].cluster_queue: hub[key]}, {}, set())
            for cluster in clusters:
                known = there.get(cluster)
                if known is None:
                    found.unknown.add(cluster)
                elif facts := known.get(key):
                    found.on_workers[cluster, facts.cluster_queue] = facts
            if clusters:
                groups = _joined(groups, found)
    return groups


def _listed(dump: Dump, statuses: Iterable[CheckStatus]) -> Iterator[tuple[set[Queue], list[str]]]:
    """Yield the LocalQueues of each check, and its clusters that are listed and stay.

    Where Kueue itself keeps the quota of the hub, there is nothing to compare.
    """
    for check in statuses:
        config = dump.find(MULTIKUEUE_CONFIG, check.config or "")
        if get_str(config, "spec", "quotaManagement") == "Automated":
            continue
        labels = (label.partition("/") for queue in check.queues for label in queue.local_queues or ())
        clusters = [row.name for row in check.clusters if row.state == "listed"]
        yield {(namespace, name) for namespace, _, name in labels}, clusters


def _joined(groups: Iterable[SharedQueues], found: SharedQueues) -> list[SharedQueues]:
    """Return the groups with another one, joined with those that share a ClusterQueue with it."""
    apart: list[SharedQueues] = []
    for group in groups:
        if group.on_hub.keys() & found.on_hub.keys() or group.on_workers.keys() & found.on_workers.keys():
            found = SharedQueues(
                group.on_hub | found.on_hub,
                group.on_workers | found.on_workers,
                group.unknown | found.unknown,
            )
        else:
            apart.append(group)
    return [*apart, found]


def warnings_of(dump: Dump, group: SharedQueues) -> Iterator[QuotaWarning]:
    """Yield the resources of which the hub has more than its workers, or less than half."""
    clusters = len({cluster for cluster, _ in group.on_workers})
    for resource in group.resources:
        on_hub, may_borrow = _sum(group.on_hub.values(), resource)
        on_workers, workers_borrow = _sum(group.on_workers.values(), resource)
        has = f"ClusterQueue {joined(group.on_hub)} on the hub has {format_milli(on_hub)} of {resource}"
        there = f"{format_milli(on_workers)} on {clusters} listed workers"
        if on_hub > on_workers and not workers_borrow and not group.unknown:
            message = f"{has}, more than the {there}: jobs get quota and wait"
        elif on_hub * TOO_LITTLE < on_workers and not may_borrow:
            message = f"{has}, less than half of the {there}: the rest is idle"
        else:
            continue
        yield QuotaWarning(tuple(group.on_hub), resource, message, _fix(dump, group, resource, on_workers))


def _sum(queues: Iterable[QueueFacts], resource: str) -> tuple[int, bool]:
    """Return the nominal quota of a resource, and whether more than that can be used."""
    quotas = [quota for facts in queues for quota in facts.quotas.get(resource, ())]
    return sum(quota.nominal for quota in quotas), any(quota.most != quota.nominal for quota in quotas)


def _fix(dump: Dump, group: SharedQueues, resource: str, amount: int) -> str:
    """Return the command that sets the quota; with several ClusterQueues or flavors an admin divides it."""
    name = next(iter(group.on_hub))
    queue = dump.find(CLUSTER_QUEUE, name)
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
