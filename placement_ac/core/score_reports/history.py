"""
The scores of the last readings of each cluster: between which values each has been for some time.

No clock: times are arguments, seconds of a monotonic clock. It is lost with a restart: a difference must
then last again before it counts.
"""

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple


class Range(NamedTuple):
    """The least and the largest of the values in some time."""

    least: int
    largest: int


class ScoreHistory:
    """The readings of each cluster within `hold` seconds, and the last one before."""

    def __init__(self, hold: float) -> None:
        self._hold = hold
        self._readings: dict[str, deque[tuple[float, Mapping[str, int]]]] = {}

    def add(self, cluster: str, at: float, values: Mapping[str, int]) -> None:
        readings = self._readings.setdefault(cluster, deque())
        readings.append((at, values))
        while len(readings) > 1 and at - readings[1][0] >= self._hold:
            readings.popleft()

    def forget(self, cluster: str) -> None:
        """Forget a cluster whose worker could not be read."""
        self._readings.pop(cluster, None)

    def clear(self) -> None:
        """Forget everything, as after a restart."""
        self._readings.clear()

    def last(self, cluster: str) -> Mapping[str, int]:
        """Return the scores of the last reading; empty: there is none."""
        return self._readings[cluster][-1][1] if cluster in self._readings else {}

    def last_at(self, cluster: str) -> float | None:
        """Return when the last reading was; None: there is none."""
        return self._readings[cluster][-1][0] if cluster in self._readings else None

    def range(self, cluster: str, score: str) -> Range | None:
        """Return between which values a score has been; None: it has not been known for long enough."""
        readings = self._readings.get(cluster)
        if not readings or readings[-1][0] - readings[0][0] < self._hold:
            return None
        values = [scores[score] for _, scores in readings if score in scores]
        return Range(min(values), max(values)) if len(values) == len(readings) else None
