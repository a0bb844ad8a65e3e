"""
Rules of every second of a day: no job runs twice, is lost or is killed; none waits beside idle GPUs.

`Rules` looks at the world, not at the controller. Each rule has a name; the first finding ends the day.
"""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

from placement_ac.core.api.constants import (
    CONFIG_MAP,
    GATE_CLOSED_MAX_SECONDS,
    PLACEMENT_SCORE,
    WORKLOAD,
    Kind,
)
from placement_ac.core.inputs.state import PlacementPolicy
from placement_ac.core.plan.job_fit import ROUND_SECONDS
from placement_ac.core.selection.mass_loss import FEW
from placement_lab.standins.multikueue import objects as of
from tests.day.check_conditions import CheckConditions
from tests.day.trace import CLUSTERS, HOUR, clock
from tests.day.world import World

NAMES: Final = (
    *("twice", "killed", "lost", "waits", "leaving", "empties", "reconciles", "writes"),
    *("drains", "lost-clusters", "counts", "explained"),  # of `agreement`
    *("jobs", "job", "capacity"),  # of what `kubectl placement` says
    *("others", "kept", "in-use", "flapping", "quota"),  # of `setup_rules`
    *("too-long", "forced", "reboot"),  # of `maintenance_rules`
    "scores",  # of `score_rules`
    *("black-hole", "refused", "forgotten"),  # of `quarantine_rules`
    "returns",  # "waits", beside a cluster that failed every job and has been recovered
)
SLACK_SECONDS: Final = 20.0
"""For requests, Kueue's batches, and a worker that is asked and does not answer."""
LEAVES_SECONDS: Final = 30.0
"""From a decision without a cluster to the last job that starts there: the cluster is asked twice."""
BACK_SECONDS: Final = 45.0
"""After a cluster came back, or the controller began: whoever did not answer is asked again."""
SETTLES_FACTOR: Final = 10.0
"""The multiple of `--settle` for which removals wait at most while decisions flap."""
LOST_SECONDS: Final = 120.0
"""A placed job whose cluster answers, and where it neither runs nor starts, is lost after so long."""
WORKER_LOST_SECONDS: Final = 900.0
"""Kueue: a cluster that is away for longer loses its jobs, which then run elsewhere as well."""
RECONCILES_PER_HOUR: Final = 3600
WRITES_PER_ITEM: Final = 12
WRITES_PER_HOUR: Final = 100
"""An hour may have so many writes, and WRITES_PER_ITEM more for each job and each trouble in it."""
CAPACITY_WRITES_PER_HOUR: Final = 2 * 120 + 20
"""Two ConfigMaps at most every 30 s, and some more after restarts."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that does not hold, when (seconds of the day), and how."""

    rule: str
    at: float
    message: str

    def __str__(self) -> str:
        return f"{clock(self.at)} (minute {int(self.at // 60)})  {self.rule}: {self.message}"


@dataclass(slots=True)
class Seen:
    """An unfinished job, as it is known. Times are seconds of the day."""

    raw: Any
    idle_since: float | None = None
    """Since when there has been room for it, while it waits."""
    gone_since: float | None = None
    """Since when it has been placed, and runs nowhere."""
    hidden: frozenset[str] = frozenset()
    """Clusters with a copy of it that Kueue could not see when it placed the job: when such a cluster
    is back, the copy with the earlier quota wins, and Kueue has the job run there (docs/limits.md)."""


