"""
Sort a Placement's clusters into those that can be listed and those left out, in its order.

Pure. A removal waits `SETTLE_SECONDS` if OCM has not settled it or the credentials
have just vanished, otherwise `REGROUP_SECONDS` if there are several decisions. While a
decision cannot be read, nothing is removed. An addition does not wait.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple

from placement_ac.core.api.constants import (
    ANNOTATION_PLACEMENT_NAMESPACE,
    CLUSTER_NAME_MAX,
    LABEL_VALUE_MAX,
    OBJECT_NAME_MAX,
    REGROUP_SECONDS,
    SETTLE_SECONDS,
)
from placement_ac.core.api.objects import Decision, KueueObject, Placement
from placement_ac.core.api.text import count_text, joined
from placement_ac.core.inputs.ranking import RankedCluster, rank
from placement_ac.core.inputs.state import NOTHING, Snapshot, Timer, TimerKind
from placement_ac.core.inputs.unnamed import unnamed_timer
from placement_ac.core.kubeconfig.dns import is_dns_name
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable
from placement_ac.core.selection.probe_schedule import probe_objection

FOREIGN: Final = Timer(TimerKind.DECISIONS_FOREIGN)
DISAGREE: Final = Timer(TimerKind.DECISIONS_DISAGREE)
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
    unreadable: Mapping[str, str] = NOTHING
    """PlacementDecision → why it, or an entry of it, cannot be read."""
    timers: frozenset[Timer] = frozenset()
    """Listed clusters that would go though OCM has not settled it, whether or not they still wait."""
    requeue_after: float | None = None
    """Seconds until the first of them has waited long enough; None: none waits for time."""
    remarks: tuple[str, ...] = ()
    """Problems of the PlacementDecisions as a whole."""

    @property
    def problems(self) -> dict[str, str]:
        """Every PlacementDecision that cannot be read and every cluster that is left out → why."""
        return {**self.unreadable, **self.left_out}


def select(seen: Snapshot, listed: Mapping[str, str]) -> Selection:
    """Return the selection by the decisions in `seen`; listed clusters that only stay for now come last.

    `listed`: the result of `listed_clusters`.
    """
    listable: list[ListableCluster] = []
    left_out: dict[str, str] = {}
    unreadable = _unreadable_decisions(seen)
    pending: dict[str, float] = {}
    ranked = ranking(seen)
    for entry in ranked:
        cluster, name = entry.cluster, seen.hub.multikueue_cluster_name(seen.name, entry.cluster)
        found = _credentials_for(seen, cluster, name, listed)
        if isinstance(found, CredentialSource):
            listable.append(ListableCluster(cluster, name, found, entry))
            continue
        if cluster in listed:
            pending[cluster] = SETTLE_SECONDS
        if cluster in listed and _waits(seen, cluster, SETTLE_SECONDS):
            listable.append(ListableCluster(cluster, listed[cluster], None, entry))
        else:
            left_out[cluster] = found.why
    seconds = settle_seconds(seen)
    known = {entry.cluster for entry in listable} | left_out.keys()
    gone = [cluster for cluster in listed if cluster not in known] if seconds else []
    missing = [cluster for cluster in gone if not _has_left(seen, cluster, listed[cluster])]
    staying = [ListableCluster(name, listed[name], None) for name in missing if _waits(seen, name, seconds)]
    pending |= dict.fromkeys(missing, seconds)
    waits = {_unsettled(cluster): seconds for cluster, seconds in pending.items()}
    remarks = {timer: remark for timer, find in _REMARKS.items() if (remark := find(seen))}
    waits |= dict.fromkeys(remarks, SETTLE_SECONDS)
    waits |= {unnamed_timer(name): SETTLE_SECONDS for name in seen.decision.unnamed}
    left = [seconds - seen.age(timer) for timer, seconds in waits.items()]
    return Selection(
        is_conclusive=bool(staying) or is_decided(seen.decision.placement, seen.decision.decisions),
        ranked=tuple([entry.cluster for entry in ranked]),
        listable=(*listable, *staying),
        left_out=left_out,
        unreadable=unreadable,
        timers=frozenset(waits),
        requeue_after=soonest(seconds for seconds in left if seconds > 0),
        remarks=(
            *(text for timer, text in remarks.items() if seen.age(timer) >= SETTLE_SECONDS),
            *_ignored(seen),
            *_namesakes(seen),
        ),
    )


def _foreign(seen: Snapshot) -> str:
    """Return which decisions are of no use; of a Placement that is made again, the old ones stay a moment."""
    foreign, placement = seen.decision.foreign, seen.decision.placement
    if not foreign or placement is None:
        return ""
    names = joined([f"{placement.meta.namespace}/{name}" for name in foreign])
    return f"delete PlacementDecision {names}: Placement {seen.name} does not own it, so it is ignored"


def _ignored(seen: Snapshot) -> Iterator[str]:
    """Yield which decisions are ignored because the Placement's status does not name them."""
    placement, ignored = seen.decision.placement, seen.decision.ignored
    if placement and ignored:
        space = placement.meta.namespace
        names = joined([f"{space}/{name}" for name in ignored])
        yield (
            f"delete PlacementDecision {names}: status.decisionGroups of Placement {space}/{seen.name} "
            "does not name it, so it is ignored"
        )


