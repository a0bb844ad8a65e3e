"""
Rules about the scores that the controller reports: how often, how long valid, and by how much they change.

They look at the AddOnPlacementScores on the hub.
"""

from typing import Any

from placement_ac.core.api import decode
from placement_ac.core.api.constants import PLACEMENT_SCORE, SCORES_NAME, Kind
from tests.day.rules import RACE_SECONDS, Rules
from tests.support.virtual.clock import START

LEAST, MOST = -100, 100


class ScoreRules:
    """Watches each write of a score; reports to `rules`."""

    def __init__(self, rules: Rules) -> None:
        self._rules, self._world = rules, rules.world
        self._scores: dict[str, dict[str, int]] = {}
        """Cluster → its scores as they were written last."""
        self._at: dict[str, float] = {}
        """Cluster → when they were written."""
        self._world.hub.listeners.append(self._witness)

    def _witness(self, what: str, kind: Kind, raw: Any) -> None:
        is_ours = kind == PLACEMENT_SCORE and raw["metadata"]["name"] == SCORES_NAME
        if is_ours and what == "put" and raw.get("status"):
            self._written(raw["metadata"]["namespace"], raw)

    def _written(self, cluster: str, raw: Any) -> None:
        now, settings = self._world.now, self._world.settings
        scores, last = decode.scores(raw), self._at.get(cluster)
        left = (scores.valid_until.timestamp() - START - now) if scores.valid_until else 0.0
        if wrong := {name: value for name, value in scores.values.items() if not LEAST <= value <= MOST}:
            self._rules.found("scores", f"{cluster} has the scores {wrong}")
        if not 0 < left <= 3 * settings.score_interval + RACE_SECONDS:
            self._rules.found("scores", f"the scores of {cluster} are valid for {left:.0f} s")
        if last is not None and now - last < settings.score_interval - RACE_SECONDS:
            self._rules.found("scores", f"the scores of {cluster} were written twice in {now - last:.1f} s")
        if last is not None and now - last < 3 * settings.score_interval:  # else they have expired
            self._judge_steps(cluster, scores.values)
        self._at[cluster], self._scores[cluster] = now, dict(scores.values)

    def _judge_steps(self, cluster: str, values: Any) -> None:
        before, step = self._scores[cluster], self._world.settings.score_step
        small = {
            name: (before[name], value)
            for name, value in values.items()
            if name in before and 0 < abs(value - before[name]) < step
        }
        if small:
            self._rules.found("scores", f"{cluster}: {small} changed by less than {step}")
