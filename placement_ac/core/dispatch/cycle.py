"""
The dispatch cycle: filter the clusters for a job, then put those that fit in order.

Pure. Ties are broken by the Placement's order.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from placement_ac.core.api.constants import ANNOTATION_ANTI_AFFINITY
from placement_ac.core.api.objects import Workload
from placement_ac.core.api.text import joined
from placement_ac.core.dispatch.facts import Cluster
from placement_ac.core.dispatch.filters import CAPACITY, FILTERS, Filter
from placement_ac.core.dispatch.plugins import NO_PLUGINS, Plugins
from placement_ac.core.dispatch.profiles import Profile
from placement_ac.core.dispatch.scores import SCORES, Score
from placement_ac.core.dispatch.scores.headroom import ROOM_POINTS, headroom

if TYPE_CHECKING:
    from placement_ac.core.api.job_spec import JobSpec


UNKNOWN_POINTS: Final = 25.0
"""The total of a cluster for which all scores abstain: with Headroom, it comes before those that are full."""


class Refusal(NamedTuple):
    """Why a job cannot go to a cluster."""

    filter: str
    reason: str


Refusals = Mapping[str, Refusal]
"""MultiKueueCluster → the first filter that refuses it."""


class Ranking(NamedTuple):
    """The clusters that fit a job, and why the others do not."""

    order: tuple[str, ...]
    """MultiKueueClusters, best first."""
    totals: Mapping[str, float]
    """MultiKueueCluster → its points, 0 to 100."""
    refusals: Refusals


class DispatchCycle:
    """Ranks the clusters for one job after the other; each knows the nominations of those before it.

    `plugins`: filters and scores of third parties, of which those count that a profile names.
    """

    def __init__(self, clusters: Sequence[Cluster], plugins: Plugins = NO_PLUGINS) -> None:
        self._clusters = {cluster.name: cluster for cluster in clusters}
        self._plugins = plugins
        self._known: dict[tuple[str, JobSpec], Refusals] = {}
        """Namespace and wishes of a job → the refusals of the built-in filters.

        Those that change with each nomination are not kept.
        """

    def rank(self, job: Workload, profile: Profile) -> Ranking:
        """Return the clusters that fit the job, best first."""
        refusals = self.refusals(job, profile)
        totals = {
            name: self._total(job, cluster, profile)
            for name, cluster in self._clusters.items()
            if name not in refusals
        }
        order = sorted(totals, key=lambda name: (-totals[name], self._clusters[name].rank))
        return Ranking(tuple(order), totals, refusals)

    def problem_of(self, refusals: Refusals) -> str:
        """Return why no cluster fits, the most common reason first; "" if one does, or if there is none.

        `refusals`: those of a job.
        """
        if not refusals or len(refusals) < len(self._clusters):
            return ""
        counts = Counter(refusals.values()).most_common()
        reasons = [f"{number} {one.reason} ({one.filter})" for one, number in counts]
        return f"0/{len(refusals)} clusters fit: {joined(reasons)}"

    def asks_about(self, job: Workload, profile: Profile) -> frozenset[str]:
        """Return the clusters whose facts matter to the job: no filter refuses them that needs no facts."""
        if not job.job.requests:
            return frozenset()
        refusals = self.refusals(job, profile)
        others = [name for name, refusal in refusals.items() if refusal.filter != CAPACITY]
        return frozenset(self._clusters).difference(others)

    def has_room(self, job: Workload, name: str) -> bool:
        """Whether a cluster is known to have room for the job now, beside those that wait there."""
        return (headroom(job, self._clusters[name]) or 0.0) >= ROOM_POINTS

    def nominated(self, job: Workload, names: Iterable[str]) -> None:
        """Take in that a job is nominated to these clusters from now on."""
        for name in names:
            if name in self._clusters:
                self._clusters[name].add_waiting([job])

    def points(self, job: Workload, profile: Profile, name: str) -> dict[str, float | None]:
        """Return what each score of the profile says about a cluster; None: it abstains."""
        return {score: self._score(score)(job, self._clusters[name]) for score, _ in profile.weights}

    def refusals(self, job: Workload, profile: Profile) -> Refusals:
        """Return the clusters that do not fit the job; equal jobs share the built-in filters' answer."""
        found = self._by_built_in_filters(job)
        if not profile.filters:
            return found
        filters = {name: self._plugins[name].refuse for name in profile.filters}
        others = {name: one for name, one in self._clusters.items() if name not in found}
        return {**found, **_refused(job, others, filters)}

    def _by_built_in_filters(self, job: Workload) -> Refusals:
        if job.job.annotation(ANNOTATION_ANTI_AFFINITY):
            return _refused(job, self._clusters, FILTERS)
        key = job.meta.namespace, job.job
        if key not in self._known:
            self._known[key] = _refused(job, self._clusters, FILTERS)
        return self._known[key]

    def _total(self, job: Workload, cluster: Cluster, profile: Profile) -> float:
        rated = [(weight, self._score(name)(job, cluster)) for name, weight in profile.weights]
        counted = [(weight, points) for weight, points in rated if points is not None]
        weights = sum(weight for weight, _ in counted)
        return sum(weight * points for weight, points in counted) / weights if weights else UNKNOWN_POINTS

    def _score(self, name: str) -> Score:
        return SCORES[name] if name in SCORES else self._plugins[name].rate


def _refused(job: Workload, clusters: Mapping[str, Cluster], filters: Mapping[str, Filter]) -> Refusals:
    judged = ((name, _refusal(job, cluster, filters)) for name, cluster in clusters.items())
    return {name: refusal for name, refusal in judged if refusal}


def _refusal(job: Workload, cluster: Cluster, filters: Mapping[str, Filter]) -> Refusal | None:
    for name, refuses in filters.items():
        if reason := refuses(job, cluster):
            return Refusal(name, reason)
    return None
