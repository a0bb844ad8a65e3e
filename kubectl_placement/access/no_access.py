"""The error of a caller without access to a cluster: each method that was tried, and what would fix it."""

from collections.abc import Sequence
from dataclasses import dataclass

from placement_ac.core.api.errors import PlacementAcError


@dataclass(frozen=True, slots=True)
class Closed:
    """An access method that gives the caller no access. None of its texts quotes a credential."""

    method: str
    fix: str
    """The thing to do, as a command or a phrase in the imperative."""
    why: str

    def __str__(self) -> str:
        return f"{self.method}: {self.fix}: {self.why}"


class NoAccess(PlacementAcError):
    """No access method works for the caller. `tried`: each, in the order in which it was tried."""

    def __init__(self, cluster: str, tried: Sequence[Closed]) -> None:
        self.cluster = cluster
        self.tried = tuple(tried)
        lines = [f"  {number}. {closed}" for number, closed in enumerate(tried, 1)]
        super().__init__(
            "\n".join((f"fix one of these access methods to cluster {cluster}: none works for you", *lines))
        )
