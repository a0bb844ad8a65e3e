"""Steps of several clusters together: whom they ask, what lasts, and when to look again. Pure."""

from dataclasses import dataclass

from placement_ac.core.draining.state import DrainStep
from placement_ac.core.inputs.state import Since
from placement_ac.core.selection.selection import soonest


@dataclass(frozen=True, slots=True)
class DrainSteps:
    """The steps of some clusters."""

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
        """Seconds until the first of them is to be looked at again."""
        return soonest(step.requeue_after for step in self.steps)
