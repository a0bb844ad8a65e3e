"""
Withdraw jobs that only wait on a cluster which stays listed, whatever the reasons (our dispatcher).

Pure. A cluster is asked again 2 s after the last of them was taken out of the nominations: by a report from
before, one that got quota in that second would be missed. So all reasons make one step.
"""

from placement_ac.core.draining.leaving import LeavingCluster
from placement_ac.core.draining.overlong import overlong
from placement_ac.core.draining.state import DrainStep
from placement_ac.core.draining.withdrawals import Withdrawals, withdrawal
from placement_ac.core.inputs.state import Snapshot
from placement_ac.core.plan.job_fit import JobFit
from placement_ac.core.plan.quarantine import refused
from placement_ac.core.plan.targets import TargetClusters
from placement_ac.core.selection.selection import soonest


def withdrawals(snapshot: Snapshot, targets: TargetClusters, fit: JobFit) -> Withdrawals:
    """Return which jobs are taken out of the nominations to clusters, and which are nominated there again."""
    concerned = {*snapshot.fleet.quarantined, *snapshot.fleet.maintenance}
    entries = [entry for entry in targets.to_list if entry.cluster in concerned]
    return Withdrawals(tuple(_step(snapshot, targets, fit, *entry[:2]) for entry in entries))


def _step(snapshot: Snapshot, targets: TargetClusters, fit: JobFit, cluster: str, name: str) -> DrainStep:
    waiting = targets.workloads.waiting_only(name)
    parts = overlong(snapshot, cluster, waiting), refused(snapshot, fit, cluster, name, waiting)
    uids = {job.meta.uid for part in parts for job in part.jobs}
    jobs = [job for job in waiting if job.meta.uid in uids]
    leaving = LeavingCluster(snapshot, targets.workloads, cluster, name)
    return withdrawal(leaving, jobs, soonest(part.look_again for part in parts))
