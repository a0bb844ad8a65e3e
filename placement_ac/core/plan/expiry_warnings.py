"""Warn of credentials that expire soon. Pure."""

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
    """Return the warnings about the credentials of the clusters to list."""
    warnings, times, now = [], [], seen.now
    for cluster in clusters:
        source = cluster.source
        if source is None or source.expires is None:
            continue
        warn_at = _warn_at(source.expires, source.issued, seen.policy.expiry_warning)
        times.append(warn_at if warn_at > now else source.expires)
        if warn_at <= now < source.expires:
            warnings.append(_warning(cluster.cluster, source))
    recheck_after = max((min(times) - now).total_seconds(), 0.0) if times else None
    return ExpiryWarnings(tuple(warnings), recheck_after)


@lru_cache(4096)
def _warn_at(expires: datetime, issued: datetime | None, warning: float) -> datetime:
    """Return the time of the warning: `warning` seconds before the end, but in the last tenth of its life."""
    lead = min(warning, LAST_SHARE * (expires - issued).total_seconds()) if issued else warning
    try:
        return expires - timedelta(seconds=lead)
    except OverflowError:  # an admin who wants the warning at any time
        return ALWAYS


def _warning(cluster: str, source: CredentialSource) -> EventIntent:
    credentials = f"the credentials of cluster {cluster} in {source.kind} {source.name}"
    return EventIntent(
        EXPIRES_SOON, f"renew {credentials}: they expire at {source.expires:%Y-%m-%dT%H:%M:%SZ}"
    )
