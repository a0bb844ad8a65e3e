"""The error of a caller who has no way to a cluster: each way that was tried, and what would open it."""

from collections.abc import Sequence
from dataclasses import dataclass

from placement_ac.core.api.errors import PlacementAcError


@dataclass(frozen=True, slots=True)
class Closed:
    """A way that does not lead to the cluster. None of its texts quotes a credential."""

    way: str
    fix: str
    """The thing to do, as a command or a phrase in the imperative."""
    why: str

    def __str__(self) -> str:
        return f"{self.way}: {self.fix}: {self.why}"


class NoAccess(PlacementAcError):
    """There is no way to the cluster as the caller. `tried`: each way, in the order in which it was tried."""

    def __init__(self, cluster: str, tried: Sequence[Closed]) -> None:
        self.cluster = cluster
        self.tried = tuple(tried)
        lines = [f"  {number}. {closed}" for number, closed in enumerate(tried, 1)]
        super().__init__(
            "\n".join((f"open one of these ways to cluster {cluster}: none leads there as you", *lines))
        )
