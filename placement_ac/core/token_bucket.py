"""
A rate limit that lets a burst through: a token bucket, as in client-go.

Pure: time is an argument.
"""

from dataclasses import dataclass, field


@dataclass(slots=True)
class TokenBucket:
    """Lets `burst` requests through at once, and `per_second` in the long run."""

    per_second: float
    burst: int
    _tokens: float = field(default=0.0, init=False)
    _updated: float = field(default=float("-inf"), init=False)

    def take(self, now: float) -> bool:
        """Take a token at `now` if there is one; return whether there was."""
        self._refill(now)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def reserve(self, now: float) -> float:
        """Take a token at `now` (seconds on any clock); return the seconds until the request may be sent."""
        self._refill(now)
        self._tokens -= 1
        return max(-self._tokens / self.per_second, 0.0)

    def _refill(self, now: float) -> None:
        self._tokens = min(self._tokens + (now - self._updated) * self.per_second, self.burst)
        self._updated = now
