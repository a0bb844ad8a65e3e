"""
Taints: only the clusters whose taints the job's Pods tolerate, of those taints that `--job-taints` names.

Reads the tolerations of the podSets, and the taints of the ManagedCluster. For OCM, taints decide which
clusters a Placement selects; here, which jobs go to one that it selected although it is tainted. A Pod cannot
name OCM's effects: NoSelect and NoSelectIfNew count as NoSchedule, PreferNoSelect as PreferNoSchedule, which
refuses no cluster. The job must tolerate a taint in each of its podSets. Abstains for a job that has more
tolerations than are read.
"""

from typing import Final

from placement_ac.core.api.objects import ClusterTaint, Workload
from placement_ac.core.dispatch.facts import Cluster

_EFFECTS: Final = {
    "NoSelect": "NoSchedule",
    "NoSelectIfNew": "NoSchedule",
    "PreferNoSelect": "PreferNoSchedule",
}
"""OCM's effect → that of a Pod's toleration."""
_PREFERS: Final = "PreferNoSelect"


def taints(job: Workload, cluster: Cluster) -> str | None:
    """Refuse a cluster with a taint that the job does not tolerate."""
    for taint in cluster.taints:
        if taint.effect != _PREFERS and not _tolerates(job, taint):
            return f"had the taint {taint}: tolerate it in each Pod template to go there"
    return None


def disliked(job: Workload, cluster: Cluster) -> str:
    """Return why a cluster comes last for the job: a taint PreferNoSelect; "": it does not."""
    for taint in cluster.taints:
        if taint.effect == _PREFERS and not _tolerates(job, taint):
            return f"it has the taint {taint}"
    return ""


def _tolerates(job: Workload, taint: ClusterTaint) -> bool:
    """Whether the job tolerates a taint, or may do so: its tolerations are not known."""
    if job.job.tolerations_problem:
        return True
    podsets, effect = job.job.tolerations, _EFFECTS.get(taint.effect, taint.effect)
    return bool(podsets) and all(
        any(one.tolerates(taint.key, taint.value, effect) for one in podset) for podset in podsets
    )
