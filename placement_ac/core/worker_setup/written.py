"""
The queues on a worker that are as our ManifestWork sets them, by what OCM's work agent reports.

Pure.
"""

from placement_ac.core.api.constants import CLUSTER_QUEUE, LOCAL_QUEUE, MANIFEST_WORK
from placement_ac.core.api.fields import get_list, name_of, namespace_of
from placement_ac.core.api.objects import ManifestState, ManifestWork
from placement_ac.core.inputs.capacity import WrittenQueues
from placement_ac.core.inputs.queue_facts import worker_facts
from placement_ac.core.worker_setup.manifests import key_of_manifest

_NOT_REPORTED = ManifestState()


def written_queues(work: ManifestWork) -> WrittenQueues:
    """Return the LocalQueues of a ManifestWork, and the quota behind those that are as it sets them."""
    manifests = get_list(work.spec, "workload", "manifests")
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
