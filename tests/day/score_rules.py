"""
Rules about scores: how often they are written, and which.

They look at what is written on the hub, not at how the controller decides.
"""

from typing import Any, Final

from placement_ac.core.api import decode
from placement_ac.core.api.constants import PLACEMENT_SCORE, SCORE_INTERVAL_SECONDS, SCORES_NAME, Kind
from placement_ac.core.inputs.score_reports import ScorePolicy
from tests.day.rules import Rules
from tests.support.virtual.clock import START

RACE_SECONDS: Final = 2.0
"""A write that was decided on at the end of an interval is carried out a little later than its neighbour."""


class ScoreRules:
    """Watches the scores; reports to `rules`."""

    def __init__(self, rules: Rules) -> None:
        self._rules, self._world = rules, rules.world
        self._written: dict[str, float] = {}
        """Cluster → when its scores were written last."""
        self._scores: dict[str, Any] = {}
        self._world.hub.listeners.append(self._witness)

    def _witness(self, what: str, kind: Kind, raw: Any) -> None:
        if kind == PLACEMENT_SCORE and what == "put" and raw["metadata"]["name"] == SCORES_NAME:
            self._score(raw)

    def _score(self, raw: Any) -> None:
        cluster, now = raw["metadata"]["namespace"], self._world.now
        status, before = raw.get("status") or {}, self._scores.get(cluster)
        if not status or status == before:
            return
        self._scores[cluster] = status
        scores = decode.scores(raw)
        left = (scores.valid_until.timestamp() - START - now) if scores.valid_until else 0.0
        wrong = {name: value for name, value in scores.values.items() if not -100 <= value <= 100}
        if wrong or not 0 < left <= 3 * SCORE_INTERVAL_SECONDS + RACE_SECONDS:
            self._rules.found("scores", f"{cluster} has {wrong or scores.values}, valid for {left:.0f} s")
        last = self._written.get(cluster)
        is_same = before is not None and before["scores"] == status["scores"]
        # Values that stay are written again when one of the three intervals of their validity is left.
        least = SCORE_INTERVAL_SECONDS * (2 if is_same else 1) - RACE_SECONDS
        if last is not None and now - last < least:
            same = " with the same values" if is_same else ""
            self._rules.found(
                "scores", f"the scores of {cluster} were written twice{same} in {now - last:.1f} s"
            )
        self._written[cluster] = now
        old = {entry["name"]: entry["value"] for entry in (before or {}).get("scores", ())}
        is_fresh = last is not None and now - last < 3 * SCORE_INTERVAL_SECONDS
        small = [
            name
            for name, value in scores.values.items()
            if is_fresh and name in old and 0 < abs(value - old[name]) < ScorePolicy().step
        ]
        if small:
            self._rules.found("scores", f"{', '.join(small)} of {cluster} changed by less than the step")
