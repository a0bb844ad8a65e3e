"""
Which of a Placement's clusters fit each of its Workloads (our dispatcher).

Pure. It narrows what the Placement authorises, and never widens it. A nomination that was made stays until
the Workload is placed or evicted, or the cluster leaves: only the drain takes one back.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Final

from placement_ac.core.api.constants import ANNOTATION_DISPATCH_PROFILE
from placement_ac.core.api.objects import Check, ClusterTaint, Workload
from placement_ac.core.dispatch.cycle import DispatchCycle, Ranking, Refusals
from placement_ac.core.dispatch.facts import Cluster, Price, Prices, price_of
from placement_ac.core.dispatch.profiles import Profile, ProfileError, parse_profile
from placement_ac.core.dispatch.room import Room
from placement_ac.core.inputs.job_facts import NO_JOB_FACTS, JobFacts, job_needs
from placement_ac.core.inputs.queue_facts import Queue, QueueFacts
from placement_ac.core.inputs.state import Since, SinceKind, Snapshot
from placement_ac.core.plan.fact_questions import (
    FACTS_WAIT_SECONDS,
    askable_workers,
    is_recent,
    needs_of,
    not_asked_enough,
    seconds_awaited,
)
from placement_ac.core.plan.silent_workers import is_silent
from placement_ac.core.plan.targets import TargetClusters
from placement_ac.core.plan.turns import turn, weight
from placement_ac.core.plan.worker_answers import counted

ROUND_SECONDS: Final = 300.0
"""How long a round of nominations lasts (Kueue: five minutes, in its dispatcher Incremental, too)."""


class JobFit:
    """Ranks the clusters for one Workload after the other; each knows the nominations of those before it."""

    def __init__(self, snapshot: Snapshot, targets: TargetClusters) -> None:
        self._snapshot = snapshot
        self._profiles = {check.meta.name: profile_of(snapshot, check)[0] for check in snapshot.checks.ours}
        self._default = parse_profile(snapshot.policy.dispatch_profile)
        policy, clusters = snapshot.policy, tuple(_clusters(snapshot, targets))
        self._cycle = DispatchCycle(clusters, policy.report_rule_problem)
        self._tainted = any(cluster.taints for cluster in clusters)
        self._cluster_of = {entry.name: entry.cluster for entry in targets.to_list}
        self._needs = needs_of(snapshot)
        self.asked_again = not_asked_enough(snapshot, self._needs)
        """The MultiKueueClusters whose last answers do not say all that jobs need."""
        self._askable = askable_workers(snapshot, targets)
        answering = [cluster for cluster in clusters if cluster.connected and cluster.is_recent]
        newcomers = {cluster.name: {job.meta.uid for job in cluster.newcomers} for cluster in answering}
        self.ask_about_newcomers = frozenset(name for name, uids in newcomers.items() if uids)
        """The MultiKueueClusters whose last answers do not count all Workloads that wait there."""
        self._in_time = frozenset().union(*newcomers.values(), *[cluster.have_quota for cluster in clusters])
        """The uids of Workloads of which it is not known that they wait in vain."""
        self._in_vain: dict[tuple[object, ...], bool] = {}
        undecided = targets.workloads.undecided if policy.dispatcher else ()
        judged = [workload for workload in undecided if self._is_judged(workload)]
        self.turn = turn(snapshot, judged, awaits_answers=self.awaits(self._askable) > 0)
        self._others_judged = 0

    def _is_judged(self, workload: Workload) -> bool:
        """Whether it has quota, and may be nominated anew (with `retry_waiting_after`: any)."""
        if not (workload.has_quota and workload.active):
            return False
        if not workload.nominated or self._snapshot.policy.retry_waiting_after is not None:
            return True
        return round_left(self._snapshot, workload) <= FACTS_WAIT_SECONDS or self.waits_in_vain(workload)

    def ranking(self, workload: Workload) -> Ranking:
        """Return the clusters that fit the Workload, best first."""
        return self._cycle.rank(workload, self.profile(workload))

    def profile(self, workload: Workload) -> Profile:
        """Return the profile by which the clusters are scored for the Workload."""
        names = (entry.check for entry in workload.check_states)
        return next((self._profiles[name] for name in names if name in self._profiles), self._default)

    def points(self, workload: Workload, name: str) -> Mapping[str, float | None]:
        """Return what each score of its profile says about a MultiKueueCluster; None: it abstains."""
        return self._cycle.points(workload, self.profile(workload), name)

    def problem(self, workload: Workload) -> str:
        """Return why none of the clusters fits the Workload; "" if one does, or if there is none."""
        return self.refusals(workload)[1]

    def refusals(self, workload: Workload) -> tuple[Refusals, str]:
        """Return the clusters that do not fit the Workload, and why none fits ("": one does)."""
        refusals = self._cycle.refusals(workload)
        return refusals, self._cycle.problem_of(refusals)

    def never_given(self, workload: Workload, refusals: Refusals) -> str:
        """Return why no cluster that fits ever gives the Workload quota; "": one may, or it is unknown."""
        return self._cycle.never_given(workload, refusals)

    def asks_about(self, workload: Workload) -> frozenset[str]:
        """Return the MultiKueueClusters that can be asked for their queues, and whose queues matter to it."""
        return self._askable & self._cycle.asks_about(workload)

    def askable(self, workload: Workload, names: Iterable[str]) -> frozenset[str]:
        """Return those MultiKueueClusters whose queues matter to a Workload that is nominated there."""
        return self._askable.intersection(names) if workload.job.requests else frozenset()

    @property
    def asked_early(self) -> frozenset[str]:
        """The MultiKueueClusters that are asked now, to have answered when others have their turn."""
        return self._askable if self.turn.deferred else frozenset()

    def awaits(
        self,
        names: Collection[str],
        workload: Workload | None = None,
        at_most: float = FACTS_WAIT_SECONDS,
    ) -> float:
        """Return for how many seconds one of these MultiKueueClusters, which are asked, is still awaited.

        `at_most`: seconds from the question. An answer that was not about all that jobs need counts for a
        `workload` that needs no more.
        """
        again = self._asked_again_about(workload) if workload else self.asked_again
        awaited = (seconds_awaited(self._snapshot, name, again) for name in names)
        return max((at_most - seconds for seconds in awaited if seconds is not None), default=0.0)

    def _asked_again_about(self, workload: Workload) -> frozenset[str]:
        """Return the MultiKueueClusters whose last answers do not say all that the Workload needs."""
        if not self.asked_again:
            return self.asked_again
        own = job_needs((workload,))
        return not_asked_enough(self._snapshot, own.intersection(self._needs))

    def room(self, workload: Workload, name: str) -> Room:
        """Return the room of a MultiKueueCluster for the Workload, less what came since its answer."""
        return self._cycle.room(workload, name)

    def waits_in_vain(self, workload: Workload) -> bool:
        """Whether none of its nominations is known to have room, and another cluster is, by its quota.

        Not before the next answer of a cluster to which it was nominated, nor if one has given it quota,
        which the hub records later. Workloads that ask for the same share one answer: others may have got
        that room in this plan.
        """
        if workload.meta.uid in self._in_time:
            return False
        job = workload.job
        asks = job.requests, job.pods, job.has_uncounted_claims
        key = workload.meta.namespace, job.queue, asks, workload.nominated
        if key not in self._in_vain:
            in_vain = all(self.room(workload, name) >= Room.UNKNOWN for name in workload.nominated)
            others = [name for name in self._cluster_of if name not in workload.nominated]
            self._in_vain[key] = in_vain and any(self.room(workload, name) < Room.UNKNOWN for name in others)
        return self._in_vain[key]

    def shortage(self, workload: Workload) -> tuple[str, str]:
        """Return the best cluster it is nominated to, and what is short there; "": nothing, or unknown."""
        return self._cycle.shortage(workload)

    def clusters_of(self, names: Iterable[str]) -> frozenset[str]:
        """Return the clusters of those of these MultiKueueClusters that are to be listed."""
        return frozenset(self._cluster_of[name] for name in names if name in self._cluster_of)

    def avoids(self, workload: Workload, name: str) -> str:
        """Return why a MultiKueueCluster comes last, as where the job failed; "": it does not."""
        fleet, cluster = self._snapshot.fleet, self._cluster_of[name]
        if until := fleet.avoided.get(workload.meta.uid, {}).get(cluster):
            return f"the job failed there; until {until:%Y-%m-%dT%H:%M:%SZ}"
        return self._cycle.disliked(workload, name) if self._tainted else ""

    def doubt(self, workload: Workload, name: str) -> str:
        """Return why a MultiKueueCluster that fits the Workload comes last for it; "": it does not."""
        return self.avoids(workload, name) or self._cycle.doubt(workload, name)

    def defers(self, workload: Workload) -> bool:
        """Whether the Workload is left for a later plan: there are too many for one."""
        return workload.meta.uid in self.turn.deferred

    def judges_another(self, workload: Workload) -> bool:
        """Whether a Workload may be judged in this plan besides those whose turn it is; counts it."""
        self._others_judged += weight(workload)
        most = self._snapshot.policy.judged_at_once
        return most is None or self._others_judged <= most

    def nominated(self, workload: Workload, names: Iterable[str]) -> None:
        """Take in that a Workload is nominated to these MultiKueueClusters from now on."""
        self._cycle.nominated(workload, names)


def round_since(workload: Workload) -> Since:
    """Return since when a Workload's last round has lasted."""
    return Since(SinceKind.NOMINATION_ROUND, workload.meta.uid, len(workload.nominated))


