"""
Find the clusters that are one worker under several names, and choose the name that stays.

Pure. Kueue deletes a job's copy through every listed name of a worker but the one that it recorded, so a list
never gets a second name. Two names are one worker if both ManagedClusters have the same ClusterClaim
`id.k8s.io`, or if both connections show an object of the same uid: an equal URL or CA proves nothing. An
annotation records what the connections have shown: after a restart they may have nothing in common.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from placement_ac.core.api.objects import KueueObject
from placement_ac.core.inputs.identity import WorkerIdentity
from placement_ac.core.inputs.state import NOTHING, Since, SinceKind, Snapshot
from placement_ac.core.kubeconfig.source import CredentialSource

START_SECONDS: Final = 60.0
"""How long after a start no name leaves because another one is the same worker's."""
_LAST: Final = datetime.max.replace(tzinfo=UTC)


class SecondNames(NamedTuple):
    """The clusters that are left out because another one is the same worker."""

    keepers: Mapping[str, str] = NOTHING
    """Second name → the name that stays."""
    why: Mapping[str, str] = NOTHING
    """Second name → the fix, and the reason."""
    lasting: frozenset[Since] = frozenset()
    """Those that are listed, whether or not they still wait."""
    requeue_after: float | None = None


def worker_groups(snapshot: Snapshot, clusters: Iterable[str]) -> dict[str, str]:
    """Return cluster → one of those that are the same worker; only of workers with several names."""
    parents: dict[str, str] = {}
    shown_by: dict[str, str] = {}
    members = dict.fromkeys(clusters)

    def root(cluster: str) -> str:
        while (parent := parents.get(cluster, cluster)) != cluster:
            cluster = parent
        return cluster

    for cluster in members:
        for key in _keys(snapshot, cluster):
            if (first := shown_by.setdefault(key, cluster)) != cluster:
                parents[root(cluster)] = root(first)
    for alias, keeper in recorded_names(snapshot).items():
        if {alias, keeper} <= members.keys() and not _are_told_apart(snapshot, alias, keeper):
            parents[root(alias)] = root(keeper)
    roots = {cluster: root(cluster) for cluster in members} if parents else {}
    several = {top for cluster, top in roots.items() if top != cluster}
    return {cluster: top for cluster, top in roots.items() if top in several}


def second_names(
    snapshot: Snapshot,
    groups: Mapping[str, str],
    listed: Mapping[str, str],
    usable: Collection[str],
    resting: Collection[str],
) -> SecondNames:
    """Return which of the `usable` clusters are left out, `resting`: those in maintenance.

    One that is listed stays for the first minute after a start.
    """
    members: dict[str, list[str]] = {}
    for cluster in (*usable, *resting):
        if cluster in groups:
            members.setdefault(groups[cluster], []).append(cluster)
    config = snapshot.objects.config
    draining = config.draining if config else NOTHING
    runs = {workload.cluster for workload in snapshot.workloads} if members else set[str]()

    def order(cluster: str) -> tuple[object, ...]:
        """The name that stays comes first; jobs and the record of drains decide between listed ones."""
        name, created = listed.get(cluster, ""), _created(snapshot, cluster)
        return cluster not in resting, not name, name in draining, name not in runs, created, cluster

    keepers: dict[str, str] = {}
    for group in members.values():
        first, *others = sorted(dict.fromkeys(group), key=order)
        keepers |= dict.fromkeys([cluster for cluster in others if cluster in usable], first)
    waits = [Since(SinceKind.SECOND_NAME, cluster) for cluster in keepers if cluster in listed]
    left = START_SECONDS - max([_seconds_since_start(snapshot), *map(snapshot.age, waits)])
    if waits and left > 0:
        keepers = {cluster: first for cluster, first in keepers.items() if cluster not in listed}
    return SecondNames(
        keepers,
        {cluster: _why(snapshot, cluster, first, resting) for cluster, first in keepers.items()},
        frozenset(waits),
        left if waits and left > 0 else None,
    )


def other_name(snapshot: Snapshot, groups: Mapping[str, str], cluster: str, names: Mapping[str, str]) -> str:
    """Return the name by which Kueue has another connection to the cluster's worker; "" if it has none.

    `names`: cluster → its MultiKueueCluster. A claim alone is not enough: it may have been copied.
    """
    for other, name in names.items():
        if other == cluster or groups.get(other) != groups.get(cluster, ""):
            continue
        obj = snapshot.objects.clusters.get(name)
        if obj is not None and obj.active is not False and _are_seen_as_one(snapshot, cluster, other):
            return name
    return ""


