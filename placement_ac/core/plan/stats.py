"""
The state of one Placement and its checks in numbers, for the metrics.

Pure. Taken from a snapshot and its plan.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from placement_ac.core.inputs.state import HeldWorkloads, Plan, Snapshot


@dataclass(frozen=True, slots=True)
class PlacementStats:
    """The numbers of one Placement; its name is "" for a check without one."""

    placement: str
    checks: tuple[tuple[str, bool, str], ...] = ()
    """Name of each check of ours, whether it is Active, and the reason that it has."""
    selected: tuple[str, ...] = ()
    """The clusters that OCM has decided on, best first."""
    unusable: int = 0
    listed: int = 0
    draining: tuple[float, ...] = ()
    """For each draining cluster, when it began, in seconds since 1970."""
    drain_states: Mapping[str, str] = field(default_factory=dict)
    """Clusters that leave → the state of the drain, in lower case."""
    held: tuple[HeldWorkloads, ...] = ()
    connected: Mapping[str, bool] = field(default_factory=dict)
    """Listed clusters → whether Kueue is connected."""
    quarantined: Mapping[str, bool] = field(default_factory=dict)
    """Listed clusters → whether they get no new jobs; none where failures are not remembered."""
    reliability: Mapping[str, float] = field(default_factory=dict)
    """Listed clusters → the share of jobs that did not end because of them, where it is known."""
    unfit: int = 0
    """Workloads with quota that no cluster fits (our dispatcher)."""
    refusals: Mapping[str, int] = field(default_factory=dict)
    """Filter → how often it has refused a cluster to a Workload with quota that is not nominated yet."""


def placement_stats(snapshot: Snapshot, wanted: Plan) -> PlacementStats:
    """Return the numbers of the Placement in `snapshot`, for which `wanted` was planned."""
    listed = snapshot.objects.listed
    conditions = ((check.meta.name, check.active) for check in snapshot.checks.ours)
    connected = dict(_connected(snapshot))
    since = snapshot.objects.config.draining if snapshot.objects.config else {}
    return PlacementStats(
        placement=snapshot.name,
        checks=tuple(
            (name, active.status == "True", active.reason) if active else (name, False, "")
            for name, active in conditions
        ),
        selected=wanted.selected,
        unusable=len(wanted.unusable),
        listed=len(listed),
        draining=tuple(when.timestamp() for name, when in since.items() if name in listed),
        drain_states=wanted.drain_states,
        held=wanted.held,
        connected=connected,
        quarantined={
            cluster: cluster in snapshot.fleet.quarantined
            for cluster in connected
            if snapshot.policy.avoid_after_failure
        },
        reliability=snapshot.fleet.reliability,
        unfit=len(wanted.unfit),
        refusals=wanted.refusals,
    )


def _connected(snapshot: Snapshot) -> Iterator[tuple[str, bool]]:
    for name in snapshot.objects.listed:
        obj = snapshot.objects.clusters.get(name)
        yield snapshot.hub.cluster_of(snapshot.name, name, obj), obj is not None and obj.active is True
