"""
Sort a Placement's clusters into those that can be listed and those left out, in its order.

Pure. A removal waits as long as the decisions ask (`settle_seconds`), and `SETTLE_SECONDS` if the
credentials have just vanished. While a decision cannot be read, nothing is removed. An addition
does not wait.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from placement_ac.core.api.constants import (
    ANNOTATION_PLACEMENT_NAMESPACE,
    CLUSTER_NAME_MAX,
    LABEL_VALUE_MAX,
    OBJECT_NAME_MAX,
    SETTLE_SECONDS,
)
from placement_ac.core.api.fields import format_time
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.api.text import joined
from placement_ac.core.decisions.source import Doubt, RankedCluster
from placement_ac.core.inputs.state import NOTHING, Since, SinceKind, Snapshot
from placement_ac.core.kubeconfig.dns import is_dns_name
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable
from placement_ac.core.selection.aliases import second_names, worker_groups
from placement_ac.core.selection.probe_schedule import probe_objection
from placement_ac.core.selection.unknown_copies import unknown_copies_objection

_NO_CREDENTIALS: Final = Unusable("no credentials")
_NAME_MAX: Final = min(OBJECT_NAME_MAX, CLUSTER_NAME_MAX)
_TOO_LONG: Final = f"its MultiKueueCluster's name would be longer than {OBJECT_NAME_MAX} characters"


class ListableCluster(NamedTuple):
    """A cluster that can be listed: its MultiKueueCluster and credentials (None: those that it has).

    `rank` is None for one that only stays where it is.
    """

    cluster: str
    name: str
    source: CredentialSource | None
    rank: RankedCluster | None = None


class Selection(NamedTuple):
    """The clusters that a Placement's decisions select, whether or not they can be listed."""

    is_conclusive: bool
    """False: there is no decision that could be acted on, so nothing changes."""
    ranked: tuple[str, ...] = ()
    """Every cluster that is decided on, best first."""
    listable: tuple[ListableCluster, ...] = ()
    left_out: Mapping[str, str] = NOTHING
    """Cluster → why it is left out."""
    second_names: Mapping[str, str] = NOTHING
    """Those of them that are the same worker as another cluster → that one."""
    groups: Mapping[str, str] = NOTHING
    """Cluster → one of those that are the same worker; only of workers with several names."""
    unreadable: Mapping[str, str] = NOTHING
    """Decision object → why it, or an entry of it, cannot be read."""
    lasting: frozenset[Since] = frozenset()
    """Listed clusters that would go though OCM has not settled it, whether or not they still wait."""
    requeue_after: float | None = None
    """Seconds until the first of them has waited long enough, or a cluster goes into maintenance."""
    remarks: tuple[str, ...] = ()
    """Problems of the decisions as a whole."""

    @property
    def problems(self) -> dict[str, str]:
        """Every decision object that cannot be read and every cluster that is left out → why."""
        return {**self.unreadable, **self.left_out}


def select(snapshot: Snapshot, listed: Mapping[str, str]) -> Selection:
    """Return the selection by the decisions in `snapshot`; listed clusters that only stay for now come last.

    `listed`: the result of `listed_clusters`.
    """
    listable: list[ListableCluster] = []
    left_out: dict[str, str] = {}
    decisions = snapshot.decisions
    pending: dict[str, float] = {}
    for entry in decisions.clusters:
        cluster, name = entry.cluster, snapshot.hub.multikueue_cluster_name(snapshot.name, entry.cluster)
        if maintenance := maintenance_of(snapshot, cluster):
            left_out[cluster] = maintenance  # at once: an admin has said when
            continue
        source = _credentials_for(snapshot, cluster, name, listed)
        if isinstance(source, CredentialSource):
            listable.append(ListableCluster(cluster, name, source, entry))
            continue
        if cluster in listed:
            pending[cluster] = SETTLE_SECONDS
        if cluster in listed and _waits(snapshot, cluster, SETTLE_SECONDS):
            listable.append(ListableCluster(cluster, listed[cluster], None, entry))
        else:
            left_out[cluster] = source.why
    groups = worker_groups(snapshot, [*[entry.cluster for entry in decisions.clusters], *listed])
    resting = [cluster for cluster in groups if maintenance_of(snapshot, cluster)]
    second = second_names(snapshot, groups, listed, [entry.cluster for entry in listable], resting)
    listable = [entry for entry in listable if entry.cluster not in second.keepers]
    left_out |= second.why
    seconds = decisions.settle_seconds
    known = {entry.cluster for entry in listable} | left_out.keys()
    gone = [cluster for cluster in listed if cluster not in known] if seconds else []
    missing = [cluster for cluster in gone if not has_left(snapshot, cluster, listed[cluster])]
    staying = [
        ListableCluster(name, listed[name], None) for name in missing if _waits(snapshot, name, seconds)
    ]
    pending |= dict.fromkeys(missing, seconds)
    waits = {_unsettled(cluster): seconds for cluster, seconds in pending.items()}
    waits |= dict.fromkeys(map(_doubted, decisions.doubts), SETTLE_SECONDS)
    left = [seconds - snapshot.age(since) for since, seconds in waits.items()]
    left += [window.seconds_left(snapshot.now) for window in snapshot.fleet.maintenance.values()]
    return Selection(
        is_conclusive=bool(staying) or decisions.is_decided,
        ranked=tuple([entry.cluster for entry in decisions.clusters]),
        listable=(*listable, *staying),
        left_out=left_out,
        second_names=second.keepers,
        groups=groups,
        unreadable=decisions.unreadable,
        lasting=second.lasting.union(waits),
        requeue_after=soonest((second.requeue_after, *[seconds for seconds in left if seconds > 0])),
        remarks=(
            *(doubt.remark for doubt in decisions.doubts if doubt.remark and _has_lasted(snapshot, doubt)),
            *decisions.remarks,
            *_namesakes(snapshot),
        ),
    )


