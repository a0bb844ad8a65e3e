"""
Rules about moves and scores: their budgets and promises.

They look at the jobs, and at what is written on the hub, not at how the controller decides.
"""

from collections import defaultdict
from typing import Any, Final

from placement_ac.core.api import decode
from placement_ac.core.api.constants import PLACEMENT_SCORE, SCORES_NAME, WORKLOAD, Kind
from placement_lab.standins.multikueue import objects as of
from tests.day.check_conditions import CheckConditions
from tests.day.rules import Rules, is_move
from tests.day.trace import HOUR
from tests.support.virtual.clock import START
from tests.support.virtual.hub import checks_of

RACE_SECONDS: Final = 2.0
"""A write that was decided on at the end of an interval is carried out a little later than its neighbour."""
HELD_SECONDS: Final = 5.0
"""After the condition says that the list is held: a move that was decided on before is carried out."""


class MovesRules:
    """Watches the moves and the scores; reports to `rules`."""

    def __init__(self, rules: Rules, conditions: CheckConditions) -> None:
        self._rules, self._world, self._conditions = rules, rules.world, conditions
        self._moves: dict[str, list[float]] = defaultdict(list)
        """Placement → when its jobs were moved."""
        self._moved: dict[str, float] = {}
        """Job → when it was moved last."""
        self._evicted: set[str] = set()
        self._written: dict[str, float] = {}
        """Cluster → when its scores were written last."""
        self._scores: dict[str, Any] = {}
        self._world.hub.listeners.append(self._witness)

    def _witness(self, what: str, kind: Kind, raw: Any) -> None:
        if kind == WORKLOAD and what == "put":
            self._workload(raw)
        elif kind == PLACEMENT_SCORE and what == "put" and raw["metadata"]["name"] == SCORES_NAME:
            self._score(raw)

    # -- moves

    def _workload(self, raw: Any) -> None:
        name = raw["metadata"]["name"].removeprefix("job-")
        if not of.is_condition_true(raw, of.EVICTED):
            self._evicted.discard(name)
        elif name not in self._evicted:
            self._evicted.add(name)
            if is_move(of.condition_field(raw, of.EVICTED)):
                self._is_moved(name)

    def _is_moved(self, name: str) -> None:
        settings, now, job = self._world.settings, self._world.now, self._world.jobs[name]
        if not job.movable:
            self._rules.found("movable", f"{name} was moved, and does not say that it may be")
        if (last := self._moved.get(name)) is not None and now - last < settings.move_cooldown:
            self._rules.found("cooldown", f"{name} was moved twice in {(now - last) / 60:.1f} min")
        self._moved[name] = now
        moves = [at for at in self._moves[job.placement] if now - at < HOUR]
        self._moves[job.placement] = [*moves, now]
        if len(moves) >= settings.moves_per_hour:
            message = f"{len(moves) + 1} jobs of {job.placement} were moved in an hour"
            self._rules.found(
                "budget", f"{message}, of {settings.moves_per_hour}; check {checks_of(job.placement)[1]}"
            )
        since = self._conditions.held.get(job.placement)
        if since is not None and now - since > HELD_SECONDS:
            message = f"{name} was moved, and the list of {job.placement} has been held"
            self._rules.found("held", f"{message} for {now - since:.0f} s")

    # -- scores

    def _score(self, raw: Any) -> None:
        cluster, now, settings = raw["metadata"]["namespace"], self._world.now, self._world.settings
        status, before = raw.get("status") or {}, self._scores.get(cluster)
        if not status or status == before:
            return
        self._scores[cluster] = status
        scores = decode.scores(raw)
        left = (scores.valid_until.timestamp() - START - now) if scores.valid_until else 0.0
        wrong = {name: value for name, value in scores.values.items() if not -100 <= value <= 100}
        if wrong or not 0 < left <= 3 * settings.score_interval + RACE_SECONDS:
            self._rules.found("scores", f"{cluster} has {wrong or scores.values}, valid for {left:.0f} s")
        last = self._written.get(cluster)
        is_same = before is not None and before["scores"] == status["scores"]
        # Values that stay are written again when one of the three intervals of their validity is left.
        least = settings.score_interval * (2 if is_same else 1) - RACE_SECONDS
        if last is not None and now - last < least:
            same = " with the same values" if is_same else ""
            self._rules.found(
                "scores", f"the scores of {cluster} were written twice{same} in {now - last:.1f} s"
            )
        self._written[cluster] = now
        old = {entry["name"]: entry["value"] for entry in (before or {}).get("scores", ())}
        is_fresh = last is not None and now - last < 3 * settings.score_interval
        small = [
            name
            for name, value in scores.values.items()
            if is_fresh and name in old and 0 < abs(value - old[name]) < settings.score_step
        ]
        if small:
            self._rules.found("scores", f"{', '.join(small)} of {cluster} changed by less than the step")
