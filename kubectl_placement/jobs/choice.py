"""
Which of a Placement's clusters a Workload goes to, and why not to the others.

Pure. The controller's own rules decide on its own inputs: its nominations are made once more, and what they
ask about the Workload is noted.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.status.check_status import check_statuses
from kubectl_placement.status.model import ClusterRow
from placement_ac.core.api.constants import WORKLOAD
from placement_ac.core.api.fields import key_of
from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.cycle import Ranking
from placement_ac.core.dispatch.profiles import Profile
from placement_ac.core.inputs.state import Snapshot
from placement_ac.core.plan.conditions import judge
from placement_ac.core.plan.job_fit import JobFit, profile_of
from placement_ac.core.plan.nomination import eligible_clusters, nominate
from placement_ac.core.plan.plan import keeps_objects
from placement_ac.core.plan.targets import TargetClusters

State = Literal["eligible", "leaving", "not connected", "not listed"]
"""Whether jobs are sent to a cluster: only to one that is on Kueue's list, stays there and is connected."""
QuotaState = Literal["not needed", "not read", "known", "unknown"]
"""Whether the quota of a cluster's worker is known, if it matters; `not read`: no worker was asked."""


@dataclass(frozen=True, slots=True)
class ClusterChoice:
    """A cluster, as a Workload could use it."""

    cluster: str
    cluster_object: str
    """Its MultiKueueCluster."""
    state: State
    why: str = ""
    """The reason for a state that is not `eligible`."""
    filter: str = ""
    """The first filter that refuses it; "": none does, or it was not judged."""
    reason: str = ""
    """The reason of that filter."""
    points: Mapping[str, float | None] = field(default_factory=dict)
    """Score of the profile → its points, None: it abstains. Empty for a cluster that does not fit."""
    total: float | None = None
    """None: it does not fit, or was not judged."""
    nominated: bool = False
    quota: QuotaState = "not needed"
    doubt: str = ""
    """Why its worker may never give the job quota, so that it comes last; "": there is no doubt."""


@dataclass(frozen=True, slots=True)
class PlacementChoice:
    """The clusters of one Placement, as a Workload could use them."""

    placement: str
    """As namespace/name; without namespace if it does not exist."""
    checks: tuple[str, ...]
    """The checks of ours that name the Placement."""
    dispatcher: bool | None
    """Whether our dispatcher decides: else the clusters have no points. None: its settings are unknown."""
    profile: str
    weights: Mapping[str, int]
    problem: str
    """Why no cluster fits, or why no job is sent to any cluster; "" if one fits."""
    clusters: tuple[ClusterChoice, ...]
    """Those that fit, best first; then those that do not; then those that are not in use."""
    profile_problem: str = ""
    """Why another profile counts than a check says."""

    @property
    def fitting(self) -> tuple[ClusterChoice, ...]:
        """The clusters that fit, best first; if Kueue's dispatcher decides, those that it may choose."""
        if self.dispatcher:
            return tuple(cluster for cluster in self.clusters if cluster.total is not None)
        return tuple(cluster for cluster in self.clusters if cluster.state in ("eligible", "not connected"))


class _Judged(NamedTuple):
    ranking: Ranking
    problem: str
    profile: Profile
    points: Mapping[str, Mapping[str, float | None]]
    asks_about: frozenset[str]
    """MultiKueueClusters whose quota matters."""
    doubts: Mapping[str, str]
    """MultiKueueCluster that fits → why it may never give the job quota; "": there is no doubt."""


class _RecordingFit(JobFit):
    """Notes the answer about one Workload at the moment when the controller's rules ask for it."""

    def __init__(self, snapshot: Snapshot, targets: TargetClusters, uid: str) -> None:
        super().__init__(snapshot, targets)
        self._uid = uid
        self.judged: _Judged | None = None

    def ranking(self, workload: Workload) -> Ranking:
        ranking = super().ranking(workload)
        if workload.meta.uid == self._uid and self.judged is None:
            points = {name: self.points(workload, name) for name in ranking.order}
            profile = self.profile(workload)
            asks_about = self._cycle.asks_about(workload)
            doubts = {name: self.doubt(workload, name) for name in ranking.order}
            self.judged = _Judged(ranking, self.problem(workload), profile, points, asks_about, doubts)
        return ranking