def maintenance_of(snapshot: Snapshot, cluster: str) -> str:
    """Return since when a cluster is in maintenance, and how that ends; "" if it is not."""
    window = snapshot.fleet.maintenance.get(cluster)
    if window is None or not window.has_begun(snapshot.now):
        return ""
    since = format_time(window.starts)
    return f"in maintenance since {since}; to end that: kubectl placement drain {cluster} --cancel"


def is_forced_out(snapshot: Snapshot, cluster: str) -> bool:
    """Whether a cluster is in maintenance, and what still runs there is to be sent back."""
    window = snapshot.fleet.maintenance.get(cluster)
    return window is not None and window.force and window.has_begun(snapshot.now)


def _doubted(doubt: Doubt) -> Since:
    kind = SinceKind.DECISIONS_DISAGREE if doubt.passes else SinceKind.DECISIONS_DOUBTED
    return Since(kind, doubt.about)


def _has_lasted(snapshot: Snapshot, doubt: Doubt) -> bool:
    return snapshot.age(_doubted(doubt)) >= SETTLE_SECONDS


def _namesakes(snapshot: Snapshot) -> Iterator[str]:
    """Yield which other Placements have the same name."""
    placement, namesakes = snapshot.decisions.placement, snapshot.choice.namesakes
    if placement and namesakes:
        names = joined([f"{space}/{snapshot.name}" for space in namesakes])
        yield (
            f"rename Placement {names}, or annotate the check with {ANNOTATION_PLACEMENT_NAMESPACE}: it is "
            f"ignored, because {placement.namespace}/{snapshot.name} is in use"
        )


def soonest(waits: Iterable[float | None]) -> float | None:
    """Return the first of several waits; None when nothing waits for time."""
    return min((seconds for seconds in waits if seconds is not None), default=None)


def listed_names(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the MultiKueueClusters that our config lists now.

    If someone has deleted it, those on which Workloads are: Kueue leaves them there, so our list must hold
    them too.
    """
    if snapshot.objects.config is not None:
        return snapshot.objects.listed
    named = {name for workload in snapshot.workloads for name in (workload.cluster, *workload.nominated)}
    return tuple(sorted(name for name in named if (obj := snapshot.objects.clusters.get(name)) and obj.ours))


def listed_clusters(snapshot: Snapshot) -> dict[str, str]:
    """Return the clusters that our config lists now, each with its MultiKueueCluster's name, in its order."""
    observed, placement = snapshot.objects.clusters.get, snapshot.name
    return {
        snapshot.hub.cluster_of(placement, name, obj): name
        for name in listed_names(snapshot)
        # A label that someone removed is put back, and so is an object that someone deleted.
        if (
            obj.ours and obj.placement in ("", placement)
            if (obj := observed(name))
            else snapshot.hub.is_for(placement, name)
        )
    }


def removable_clusters(snapshot: Snapshot) -> Iterable[KueueObject]:
    """Yield the MultiKueueClusters that this Placement may remove when it no longer needs them."""
    for name, obj in snapshot.objects.clusters.items():
        if not obj.applied_fields.applied:
            continue  # labels are easily copied with an object, managed fields are not
        ours = obj.placement == snapshot.name or name in snapshot.objects.unneeded
        # After a change of `cluster_names` another may list it; the last to unlist it triggers us again.
        if ours and name not in snapshot.objects.listed_elsewhere:
            yield obj


def _waits(snapshot: Snapshot, cluster: str, seconds: float) -> bool:
    """Whether a cluster that would go stays for now; a decision that cannot be read takes nothing away."""
    return bool(snapshot.decisions.malformed) or snapshot.age(_unsettled(cluster)) < seconds


def has_left(snapshot: Snapshot, cluster: str, name: str) -> bool:
    """Whether a listed cluster drains or stands by: decisions that disagree do not bring it back."""
    config = snapshot.objects.config
    return (
        bool(config and name in config.draining) or Since(SinceKind.DESELECTED, cluster) in snapshot.all_ages
    )


def _unsettled(cluster: str) -> Since:
    return Since(SinceKind.REMOVAL_UNSETTLED, cluster)


def _credentials_for(
    snapshot: Snapshot, cluster: str, name: str, listed: Container[str]
) -> CredentialSource | Unusable:
    if problem := name_problem(cluster, name):
        return Unusable(problem)
    source = snapshot.credentials.selected.get(cluster, _NO_CREDENTIALS)
    if isinstance(source, CredentialSource) and cluster not in listed:
        probed = probe_objection(snapshot, cluster, source) if snapshot.policy.probe else None
        return probed or unknown_copies_objection(snapshot, cluster, source) or source
    return source


def name_problem(cluster: str, name: str) -> str:
    """Return why a cluster cannot have a MultiKueueCluster of that name; "" if it can."""
    if len(cluster) > LABEL_VALUE_MAX or not _is_cluster_name(cluster):
        return "not the name of a managed cluster"
    return "" if len(name) <= _NAME_MAX else _TOO_LONG


@lru_cache(4096)  # short names alone: less than 1 MB
def _is_cluster_name(cluster: str) -> bool:
    return is_dns_name(cluster, LABEL_VALUE_MAX)
