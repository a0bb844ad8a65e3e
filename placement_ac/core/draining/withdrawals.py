"""
Withdraw jobs that only wait on a cluster which stays listed, and may get others (our dispatcher).

Pure. The cluster is asked before, and again 2 s after, as one that leaves: see `rules.withdraw`.
"""

from collections.abc import Collection
from typing import NamedTuple

from placement_ac.core.api.objects import Workload
from placement_ac.core.draining.leaving import LeavingCluster
from placement_ac.core.draining.rules import withdraw
from placement_ac.core.draining.state import DrainState, DrainStep
from placement_ac.core.inputs.state import Since
from placement_ac.core.selection.selection import soonest


class Withdrawn(NamedTuple):
    """The jobs that are withdrawn from a cluster for one reason."""

    jobs: tuple[Workload, ...] = ()
    look_again: float | None = None
    """Seconds until there may be others, though nothing else happens."""


class Withdrawals(NamedTuple):
    """The steps of the clusters from whose nominations some jobs are taken."""

    steps: tuple[DrainStep, ...] = ()

    @property
    def ask_for_copies(self) -> tuple[str, ...]:
        """The MultiKueueClusters whose clusters are to be asked."""
        return tuple([step.name for step in self.steps if step.ask_for_copies])

    @property
    def lasting(self) -> frozenset[Since]:
        return frozenset[Since]().union(*[step.lasting for step in self.steps])

    @property
    def requeue_after(self) -> float | None:
        return soonest(step.requeue_after for step in self.steps)


def withdrawal(
    it: LeavingCluster, waiting: Collection[Workload], requeue_after: float | None = None
) -> DrainStep:
    """Return what to do about these jobs, which wait there; what has quota there is nominated again."""
    step = DrainStep(it.cluster, it.name, DrainState.RUNNING, requeue_after=requeue_after)
    return withdraw(it, step, waiting)
