"""
Make the tree AdmissionCheck → Placement → clusters of what is known of a hub.

Pure. What a cluster is for a check comes from the controller's own course, and from Kueue's list as it stands
there; where a right is missing, it is said that it is not known.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from placement_ac.core.api.constants import (
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PLACEMENT,
    PLACEMENT_DECISION,
    PLACEMENT_SCORE,
    WORKLOAD,
)
from placement_ac.core.api.decode import active_of, kueue_object
from placement_ac.core.api.objects import Check, KueueObject
from placement_ac.core.inputs.ranking import RankedCluster
from placement_ac.core.inputs.state import Snapshot
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.core.plan.conditions import judge, placement_problems
from placement_ac.core.plan.plan import keeps_objects
from placement_ac.core.plan.targets import TargetClusters
from placement_ac.core.selection.selection import cluster_of, ranking
from placement_ac.inspection.hub import HubView
from placement_ac.inspection.jobs import jobs_in
from placement_ac.inspection.queues import Queues, status_of, why_not
from placement_ac.inspection.tree import Branch, ClusterRow, Credential, Job, State

NEEDED: Final = (PLACEMENT, PLACEMENT_DECISION)
"""Without these it is not known which clusters are selected."""
NOT_SELECTED: Final = "OCM does not select it any more"
GONE: Final = "there is no such ManagedCluster any more"
NOT_LISTED: Final = "it is not on Kueue's list yet"
KEPT: Final = "the list stays as it is: {}"
"""With the reason of the condition."""
NO_SEAT: Final = "it waits for the seat of a cluster that leaves"


def branches(view: HubView, names: Collection[str] = ()) -> tuple[Branch, ...]:
    """Return the checks of ours with all that hangs on them, by name; those of `names`, if any are given."""
    queues = Queues(view.dump)
    return tuple(
        _Reading(view, queues, one).branch() for one in view.ours if not names or one.meta.name in names
    )


@dataclass(frozen=True)
class _Reading:
    """One check, looked at."""

    view: HubView
    queues: Queues
    check: Check

    @cached_property
    def seen(self) -> Snapshot:
        return self.view.of_check(self.check)

    @cached_property
    def course(self) -> TargetClusters | None:
        """None: it is not known what is selected, or there is nothing that could be."""
        if not self.check.placement or self.unknown:
            return None
        return self.view.course(self.check.placement)

    @cached_property
    def unknown(self) -> str:
        """Why it is not known which clusters are selected."""
        whys = (self.view.dump.why_unknown(kind) for kind in NEEDED)
        return next(filter(None, whys), "")

    @cached_property
    def kept(self) -> str:
        """Why the controller leaves the list as it is, whatever is selected; "" when it does not."""
        verdict = judge(self.seen, self.course) if self.course else None
        return KEPT.format(verdict.reason) if verdict and keeps_objects(verdict) else ""

    @cached_property
    def held(self) -> Mapping[str, str]:
        """The clusters that a mass loss would take → why they are held."""
        return self.view.held(self.check.placement) if self.course else {}

    @cached_property
    def listed(self) -> dict[str, str]:
        """MultiKueueCluster on Kueue's list as it is → its managed cluster."""
        config = self.seen.objects.config
        return {name: self.cluster_of(name) for name in config.listed} if config else {}

    def object(self, name: str) -> KueueObject | None:
        if name in self.seen.objects.clusters:
            return self.seen.objects.clusters[name]
        raw = self.view.dump.find(MULTIKUEUE_CLUSTER, name)
        return kueue_object(raw) if raw else None

    def cluster_of(self, name: str) -> str:
        """Return the managed cluster of a MultiKueueCluster."""
        obj = self.object(name)
        return cluster_of(self.seen, obj) if obj else self.seen.hub.cluster_of(self.seen.name, name)

    def branch(self) -> Branch:
        check, seen = self.check, self.seen
        active = check.active
        users = tuple(sorted(user.meta.name for user in seen.checks.multikueue))
        return Branch(
            name=check.meta.name,
            active=status_of(active),
            reason=active.reason if active else "",
            message=active.message if active else "",
            stale=_is_stale(check),
            placement="/".join(seen.decision.placement.meta.id)
            if seen.decision.placement
            else check.placement,
            placement_says=self._placement_says(),
            config=self._config,
            clusters=tuple(_Rows(self).rows()),
            queues=self.queues.of((check.meta.name, *users)),
            users=users,
            jobs=self.jobs,
        )

    @property
    def _config(self) -> str | None:
        if self.seen.objects.config:
            return self.seen.objects.config.meta.name
        return None if self.view.dump.why_hidden(MULTIKUEUE_CONFIG) else ""

    @cached_property
    def jobs(self) -> tuple[Job, ...]:
        return jobs_in(self.view.dump, self.seen.workloads, self.cluster_of)

    def _placement_says(self) -> str:
        if not self.check.placement:
            return ""
        if self.unknown:
            return self.unknown
        return (
            placement_problems(self.seen.decision.placement)
            if self.seen.decision.placement
            else "it is not there"
        )


@dataclass(frozen=True)
class _Place:
    """Where a cluster stands: its MultiKueueCluster, and what the decisions say of it."""

    cluster: str
    name: str
    rank: int | None = None
    ranked: RankedCluster | None = None


