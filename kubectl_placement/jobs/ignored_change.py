"""
A change of a Job that Kueue ignores, because its copy was sent as the Job was before. Pure.

Kueue's Workload keeps the number of Pods that was sent; a changed `spec.parallelism` of a Job that is not
elastic is accepted by the API server and reaches no worker.
"""

from typing import Final

from kubectl_placement.hub.dump import Object, condition_of
from placement_ac.core.api.fields import get_int, get_list, get_str, get_strs, key_of

ELASTIC: Final = "kueue.x-k8s.io/elastic-job"
"""Kueue: the annotation of a Job whose number of Pods may change."""
PARTIAL: Final = "kueue.x-k8s.io/job-min-parallelism"
"""Kueue: the annotation of a Job that Kueue itself may start with fewer Pods."""


def ignored_parallelism(workload: Object, job: Object | None) -> str:
    """Return that the number of Pods of a Job differs from what was sent, with the fix; "" if it does not."""
    sent = [get_int(podset, "count") for podset in get_list(workload, "spec", "podSets")]
    is_sent = get_str(workload, "status", "clusterName") or get_strs(
        workload, "status", "nominatedClusterNames"
    )
    is_over = condition_of(workload, "Finished").get("status") == "True"
    may_change = any(get_str(job, "metadata", "annotations", name) for name in (ELASTIC, PARTIAL))
    if job is None or len(sent) != 1 or sent[0] is None or not is_sent or is_over or may_change:
        return ""
    wanted = get_int(job, "spec", "parallelism")
    completions = get_int(job, "spec", "completions")
    pods = min(n for n in (wanted, completions) if n is not None) if wanted is not None else sent[0]
    if pods == sent[0]:
        return ""
    namespace, name = key_of(job)
    return (
        f"Kueue ignores that Job {namespace}/{name} asks for {pods} Pods at a time now: it was sent with"
        f" {sent[0]}. For another number, delete it and create it again"
    )
