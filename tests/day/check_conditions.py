"""The conditions of the checks, as far as rules go by them: quarantined clusters."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from placement_ac.core.api import constants
from placement_ac.core.api.constants import Kind
from tests.day.trace import PLACEMENTS
from tests.day.world import World
from tests.support.virtual.clock import START
from tests.support.virtual.hub import checks_of

_QUARANTINED: Final = re.compile(
    r"(\S+) \(\d+ of \d+ jobs failed there; one job may try it from (\S+Z)\)"
)  # placement_ac.core.failures.quarantine


@dataclass
class Quarantined:
    """A cluster that a condition calls quarantined. Times are seconds of the day."""

    since: float
    """Since when nobody may try it until then: jobs that waited there, or tried it, are taken back."""
    retry_at: float
    """When one job may try it."""


class CheckConditions:
    """The conditions as they are now, by Placement."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.quarantined: dict[tuple[str, str], Quarantined] = {}
        """Placement and cluster → its quarantine."""
        self._placements = {checks_of(name)[1]: name for name in PLACEMENTS}
        world.hub.listeners.append(self._witness)

    def _witness(self, what: str, kind: Kind, raw: Any) -> None:
        placement = (
            self._placements.get(raw["metadata"]["name"]) if kind == constants.ADMISSION_CHECK else None
        )
        if placement is None or what != "put":
            return
        (message,) = (one["message"] for one in raw["status"]["conditions"]) if "status" in raw else ("",)
        now = self._world.now
        found = {cluster: _seconds(at) for cluster, at in _QUARANTINED.findall(message)}
        for key in [key for key in self.quarantined if key[0] == placement and key[1] not in found]:
            del self.quarantined[key]
        for cluster, retry_at in found.items():
            before = self.quarantined.get((placement, cluster))
            if before is None or before.retry_at != retry_at:
                self.quarantined[placement, cluster] = Quarantined(now, retry_at)


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp() - START
