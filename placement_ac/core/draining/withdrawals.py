"""
Withdraw jobs that only wait on a cluster which stays listed, and may get others (our dispatcher).

Pure. The cluster is asked before, and again 2 s after, as one that leaves: see `rules.withdraw`.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from placement_ac.core.api.objects import Workload
from placement_ac.core.draining.leaving import LeavingCluster
from placement_ac.core.draining.rules import withdraw
from placement_ac.core.draining.state import DrainState, DrainStep
from placement_ac.core.draining.steps import DrainSteps


class Withdrawn(NamedTuple):
    """The jobs that are withdrawn from a cluster for one reason."""

    jobs: tuple[Workload, ...] = ()
    look_again: float | None = None
    """Seconds until there may be others, though nothing else happens."""


@dataclass(frozen=True, slots=True)
class Withdrawals(DrainSteps):
    """The steps of the clusters from whose nominations some jobs are taken."""


def withdrawal(
    it: LeavingCluster, waiting: Collection[Workload], requeue_after: float | None = None
) -> DrainStep:
    """Return what to do about these jobs, which wait there; what has quota there is nominated again."""
    step = DrainStep(it.cluster, it.name, DrainState.RUNNING, requeue_after=requeue_after)
    return withdraw(it, step, waiting)