def is_known_as(snapshot: Snapshot, cluster: str, obj: KueueObject, others: Iterable[str]) -> bool:
    """Whether an unlisted cluster is the same worker as any of `others`, by what it has shown last.

    `obj`: its MultiKueueCluster. The credentials that this names may have gone.
    """
    kind, name = obj.source
    last = snapshot.fleet.identities.get(
        CredentialSource("ClusterProfile" if kind == "ClusterProfile" else "Secret", name)
    )
    keys = {*_keys(snapshot, cluster), *(last.uids if last else ())}
    recorded = recorded_names(snapshot)
    return any(
        recorded.get(cluster) == other
        or recorded.get(other) == cluster
        or not keys.isdisjoint(_keys(snapshot, other))
        for other in others
    )


def seen_names(snapshot: Snapshot, keepers: Mapping[str, str]) -> dict[str, str]:
    """Return those second names that claims alone do not tell: they are recorded."""
    return {alias: keeper for alias, keeper in keepers.items() if not _same_claim(snapshot, alias, keeper)}


def recorded_names(snapshot: Snapshot) -> Mapping[str, str]:
    """Return the second names that the annotation of the MultiKueueConfig records, and those that stay."""
    config = snapshot.objects.config
    return config.second_names if config else NOTHING


def identity_of(snapshot: Snapshot, cluster: str) -> WorkerIdentity | None:
    """Return what the cluster's worker has shown with the credentials that it has now; None: nothing yet."""
    source = snapshot.credentials.usable(cluster)
    known = snapshot.fleet.identities.get(source) if source else None
    return known if source and known and known.version == source.version else None


def _keys(snapshot: Snapshot, cluster: str) -> Iterator[str]:
    """Yield the strings that only names of the same worker have in common."""
    if claim := _claim(snapshot, cluster):
        yield f"claim {claim}"
    if identity := identity_of(snapshot, cluster):
        yield from identity.uids


def _claim(snapshot: Snapshot, cluster: str) -> str:
    managed = snapshot.fleet.managed.get(cluster)
    return managed.claim if managed else ""


def _created(snapshot: Snapshot, cluster: str) -> datetime:
    managed = snapshot.fleet.managed.get(cluster)
    return (managed and managed.created) or _LAST


def _same_claim(snapshot: Snapshot, one: str, other: str) -> bool:
    claim = _claim(snapshot, one)
    return bool(claim) and claim == _claim(snapshot, other)


def _are_seen_as_one(snapshot: Snapshot, one: str, other: str) -> bool:
    """Whether both connections have shown an object of the same uid, now or when that was recorded."""
    first, second = identity_of(snapshot, one), identity_of(snapshot, other)
    if first and second and not {*first.uids}.isdisjoint(second.uids):
        return True
    recorded = recorded_names(snapshot)
    is_recorded = recorded.get(one) == other or recorded.get(other) == one
    return is_recorded and not _are_told_apart(snapshot, one, other)


def _are_told_apart(snapshot: Snapshot, one: str, other: str) -> bool:
    """Whether the claims of two clusters, or what their connections have shown, tell that they differ."""
    first, second = identity_of(snapshot, one), identity_of(snapshot, other)
    if first and second and first.is_comparable(second):
        return {*first.uids}.isdisjoint(second.uids)
    claims = {_claim(snapshot, one), _claim(snapshot, other)}
    return "" not in claims and len(claims) > 1


def _seconds_since_start(snapshot: Snapshot) -> float:
    """Return how long this process has planned the Placement."""
    placement = snapshot.decisions.placement
    if placement is None:
        return 0.0
    return snapshot.age(Since(SinceKind.PLACEMENT_NAMESPACE, placement.namespace))


def _why(snapshot: Snapshot, alias: str, keeper: str, resting: Collection[str]) -> str:
    if keeper in resting:
        return f"it leads to the same worker as {keeper}, which is in maintenance"
    evidence = (
        "both ManagedClusters have the same claim id.k8s.io"
        if _same_claim(snapshot, alias, keeper)
        else "both kubeconfigs show the same objects, by uid"
    )
    return (
        f"remove ManagedCluster {alias}, or do not select it: it leads to the same worker as {keeper}, which "
        f"stays ({evidence})"
    )
