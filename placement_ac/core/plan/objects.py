"""
The MultiKueueConfig and the MultiKueueClusters that one Placement wants.

Pure. AdmissionChecks own them: Kubernetes removes them with the last check that uses them. Shared
MultiKueueClusters have no owner: the controller removes each when no Placement needs it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from placement_ac.core.draining.state import DrainStep
from placement_ac.core.inputs.state import Since, SinceKind, Snapshot, WantedCluster, WantedConfig, is_shared
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.core.plan.conditions import is_taken
from placement_ac.core.plan.targets import TargetClusters
from placement_ac.core.selection.aliases import recorded_names, seen_names
from placement_ac.core.selection.capacity import order_names
from placement_ac.core.selection.selection import removable_clusters, soonest


class TargetObjects(NamedTuple):
    """The objects to have, and what lasts with them."""

    config: WantedConfig | None = None
    clusters: tuple[WantedCluster, ...] = ()
    lasting: frozenset[Since] = frozenset()
    requeue_after: float | None = None


@dataclass(frozen=True, slots=True)
class RetainedClusters:
    """MultiKueueClusters that stay for a while though nobody needs them."""

    lasting: frozenset[Since] = frozenset()
    requeue_after: float | None = None

    @property
    def names(self) -> frozenset[str]:
        return frozenset(since.subject for since in self.lasting)


def owners_of(snapshot: Snapshot) -> dict[str, str]:
    """Return the AdmissionChecks that use the config, uid → name: it lives as long as any of them.

    If none does, those whose jobs still need it.
    """
    used_by = snapshot.checks
    checks = (*used_by.ours, *used_by.multikueue, *used_by.former, *used_by.moved)
    return {check.meta.uid: check.meta.name for check in checks}


def target_objects(snapshot: Snapshot, targets: TargetClusters) -> TargetObjects:
    """List every usable cluster, and after them those that drain."""
    owners, staying = owners_of(snapshot), targets.drain.staying
    wanted = {entry.name for entry in targets.to_list}
    leaving = [step for step in staying if step.name not in wanted]
    settling = [step.name for step in leaving if step.settles_in]
    ordered = order_names(
        snapshot, targets.to_list, [step.name for step in leaving if not step.settles_in], settling
    )
    renaming = [entry for entry in targets.renaming if entry.name not in wanted]
    usable, ours = snapshot.credentials.usable, targets.listed.values()
    sources = [(e.name, e.cluster, e.source or usable(e.cluster)) for e in (*targets.to_list, *renaming)]
    sources += [(step.name, step.cluster, usable(step.cluster)) for step in leaving if step.name in ours]
    clusters = [
        _wanted(name, cluster, source, owners)
        for name, cluster, source in sources
        if source or name in snapshot.objects.clusters
    ]
    return TargetObjects(
        _target_config(snapshot, targets, ordered.names, owners),
        tuple(clusters),
        ordered.lasting,
        ordered.requeue_after,
    )


def _wanted(
    name: str, cluster: str, source: CredentialSource | None, owners: Mapping[str, str]
) -> WantedCluster:
    """Return a MultiKueueCluster to have; a shared one has no owners, so that no Placement must write it."""
    return WantedCluster(name, cluster, source, {} if is_shared(name, cluster) else owners)


def _target_config(
    snapshot: Snapshot, targets: TargetClusters, names: tuple[str, ...], owners: Mapping[str, str]
) -> WantedConfig | None:
    observed = snapshot.objects.config
    known = observed.draining if observed and observed.ours else {}
    draining = {step.name: known.get(step.name, snapshot.now) for step in _recorded(targets)}
    if len(names) > snapshot.hub.clusters_max and observed:
        # Kueue's limit has shrunk: nothing can be written before enough clusters can leave together.
        names = observed.listed
    second = seen_names(snapshot, targets.selection.second_names)
    return _config(snapshot, names, owners, draining, second) if names else None


def _config(
    snapshot: Snapshot,
    names: tuple[str, ...],
    owners: Mapping[str, str],
    draining: Mapping[str, datetime],
    second: Mapping[str, str],
) -> WantedConfig:
    placement, several = snapshot.decisions.placement, len(snapshot.hub.namespaces) > 1
    in_use = f"{placement.namespace}/{placement.uid}" if placement and several else ""
    if not in_use and several and snapshot.objects.config:
        in_use = snapshot.objects.config.placement_in_use
    return WantedConfig(snapshot.name, names, owners, draining, in_use, snapshot.choice.is_recorded, second)


def _recorded(targets: TargetClusters) -> Iterable[DrainStep]:
    """Return the steps whose beginning the annotation records: all but of those that only stand by."""
    return [step for step in targets.drain.staying if step.drains]


def unchanged_objects(snapshot: Snapshot) -> TargetObjects:
    """Keep the objects as they are; only their owners follow the checks."""
    owners = owners_of(snapshot)
    observed, config = snapshot.objects.config, None
    if observed and not is_taken(observed, snapshot.name, ""):
        config = _config(snapshot, observed.listed, owners, observed.draining, recorded_names(snapshot))
    listed = config.clusters if config else ()
    ours = [
        _wanted(name, snapshot.hub.cluster_of(snapshot.name, name, obj), None, owners)
        for name, obj in snapshot.objects.clusters.items()
        # Without a label it is shared, or someone removed the label.
        if obj.ours and (obj.placement == snapshot.name or (not obj.placement and name in listed))
    ]
    return TargetObjects(config, tuple(ours))


def retained_clusters(snapshot: Snapshot, objects: TargetObjects) -> RetainedClusters:
    """Keep unneeded MultiKueueClusters for a while, in which Kueue clears up there."""
    wanted = {cluster.name for cluster in objects.clusters}
    wanted.update(objects.config.clusters if objects.config else ())
    unneeded = [obj.meta.name for obj in removable_clusters(snapshot) if obj.meta.name not in wanted]
    lasting = [Since(SinceKind.RETAINED, name) for name in unneeded]
    left = {since: snapshot.policy.retention - snapshot.age(since) for since in lasting}
    retained = {since: seconds for since, seconds in left.items() if seconds > 0}
    return RetainedClusters(frozenset(retained), soonest(retained.values()))
