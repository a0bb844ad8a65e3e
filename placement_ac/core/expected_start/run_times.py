"""
How long jobs run, by those that have run: a distribution that also counts the jobs that still run.

Pure. The finished jobs alone would be too short: the long ones of the same time still run. The estimator of
Kaplan and Meier takes them in by their age. A new job is as likely to end between two of them as between two
others, or after all of them: there, an exponential tail has the mean of all.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import groupby
from typing import Final

LEAST_SECONDS: Final = 1.0
"""Kueue's times are whole seconds."""


class RunTimes:
    """The distribution of run times. `finished` and `running`: seconds; at least one has finished."""

    def __init__(self, finished: Iterable[float], running: Iterable[float] = ()) -> None:
        ended = [(max(seconds, LEAST_SECONDS), True) for seconds in finished]
        lasting = [(max(seconds, 0.0), False) for seconds in running]
        self.finished = len(ended)
        """How many have finished."""
        every = sorted((*ended, *lasting))
        self._longest = every[-1][0]
        self._mean = sum(seconds for seconds, _ in every) / len(ended)
        self._times: list[float] = []
        self._gone: list[float] = []
        """The share of jobs that run for longer than each of `_times`, negative: so it is sorted."""
        left, at_risk = 1.0, len(every) + 1
        for seconds, group in groupby(every, key=lambda one: one[0]):
            same = [is_end for _, is_end in group]
            if ends := sum(same):
                lost = left * ends / at_risk
                # One of those that end at once may as well end at any time since the one before.
                self._add(seconds, left - lost / ends if self._times else left)
                left -= lost
                self._add(seconds, left)
            at_risk -= len(same)

    def _add(self, seconds: float, left: float) -> None:
        self._times.append(seconds)
        self._gone.append(-left)

    def survival(self, seconds: float) -> float:
        """Return the share of jobs that run for longer than `seconds`."""
        if seconds >= self._longest:
            return -self._gone[-1] * math.exp((self._longest - seconds) / self._mean)
        at = bisect_right(self._times, seconds)
        if at in (0, len(self._times)):
            return -self._gone[at - 1] if at else 1.0
        part = (seconds - self._times[at - 1]) / (self._times[at] - self._times[at - 1])
        return -(self._gone[at - 1] + part * (self._gone[at] - self._gone[at - 1]))

    def remaining(self, share: float, age: float = 0.0) -> float:
        """Return how long a job of that age goes on: `share` of such jobs, 0 to 1, end sooner."""
        left = max(1.0 - share, 1e-9)
        if age >= self._longest:
            return -self._mean * math.log(left)
        wanted = self.survival(age) * left
        at = bisect_left(self._gone, -wanted)
        if at == len(self._times):
            beyond = -self._mean * math.log(wanted / -self._gone[-1])
            return max(self._longest + beyond - age, 0.0)
        if not at or self._gone[at] == self._gone[at - 1]:
            return max(self._times[at] - age, 0.0)
        part = (-wanted - self._gone[at - 1]) / (self._gone[at] - self._gone[at - 1])
        return max(self._times[at - 1] + part * (self._times[at] - self._times[at - 1]) - age, 0.0)
