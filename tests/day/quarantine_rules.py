"""
Rules about clusters that fail every job: how many they get, that a quarantine holds, and that it ends.

`black-hole` counts the starts on a broken cluster of jobs that others fit, whatever the controller says. The
other rules go by the conditions of the checks: who is quarantined there gets no such job but the one that
tries it.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from placement_ac.core.failures.memory import KEPT_FOR
from tests.day.check_conditions import CheckConditions, Quarantined
from tests.day.rules import LEAVES_SECONDS, Rules
from tests.day.score_rules import RACE_SECONDS
from tests.day.scores import ScoredFleet
from tests.day.trace import PLACEMENTS

FAST_FAILURES: Final = 24
"""Jobs that a broken cluster gets before it is quarantined: its GPUs fill before the first have failed."""
TRY_SECONDS: Final = 600.0
"""After that, one job may try it; twice as long after each that fails."""
FORGOTTEN_SECONDS: Final = KEPT_FOR.total_seconds() + 120.0
"""docs/rebalancing.md: so long after its last end a cluster is forgotten, and with it the quarantine."""
LOOK_SECONDS: Final = 60.0
STEADY_SECONDS: Final = 2 * LEAVES_SECONDS
"""How long another cluster must have been selected and well to be one that fits."""


class QuarantineRules:
    """Watches the starts and ends on broken clusters, and on quarantined ones; reports to `rules`."""

    def __init__(self, rules: Rules, fleet: ScoredFleet, conditions: CheckConditions) -> None:
        self._rules, self._world, self._fleet, self._conditions = rules, rules.world, fleet, conditions
        self._starts: Counter[str] = Counter()
        """Broken cluster → how many jobs have started there."""
        self._broken_since: dict[str, float] = {}
        self._lives = 0.0
        self._selected: dict[tuple[str, str], float] = {}
        """Placement and cluster that it selects → since when."""
        self._last: dict[str, float] = {}
        """Cluster → when a job has ended or started there last."""
        self._tries: dict[tuple[str, str], str] = {}
        """Placement and quarantined cluster → the job that tries it."""
        for placement in PLACEMENTS:
            self._decided(placement)
        self._world.kueue.on_start.append(self._started)
        self._world.on_decision.append(lambda placement, _: self._decided(placement))
        self._world.kueue.later(LOOK_SECONDS, self._look)

    def _decided(self, placement: str) -> None:
        selected = set(self._world.authorised(placement))
        for key in [key for key in self._selected if key[0] == placement and key[1] not in selected]:
            del self._selected[key]
        for cluster in selected:
            self._selected.setdefault((placement, cluster), self._world.now)

    def _started(self, name: str, worker: str) -> None:
        cluster = self._world.cluster_of(worker)
        self._last[cluster] = self._world.now
        key = self._world.jobs[name].placement, cluster
        if not (others := self._others_that_fit(name, *key)):
            return  # the last one that fits is never refused
        self._count(cluster)
        if quarantined := self._conditions.quarantined.get(key):
            self._judge(name, key, quarantined, others)

    def _count(self, cluster: str) -> None:
        now = self._world.now
        if cluster not in self._fleet.broken:
            self._starts.pop(cluster, None)
            self._broken_since.pop(cluster, None)
            return
        if self._world.controller_began > self._lives:  # it knows the ends of those that are still on the hub
            self._lives = self._world.controller_began
            self._starts.clear()
            self._broken_since.clear()
        since = self._broken_since.setdefault(cluster, now)
        self._starts[cluster] += 1
        if self._starts[cluster] > FAST_FAILURES + (now - since) / TRY_SECONDS:
            message = (
                f"{self._starts[cluster]} jobs have started on {cluster} in {(now - since) / 60:.1f} min"
            )
            self._rules.found("black-hole", f"{message}, and each failed")

    def _judge(
        self, name: str, key: tuple[str, str], quarantined: Quarantined, others: Sequence[str]
    ) -> None:
        """Judge a job that starts on a quarantined cluster, and that others fit."""
        now, cluster = self._world.now, key[1]
        for_so_long = now - quarantined.since
        if for_so_long < LEAVES_SECONDS or self._rules.is_fresh(cluster, LEAVES_SECONDS):
            return
        tries, tried_by = now > quarantined.retry_at - RACE_SECONDS, self._tries.get(key, "")
        is_tried = tried_by != name and cluster in self._world.kueue.running(tried_by)
        if tries and not is_tried:
            self._tries[key] = name
            return
        why = f"{tried_by} tries it" if tries else "nobody may try it yet"
        message = f"{name} starts on {cluster}, quarantined for {for_so_long / 60:.1f} min ({why})"
        self._rules.found("refused", f"{message}; {', '.join(others)} fit")

    def _others_that_fit(self, name: str, placement: str, cluster: str) -> list[str]:
        world, job = self._world, self._world.jobs[name]
        return [
            other
            for other in world.authorised(placement)
            if other != cluster
            and (placement, other) not in self._conditions.quarantined
            and world.now - self._selected.get((placement, other), world.now) > STEADY_SECONDS
            and not self._rules.is_fresh(other, STEADY_SECONDS)
            and world.is_usable(placement, other)
            and not world.sites[other].on_hold
            and not world.is_too_long(job, other)
            and job.pool in ("", world.sites[other].pool)
            and world.kueue.workers[other].slots >= job.gpus
        ]

    def _look(self) -> None:
        world = self._world
        world.kueue.later(LOOK_SECONDS, self._look)
        for cluster in world.sites:
            if any(cluster in world.kueue.running(name) for name in world.kueue.workers[cluster].jobs):
                self._last[cluster] = world.now
        if world.controller.metrics is None:
            return
        for (placement, cluster), quarantined in self._conditions.quarantined.items():
            idle = world.now - max(self._last.get(cluster, 0.0), quarantined.since)
            if cluster not in self._fleet.broken and idle > FORGOTTEN_SECONDS:
                message = (
                    f"{placement} has {cluster} in quarantine, {idle / 3600:.1f} h after the last job there"
                )
                self._rules.found("forgotten", message)