def nominated_at(snapshot: Snapshot, workload: Workload) -> datetime:
    """Return when a Workload was nominated last, as far as it is known."""
    age = timedelta(seconds=snapshot.age(round_since(workload)))
    return workload.nominated_since or snapshot.now - age


def round_left(snapshot: Snapshot, workload: Workload) -> float:
    """Return the seconds until the next round; a restart of the controller does not begin it anew."""
    if not workload.nominated:
        return ROUND_SECONDS
    since = workload.nominated_since
    on_hub = (snapshot.now - since).total_seconds() if since else 0.0
    return ROUND_SECONDS - max(snapshot.age(round_since(workload)), on_hub)


def _clusters(snapshot: Snapshot, targets: TargetClusters) -> Iterator[Cluster]:
    """Yield the clusters to which jobs may be sent, in the Placement's order, with what is known of them."""
    running, waiting = targets.workloads.running, targets.workloads.waiting
    prices = _prices(snapshot, [entry.cluster for entry in targets.to_list])
    for rank, entry in enumerate(targets.to_list):
        labels = MappingProxyType(snapshot.fleet.labels.get(entry.cluster, {}))
        window = snapshot.fleet.maintenance.get(entry.cluster)
        run, wait = list(running.get(entry.name, ())), list(waiting.get(entry.name, ()))
        yield Cluster(
            entry.name,
            entry.cluster,
            rank,
            len(targets.to_list),
            labels,
            {key: labels.get(source) for key, source in snapshot.policy.node_labels.items()},
            run,
            wait,
            snapshot.fleet.last_by_group,
            *_facts(snapshot, entry.name, run, wait),  # the queues, and whom they do not count
            maintenance_in=window.seconds_left(snapshot.now) if window else None,
            silent=is_silent(snapshot, entry.name),
            connected=bool((worker := snapshot.objects.clusters.get(entry.name)) and worker.active),
            quarantine=snapshot.fleet.quarantined.get(entry.cluster, ""),
            quarantined_for=snapshot.fleet.quarantined_for.get(entry.cluster, ()),
            tried_by=_tried_by(snapshot, entry.cluster, run, wait),
            taints=_taints(snapshot, entry.cluster),
            prices=prices.get(entry.cluster),
        )


