"""
Collect the inputs for the scores that are reported.

No I/O, no clock.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from placement_ac.cache.credentials import CredentialLookup
from placement_ac.cache.tables import Tables
from placement_ac.core.api.constants import SCORES_NAME
from placement_ac.core.api.objects import Placement
from placement_ac.core.inputs.queue_facts import Queue
from placement_ac.core.inputs.score_reports import ScoreChoice, ScoreInputs, ScorePolicy
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.core.score_reports.planning import counting, is_taken


class ScoreReports:
    """Reads the tables."""

    def __init__(self, tables: Tables, credentials: CredentialLookup, policy: ScorePolicy) -> None:
        self._tables = tables
        self._credentials = credentials
        self._policy = policy

    def is_wanted(self, cluster: str) -> bool:
        """Whether it is a ManagedCluster, and a Placement with a check may use a score of it."""
        return any(self._tables.checks.by("placement", one.meta.name) for one in self._users(cluster))

    def inputs(self, cluster: str, now: datetime) -> ScoreInputs:
        """Return all that the scores of a cluster depend on, but for other clusters."""
        tables = self._tables
        users = [placement.meta.name for placement in self._users(cluster)]
        checks = [check for name in users for check in tables.checks.by("placement", name)]
        if not checks:
            return ScoreInputs(cluster, now)
        source = self._credentials.sources((cluster,), now)[cluster]
        names = [obj.meta.name for obj in tables.multikueue_clusters.by("cluster", cluster)]
        return ScoreInputs(
            cluster=cluster,
            now=now,
            hub=tables.hub,
            policy=self._policy,
            owners={check.meta.uid: check.meta.name for check in checks},
            credentials=source if isinstance(source, CredentialSource) else None,
            queues=frozenset(self._queues(users)),
            workloads=tuple(workload for name in names for workload in tables.workloads.by("cluster", name)),
            reliability=self._reliability(names, now),
            observed=tables.scores.get((cluster, SCORES_NAME)),
        )

    def _reliability(self, workers: Iterable[str], now: datetime) -> float | None:
        """Return the share of jobs that did not end because of the cluster, by its MultiKueueClusters."""
        memory = self._tables.failures
        return min((memory.reliability(now, workers) if memory else {}).values(), default=None)

    def score_choices(self, cluster: str, now: datetime) -> Iterator[ScoreChoice]:
        """Yield what the Placements choose between that may use a score of the cluster."""
        tables = self._tables
        for placement in self._users(cluster):
            selected = set(tables.selected_by(placement.meta.name))
            values = self._counting(placement, now)
            for prioritizer in placement.prioritizers:
                score = prioritizer.score_name
                if prioritizer.resource_name == SCORES_NAME and prioritizer.weight > 0:
                    known = {name: scores[score] for name, scores in values.items() if score in scores}
                    yield ScoreChoice(
                        score,
                        {name: value for name, value in known.items() if name in selected},
                        {name: value for name, value in known.items() if name not in selected},
                    )

    def clusters_by_placement(self) -> dict[str, list[str]]:
        """Return each Placement that uses a score of ours → the clusters that it may select."""
        tables = self._tables
        return {
            placement.meta.name: candidates(placement, tables) for placement in placements_with_scores(tables)
        }

    def reported(self, now: datetime) -> dict[str, Mapping[str, int]]:
        """Return each cluster → the scores that we report, as they count now."""
        return {
            cluster: counting(scores, now)
            for (cluster, name), scores in self._tables.scores.objects.items()
            if name == SCORES_NAME and not is_taken(scores)
        }

    def _counting(self, placement: Placement, now: datetime) -> dict[str, Mapping[str, int]]:
        """Return cluster → the scores of ours that count now."""
        scores = self._tables.scores.objects
        names = candidates(placement, self._tables)
        return {name: counting(scores.get((name, SCORES_NAME)), now) for name in names}

    def _users(self, cluster: str) -> Iterator[Placement]:
        """Yield the Placements that may use a score of the cluster."""
        managed = self._tables.managed_clusters.get(("", cluster))
        if managed is None:
            return
        for placement in placements_with_scores(self._tables):
            if (
                not _has_labelled_sets(placement, self._tables)
                or managed.cluster_set in placement.cluster_sets
            ):
                yield placement

    def _queues(self, placements: Iterable[str]) -> Iterator[Queue]:
        """Yield the LocalQueues of the hub that send jobs through the checks of these Placements."""
        tables = self._tables
        for placement in placements:
            for index in ("placement", "config"):
                for check in tables.checks.by(index, placement):
                    for _, name in tables.cluster_queues.index("check").ids(check.meta.name):
                        yield from tables.local_queues.index("cluster_queue").ids(name)


def placements_with_scores(tables: Tables) -> Iterator[Placement]:
    """Yield the Placements of our checks that use a score of ours."""
    for placement in tables.placements.by("scores", SCORES_NAME):
        name = placement.meta.name
        if name in tables.checks.index("placement") and placement.meta.namespace == tables.home_of(name):
            yield placement


def uses_scores(placement: Placement) -> bool:
    return any(prioritizer.resource_name == SCORES_NAME for prioritizer in placement.prioritizers)


def candidates(placement: Placement, tables: Tables) -> list[str]:
    """Return the clusters that a Placement may select, by its cluster sets alone."""
    known = tables.managed_clusters
    if not _has_labelled_sets(placement, tables):
        return [name for _, name in known.objects]
    return [cluster.meta.name for name in placement.cluster_sets for cluster in known.by("cluster_set", name)]


def _has_labelled_sets(placement: Placement, tables: Tables) -> bool:
    """Whether labels say which clusters are in its sets: of `global`, for example, they do not."""
    labels = tables.managed_clusters.index("cluster_set")
    return bool(placement.cluster_sets) and all(name in labels for name in placement.cluster_sets)
