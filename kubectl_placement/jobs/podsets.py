"""
The podSets of a new job as Kueue makes them, and the quota that the hub's ClusterQueue reserves for them.

Pure. Sources: Kueue `pkg/controller/jobs/job`: `podsCount`, `minPodsCount`; `pkg/workload`: a resource that
Kueue's configuration excludes, or that it ignores because the queue lacks it, is in no `resourceUsage`.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from kubectl_placement.hub.dump import Object
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.status.queues import inactive_reason
from kubectl_placement.status.unnamed_resources import is_excluded
from placement_ac.core.api.constants import CLUSTER_QUEUE, LOCAL_QUEUE
from placement_ac.core.api.decode import active_of
from placement_ac.core.api.fields import get_dict, get_int, get_list, get_str, get_strs
from placement_ac.core.api.objects import Workload
from placement_ac.core.api.pod_requests import PODS, podset_requests
from placement_ac.core.api.quantities import format_milli
from placement_ac.core.api.text import joined
from placement_ac.core.dispatch.facts import Cluster, queue_of
from placement_ac.core.dispatch.filters.capacity import capacity
from placement_ac.core.inputs.queue_facts import worker_facts

MIN_PARALLELISM: Final = "kueue.x-k8s.io/job-min-parallelism"
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")


def job_podset(job: Object) -> dict[str, Any]:
    """Return the podSet of a Job."""
    parallelism, completions = (get_int(job, "spec", field) for field in ("parallelism", "completions"))
    count = 1 if parallelism is None else parallelism
    podset = {
        "name": "main",
        "count": count if completions is None else min(count, completions),
        "template": dict(get_dict(job, "spec", "template")),
    }
    least = get_str(job, "metadata", "annotations", MIN_PARALLELISM)
    return podset | ({"minCount": int(least)} if _INTEGER.fullmatch(least) else {})


def admission(view: HubView, queue: str, spec: Object) -> dict[str, Any]:
    """Return the `status.admission` of a Workload with quota in the hub's ClusterQueue."""
    named = covered(view, queue)
    assignments = [
        {
            "name": get_str(podset, "name"),
            "count": _count(podset),
            "resourceUsage": {
                name: format_milli(amount) for name, amount in _requests(podset) if name in named
            },
        }
        for podset in get_list(spec, "podSets")
    ]
    return {"clusterQueue": queue, "podSetAssignments": assignments}


def not_covered(view: HubView, queue: str, spec: Object) -> Iterator[str]:
    """Yield a note if the hub's ClusterQueue lacks resources that the job requests.

    Kueue counts Pods only where a ClusterQueue names them.
    """
    if named := covered(view, queue):
        requested = (name for podset in get_list(spec, "podSets") for name, _ in podset_requests(podset))
        missing = [name for name in dict.fromkeys(requested) if name not in {*named, PODS}]
        counted = [name for name in missing if not is_excluded(name, view.kueue_resources)]
        if counted:
            label = f"ClusterQueue {queue} does not cover {joined(counted)}"
            if view.kueue_resources is None:
                yield f"{label}: the job gets quota only if Kueue's configuration excludes it"
            else:
                yield f"{label}, and Kueue's configuration does not exclude it: the job never gets quota"


def not_on_hub(view: HubView, job: Workload) -> Iterator[str]:
    """Yield why the hub's ClusterQueue gives a job no quota, so that it is sent nowhere."""
    facts = worker_facts(view.dump.of(LOCAL_QUEUE), view.dump.of(CLUSTER_QUEUE)).known or {}
    if not (queue := facts.get(queue_of(job))):
        return
    name = f"ClusterQueue {queue.cluster_queue} on the hub"
    if refusal := capacity(job, Cluster("", "", queue_facts=facts)):
        yield f"{name} {refusal}: the job never gets quota there, so it is sent nowhere"
    elif queue.selects_no_namespace:
        yield f"set spec.namespaceSelector of {name}: without it, it admits no job"
    elif not queue.active:
        why = inactive_reason(active_of(view.dump.find(CLUSTER_QUEUE, queue.cluster_queue) or {}))
        problem = f"{name} admits nothing: {why}" if why else f"{name}, or its LocalQueue, is on hold"
        yield f"{problem}: until that ends, the job is sent nowhere"


def covered(view: HubView, queue: str) -> frozenset[str]:
    """Return the resources for which the hub's ClusterQueue has quota."""
    groups = get_list(view.dump.find(CLUSTER_QUEUE, queue), "spec", "resourceGroups")
    return frozenset(name for group in groups for name in get_strs(group, "coveredResources"))


def _count(podset: Any) -> int:
    count = get_int(podset, "count")
    return 1 if count is None else count


def _requests(podset: Any) -> Iterator[tuple[str, int]]:
    yield from podset_requests(podset)
    yield PODS, _count(podset) * 1000
