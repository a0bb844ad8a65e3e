"""
Whether expected starts held: the first one that was given for each job, compared with when it started.

Pure. It is kept in memory alone, of at most FORECASTS_KEPT jobs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, Literal, NamedTuple

from placement_ac.core.expected_start.model import ExpectedStart, Unknown

FORECASTS_KEPT: Final = 10_000
Result = Literal["held", "early", "late", "unknown"]
RESULTS: Final[tuple[Result, ...]] = ("held", "early", "late", "unknown")


class Forecast(NamedTuple):
    """The first forecast of a job, and when it was given."""

    given: datetime
    expected: ExpectedStart


def result_of(forecast: Forecast, began: datetime) -> Result:
    """Return whether a job has started as was expected: `early` before p10, `late` after p90."""
    if isinstance(forecast.expected, Unknown):
        return "unknown"
    waited = (began - forecast.given).total_seconds()
    if waited > forecast.expected.p90_seconds:
        return "late"
    return "early" if waited < forecast.expected.p10_seconds else "held"


class Forecasts:
    """The first forecast of each job that waits."""

    def __init__(self) -> None:
        self._given: dict[str, Forecast] = {}

    def give(self, expected: Mapping[str, ExpectedStart], now: datetime) -> None:
        """Take in what is expected now; of a job that has a forecast, the first one counts."""
        for uid, start in expected.items():
            if uid in self._given or len(self._given) < FORECASTS_KEPT:
                self._given.setdefault(uid, Forecast(now, start))

    @property
    def expected(self) -> Mapping[str, ExpectedStart]:
        """Uid → the first forecast of a job that has not started."""
        return {uid: one.expected for uid, one in self._given.items()}

    @property
    def are_open(self) -> bool:
        """Whether there are any of jobs that have not started."""
        return bool(self._given)

    def known(self, uid: str) -> bool:
        """Whether something was said of a job."""
        return uid in self._given

    def take_results(self, waiting: Iterable[str], began: Mapping[str, datetime]) -> Counter[Result]:
        """Return how the forecasts of jobs held that have started, and forget these, and those that are gone.

        `waiting`: the uids of those that still wait; `began`: uid → when a job started.
        """
        found = (result_of(one, began[uid]) for uid, one in self._given.items() if uid in began)
        results = Counter(found)
        still = set(waiting)
        self._given = {uid: one for uid, one in self._given.items() if uid in still and uid not in began}
        return results