@dataclass(frozen=True)
class _Rows:
    """The clusters of a check."""

    of: _Reading

    def rows(self) -> Iterator[ClusterRow]:
        return map(self._row, self._places())

    @cached_property
    def _counted(self) -> Counter[tuple[str, str]]:
        """(cluster, state) → its jobs."""
        jobs = self.of.jobs
        return Counter(
            (cluster, job.state)
            for job in jobs
            for cluster in ((job.cluster,) if job.cluster else job.nominated)
        )

    def _places(self) -> Iterator[_Place]:
        """Yield the clusters that are selected, best first, and then those that are listed all the same."""
        seen, course = self.of.seen, self.of.course
        there = dict(self.of.listed)
        if course:
            there |= {one.name: one.cluster for one in course.drain.steps}
            for place, one in enumerate(ranking(seen), 1):
                name = seen.hub.cluster_object(seen.name, one.cluster)
                there.pop(name, None)
                yield _Place(one.cluster, name, place, one)
        yield from (_Place(cluster, name) for name, cluster in there.items())

    def _row(self, place: _Place) -> ClusterRow:
        view, config = self.of.view, self.of.seen.objects.config
        state, why = self._state(place)
        raw = view.dump.find(MULTIKUEUE_CLUSTER, place.name)
        condition = active_of(raw) if raw else None
        return ClusterRow(
            name=place.cluster,
            state=state,
            why=why,
            rank=place.rank,
            score=self._score(place.ranked) if place.ranked else None,
            group=place.ranked.group if place.ranked else None,
            cluster_object=place.name,
            credential=self._credential(place),
            connected=status_of(condition) if condition else "",
            connected_why=why_not(condition) if raw else self._not_there(place, state),
            draining_since=config.draining.get(place.name) if config and state == "draining" else None,
            running=self._count(place, "running"),
            waiting=self._count(place, "waiting"),
        )

    def _not_there(self, place: _Place, state: State) -> str:
        """Return what Kueue lacks to be connected to a cluster on its list; "" where that is not known."""
        missed = state in ("listed", "draining") and self.of.view.dump.knows(MULTIKUEUE_CLUSTER)
        return f"there is no MultiKueueCluster {place.name}" if missed else ""

    def _score(self, ranked: RankedCluster) -> int | None:
        """Return what put a cluster in its place; None where it is not known."""
        placement = self.of.seen.decision.placement
        asks = placement is not None and placement.prioritizers and not ranked.score
        return None if asks and self.of.view.dump.why_hidden(PLACEMENT_SCORE) else ranked.score

    def _count(self, place: _Place, state: Literal["running", "waiting"]) -> int | None:
        if not self.of.view.dump.knows(WORKLOAD):
            return None
        return self._counted[place.cluster, state]

    def _state(self, place: _Place) -> tuple[State, str]:
        course, cluster = self.of.course, place.cluster
        if course is None:
            return "listed", self.of.unknown
        is_listed = place.name in self.of.listed
        if self.of.kept and is_listed:
            return "listed", self.of.kept
        if any(entry.name == place.name for entry in course.usable):
            return ("listed", "") if is_listed else ("selected", self._not_listed())
        if cluster in course.waiting_for_slot:
            return "waiting", NO_SEAT
        left_out = course.selection.left_out.get(cluster, "")
        state: State = "unusable" if left_out else "beyond"
        why = left_out or f"beyond the {self.of.seen.hub.clusters_max} clusters that Kueue takes"
        if place.rank is None:
            why = GONE if cluster in self.of.seen.fleet.deleted_clusters else NOT_SELECTED
        if not is_listed and place.rank is not None:
            return state, why
        held = self.of.held.get(cluster, "")
        return "draining", "; ".join(filter(None, (why, held, self._stays(course, place.name))))

    def _not_listed(self) -> str:
        return self.of.view.dump.why_unknown(MULTIKUEUE_CONFIG) or self.of.kept or NOT_LISTED

    def _stays(self, course: TargetClusters, name: str) -> str:
        """Return why a cluster that leaves has not gone yet."""
        if unknown := self.of.view.dump.why_unknown(WORKLOAD):
            return unknown
        return next((one.message for one in course.drain.steps if one.name == name), "")

    def _credential(self, place: _Place) -> Credential:
        seen, view = self.of.seen, self.of.view
        obj = self.of.object(place.name)
        if not view.credentials_known:
            kind, name = obj.source if obj else ("", "")
            return Credential(_kind(kind), name, None, view.credentials_unknown)
        found = seen.credentials.selected.get(place.cluster) or seen.credentials.unselected.get(place.cluster)
        if isinstance(found, CredentialSource):
            return Credential(found.kind, found.name, found.expires)
        return Credential(problem=found.why if found else "")


def _is_stale(check: Check) -> bool:
    told_of = check.active.observed_generation if check.active else None
    return told_of is not None and told_of < check.meta.generation


def _kind(kind: str) -> Literal["Secret", "ClusterProfile", ""]:
    return "Secret" if kind == "Secret" else "ClusterProfile" if kind == "ClusterProfile" else ""
