"""
Rules about the set-up of workers: nothing of others is touched, no job loses its queue, nothing flaps.

They look at the workers' objects and the controller's writes, not at how it decides.
"""

from collections import Counter
from typing import Any, Final

from placement_ac.core.api.constants import (
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    MANIFEST_WORK,
    MULTIKUEUE_CLUSTER,
    SETUP_NAME,
    Kind,
)
from placement_ac.core.api.fields import get_list
from placement_lab.standins.work_rules import Place
from tests.day.bare import BareFleet
from tests.day.rules import BACK_SECONDS, Rules
from tests.day.trace import CLUSTERS, PLACEMENTS
from tests.support.virtual.bare import gpus_in
from tests.support.virtual.workers import QUEUE

KNOWN_SECONDS: Final = 60.0
"""A state is known on the hub after so long: the agent reads every 19 seconds, unless it is away."""
FOLLOWS_SECONDS: Final = 300.0 + 60.0
"""From a lasting change of a cluster to its quota."""
CREDIT_MAX: Final = 3
"""So many causes may be open at once, each for one write."""
LOOK_SECONDS: Final = 10.0


class SetupRules:
    """Watches the workers of a fleet that begins bare; reports to `rules`."""

    def __init__(self, rules: Rules, fleet: BareFleet) -> None:
        self._rules, self._fleet, self._world = rules, fleet, rules.world
        self._used: dict[str, list[tuple[float, int]]] = {one: [(0.0, 0)] for one in CLUSTERS}
        """Cluster → when the GPUs in use changed, and to what."""
        self._busy: dict[tuple[str, str, str], float] = {}
        """Cluster and LocalQueue that has jobs → since when."""
        self._credit: Counter[str] = Counter()
        self._last_cause: dict[str, str] = {}
        self._steady: dict[str, float] = {}
        """Cluster that is set up, and to which nothing happens → since when."""
        fleet.on_cause.append(self._cause)
        world = self._world
        world.kueue.on_use.append(self._take_use)
        world.hub.on_apply.append(self._applied)
        world.hub.listeners.append(self._changed)
        world.on_decision.append(lambda placement, _: self._decided(placement))
        for cluster in CLUSTERS:
            self._cause("start", cluster)
            fleet.worker(cluster).on_change.append(
                lambda place, before, after, cluster=cluster: self._on_worker(cluster, place, before, after)
            )
        world.kueue.later(LOOK_SECONDS, self._look)

    # -- what is on the workers

    def _take_use(self, cluster: str) -> None:
        self._world.kueue.later(0.0, lambda: self._note_use(cluster))

    def _note_use(self, cluster: str) -> None:
        now, use = self._world.now, self._fleet.worker(cluster).use()
        gpus = use.gpus.get(QUEUE, 0)
        if self._used[cluster][-1][1] != gpus:
            recent = [entry for entry in self._used[cluster] if entry[0] > now - 2 * KNOWN_SECONDS]
            self._used[cluster] = [*(recent or self._used[cluster][-1:]), (now, gpus)]
        having = {(cluster, *queue) for queue, jobs in (use.reserving + use.pending).items() if jobs}
        for key in [key for key in self._busy if key[0] == cluster and key not in having]:
            del self._busy[key]
            self._cause("no jobs", cluster)
        for key in having:
            self._busy.setdefault(key, now)

    def _least_used(self, cluster: str) -> int:
        """Return the GPUs that have been in use all the time that counts as known."""
        since = self._world.now - KNOWN_SECONDS
        before = [gpus for at, gpus in self._used[cluster] if at <= since][-1:]
        return min([*before, *(gpus for at, gpus in self._used[cluster] if at > since)], default=0)

    def _on_worker(self, cluster: str, place: Place, before: Any, after: Any) -> None:
        fleet, (kind, namespace, name) = self._fleet, place
        where = f"{cluster}: {kind} {namespace}/{name}"
        theirs = fleet.worker(cluster).by_hand.get(place)
        is_unknown = fleet.agents.was_away(cluster, KNOWN_SECONDS)
        if theirs is not None and (after is None or after.get("spec") != theirs.get("spec")):
            self._rules.found("others", f"{where} is somebody else's, and becomes {after}")
        if after is None:
            since = None if is_unknown else self._busy.get((cluster, namespace, name))
            if kind != LOCAL_QUEUE.kind:
                self._rules.found("kept", f"{where} is deleted")
            elif since is not None and self._world.now - since > KNOWN_SECONDS:
                self._rules.found("kept", f"{where} is deleted, and has had jobs since {since:.0f}")
        elif kind == CLUSTER_QUEUE.kind and before is not None and theirs is None:
            floor = min(gpus_in(before), self._least_used(cluster))
            if gpus_in(after) < floor and self._is_reported(cluster) and not is_unknown:
                message = f"{gpus_in(before)} to {gpus_in(after)} GPUs with {floor} or more in use"
                self._rules.found("in-use", f"{where} goes from {message}")

    def _is_reported(self, cluster: str) -> bool:
        """Whether OCM has reported on the ClusterQueue: before, its use is not known."""
        work = self._world.hub.objects.get((MANIFEST_WORK, cluster, SETUP_NAME))
        reports = get_list(work, "status", "resourceStatus", "manifests")
        return any(report["resourceMeta"]["kind"] == CLUSTER_QUEUE.kind for report in reports)

    # -- writes, and what they are for

    def _cause(self, what: str, cluster: str) -> None:
        self._credit[cluster] = min(self._credit[cluster] + 1, CREDIT_MAX)
        self._last_cause[cluster] = what
        self._steady[cluster] = self._world.now

    def _decided(self, placement: str) -> None:
        for cluster in CLUSTERS:
            self._cause(f"decision of {placement}", cluster)

    def _changed(self, what: str, kind: Kind, raw: Any) -> None:
        if kind == MULTIKUEUE_CLUSTER:
            self._cause("MultiKueueCluster", raw["metadata"]["name"])

    def _applied(self, kind: Kind, before: Any, after: Any) -> None:
        if kind != MANIFEST_WORK:
            return
        cluster = after["metadata"]["namespace"]
        self._credit[cluster] -= 1
        if self._credit[cluster] < 0:
            last = self._last_cause.get(cluster)
            changes = _differences(before, after)
            self._rules.found(
                "flapping", f"{cluster}: written again, and nothing has happened since {last}: {changes}"
            )

    # -- the quota

    def _look(self) -> None:
        self._world.kueue.later(LOOK_SECONDS, self._look)
        for cluster in CLUSTERS:
            problem = self._quota_problem(cluster)
            if not problem:
                self._steady[cluster] = self._world.now
            elif self._world.now - self._steady.get(cluster, 0.0) > KNOWN_SECONDS:
                self._rules.found("quota", f"{cluster}: {problem}")

    def _quota_problem(self, cluster: str) -> str:
        """Return how the quota differs from what it is to be, "" if it does not, or may."""
        fleet, world = self._fleet, self._world
        listed = any(world.is_listed(placement, cluster) for placement in PLACEMENTS)
        since = world.now - FOLLOWS_SECONDS
        began = world.controller_began if world.controller.metrics else world.now
        if not listed or not fleet.is_to_be_ready(cluster) or fleet.is_taken_over(cluster):
            return ""
        if world.sites[cluster].down or began + BACK_SECONDS > since:
            return ""
        wanted, (least, most) = fleet.wanted(cluster), fleet.wanted_range(cluster, since)
        quota, used = fleet.worker(cluster).quota(QUEUE), fleet.worker(cluster).use().gpus.get(QUEUE, 0)
        if least != most or quota == wanted or (quota > wanted and used > wanted):
            return ""
        return f"its quota is {quota}, of {wanted} for {FOLLOWS_SECONDS:g} s, and {used} are in use"


def _differences(before: Any, after: Any) -> str:
    """Return which parts of a ManifestWork differ, in short."""
    if before is None:
        return "created"
    parts = []
    for section in ("metadata", "spec"):
        for key in sorted(before[section].keys() | after[section].keys()):
            old, new = before[section].get(key), after[section].get(key)
            if old != new and key not in ("resourceVersion", "generation", "managedFields"):
                parts.append(f"{section}.{key}: {old} -> {new}")
    return "; ".join(parts)[:1500] or "nothing"
