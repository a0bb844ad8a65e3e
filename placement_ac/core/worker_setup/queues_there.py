"""
The queues that a ManifestWork has put onto its worker.

Pure. Quota that somebody else has set there is not known: OCM's feedback does not report it.
"""

from collections.abc import Mapping

from placement_ac.core.api.constants import CLUSTER_QUEUE, LOCAL_QUEUE
from placement_ac.core.api.fields import get_list
from placement_ac.core.api.objects import ManifestWork
from placement_ac.core.inputs.queue_facts import Queue, QueueFacts, worker_facts
from placement_ac.core.worker_setup.manifests import key_of_manifest


def queues_there(work: ManifestWork) -> Mapping[Queue, QueueFacts] | None:
    """Return the queues as they were written; None: one of them is set otherwise on the worker."""
    manifests = get_list(work.spec, "workload", "manifests")
    by_kind = {
        kind.kind: [one for one in manifests if one.get("kind") == kind.kind]
        for kind in (LOCAL_QUEUE, CLUSTER_QUEUE)
    }
    states = (work.states.get(key_of_manifest(one)) for found in by_kind.values() for one in found)
    if any(state and state.applied is False for state in states):
        return None
    return worker_facts(by_kind[LOCAL_QUEUE.kind], by_kind[CLUSTER_QUEUE.kind]).known
