"""
The dispatch cycle: filter the clusters for a job, then put those that fit in order.

Pure. Ties are broken by the Placement's order.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from placement_ac.core.api.objects import Workload
from placement_ac.core.api.text import count_text, joined
from placement_ac.core.dispatch.facts import Cluster, queue_of, unnamed_resources
from placement_ac.core.dispatch.filters import FILTERS, QUARANTINE
from placement_ac.core.dispatch.filters.name_conflict import has_namesake
from placement_ac.core.dispatch.filters.taints import disliked
from placement_ac.core.dispatch.guard import GuardedFilter, GuardedScore
from placement_ac.core.dispatch.profiles import Profile
from placement_ac.core.dispatch.room import Room, room_of
from placement_ac.core.dispatch.scores import ASKED_BY, SCORES
from placement_ac.core.dispatch.scores.headroom import now_free
from placement_ac.core.dispatch.shortage import shortage
from placement_ac.core.inputs.state import ignore_rule_problem

UNKNOWN_POINTS: Final = 25.0
"""The total of a cluster for which all scores abstain: with Headroom, it comes before those that are full."""


class FilterRefusal(NamedTuple):
    """Why a job cannot go to a cluster."""

    filter: str
    reason: str


Refusals = Mapping[str, FilterRefusal]
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

    `report` gets the name of a filter or score that fails, and its problem.
    """

    def __init__(
        self, clusters: Sequence[Cluster], report: Callable[[str, str], None] = ignore_rule_problem
    ) -> None:
        self._clusters = {cluster.name: cluster for cluster in clusters}
        self._filters = {name: GuardedFilter(rule, partial(report, name)) for name, rule in FILTERS.items()}
        self._scores = {name: GuardedScore(score, partial(report, name)) for name, score in SCORES.items()}
        self._now_free = GuardedScore(now_free, partial(report, "Headroom"))
        self._quarantine = self._filters.pop(QUARANTINE)
        self._quarantined = {cluster.name: cluster for cluster in clusters if cluster.quarantine}
        self._with_others_jobs = [cluster for cluster in clusters if any(cluster.jobs.taken.values())]
        self._known: dict[tuple[object, ...], Refusals] = {}
        """Namespace and wishes of a job → the refusals of all filters but the quarantine.

        For a job that is compared with others, with its uid and the number of nominations before it; for one
        whose name is taken somewhere, with its uid.
        """
        self._nominations = 0

    def rank(self, job: Workload, profile: Profile) -> Ranking:
        """Return the clusters that fit the job, best first."""
        refusals, scores = self.refusals(job), self._counting(job, profile)
        totals = {
            name: self._total(job, cluster, scores)
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
        reasons = [f"{number} {refusal.reason} ({refusal.filter})" for refusal, number in counts]
        return f"0/{len(refusals)} clusters fit: {joined(reasons)}"

    def never_given(self, job: Workload, refusals: Refusals) -> str:
        """Return why none of the clusters that fit ever gives the job quota: none names a resource of it.

        "": one may, or it is not known. `refusals`: those of the job.
        """
        fitting = [cluster for name, cluster in self._clusters.items() if name not in refusals]
        facts = [(cluster.queue_facts or {}).get(queue_of(job)) for cluster in fitting]
        unnamed = [unnamed_resources(job, one) if one else () for one in facts]
        if not unnamed or not all(unnamed):
            return ""
        names = joined(sorted(set[str]().union(*unnamed)))
        where = f"the ClusterQueues of all {count_text(len(fitting), 'cluster')} that fit"
        return f"{where} have no quota of {names}: the job never runs, unless Kueue there ignores that"

    def asks_about(self, job: Workload) -> frozenset[str]:
        """Return the clusters whose facts matter to the job: no filter refuses them that needs no facts."""
        if not job.job.requests:
            return frozenset()
        refusals = self.refusals(job)
        others = [name for name, refusal in refusals.items() if not self._depends_on_queues(name, refusal)]
        return frozenset(self._clusters).difference(others)

    def _depends_on_queues(self, name: str, refusal: FilterRefusal) -> bool:
        if refusal.filter == QUARANTINE:
            return self._clusters[name].tried_by == ""
        return FILTERS[refusal.filter].reads_queues

    def room(self, job: Workload, name: str) -> Room:
        """Return the room of a cluster for the job, less what was nominated there since its answer."""
        cluster = self._clusters.get(name)
        if cluster and cluster.silent:
            return Room.SILENT
        is_known = cluster and cluster.is_recent and cluster.connected
        return room_of(self._now_free.rate(job, cluster) if cluster and is_known else None)

    def shortage(self, job: Workload) -> tuple[str, str]:
        """Return the best of the clusters to which the job is nominated, and what is short there.

        "": one of them may have room, or has given the job quota, or it is not known.
        """
        there = [self._clusters[name] for name in job.nominated if name in self._clusters]
        if any(job.meta.uid in cluster.have_quota for cluster in there):
            return "", ""
        short = [(cluster, shortage(job, cluster)) for cluster in sorted(there, key=lambda c: c.rank)]
        if not short or not all(what for _, what in short):
            return "", ""
        return short[0][0].cluster, short[0][1]

    def nominated(self, job: Workload, names: Iterable[str]) -> None:
        """Take in that a job is nominated to these clusters from now on."""
        self._nominations += 1
        for name in names:
            if name in self._clusters:
                self._clusters[name].add_waiting([job])

    def points(self, job: Workload, profile: Profile, name: str) -> dict[str, float | None]:
        """Return what each score of the profile says about a cluster; None: it abstains."""
        return {score: self._scores[score].rate(job, self._clusters[name]) for score, _ in profile.weights}

    def refusals(self, job: Workload) -> Refusals:
        """Return the clusters that do not fit the job; equal jobs share the filters' answer.

        A quarantine refuses only while another cluster that Kueue is connected to fits.
        """
        refusals = self._without_quarantine(job)
        if not self._quarantined:
            return refusals
        others = {name: cluster for name, cluster in self._quarantined.items() if name not in refusals}
        both = {**refusals, **_refused(job, others, {QUARANTINE: self._quarantine})}
        others = {name: cluster for name, cluster in self._clusters.items() if name not in both}
        fits = any(cluster.connected and not cluster.doubt(job) for cluster in others.values())
        return both if fits else refusals

    def _without_quarantine(self, job: Workload) -> Refusals:
        key: tuple[object, ...] = job.meta.namespace, job.job
        if _is_compared(job):
            key = *key, job.meta.uid, self._nominations
        elif any(has_namesake(job, cluster) for cluster in self._with_others_jobs):
            key = *key, job.meta.uid
        if key not in self._known:
            self._known[key] = _refused(job, self._clusters, self._filters)
        return self._known[key]

    def doubt(self, job: Workload, name: str) -> str:
        """Return why a cluster may never give the job quota: its total is 0 then; "": there is no doubt."""
        return self._clusters[name].doubt(job)

    def disliked(self, job: Workload, name: str) -> str:
        """Return why a cluster comes last for the job though it fits; "": it does not."""
        return disliked(job, self._clusters[name])

    def _counting(self, job: Workload, profile: Profile) -> list[tuple[int, GuardedScore]]:
        """Return the scores that count with their weights: not those that the job does not ask for."""
        weights = profile.weights
        asked = ((name, weight) for name, weight in weights if name not in ASKED_BY or ASKED_BY[name](job))
        return [(weight, self._scores[name]) for name, weight in asked]

    def _total(self, job: Workload, cluster: Cluster, scores: Sequence[tuple[int, GuardedScore]]) -> float:
        if cluster.doubt(job):
            return 0.0
        rated = [(weight, score.rate(job, cluster)) for weight, score in scores]
        counted = [(weight, points) for weight, points in rated if points is not None]
        weights = sum(weight for weight, _ in counted)
        return sum(weight * points for weight, points in counted) / weights if weights else UNKNOWN_POINTS


def _is_compared(job: Workload) -> bool:
    return any(rule.compares(job) for rule in FILTERS.values())


def _refused(
    job: Workload, clusters: Mapping[str, Cluster], filters: Mapping[str, GuardedFilter]
) -> Refusals:
    judged = ((name, _refusal(job, cluster, filters)) for name, cluster in clusters.items())
    return {name: refusal for name, refusal in judged if refusal}


def _refusal(job: Workload, cluster: Cluster, filters: Mapping[str, GuardedFilter]) -> FilterRefusal | None:
    for name, rule in filters.items():
        if reason := rule.refuse(job, cluster):
            return FilterRefusal(name, reason)
    return None
