"""
The queues that a ManifestWork has put onto its worker.

Pure. Quota that somebody else has set there is not known: OCM's feedback does not report it.
"""

from collections.abc import Iterable, Mapping

from placement_ac.core.api.constants import CLUSTER_QUEUE, DEPLOYMENT, LOCAL_QUEUE
from placement_ac.core.api.fields import Obj, get_list
from placement_ac.core.api.objects import ManifestKey, ManifestState, ManifestWork
from placement_ac.core.inputs.queue_facts import Queue, QueueFacts, worker_facts
from placement_ac.core.worker_setup.manifests import key_of_manifest


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
