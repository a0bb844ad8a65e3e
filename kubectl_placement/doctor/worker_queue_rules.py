"""
Rules that check the queues on each worker, and all that these need there: namespaces and flavors.

Pure.
"""

import re
from collections.abc import Iterator
from typing import Final

from kubectl_placement.doctor import commands
from kubectl_placement.doctor.finding import Finding, fail, ok, warn
from kubectl_placement.doctor.namespace_selectors import leaves_out, selects_none
from kubectl_placement.doctor.worker_inspection import (
    ExpectedQueue,
    InspectedWorker,
    flavors_of,
    worker_rule,
)
from kubectl_placement.hub.dump import Object
from kubectl_placement.status.queues import STOP_POLICIES
from placement_ac.core.api.constants import (
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    NAMESPACE,
    RESOURCE_FLAVOR,
)
from placement_ac.core.api.decode import active_of
from placement_ac.core.api.fields import get_str
from placement_ac.core.api.text import joined
from placement_ac.core.kubeconfig.dns import is_dns_name

STOPPED: Final = "Stopped"
"""Kueue: the reason of a ClusterQueue with a stopPolicy."""
APPLY: Final = "kubectl --context CLUSTER apply -f - <<'EOF' …"
_REASON: Final = re.compile(r"[A-Za-z]{1,64}")


@worker_rule(
    "worker-queues",
    "the hub's LocalQueues and their namespaces exist, and none is stopped",
    APPLY,
    LOCAL_QUEUE,
)
def queues(worker: InspectedWorker) -> Iterator[Finding]:
    expected = worker.target.queues
    if worker.knows(NAMESPACE):
        yield from _missing_namespaces(worker)
    reachable = (queue for queue in expected if worker.has_namespace(queue.namespace))
    if missing := [queue for queue in reachable if queue.key not in worker.objects[LOCAL_QUEUE]]:
        yield fail(
            f"LocalQueues {joined(queue.label for queue in missing)} are missing: their jobs cannot "
            "run there",
            worker.kubectl.apply(*(_local_queue(worker, queue) for queue in missing)),
        )
    for wanted in expected:
        if get_str(worker.objects[LOCAL_QUEUE].get(wanted.key), "spec", "stopPolicy") in STOP_POLICIES:
            yield fail(
                f"LocalQueue {wanted.label} is stopped: its jobs cannot run there",
                worker.kubectl.patch("localqueue", wanted.name, {"stopPolicy": "None"}, wanted.namespace),
            )
    yield ok(f"LocalQueues {joined(queue.label for queue in expected) or '(none needed)'}")


def _missing_namespaces(worker: InspectedWorker) -> Iterator[Finding]:
    expected = sorted({queue.namespace for queue in worker.target.queues})
    if missing := [name for name in expected if not worker.has_namespace(name)]:
        created = [commands.manifest(NAMESPACE, name) for name in missing]
        queues = [_local_queue(worker, queue) for queue in worker.target.queues if queue.namespace in missing]
        message = f"namespaces {joined(missing)} are missing: their jobs cannot run there"
        yield fail(message, worker.kubectl.apply(*created, *queues))


def _local_queue(worker: InspectedWorker, wanted: ExpectedQueue) -> Object:
    names = [name for _, name in worker.objects[CLUSTER_QUEUE]]
    spec = {"clusterQueue": names[0] if len(names) == 1 else wanted.cluster_queue}
    return worker.manifest(LOCAL_QUEUE, wanted.name, spec, wanted.namespace)


@worker_rule(
    "worker-cluster-queues",
    "their ClusterQueues exist with their ResourceFlavors, are active, and admit jobs of their namespaces",
    APPLY,
    *(LOCAL_QUEUE, CLUSTER_QUEUE),
)
def cluster_queues(worker: InspectedWorker) -> Iterator[Finding]:
    for name, wanted in worker.in_use.items():
        if ("", name) not in worker.objects[CLUSTER_QUEUE]:
            on_hub = worker.hub_spec(CLUSTER_QUEUE, wanted.cluster_queue)
            hub_only = ("admissionChecks", "admissionChecksStrategy")
            spec = {field: value for field, value in on_hub.items() if field not in hub_only}
            yield fail(
                f"LocalQueue {wanted.label} uses ClusterQueue {name}, which does not exist",
                worker.kubectl.apply(worker.manifest(CLUSTER_QUEUE, name, spec)),
            )
    for name, queue in worker.cluster_queues():
        yield from _inactive(worker, name, queue)
        if closed := _closed_to_namespaces(worker, name, queue):
            yield closed
    if worker.knows(RESOURCE_FLAVOR):
        yield from _missing_flavors(worker)
    yield ok(f"ClusterQueues {joined(worker.in_use) or '(none needed)'} are active")


def _inactive(worker: InspectedWorker, name: str, queue: Object) -> Iterator[Finding]:
    condition = active_of(queue)
    describe = worker.kubectl.run("describe", "clusterqueue", name)
    if (condition and condition.status == "True") or _lacks(worker, queue):
        return
    if condition is None:
        yield warn(f"Kueue has not reconciled ClusterQueue {name} yet", describe)
    elif condition.reason == STOPPED:
        resume = worker.kubectl.patch("clusterqueue", name, {"stopPolicy": "None"})
        yield fail(f"ClusterQueue {name} is stopped", resume)
    else:
        reason = f" ({condition.reason})" if _REASON.fullmatch(condition.reason) else ""
        yield fail(f"ClusterQueue {name} is not active{reason}", describe)


def _closed_to_namespaces(worker: InspectedWorker, name: str, queue: Object) -> Finding | None:
    """Return that a ClusterQueue admits no jobs of namespaces whose LocalQueues use it."""
    users = (wanted for wanted in worker.target.queues if worker.cluster_queue_of(wanted) == name)
    there, spaces = worker.objects[NAMESPACE], sorted({wanted.namespace for wanted in users})
    known = {space: there["", space] for space in spaces if ("", space) in there}
    return selects_none(worker.kubectl, queue) or leaves_out(worker.kubectl, queue, known)


def _missing_flavors(worker: InspectedWorker) -> Iterator[Finding]:
    used = {name: queue for queue, obj in worker.cluster_queues() for name in flavors_of(obj)}
    for name in filter(is_dns_name, used):
        if worker.flavor(name) is None:
            created = worker.manifest(RESOURCE_FLAVOR, name, worker.hub_spec(RESOURCE_FLAVOR, name))
            yield fail(
                f"ClusterQueue {used[name]} names ResourceFlavor {name}, which does not exist",
                worker.kubectl.apply(created),
            )


def _lacks(worker: InspectedWorker, queue: Object) -> bool:
    """Whether a ClusterQueue is inactive for missing flavors, which are reported."""
    return worker.knows(RESOURCE_FLAVOR) and not all(map(worker.flavor, flavors_of(queue)))


RULES: Final = (queues, cluster_queues)
