"""
How fast each release of Kueue asks its workers: the limits of its clients, and the Workloads at once.

Pure: time is an argument. Source: shared/DESIGN.md (what a list write costs), Kueue's shipped configuration
at the tags of the releases, and the changelog of 0.20.0 (15206, 15280).
"""

from dataclasses import dataclass
from typing import Final

from placement_ac.core.api.constants import Kind
from placement_ac.core.token_bucket import TokenBucket


@dataclass(frozen=True, slots=True)
class Pace:
    """The pace of a release of Kueue with its shipped configuration.

    `qps`, `burst`: of each token bucket of the client for a worker; one bucket for each kind of object, or
    one for all. `workloads_at_once`: how many MultiKueue reconciles at one time (`groupKindConcurrency`).
    """

    name: str
    qps: float
    burst: int
    bucket_per_kind: bool
    workloads_at_once: int


PACES: Final = {
    pace.name: pace
    for pace in (
        # client-go's limits; controller-runtime gives each kind a REST client, and so a bucket, of its own.
        Pace("0.16", 5.0, 10, True, 5),
        Pace("0.17", 5.0, 10, True, 5),
        Pace("0.18", 5.0, 10, True, 5),
        Pace("0.19", 5.0, 10, True, 10),
        # The lab's first figures (shared/kueue/flips.md): a configuration of one's own may lack it.
        Pace("0.19 without groupKindConcurrency", 5.0, 10, True, 1),
        # Gate MultiKueueReuseClientConnectionConfigForWorkers; a ConfigMap that says `qps: 300` keeps 300.
        Pace("0.20", 1000.0, 1000, False, 10),
    )
}
"""The profiles by name: the release, and how its configuration differs from the shipped one."""
NEWEST_PACE: Final = PACES["0.20"]
"""That of the newest release that is supported."""


class WorkerRateLimiter:
    """The token buckets of Kueue's client for one worker; `speed` multiplies their rate."""

    def __init__(self, pace: Pace, speed: float = 1.0) -> None:
        self._pace = pace
        self._speed = speed
        self._buckets: dict[Kind | None, TokenBucket] = {}

    def reserve(self, kind: Kind, now: float) -> float:
        """Take a token for a request about `kind`; return the seconds until it may be sent."""
        bucket = kind if self._pace.bucket_per_kind else None
        if bucket not in self._buckets:
            self._buckets[bucket] = TokenBucket(self._pace.qps * self._speed, self._pace.burst)
        return self._buckets[bucket].reserve(now)