@dataclass
class Rules:
    """Watches a world. `report` is called with each finding of a rule that is among `names` (empty: all)."""

    world: World
    report: Callable[[Finding], None]
    names: Collection[str] = ()
    jobs: dict[str, Seen] = field(default_factory=dict)
    left: dict[tuple[str, str], float] = field(default_factory=dict)
    """Placement and cluster that it no longer selects → since when, or until when it is held."""
    losses: dict[str, tuple[float, frozenset[str]]] = field(default_factory=dict)
    """Placement → when the first of the losses was that count together, and what was selected before."""
    selected: dict[str, frozenset[str]] = field(default_factory=dict)
    """Placement → what it selects."""
    held: dict[str, float] = field(default_factory=dict)
    """Placement whose lost clusters are held → until when."""
    empty: dict[tuple[str, str], float] = field(default_factory=dict)
    """The same, where none of its jobs runs any more."""
    kueue_lost: set[str] = field(default_factory=set)
    """Jobs whose cluster was away for long: Kueue gives them up, and then runs them twice."""
    running: set[tuple[str, str]] = field(default_factory=set)
    """Placement and cluster, where a job of it is placed."""
    nominated: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """The same → its jobs that are nominated there."""
    conditions: CheckConditions | None = None
    """The conditions of the checks, where jobs fail."""
    looks: int = 0
    """How often the world was looked at: whenever it has changed, once a second at most."""
    changed: bool = True
    happened: int = 0

    def __post_init__(self) -> None:
        world = self.world
        world.hub.listeners.append(self._witness)
        world.kueue.on_start.append(self._started)
        world.kueue.connections.append(lambda *_: self._touch())
        world.on_decision.append(self._decided)
        self._last_hour = (Counter[Any](), Counter[Any]())
        world.kueue.later(1.0, self._second)
        world.kueue.later(HOUR, self._hour)

    def found(self, rule: str, message: str) -> None:
        if not self.names or rule in self.names:
            self.report(Finding(rule, self.world.now, message))

    def _touch(self) -> None:
        self.changed = True

    # -- what happens

    def _witness(self, what: str, kind: Kind, raw: Any) -> None:
        self.changed = True
        if kind != WORKLOAD:
            return
        name = raw["metadata"]["name"].removeprefix("job-")
        if what == "remove" or of.is_condition_true(raw, of.FINISHED):
            self.jobs.pop(name, None)
            return
        before = self.jobs.setdefault(name, Seen(raw))
        is_evicted = of.is_condition_true(raw, of.EVICTED)
        where = of.cluster_of(before.raw)
        if is_evicted and not of.is_condition_true(before.raw, of.EVICTED) and where:
            self._evicted(name, where, of.condition_field(raw, of.EVICTED))
        if of.cluster_of(raw) and not where:
            before.hidden = self._hidden_copies(name)
        before.raw = raw

    def _hidden_copies(self, name: str) -> frozenset[str]:
        workers, placement = self.world.kueue.workers, self.world.jobs[name].placement
        there = (cluster for cluster in CLUSTERS if name in workers[cluster].copies)
        names = {cluster: self.world.name_of(placement, cluster) for cluster in there}
        return frozenset(one for one, full_name in names.items() if not _is_connected(workers[full_name]))

    def _evicted(self, name: str, worker: str, why: str) -> None:
        cluster = self.world.cluster_of(worker)
        window = self.world.sites[cluster].window
        if self.world.is_in_maintenance(cluster) and window and window[1]:
            return  # by force
        if self.world.sites[cluster].down:
            self.kueue_lost.add(name)
        elif name not in self.kueue_lost:
            self.found("killed", f"{name} was taken from {cluster}, where it ran: {why}")

    def _decided(self, placement: str, edited: bool) -> None:
        now, selected = self.world.now, frozenset(self.world.authorised(placement))
        lost = self._lost_together(placement, selected, edited)
        until = self.held.setdefault(placement, now + self.world.settings.mass_loss_grace) if lost else now
        if not lost:
            self.held.pop(placement, None)
        for cluster in CLUSTERS:
            key = placement, cluster
            if cluster in selected:
                self.left.pop(key, None)
                self.empty.pop(key, None)
            elif cluster in lost:
                self.left[key] = until
            elif self.left.get(key, inf) > now:
                self.left[key] = now

    def _lost_together(self, placement: str, selected: frozenset[str], edited: bool) -> frozenset[str]:
        """Return the clusters that a Placement has lost since the first loss, if they are too many."""
        settings, now = self.world.settings, self.world.now
        before = self.selected.get(placement, selected)
        first, counted = self.losses.get(placement, (now, before))
        is_over = now - first >= settings.mass_loss_grace and placement not in self.held
        if is_over or len(counted - selected) <= len(selected - counted):
            first, counted = now, before
        counted = selected if edited else counted
        self.selected[placement], self.losses[placement] = selected, (first, counted)
        lost, net = counted - selected, len(counted - selected) - len(selected - counted)
        is_share = len(counted) >= FEW and net > len(counted) * PlacementPolicy().loss_share
        return lost if net > 0 and (is_share or net == len(counted)) else frozenset()

    def _started(self, name: str, worker: str) -> None:
        cluster = self.world.cluster_of(worker)
        running = self.world.kueue.running(name) | {cluster}  # it is called just before the Job runs
        if len(running) > 1 and name not in self.kueue_lost and not self._is_given_up(running):
            self.found("twice", f"{name} runs on {' and '.join(sorted(running))}")
        placement = self.world.jobs[name].placement
        left = self.left.get((placement, cluster))
        # With the gate, Kueue sends jobs to every listed cluster (docs/draining.md, "What each mode shows").
        if left is None or not self.world.settings.dispatcher or self.is_fresh(cluster, LEAVES_SECONDS):
            return
        if (late := self.world.now - left) > LEAVES_SECONDS:
            message = f"{name} starts on {cluster}, {late / 60:.1f} min after {placement} deselected it"
            self.found("leaving", message)

    def _is_given_up(self, clusters: Collection[str]) -> bool:
        """Whether Kueue has given one of the clusters up."""
        return any(self.world.sites[cluster].down for cluster in clusters)

    def is_fresh(self, cluster: str, seconds: float) -> bool:
        """Whether the cluster has just come back, or is away, or the controller has just begun."""
        world = self.world
        site, since = world.sites[cluster], world.now - world.controller_began
        return (
            bool(site.down)
            or world.now - site.down_until < BACK_SECONDS + seconds
            or since < BACK_SECONDS + seconds
        )

    # -- every second

    def _second(self) -> None:
        self.world.kueue.later(1.0, self._second)
        if self.changed:
            self.changed = False
            self._look()
        self._judge()

    def _look(self) -> None:
        """Take in who waits beside room for it, who is gone, and which leaving clusters are empty."""
        now = self.world.now
        room = {cluster: self.world.room(cluster) for cluster in CLUSTERS}
        for name, seen in self.jobs.items():
            placed = of.cluster_of(seen.raw)
            waits = not placed and of.is_condition_true(seen.raw, of.QUOTA_RESERVED)
            if waits and name in self.kueue_lost and self.world.kueue.running(name):
                waits = False  # Kueue has given it up, and it runs on: Kueue finds it when it looks again
            if waits and self._idle(name, room):
                seen.idle_since = now if seen.idle_since is None else seen.idle_since
            else:
                seen.idle_since = None
            if placed and self._is_gone(seen, name, self.world.cluster_of(placed)):
                seen.gone_since = now if seen.gone_since is None else seen.gone_since
            else:
                seen.gone_since = None
        self.looks += 1
        self.running = {
            (self.world.jobs[name].placement, self.world.cluster_of(where))
            for name, seen in self.jobs.items()
            if (where := of.cluster_of(seen.raw))
        }
        self.nominated = {}
        for name, seen in self.jobs.items():
            for worker in of.nominated_of(seen.raw):
                key = self.world.jobs[name].placement, self.world.cluster_of(worker)
                self.nominated.setdefault(key, []).append(name)
        for key in self.left:
            if key in self.running or not self.world.is_listed(*key):
                self.empty.pop(key, None)
            else:
                self.empty.setdefault(key, now)

    def _idle(self, name: str, room: dict[str, int]) -> list[str]:
        """Return the clusters that its Placement selects, that it fits, that answer, and have room for it."""
        job, world = self.world.jobs[name], self.world
        return [
            cluster
            for cluster in world.authorised(job.placement)
            if not (world.settings.dispatcher and world.is_too_long(job, cluster))
            and room[cluster] >= job.gpus
            and world.is_usable(job.placement, cluster)
            and world.serves(cluster, job)
            and not (world.scored and world.scored.comes_last(job, cluster))
            and not self._is_quarantined(job.placement, cluster)
            and (not (job.pool and world.settings.dispatcher) or world.sites[cluster].pool == job.pool)
        ]

    def _is_quarantined(self, placement: str, cluster: str) -> bool:
        """Whether the condition says that nobody may try it yet, as jobs failed there that fail anywhere."""
        conditions, scored = self.conditions, self.world.scored
        if conditions is None or scored is None or cluster in scored.recovered:
            return False
        quarantined = conditions.quarantined.get((placement, cluster))
        return quarantined is not None and self.world.now < quarantined.retry_at + ROUND_SECONDS

    def _is_gone(self, seen: Seen, name: str, cluster: str) -> bool:
        worker = self.world.kueue.workers[cluster]
        if not worker.reachable or name in worker.jobs or name in self.kueue_lost:
            return False
        return not seen.hidden & self.world.kueue.running(name)

    def _judge(self) -> None:
        world, now = self.world, self.world.now
        began = world.controller_began if world.controller.metrics else now
        bound = self.waits_bound + SLACK_SECONDS
        for name, seen in self.jobs.items():
            if seen.idle_since is not None and now - max(seen.idle_since, began + BACK_SECONDS) > bound:
                self._waits(name, seen)
            if seen.gone_since is not None and now - seen.gone_since > LOST_SECONDS:
                where = of.cluster_of(seen.raw)
                self.found("lost", f"{name} is placed on {where} and does not run there")
        bound, is_gate = self.empty_bound, not world.settings.dispatcher
        for key, since in self.empty.items():
            seconds = now - max(since, self.left[key], began + BACK_SECONDS)
            if seconds > bound and (is_gate or key in self.nominated):
                self._judge_empty(key, seconds)

    @property
    def waits_bound(self) -> float:
        """How long a job may wait beside room: a round, or until the gate opens."""
        settings = self.world.settings
        if settings.dispatcher:
            return ROUND_SECONDS
        return settings.waiting_grace + GATE_CLOSED_MAX_SECONDS

    def _waits(self, name: str, seen: Seen) -> None:
        if not self.world.settings.dispatcher and self._may_run_elsewhere(seen):
            return
        job, room = (
            self.world.jobs[name],
            {cluster: self.world.room(cluster) for cluster in CLUSTERS},
        )
        idle = self._idle(name, room)
        beside = ", ".join(f"{one} with {room[one]} free" for one in idle)
        waits = (self.world.now - (seen.idle_since or 0.0)) / 60
        on = ", ".join(of.nominated_of(seen.raw)) or "none"
        states = "; ".join(
            f"{one['name']} {one['state']} {one.get('message', '')}" for one in of.checks_of(seen.raw)
        )
        message = f"{name} ({job.gpus} GPUs) has waited for {waits:.1f} min beside {beside}"
        recovered = self.world.scored.recovered.keys() if self.world.scored else ()
        rule = "returns" if set(idle).issubset(recovered) else "waits"
        self.found(rule, f"{message}; nominated to {on}; {states}")

    def _may_run_elsewhere(self, seen: Seen) -> bool:
        """Whether it was sent back from a cluster that does not answer, and may have left a copy there."""
        message = of.condition_field(seen.raw, of.EVICTED)
        return any(site.down and cluster in message for cluster, site in self.world.sites.items())

    def _judge_empty(self, key: tuple[str, str], seconds: float) -> None:
        placement, cluster = key
        if self.is_fresh(cluster, self.empty_bound):
            return
        if self.kueue_lost & self.world.kueue.workers[cluster].copies.keys():
            return  # Kueue has given these jobs up, and has not taken their copies away yet
        if not self.world.settings.dispatcher:
            message = f"{placement} lists {cluster}, where nothing has run for {seconds / 60:.1f} min"
            self.found("empties", message)
            return
        message = (
            f"{', '.join(self.nominated[key])} still nominated to {cluster}, which {placement} deselected"
        )
        self.found("empties", f"{message}, {seconds / 60:.1f} min after its last job")

    @property
    def empty_bound(self) -> float:
        """How long a cluster that left may be listed (with the dispatcher: get jobs) after its last job."""
        settings = self.world.settings
        if settings.dispatcher:
            return LEAVES_SECONDS
        closed = settings.waiting_grace + GATE_CLOSED_MAX_SECONDS
        return settings.settle * SETTLES_FACTOR + 2 * (closed + GATE_CLOSED_MAX_SECONDS) + SLACK_SECONDS

    # -- every hour

    def _hour(self) -> None:
        self.world.kueue.later(HOUR, self._hour)
        reconciles = Counter(self.world.controller.reconciles)
        writes = Counter(self.world.hub.writes)
        before, written = self._last_hour
        self._last_hour = reconciles, writes
        for key, number in (reconciles - before).items():
            if number > RECONCILES_PER_HOUR:
                self.found("reconciles", f"{key.kind} {key.name} was reconciled {number} times in an hour")
        # Scores are renewed before they expire (docs/rebalancing.md); capacity has a limit of its own.
        new = writes - written
        number = new.total() - new[PLACEMENT_SCORE] - new[CONFIG_MAP]
        most = WRITES_PER_HOUR + WRITES_PER_ITEM * (self.happened + len(self.jobs))
        self.happened = 0
        if number > most:
            self.found("writes", f"{number} writes in an hour: {dict(new)}")
        if new[CONFIG_MAP] > CAPACITY_WRITES_PER_HOUR:
            self.found("writes", f"the capacity was written {new[CONFIG_MAP]} times in an hour")


def _is_connected(worker: Any) -> bool:
    return worker.reachable and worker.connected