def _taints(snapshot: Snapshot, cluster: str) -> tuple[ClusterTaint, ...]:
    """Return the taints of a cluster that jobs must tolerate: a key of the setting may end in `*`."""
    exact, prefixes = set[str](), tuple[str, ...]()
    for key in snapshot.policy.job_taints:
        if key.endswith("*"):
            prefixes += (key[:-1],)
        else:
            exact.add(key)
    taints = snapshot.fleet.taints.get(cluster, ()) if snapshot.policy.job_taints else ()
    return tuple(taint for taint in taints if taint.key in exact or taint.key.startswith(prefixes))


def _prices(snapshot: Snapshot, clusters: Sequence[str]) -> Mapping[str, Prices]:
    """Return cluster → its prices; none without the setting."""
    policy, labels = snapshot.policy, snapshot.fleet.labels
    columns = [
        {cluster: price_of(labels.get(cluster, {}).get(key, "")) for cluster in clusters}
        for key in policy.cost_labels
    ]
    lowest = [min((price for price in one.values() if price is not None), default=None) for one in columns]
    found = {}
    for cluster in clusters if columns else ():
        whole, *per_gpu = (Price(one[cluster], least) for one, least in zip(columns, lowest, strict=True))
        found[cluster] = Prices(whole, next(iter(per_gpu), None), policy.gpus)
    return found


