"""
The MultiKueueConfig and the MultiKueueClusters that one Placement wants.

Pure. AdmissionChecks own them: Kubernetes removes them with the last check that uses them.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from placement_ac.core.api.constants import DISCONNECTED_RETENTION_SECONDS
from placement_ac.core.inputs.state import Snapshot, Timer, TimerKind, WantedCluster, WantedConfig
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.core.plan.conditions import is_taken
from placement_ac.core.plan.targets import TargetClusters
from placement_ac.core.selection.capacity import order_names
from placement_ac.core.selection.selection import cluster_of, removable_clusters, soonest


class TargetObjects(NamedTuple):
    """The objects to have, and what lasts with them."""

    config: WantedConfig | None = None
    clusters: tuple[WantedCluster, ...] = ()
    timers: frozenset[Timer] = frozenset()
    recheck_after: float | None = None


@dataclass(frozen=True, slots=True)
class RetainedClusters:
    """MultiKueueClusters that stay for a while though nobody needs them."""

    timers: frozenset[Timer] = frozenset()
    recheck_after: float | None = None

    @property
    def names(self) -> frozenset[str]:
        return frozenset(timer.subject for timer in self.timers)


def owners_of(seen: Snapshot) -> dict[str, str]:
    """Return the AdmissionChecks that use the config, uid → name: it lives as long as any of them."""
    checks = (*seen.checks.ours, *seen.checks.multikueue, *seen.checks.former)
    return {check.meta.uid: check.meta.name for check in checks}


def target_objects(seen: Snapshot, targets: TargetClusters) -> TargetObjects:
    """List every usable cluster, and after them those that drain."""
    owners, staying = owners_of(seen), targets.drain.staying
    ordered = order_names(seen, targets.usable, [step.name for step in staying])
    clusters = [WantedCluster(entry.name, entry.cluster, entry.source, owners) for entry in targets.usable]
    ours = targets.listed.values()
    for step in staying:
        source = _source_of(seen, step.cluster)
        if step.name in ours and (source or step.name in seen.objects.clusters):
            clusters.append(WantedCluster(step.name, step.cluster, source, owners))
    return TargetObjects(
        _target_config(seen, targets, ordered.names, owners),
        _with_shared(seen, clusters) if seen.objects.other_owners else tuple(clusters),
        ordered.timers,
        ordered.recheck_after,
    )


def _source_of(seen: Snapshot, cluster: str) -> CredentialSource | None:
    credentials = seen.credentials
    found = credentials.selected.get(cluster) or credentials.unselected.get(cluster)
    return found if isinstance(found, CredentialSource) else None


def _target_config(
    seen: Snapshot, targets: TargetClusters, names: tuple[str, ...], owners: Mapping[str, str]
) -> WantedConfig | None:
    observed = seen.objects.config
    known = observed.draining if observed and observed.ours else {}
    draining = {step.name: known.get(step.name, seen.now) for step in targets.drain.staying}
    if len(names) > seen.hub.clusters_max and observed:
        # Kueue's limit has shrunk: nothing can be written before enough clusters can leave together.
        names = observed.listed
    return WantedConfig(seen.name, names, owners, draining) if names else None


def unchanged_objects(seen: Snapshot) -> TargetObjects:
    """Keep the objects as they are; only their owners follow the checks."""
    owners = owners_of(seen)
    observed, config = seen.objects.config, None
    if observed and not is_taken(observed, seen.name, ""):
        config = WantedConfig(seen.name, observed.listed, owners, observed.draining)
    listed = config.clusters if config else ()
    ours = [
        WantedCluster(name, cluster_of(seen, obj), None, _all_owners(seen, name, owners))
        for name, obj in seen.objects.clusters.items()
        # Without a label it is shared, or someone removed the label.
        if obj.ours and (obj.placement == seen.name or (not obj.placement and name in listed))
    ]
    names = [cluster.name for cluster in ours]
    return TargetObjects(config, (*ours, *_needed_elsewhere(seen, names)))


def objects_of_others(seen: Snapshot) -> TargetObjects:
    """Keep the shared MultiKueueClusters that other Placements list, when this one wants none."""
    return TargetObjects(clusters=tuple(_needed_elsewhere(seen, ())))


def retained_clusters(seen: Snapshot, objects: TargetObjects) -> RetainedClusters:
    """Keep unneeded MultiKueueClusters for a while, in which Kueue clears up there."""
    wanted = {cluster.name for cluster in objects.clusters}
    wanted.update(objects.config.clusters if objects.config else ())
    unneeded = [obj.meta.name for obj in removable_clusters(seen) if obj.meta.name not in wanted]
    timers = [Timer(TimerKind.RETAINED, name) for name in unneeded]
    left = {timer: _retention(seen, timer.subject) - seen.age(timer) for timer in timers}
    retained = {timer: seconds for timer, seconds in left.items() if seconds > 0}
    return RetainedClusters(frozenset(retained), soonest(retained.values()))


def _retention(seen: Snapshot, name: str) -> float:
    """Return the seconds for which a MultiKueueCluster is kept: longer while Kueue is not connected to it."""
    retention, disconnected = seen.policy.retention, seen.objects.clusters[name].active is False
    return max(retention, DISCONNECTED_RETENTION_SECONDS) if retention and disconnected else retention


# -- MultiKueueClusters that several Placements share


def _with_shared(seen: Snapshot, clusters: Iterable[WantedCluster]) -> tuple[WantedCluster, ...]:
    """Return these with all their owners, and those that only other Placements need."""
    ours = {
        cluster.name: cluster._replace(owners=_all_owners(seen, cluster.name, cluster.owners))
        for cluster in clusters
    }
    return *ours.values(), *_needed_elsewhere(seen, ours)


def _needed_elsewhere(seen: Snapshot, wanted: Container[str]) -> Iterator[WantedCluster]:
    """Yield shared MultiKueueClusters that only other Placements list: they stay as they are."""
    for name, obj in seen.objects.clusters.items() if seen.objects.other_owners else ():
        others = seen.objects.other_owners.get(name)
        if others and obj.ours and not obj.placement and name not in wanted:
            owners = {**others, **_own_claim(seen, name)}
            yield WantedCluster(name, cluster_of(seen, obj), None, owners)


def _own_claim(seen: Snapshot, name: str) -> dict[str, str]:
    """Return the owners that other Placements expect of this one, as it selects what it does not list.

    All Placements must agree on the owners of what they share, or they would overwrite each other for ever.
    """
    usable = isinstance(seen.credentials.selected.get(name), CredentialSource)
    return owners_of(seen) if seen.checks.ours and usable else {}


def _all_owners(seen: Snapshot, name: str, owners: Mapping[str, str]) -> Mapping[str, str]:
    """Return the owners of a MultiKueueCluster: those of this Placement, and of the others that share it."""
    others = seen.objects.other_owners.get(name)
    return {**owners, **others} if others else owners
