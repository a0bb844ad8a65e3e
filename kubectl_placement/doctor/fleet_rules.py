"""
Rules that compare the hub with all its workers together.

Pure. A worker that is not listed, that leaves, or whose queues are not known counts for nothing.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kubectl_placement.doctor.commands import HUB
from kubectl_placement.doctor.finding import DoctorRule, Finding, ok, warn
from kubectl_placement.doctor.setup import HubSetup
from kubectl_placement.doctor.worker_inspection import InspectedWorker
from kubectl_placement.status.check_status import check_statuses
from placement_ac.core.api.constants import CLUSTER_QUEUE, LOCAL_QUEUE, MULTIKUEUE_CONFIG
from placement_ac.core.api.fields import get_list, get_str
from placement_ac.core.api.quantities import format_milli
from placement_ac.core.api.text import joined
from placement_ac.core.inputs.queue_facts import Queue, QueueFacts, worker_facts

TOO_LITTLE: Final = 2
"""The workers' quota is this many times the hub's, or more: much of it can never be used."""


@dataclass(frozen=True)
class Fleet:
    """The hub and its inspected workers."""

    setup: HubSetup
    workers: tuple[InspectedWorker, ...]


@dataclass(slots=True)
class _Shared:
    """ClusterQueues of the hub whose jobs share ClusterQueues of workers."""

    on_hub: dict[str, QueueFacts]
    on_workers: dict[tuple[str, str], QueueFacts]
    """Cluster and name → its quota."""
    unknown: set[str]
    """The listed clusters whose queues are not known."""


def _hub_quota(fleet: Fleet) -> Iterator[Finding]:
    compared = list(_groups(fleet))
    for group in compared:
        for resource in dict.fromkeys(name for facts in group.on_hub.values() for name in facts.quotas):
            yield from _compared(fleet, group, resource)
    if compared:
        names = joined(name for group in compared for name in group.on_hub)
        yield ok(f"the quota of {names} is about the sum of that on their listed workers")


hub_quota: Final = DoctorRule(
    "hub-quota",
    "the quota of the hub's ClusterQueues is about the sum of that on their listed workers: neither more, so"
    " that jobs get quota and wait, nor less than half of it, so that GPUs idle",
    "kubectl patch clusterqueue NAME --type=json -p='[…]'",
    _hub_quota,
)
RULES: Final = (hub_quota,)


def examine_fleet(fleet: Fleet) -> tuple[Finding, ...]:
    """Return the findings of each rule."""
    return tuple(finding for rule in RULES for finding in rule.findings(fleet))


def _groups(fleet: Fleet) -> Iterator[_Shared]:
    """Yield the ClusterQueues of the hub that send jobs to listed workers, those that share some as one."""
    setup = fleet.setup
    hub = worker_facts(setup.dump.of(LOCAL_QUEUE), setup.dump.of(CLUSTER_QUEUE)).queues
    there = {worker.cluster: _queues_of(worker) for worker in fleet.workers}
    groups: list[_Shared] = []
    for queues, clusters in _listed(setup):
        for key in queues:
            found = _Shared({hub[key].cluster_queue: hub[key]}, {}, set()) if key in hub else None
            for cluster in clusters if found else ():
                facts = (there.get(cluster) or {}).get(key)
                if found and facts:
                    found.on_workers[cluster, facts.cluster_queue] = facts
                elif found and there.get(cluster) is None:
                    found.unknown.add(cluster)
            if found and clusters:
                groups = _joined(groups, found)
    return iter(groups)


def _listed(setup: HubSetup) -> Iterator[tuple[set[Queue], list[str]]]:
    """Yield the LocalQueues of each check, and its clusters that are listed and stay.

    Where Kueue itself keeps the quota of the hub, there is nothing to compare.
    """
    for check in check_statuses(setup.view):
        config = setup.dump.find(MULTIKUEUE_CONFIG, check.config or "")
        if get_str(config, "spec", "quotaManagement") == "Automated":
            continue
        labels = (label.partition("/") for queue in check.queues for label in queue.local_queues or ())
        clusters = [row.name for row in check.clusters if row.state == "listed"]
        yield {(namespace, name) for namespace, _, name in labels}, clusters


def _queues_of(worker: InspectedWorker) -> Mapping[Queue, QueueFacts] | None:
    """Return the queues of a worker; None: they are not known."""
    if not worker.knows(LOCAL_QUEUE, CLUSTER_QUEUE):
        return None
    objects = worker.objects
    return worker_facts(objects[LOCAL_QUEUE].values(), objects[CLUSTER_QUEUE].values()).known


def _joined(groups: Iterable[_Shared], found: _Shared) -> list[_Shared]:
    """Return the groups with another one, joined with those that share a ClusterQueue with it."""
    apart: list[_Shared] = []
    for group in groups:
        if group.on_hub.keys() & found.on_hub.keys() or group.on_workers.keys() & found.on_workers.keys():
            found = _Shared(
                group.on_hub | found.on_hub,
                group.on_workers | found.on_workers,
                group.unknown | found.unknown,
            )
        else:
            apart.append(group)
    return [*apart, found]


def _compared(fleet: Fleet, group: _Shared, resource: str) -> Iterator[Finding]:
    on_hub, may_borrow = _sum(group.on_hub.values(), resource)
    on_workers, workers_borrow = _sum(group.on_workers.values(), resource)
    names = f"ClusterQueue {joined(group.on_hub)} on the hub"
    there = (
        f"{format_milli(on_workers)} on {len({cluster for cluster, _ in group.on_workers})} listed workers"
    )
    has = f"{names} has {format_milli(on_hub)} of {resource}"
    if on_hub > on_workers and not workers_borrow and not group.unknown:
        yield warn(
            f"{has}, more than the {there}: jobs get quota and wait", _fix(fleet, group, resource, on_workers)
        )
    elif on_hub * TOO_LITTLE < on_workers and not may_borrow:
        yield warn(
            f"{has}, less than half of the {there}: the rest is idle",
            _fix(fleet, group, resource, on_workers),
        )


def _sum(queues: Iterable[QueueFacts], resource: str) -> tuple[int, bool]:
    """Return the nominal quota of a resource, and whether more than that can be used."""
    quotas = [quota for facts in queues for quota in facts.quotas.get(resource, ())]
    return sum(quota.nominal for quota in quotas), any(quota.most != quota.nominal for quota in quotas)


def _fix(fleet: Fleet, group: _Shared, resource: str, amount: int) -> str:
    """Return the command that sets the quota; with several ClusterQueues or flavors an admin divides it."""
    name = next(iter(group.on_hub))
    queue = fleet.setup.dump.find(CLUSTER_QUEUE, name)
    places = [
        f"/spec/resourceGroups/{at}/flavors/{number}/resources/{index}/nominalQuota"
        for at, part in enumerate(get_list(queue, "spec", "resourceGroups"))
        for number, flavor in enumerate(get_list(part, "flavors"))
        for index, quota in enumerate(get_list(flavor, "resources"))
        if quota.get("name") == resource
    ]
    if len(group.on_hub) > 1 or len(places) != 1:
        return HUB.run("edit", "clusterqueue", *group.on_hub)
    patch = [{"op": "replace", "path": places[0], "value": format_milli(amount)}]
    return HUB.run(
        "patch", "clusterqueue", name, "--type=json", "-p", json.dumps(patch, separators=(",", ":"))
    )
