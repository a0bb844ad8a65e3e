"""Tell ahead of time which credentials expire, and when it is to be looked again. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from placement_ac.core.api.constants import EXPIRES_SOON
from placement_ac.core.inputs.state import EventIntent, Snapshot, WantedCluster
from placement_ac.core.kubeconfig.source import CredentialSource

ALWAYS: Final = datetime.min.replace(tzinfo=UTC)
LAST_SHARE: Final = 0.1
"""Of its life: OCM renews a token when a fifth of it is left, so with a tenth left nobody does."""


@dataclass(frozen=True, slots=True)
class ExpiryWarnings:
    """The warnings that are due, and the seconds until the next one is or something has expired."""

    events: tuple[EventIntent, ...] = ()
    recheck_after: float | None = None


def expiry_warnings(seen: Snapshot, clusters: Iterable[WantedCluster]) -> ExpiryWarnings:
    """Look at the way into each cluster that is listed."""
    notices, turns, now = [], [], seen.now
    for cluster in clusters:
        source = cluster.source
        if source is None or source.expires is None:
            continue
        told = _warn_from(source.expires, source.issued, seen.policy.expiry_warning)
        turns.append(told if told > now else source.expires)
        if told <= now < source.expires:
            notices.append(_warning(cluster.cluster, source))
    return ExpiryWarnings(tuple(notices), max((min(turns) - now).total_seconds(), 0.0) if turns else None)


@lru_cache(4096)
def _warn_from(expires: datetime, issued: datetime | None, warning: float) -> datetime:
    """Return from when on it is told: `warning` seconds ahead, but in the last tenth of its life."""
    lead = min(warning, LAST_SHARE * (expires - issued).total_seconds()) if issued else warning
    try:
        return expires - timedelta(seconds=lead)
    except OverflowError:  # an admin who wants to be told always
        return ALWAYS


def _warning(cluster: str, source: CredentialSource) -> EventIntent:
    told = f"the credentials of cluster {cluster} in {source.kind} {source.name} expire"
    return EventIntent(EXPIRES_SOON, f"{told} at {source.expires:%Y-%m-%dT%H:%M:%SZ}: renew them")
