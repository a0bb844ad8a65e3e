"""
The queues that a ManifestWork has put onto its worker.

Pure. Quota that somebody else has set there is not known: OCM's feedback does not report it.
"""

from collections.abc import Iterable, Mapping

from placement_ac.core.api.constants import CLUSTER_QUEUE, DEPLOYMENT, LOCAL_QUEUE, MANIFEST_WORK
from placement_ac.core.api.fields import Obj, get_list, name_of, namespace_of
from placement_ac.core.api.objects import ManifestKey, ManifestState, ManifestWork
from placement_ac.core.inputs.capacity import WrittenQueues
from placement_ac.core.inputs.queue_facts import Queue, QueueFacts, worker_facts
from placement_ac.core.worker_setup.manifests import key_of_manifest

_NOT_REPORTED = ManifestState()


def queues_there(
    manifests: Iterable[Obj], states: Mapping[ManifestKey, ManifestState]
) -> Mapping[Queue, QueueFacts] | None:
    """Return the queues as they were written; None: one of them is set otherwise on the worker."""
    written = list(manifests)
    local_queues, cluster_queues = (
        [one for one in written if one.get("kind") == kind.kind] for kind in (LOCAL_QUEUE, CLUSTER_QUEUE)
    )
    reported = (states.get(key_of_manifest(one)) for one in (*local_queues, *cluster_queues))
    if any(state and state.applied is False for state in reported):
        return None
    return worker_facts(local_queues, cluster_queues).known


def manifests_in(work: ManifestWork | None) -> tuple[Obj, ...]:
    """Return the objects that a ManifestWork puts onto the worker; Kueue's Deployment is only read."""
    written = get_list(work.spec, "workload", "manifests") if work else ()
    return tuple(one for one in written if one.get("kind") != DEPLOYMENT.kind)


def written_queues(work: ManifestWork) -> WrittenQueues:
    """Return the LocalQueues of a ManifestWork, and the quota behind those that are as it sets them."""
    manifests = manifests_in(work)
    local = [one for one in manifests if one.get("kind") == LOCAL_QUEUE.kind]
    applied = [one for one in manifests if work.states.get(key_of_manifest(one), _NOT_REPORTED).applied]
    facts = worker_facts(
        (one for one in applied if one.get("kind") == LOCAL_QUEUE.kind),
        (one for one in applied if one.get("kind") == CLUSTER_QUEUE.kind),
    )
    queues = {queue: found for queue, found in facts.queues.items() if found.exists}
    names = {(namespace_of(one), name_of(one)) for one in local}
    where = f"{MANIFEST_WORK.kind} {work.meta.namespace}/{work.meta.name}"
    problem = f"{facts.problem} (in {where})" if facts.problem else ""
    return WrittenQueues(queues, frozenset(names - queues.keys()), problem)