def _namesakes(seen: Snapshot) -> Iterator[str]:
    """Yield which other Placements have the same name."""
    placement, decision = seen.decision.placement, seen.decision
    if placement and decision.namesakes:
        names = joined([f"{space}/{seen.name}" for space in decision.namesakes])
        yield (
            f"rename Placement {names}, or annotate the check with {ANNOTATION_PLACEMENT_NAMESPACE}: it is "
            f"ignored, because {placement.meta.namespace}/{seen.name} is in use"
        )


def _disagreement(seen: Snapshot) -> str:
    """Return how the Placement's status and its decisions disagree; "" if they agree or cannot be read."""
    placement, decisions = seen.decision.placement, seen.decision.decisions
    if placement is None or placement.selected is None or decisions_agree(placement, decisions):
        return ""
    if placement.problem or any(decision.problem for decision in decisions):
        return ""
    held = len(set(chain.from_iterable(decision.clusters for decision in decisions)))
    counted, held_text = count_text(placement.selected, "cluster"), f"its PlacementDecisions hold {held}"
    if held == placement.selected:
        held_text = "its PlacementDecisions hold as many in other groups, or one of them twice"
    return f"the Placement's status counts {counted}, {held_text}"


_REMARKS: Final[Mapping[Timer, Callable[[Snapshot], str]]] = {FOREIGN: _foreign, DISAGREE: _disagreement}
"""The remarks on decisions, and the timers: each is held back until it has lasted SETTLE_SECONDS."""


def ranking(seen: Snapshot) -> tuple[RankedCluster, ...]:
    """Return every cluster that is decided on, best first."""
    prioritizers = seen.decision.placement.prioritizers if seen.decision.placement else ()
    return rank(seen.decision.decisions, prioritizers, seen.decision.scores, seen.now)


def soonest(waits: Iterable[float | None]) -> float | None:
    """Return the first of several waits; None when nothing waits for time."""
    return min((seconds for seconds in waits if seconds is not None), default=None)


def is_decided(placement: Placement | None, decisions: tuple[Decision, ...]) -> bool:
    """Whether OCM has decided what this Placement selects.

    "None" is only in the Placement's status: a new decision that holds no cluster never gets a status.
    """
    if any(decision.decided is not None for decision in decisions):
        return True
    return placement is not None and placement.selected == 0 and decisions_agree(placement, decisions)


def decisions_agree(placement: Placement | None, decisions: tuple[Decision, ...]) -> bool:
    """Whether the decisions are whole: they are what the Placement's status counts."""
    if placement is None or placement.problem or any(decision.problem for decision in decisions):
        return False
    if placement.selected is None:
        # Nobody writes that status: nothing can disagree with it, and nothing can replace decisions.
        return all(decision.decided is not None for decision in decisions)
    names = list(chain.from_iterable([decision.clusters for decision in decisions]))
    if len(names) != placement.selected or len(set(names)) < len(names):
        return False  # a duplicate: OCM is regrouping, and it has displaced another cluster
    sizes = {decision.meta.name: len(decision.clusters) for decision in decisions}
    named = {name for group in placement.groups for name in group.decisions}
    return not named or (
        named == sizes.keys()
        and all(
            sum([sizes[name] for name in group.decisions]) == group.cluster_count
            for group in placement.groups
        )
    )


