"""
Headroom: where most of the resources that the job asks for is free.

Reads the requests of the podSets, the quota of the ClusterQueue on the worker, and the Placement's Workloads
that wait there, or came since the worker was asked. Of the flavors, those count that the Pods may use.
Abstains where the worker's queues are not known, and for a job whose ResourceClaims no resource counts,
unless it has no room already without them.
"""

from collections.abc import Callable, Sequence
from typing import Final

from placement_ac.core.api.objects import Workload
from placement_ac.core.api.pod_requests import PODS
from placement_ac.core.dispatch.facts import Cluster, queue_of
from placement_ac.core.dispatch.free_quota import FreeQuota
from placement_ac.core.dispatch.usable_flavors import UsableFlavors, asks_of
from placement_ac.core.inputs.queue_facts import FlavorQuota

NOMINAL_POINTS: Final = 50.0
"""A cluster with as many points has room for the job in its nominal quota."""
ROOM_POINTS: Final = 25.0
"""A cluster with as many points has room for the job now."""
_Asked = tuple[int, UsableFlavors]
"""How much a podSet asks for, and of which flavors."""


def headroom(job: Workload, cluster: Cluster) -> float | None:
    """Return the points of the scarcest resource: 50 to 100 if the unused nominal quota is enough.

    25 to 50 if it is with what can be borrowed. Otherwise the job has to wait there: less than 25, and the
    less, the more is asked for already in relation to the quota. 0 for a ClusterQueue that is not active.
    A cohort without a limit counts as lending as much as the nominal quota, or as the job asks for if that
    is 0. 0 for a resource that the ClusterQueue does not name.
    """
    return _points_of(job, cluster, lambda: cluster.free_quota)


def now_free(job: Workload, cluster: Cluster) -> float | None:
    """Return the points of what is free now: of those that wait there, only newcomers count."""
    return _points_of(job, cluster, lambda: cluster.now_free)


def _points_of(job: Workload, cluster: Cluster, quota: Callable[[], FreeQuota]) -> float | None:
    queue = queue_of(job)
    if cluster.queue_facts is None or not job.job.requests:
        return None
    if queue not in cluster.queue_facts or not cluster.queue_facts[queue].active:
        return 0.0
    free, asked = quota().of(queue), _by_resource(job)
    if PODS not in free:  # then Kueue does not count them
        asked.pop(PODS, None)
    points = [_best_points(free.get(resource, ()), amounts) for resource, amounts in asked.items()]
    least = min(points, default=None)
    is_known = least is not None and (least < ROOM_POINTS or not job.job.has_uncounted_claims)
    return least if is_known else None


def may_have_room(job: Workload, cluster: Cluster) -> bool:
    """Whether the cluster has room for the job now, or it is not known."""
    points = headroom(job, cluster)
    return points is None or points >= ROOM_POINTS


def _by_resource(job: Workload) -> dict[str, list[_Asked]]:
    """Return resource → how much of it each podSet asks for."""
    amounts: dict[str, list[_Asked]] = {}
    for podset, own in asks_of(job.job):
        for resource, amount in podset:
            amounts.setdefault(resource, []).append((amount, own))
    return amounts


def _best_points(flavors: Sequence[FlavorQuota], asked: Sequence[_Asked]) -> float:
    """Return the points of a resource, if each podSet gets the flavor that is best for it."""
    given = [0] * len(flavors)
    for amount, own in asked:
        usable = own.places(flavors)
        if not usable:
            return 0.0
        points = {at: _points(given[at] + amount, flavors[at]) for at in usable}
        given[max(points, key=points.__getitem__)] += amount
    return min(_points(there, flavor) for there, flavor in zip(given, flavors, strict=True) if there)


def _points(asked: int, quota: FlavorQuota) -> float:
    unused = max(quota.nominal - quota.reserved, 0)
    if unused >= asked:
        return 100.0 - 50.0 * asked / unused
    most = 2 * (quota.nominal or asked) if quota.most is None else quota.most
    if quota.reserved + asked <= most:
        return 25.0 + 25.0 * unused / asked
    return 25.0 * most / (quota.reserved + asked)
