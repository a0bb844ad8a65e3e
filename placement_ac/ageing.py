"""Tell ahead of time which credentials expire, and when it is to be looked again. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from placement_ac.names import EXPIRES_SOON
from placement_ac.selection import soonest
from placement_ac.snapshot import Notice, Snapshot, WantedCluster
from placement_ac.ways import Source

LAST_SHARE: Final = 0.1
"""Of its life: OCM renews a token when a fifth of it is left, so with a tenth left nobody does."""


@dataclass(frozen=True, slots=True)
class Ageing:
    """The warnings that are due, and the seconds until the next one is or something has expired."""

    notices: tuple[Notice, ...] = ()
    recheck_after: float | None = None


def age(seen: Snapshot, clusters: Iterable[WantedCluster]) -> Ageing:
    """Look at the way into each cluster that is listed."""
    notices, waits = [], []
    for cluster in clusters:
        if cluster.source is None or cluster.source.expires is None:
            continue
        left = (cluster.source.expires - seen.now).total_seconds()
        early = left - _lead(seen, cluster.source)
        waits.append(early if early > 0 else left)
        if early <= 0 < left:
            notices.append(_warning(cluster.cluster, cluster.source))
    return Ageing(tuple(notices), soonest(max(wait, 0.0) for wait in waits))


def _lead(seen: Snapshot, source: Source) -> float:
    """Return how many seconds ahead it is told: as the admin wants, but in the last tenth of its life."""
    wanted = seen.policy.warning
    if source.issued is None or source.expires is None:
        return wanted
    return min(wanted, LAST_SHARE * (source.expires - source.issued).total_seconds())


def _warning(cluster: str, source: Source) -> Notice:
    told = f"the credentials of cluster {cluster} in {source.kind} {source.name} expire"
    return Notice(EXPIRES_SOON, f"{told} at {source.expires:%Y-%m-%dT%H:%M:%SZ}: renew them")