def listed_names(seen: Snapshot) -> tuple[str, ...]:
    """Return the MultiKueueClusters that our config lists now.

    If someone has deleted it, those on which Workloads are: Kueue leaves them there, so our list must hold
    them too.
    """
    if seen.objects.config is not None:
        return seen.objects.listed
    named = {name for workload in seen.workloads for name in (workload.cluster, *workload.nominated)}
    return tuple(sorted(name for name in named if (obj := seen.objects.clusters.get(name)) and obj.ours))


def listed_clusters(seen: Snapshot) -> dict[str, str]:
    """Return the clusters that our config lists now, each with its MultiKueueCluster's name, in its order."""
    observed, placement = seen.objects.clusters.get, seen.name
    return {
        seen.hub.cluster_of(placement, name, obj): name
        for name in listed_names(seen)
        # A label that someone removed is put back, and so is an object that someone deleted.
        if (
            obj.ours and obj.placement in ("", placement)
            if (obj := observed(name))
            else seen.hub.is_for(placement, name)
        )
    }


def removable_clusters(seen: Snapshot) -> Iterable[KueueObject]:
    """Yield the MultiKueueClusters that this Placement may remove when it no longer needs them."""
    for name, obj in seen.objects.clusters.items():
        if not obj.applied_fields.applied:
            continue  # labels are easily copied with an object, managed fields are not
        ours = obj.placement == seen.name or name in seen.objects.unneeded
        # After a change of `cluster_names` another may list it; the last to unlist it triggers us again.
        if ours and name not in seen.objects.listed_elsewhere:
            yield obj


def settle_seconds(seen: Snapshot) -> float:
    """Return how long a cluster stays that no decision holds any more. Unit: seconds.

    OCM writes one decision after another: one that moves to the next is in none for a moment, while
    all the numbers agree (another one came, and a third went).
    """
    placement, decisions = seen.decision.placement, seen.decision.decisions
    if placement is None or not decisions_agree(placement, decisions) or _is_new(placement, seen.now):
        return SETTLE_SECONDS
    return REGROUP_SECONDS if placement.grouped or len(decisions) > 1 else 0.0


def _is_new(placement: Placement, now: datetime) -> bool:
    """Whether it was made just now and has no status yet: one that is made again is decided bit by bit.

    API servers give times in whole seconds.
    """
    return (
        placement.selected is None
        and placement.created is not None
        and (now - placement.created).total_seconds() < SETTLE_SECONDS + 1
    )


def _waits(seen: Snapshot, cluster: str, seconds: float) -> bool:
    """Whether a cluster that would go stays for now; a decision that cannot be read takes nothing away."""
    unreadable = any(decision.problem for decision in seen.decision.decisions)
    return unreadable or seen.age(_unsettled(cluster)) < seconds


def _has_left(seen: Snapshot, cluster: str, name: str) -> bool:
    """Whether a listed cluster drains or stands by: decisions that disagree do not bring it back."""
    config = seen.objects.config
    return bool(config and name in config.draining) or Timer(TimerKind.DESELECTED, cluster) in seen.timer_ages


def _unsettled(cluster: str) -> Timer:
    return Timer(TimerKind.REMOVAL_UNSETTLED, cluster)


def _credentials_for(
    seen: Snapshot, cluster: str, name: str, listed: Container[str]
) -> CredentialSource | Unusable:
    if problem := name_problem(cluster, name):
        return Unusable(problem)
    found = seen.credentials.selected.get(cluster, _NO_CREDENTIALS)
    if isinstance(found, CredentialSource) and cluster not in listed:
        return probe_objection(seen, cluster, found) or found
    return found


def name_problem(cluster: str, name: str) -> str:
    """Return why a cluster cannot have a MultiKueueCluster of that name; "" if it can."""
    if len(cluster) > LABEL_VALUE_MAX or not _is_cluster_name(cluster):
        return "not the name of a managed cluster"
    return "" if len(name) <= _NAME_MAX else _TOO_LONG


@lru_cache(4096)  # short names alone: less than 1 MB
def _is_cluster_name(cluster: str) -> bool:
    return is_dns_name(cluster, LABEL_VALUE_MAX)


def _unreadable_decisions(seen: Snapshot) -> dict[str, str]:
    return {
        f"PlacementDecision {decision.meta.namespace}/{decision.meta.name}": why
        for decision in seen.decision.decisions
        if (why := decision.problem or _unnamed(decision))
    }


def _unnamed(decision: Decision) -> str:
    count = decision.clusters.count("")
    return f"{count} of its entries {'has' if count == 1 else 'have'} no clusterName" if count else ""
