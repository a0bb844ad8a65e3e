"""
A guard around each filter and score: one that fails costs its own answer, and stops nothing else.

Pure. A filter that fails refuses, a score that fails abstains, and the problem is reported.
"""

from collections.abc import Callable
from dataclasses import dataclass

from placement_ac.core.api.errors import error_place
from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.facts import Cluster

Report = Callable[[str], None]
"""Gets what is wrong with a filter or score."""


@dataclass(frozen=True, slots=True)
class GuardedFilter:
    """A filter that may fail."""

    function: Callable[[Workload, Cluster], str | None]
    report: Report

    def refuse(self, job: Workload, cluster: Cluster) -> str | None:
        """Return its reason to refuse the cluster; None: it does not."""
        try:
            return self.function(job, cluster)
        except Exception as error:  # whatever it is, the other jobs and clusters are judged
            self.report(error_place(error))
            return f"could not be judged: {type(error).__name__}"


@dataclass(frozen=True, slots=True)
class GuardedScore:
    """A score that may fail."""

    function: Callable[[Workload, Cluster], float | None]
    report: Report

    def rate(self, job: Workload, cluster: Cluster) -> float | None:
        """Return its points for the cluster, 0 to 100; None: it abstains."""
        try:
            points = self.function(job, cluster)
        except Exception as error:  # the other scores count
            self.report(error_place(error))
            return None
        if points is None or 0 <= points <= 100:
            return points
        self.report(f"it returned {points:g}, not 0 to 100")
        return None
