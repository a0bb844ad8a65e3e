"""
The limit on Kueue's requests to one worker: client-go's default, a token bucket.

Pure: time is an argument, so that a virtual clock can use it as well. Kueue sets no other limit for its
clients of workers (shared/kueue/flips.md: "client-side throttling", 0.19 s for each request).
"""

from dataclasses import dataclass, field
from typing import Final

QPS: Final = 5.0
"""client-go `rest.DefaultQPS`: requests a second."""
BURST: Final = 10
"""client-go `rest.DefaultBurst`: requests at once after a pause."""


@dataclass(slots=True)
class TokenBucket:
    """Lets `burst` requests through at once, and `qps` a second in the long run."""

    qps: float = QPS
    burst: int = BURST
    _tokens: float = field(default=0.0, init=False)
    _at: float | None = field(default=None, init=False)

    def reserve(self, now: float) -> float:
        """Take a token at `now` (seconds on any clock); return the seconds until the request may be sent."""
        if self._at is None:
            self._tokens = self.burst
        else:
            self._tokens = min(self.burst, self._tokens + (now - self._at) * self.qps)
        self._at = now
        self._tokens -= 1
        return max(0.0, -self._tokens / self.qps)
