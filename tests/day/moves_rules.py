"""
Rules about moves: who is moved, how often, and when nobody is.

They look at the evictions on the hub, not at how the controller counts them.
"""

from collections import defaultdict
from typing import Any, Final

from placement_ac.core.api.constants import WORKLOAD, Kind
from placement_lab.standins.multikueue import objects as of
from tests.day.rules import RACE_SECONDS, Rules, is_move
from tests.day.said import Said
from tests.day.trace import HOUR

HELD_SECONDS: Final = 5.0
"""After the condition says that the list is held: a move that was decided on before is carried out."""


class MovesRules:
    """Watches the moves; reports to `rules`."""

    def __init__(self, rules: Rules, said: Said) -> None:
        self._rules, self._world, self._said = rules, rules.world, said
        self.moves: dict[str, list[float]] = defaultdict(list)
        """Placement → when its jobs were moved."""
        self._moved: dict[str, float] = {}
        """Job → when it was moved last."""
        self._evicted: set[str] = set()
        self._world.hub.listeners.append(self._witness)

    def _witness(self, what: str, kind: Kind, raw: Any) -> None:
        if kind != WORKLOAD or what != "put":
            return
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
        if (last := self._moved.get(name)) is not None and now - last < settings.move_cooldown - RACE_SECONDS:
            self._rules.found("cooldown", f"{name} was moved twice in {(now - last) / 60:.1f} min")
        self._moved[name] = now
        moves = [at for at in self.moves[job.placement] if now - at < HOUR - RACE_SECONDS]
        self.moves[job.placement].append(now)
        if len(moves) >= settings.moves_per_hour:
            message = f"{len(moves) + 1} jobs of {job.placement} were moved in an hour"
            self._rules.found("budget", f"{message}, of {settings.moves_per_hour}")
        since = self._said.held.get(job.placement)
        if since is not None and now - since > HELD_SECONDS:
            message = f"{name} was moved, and the list of {job.placement} has been held"
            self._rules.found("held", f"{message} for {now - since:.0f} s")