def placements_of(view: HubView, checks: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the Placements that these AdmissionChecks, ours or Kueue's, lead to."""
    by_name = {check.meta.name: check for check in view.checks}
    ours = {check.placement for check in view.our_checks}
    named = (by_name[name].placement or by_name[name].config for name in checks if name in by_name)
    return tuple(name for name in dict.fromkeys(named) if name and name in ours)


def choices(view: HubView, workload: Workload) -> tuple[PlacementChoice, ...]:
    """Return the choice among the clusters of each Placement of a Workload, which is on the hub."""
    names = placements_of(view, [entry.check for entry in workload.check_states])
    before = _before_nomination(view, workload)
    return tuple(_choice(view, before, name, workload) for name in names)


def _before_nomination(view: HubView, workload: Workload) -> HubView:
    """Return the hub on which the Workload is not nominated yet: it does not count against itself."""
    key = workload.meta.namespace, workload.meta.name
    raw = view.dump.by_key(WORKLOAD).get(key)
    if raw is None or not workload.nominated:
        return view
    status = {name: value for name, value in raw["status"].items() if name != "nominatedClusterNames"}
    return view.with_changes({WORKLOAD: {key: raw | {"status": status}}})[0]


def _choice(view: HubView, before: HubView, placement: str, workload: Workload) -> PlacementChoice:
    snapshot, targets = view.snapshot(placement), view.targets(placement)
    checks = tuple(check.meta.name for check in snapshot.checks.ours)
    raw = view.placement(placement)
    judged = _judged(before, placement, workload) if snapshot.policy.dispatcher else None
    verdict = judge(snapshot, targets)
    paused = f"no job is sent to a cluster: {verdict.reason}: {verdict.message}"
    problem = judged.problem if judged else ""
    [status] = check_statuses(view, checks[:1])
    rows = {row.cluster_object: row for row in status.clusters}
    return PlacementChoice(
        placement="/".join(key_of(raw)) if raw else placement,
        checks=checks,
        dispatcher=judged is not None if view.settings_known else None,
        profile=judged.profile.name if judged else "",
        weights=dict(judged.profile.weights) if judged else {},
        problem=paused if keeps_objects(verdict) else problem,
        clusters=tuple(
            replace(cluster, quota=_quota(view, cluster, judged))
            for cluster in _clusters(rows, judged, eligible_clusters(snapshot, targets), workload)
        ),
        profile_problem=_profile_problem(snapshot) if judged else "",
    )


def _profile_problem(snapshot: Snapshot) -> str:
    problems = (profile_of(snapshot, check)[1] for check in snapshot.checks.ours)
    return "; ".join(dict.fromkeys(filter(None, problems)))


def _judged(before: HubView, placement: str, workload: Workload) -> _Judged | None:
    snapshot, targets = before.snapshot(placement), before.targets(placement)
    fit = _RecordingFit(snapshot, targets, workload.meta.uid)
    nominate(snapshot, targets, fit)
    if fit.judged is None:  # it was not its turn: as if it were the last one
        fit.ranking(workload)
    return fit.judged


def _clusters(
    rows: Mapping[str, ClusterRow], judged: _Judged | None, eligible: frozenset[str], workload: Workload
) -> Iterator[ClusterChoice]:
    order = (*judged.ranking.order, *judged.ranking.refusals) if judged else ()
    for name in dict.fromkeys((*(cluster for cluster in order if cluster in rows), *rows)):
        state, why = _state(rows[name], eligible)
        refusal = judged.ranking.refusals.get(name) if judged else None
        yield ClusterChoice(
            cluster=rows[name].name,
            cluster_object=name,
            state=state,
            why=why,
            filter=refusal.filter if refusal else "",
            reason=refusal.reason if refusal else "",
            points=judged.points.get(name, {}) if judged else {},
            total=judged.ranking.totals.get(name) if judged else None,
            nominated=name in workload.nominated,
            doubt=judged.doubts.get(name, "") if judged else "",
        )


def _quota(view: HubView, choice: ClusterChoice, judged: _Judged | None) -> QuotaState:
    if judged is None or choice.state != "eligible" or choice.cluster_object not in judged.asks_about:
        return "not needed"
    if view.queue_facts is None:
        return "not read"
    facts = view.queue_facts.get(choice.cluster_object)
    return "known" if facts and facts.known is not None else "unknown"


def _state(row: ClusterRow, eligible: frozenset[str]) -> tuple[State, str]:
    """Return whether jobs are sent to a cluster, and why not."""
    if row.cluster_object in eligible:
        return "eligible", ""
    if row.state in ("draining", "standby"):
        return "leaving", row.why
    if row.state == "listed":
        return "not connected", row.connected_why or "Kueue has not reported that it is connected"
    return "not listed", row.why
