"""
The state of a check at one time: its list, its scores and its running Workloads.

Pure.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import product

from kubectl_placement.hub.dump import Object
from kubectl_placement.hub.hub_view import OCM_DECIDES, HubView
from kubectl_placement.status.model import CheckStatus
from placement_ac.core.api.constants import MULTIKUEUE_CONFIG, PLACEMENT_SCORE
from placement_ac.core.api.decode import kueue_object, scores
from placement_ac.core.api.decode import placement as parsed
from placement_ac.core.api.shapes import ApiModel
from placement_ac.core.decisions.ocm import score_of


class RunningWorkload(ApiModel):
    """The cluster that a Workload runs on, and its GPUs."""

    cluster: str
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class RecordedState:
    """The state of a check from `time` (UTC) on."""

    time: datetime
    listed: tuple[str, ...] = ()
    draining: tuple[str, ...] = ()
    scores: Mapping[str, int] = field(default_factory=dict)
    running: Mapping[str, RunningWorkload] = field(default_factory=dict)


def current_state(view: HubView, check_status: CheckStatus, *, all_scores: bool = True) -> RecordedState:
    """Return the present state of a check. `all_scores` False: no scores of clusters without a row."""
    clusters = {row.cluster_object: row.name for row in check_status.clusters}
    raw = view.dump.find(MULTIKUEUE_CONFIG, check_status.config or "")
    config = kueue_object(raw) if raw else None
    names = config.listed if config else ()
    leaving = config.draining if config else {}
    return RecordedState(
        time=view.now,
        listed=tuple(clusters.get(name, name) for name in names),
        draining=tuple(clusters.get(name, name) for name in names if name in leaving),
        scores=_scores(
            view, check_status, None if all_scores else [row.name for row in check_status.clusters]
        ),
        running={
            f"{job.namespace}/{job.name}": RunningWorkload(cluster=job.cluster, gpus=job.gpus)
            for job in check_status.jobs
            if job.state == "running"
        },
    )


def _scores(view: HubView, check_status: CheckStatus, among: Collection[str] | None = None) -> dict[str, int]:
    """Return the scores of the selected clusters, and of the others by the same prioritizers.

    If OCM writes scores into its decisions, only those of selected clusters are known. `among`: the others
    that count; None: all.
    """
    selected = {row.name: row.score for row in check_status.clusters if row.score is not None}
    placement = view.placement(check_status.placement.rpartition("/")[2])
    prioritizers = parsed(placement).prioritizers if placement else ()
    if not OCM_DECIDES or view.writes_scores or not prioritizers:
        return selected if any(selected.values()) else {}
    resources = {prioritizer.resource_name for prioritizer in prioritizers}
    addon_scores = {score.meta.id: score for score in map(scores, _raw(view, resources, among))}
    scored = {cluster for cluster, resource in addon_scores if resource in resources}
    return {name: score_of(name, prioritizers, addon_scores, view.now) for name in sorted(scored)} | selected


def _raw(view: HubView, resources: Collection[str], among: Collection[str] | None) -> Iterable[Object]:
    """Return the AddOnPlacementScores: all, or those of these resources `among` these clusters."""
    if among is None:
        return view.dump.of(PLACEMENT_SCORE)
    known = view.dump.by_key(PLACEMENT_SCORE)
    return [known[key] for key in product(among, resources) if key in known]