def _tried_by(
    snapshot: Snapshot, cluster: str, run: Iterable[Workload], wait: Iterable[Workload]
) -> str | None:
    """Return the uid of the job that tries a quarantined cluster; "": the next one does; None: none may."""
    retry_at = snapshot.fleet.retry_at.get(cluster)
    if retry_at is None or snapshot.now < retry_at:
        return None
    whose = snapshot.fleet.quarantined_for.get(cluster)
    run, wait = ([job for job in jobs if not whose or job.meta.namespace in whose] for jobs in (run, wait))
    placed = [job.meta.uid for job in run if job.placed_since and job.placed_since >= retry_at]
    waits = (
        job.meta.uid
        for job in wait
        if nominated_at(snapshot, job) >= retry_at and try_left(snapshot, cluster, job) > 0
    )
    return next(chain(placed, waits), "")


def try_since(cluster: str, workload: Workload) -> Since:
    """Return since when a Workload is nominated to a quarantined cluster that it may try."""
    return Since(SinceKind.TRIES, f"{cluster}/{workload.meta.uid}")


def try_left(snapshot: Snapshot, cluster: str, workload: Workload) -> float:
    """Return the seconds until another job may try the cluster, unless this one is placed there."""
    nominated = (snapshot.now - nominated_at(snapshot, workload)).total_seconds()  # a restart knows it, too
    return ROUND_SECONDS - max(snapshot.age(try_since(cluster, workload)), nominated)


def _facts(
    snapshot: Snapshot, name: str, running: Iterable[Workload], waiting: Iterable[Workload]
) -> tuple[Mapping[Queue, QueueFacts] | None, JobFacts, list[Workload], bool, list[Workload], frozenset[str]]:
    """Return the queues of a worker, if they are known, what else is known of it, the Workloads that have
    got quota there since, whether that says if there is room now, those that wait there since, and the uids
    of those that wait on the hub alone.
    """
    facts = snapshot.fleet.queue_facts.get(name)
    if facts is None or facts.known is None:
        return None, NO_JOB_FACTS, [], False, [], frozenset()
    asked_at = snapshot.now - timedelta(seconds=facts.age)
    came, newcomers, have_quota = counted(facts, running, waiting, asked_at, partial(nominated_at, snapshot))
    return facts.known, facts.known_of_jobs, came, is_recent(facts), newcomers, have_quota


def profile_of(snapshot: Snapshot, check: Check) -> tuple[Profile, str]:
    """Return the profile of a check, and what is wrong with its annotation; the default then counts."""
    default, problem = parse_profile(snapshot.policy.dispatch_profile), ""
    if text := check.meta.annotations.get(ANNOTATION_DISPATCH_PROFILE, "").strip():
        try:
            return parse_profile(text), ""
        except ProfileError as error:
            problem = f"correct the annotation {ANNOTATION_DISPATCH_PROFILE}: {error}"
    return default, problem


def profile_problems(snapshot: Snapshot) -> Mapping[str, str]:
    """Return check → what is wrong with its profile."""
    problems = {check.meta.name: profile_of(snapshot, check)[1] for check in snapshot.checks.ours}
    return {name: problem for name, problem in problems.items() if problem}
