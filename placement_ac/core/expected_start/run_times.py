"""
How long jobs run, by those that have run: a distribution that also counts the jobs that still run.

Pure. The finished jobs alone would be too short: the long ones of the same time still run. The estimator of
Kaplan and Meier takes them in by their age. Beyond the longest age, an exponential tail has the mean of all;
one job more than there are counts as longer than all others, so that few jobs promise no longest one.
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
            if any(same):
                left *= 1 - sum(same) / at_risk
                self._times.append(seconds)
                self._gone.append(-left)
            at_risk -= len(same)

    def survival(self, seconds: float) -> float:
        """Return the share of jobs that run for longer than `seconds`."""
        at = bisect_right(self._times, seconds)
        left = -self._gone[at - 1] if at else 1.0
        return left * math.exp(-max(seconds - self._longest, 0.0) / self._mean)

    def remaining(self, share: float, age: float = 0.0) -> float:
        """Return how long a job of that age goes on: `share` of such jobs, 0 to 1, end sooner."""
        wanted = self.survival(age) * (1.0 - share)
        at = bisect_left(self._gone, -wanted)
        if at < len(self._times):
            return max(self._times[at] - age, 0.0)
        beyond = -self._mean * math.log(max(wanted / -self._gone[-1], 1e-9))
        return max(self._longest + beyond - age, 0.0)
