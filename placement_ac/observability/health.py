"""
The health of the controller, as `/healthz` and `/readyz` report it.

A watch is alive if something was received on it recently: an event, or the answer to a request of its own.
While the API server answers no request, no watch is reported dead, since a restart would not help. If every
request fails with a TLS error instead, a restart may help: it reads all certificates again.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from placement_ac.core.api.errors import ApiError, TlsFailed

REVIVE_SECONDS: Final = 180.0
"""After this long without anything on a watch, while others receive something, the session restarts."""
DEAD_SECONDS: Final = 420.0
"""After this long that has not helped, and `/healthz` fails."""
UNREACHABLE_SECONDS: Final = 60.0
"""After this long without an answer the API server counts as away; requests go out every 30 s at least."""
TLS_FAILED_SECONDS: Final = 60.0
"""After this long in which every request has failed with a TLS error, the pages fail."""
NO_REQUEST_SECONDS: Final = 150.0
"""After this long without a request of ours, answered or not, the controller itself is stuck."""
TURN_SECONDS: Final = 1.0
"""How often the event loop notes that it runs."""
LATE_SECONDS: Final = 30.0
"""A loop that is this late is unhealthy."""
LATE_REPORT_SECONDS: Final = 15.0
"""How long a late loop is reported: to one probe of the kubelet, not to the three that restart the Pod."""


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One line of a page; `problem` is "" if the check passes."""

    name: str
    problem: str = ""
    note: str = ""


class WatchHealth:
    """The health of one watch of a session."""

    def __init__(self, name: str, health: "Health") -> None:
        self.name = name
        self.is_listed = False
        self.error = ""
        self._health = health
        self.received = partial(health.request_answered, name)
        """Note that something came over the watch."""

    def opened(self) -> None:
        """Note that the API server has accepted the watch; nothing may have come over it yet."""
        self._health.request_answered()

    def list_completed(self) -> None:
        """Note that everything has been listed."""
        self.is_listed, self.error = True, ""
        self._health.request_answered()

    def request_failed(self, error: ApiError) -> None:
        """Note why a list or watch failed."""
        self.error = error.message
        self._health.request_failed(error)


class Health:
    """The health of one controller, over all its sessions. Not thread-safe: for its loop only.

    `without_leader` returns why no replica leads, "" if one does (None: there is no election).
    """

    def __init__(
        self,
        ticks: Callable[[], float] = time.monotonic,
        *,
        without_leader: Callable[[], str] | None = None,
    ) -> None:
        self._monotonic = ticks
        self._without_leader = without_leader
        now = ticks()
        self._session_began_at = now
        """When the current session began."""
        self._received_at: dict[str, float] = {}
        """Watch → when something was last received on it, in this session or one before."""
        self._request_sent_at = now
        """When the last request was sent to the API server."""
        self._answered_at = self._up_since = now
        """When it last answered, and since when it answers without a long pause."""
        self._tls_failing_since: float | None = None
        """Since when every request fails with a TLS error."""
        self._loop_turned_at, self._late_seconds, self._late_at = now, 0.0, float("-inf")
        self._no_session_reason = "no request to the hub yet"
        self._watches: list[WatchHealth] = []

    # -- what has happened

    def note_loop_turn(self) -> None:
        """Note that the event loop runs; to be called every TURN_SECONDS."""
        now = self._monotonic()
        late = now - self._loop_turned_at - TURN_SECONDS
        self._loop_turned_at = now
        if late > LATE_SECONDS:
            self._late_seconds, self._late_at = late, now

    def request_sent(self) -> None:
        """Note a request to the API server."""
        self._request_sent_at = self._monotonic()

    def request_answered(self, watch: str = "") -> None:
        """Note an answer of the API server, or that something was received on a watch."""
        self._request_sent_at = now = self._monotonic()
        if now - self._answered_at > UNREACHABLE_SECONDS:
            self._up_since = now
        self._answered_at = now
        self._tls_failing_since = None
        if watch:
            self._received_at[watch] = now

    def request_failed(self, error: ApiError) -> None:
        """Note a request that failed; a refusal is an answer, too."""
        if error.status:
            self.request_answered()
        else:
            self.request_sent()
            self._note_failure(error)

    def _note_failure(self, error: ApiError) -> None:
        if not isinstance(error, TlsFailed):
            self._tls_failing_since = None
        elif self._tls_failing_since is None:
            self._tls_failing_since = self._monotonic()

    def no_session(self, why: str) -> None:
        """Note that there is no session, and why."""
        self._watches, self._no_session_reason = [], why

    def begin_session(self, watches: Iterable[str]) -> dict[str, WatchHealth]:
        """Return the health of each watch of a session that begins."""
        self._session_began_at = self._monotonic()
        by_name = {name: WatchHealth(name, self) for name in watches}
        self._received_at = {name: self._received_at.get(name, self._session_began_at) for name in by_name}
        self._watches, self._no_session_reason = list(by_name.values()), ""
        return by_name

    # -- whether all is well

    def lost_watches(self) -> list[str]:
        """Return the watches that have been silent for so long that the session must restart."""
        since = self._session_began_at
        return [name for name in self._received_at if self._silence(name, since) > REVIVE_SECONDS]

    def liveness(self) -> list[HealthCheck]:
        """Return the checks of `/healthz`: only what a restart of the process may fix."""
        idle = self._monotonic() - self._request_sent_at
        stuck = f"no request to the API server for {idle:.0f}s" if idle > NO_REQUEST_SECONDS else ""
        return [
            HealthCheck("loop", self._loop_problem()),
            HealthCheck("session", stuck),
            HealthCheck("tls", self._tls_problem()),
            # No restart gives the Lease to anybody.
            *(HealthCheck("leader", note=check.problem) for check in self._leader()),
            *(self._watch_check(watch.name) for watch in self._watches),
        ]

    def readiness(self) -> list[HealthCheck]:
        """Return the checks of `/readyz`: TLS works, one leads, and all was listed once in this session."""
        checks = [
            HealthCheck("session", self._no_session_reason),
            HealthCheck("tls", self._tls_problem()),
            *self._leader(),
        ]
        for watch in self._watches:
            why = f"not listed yet{': ' if watch.error else ''}{watch.error}"
            checks.append(HealthCheck(f"list {watch.name}", "" if watch.is_listed else why))
        return checks

    def _leader(self) -> list[HealthCheck]:
        return [HealthCheck("leader", self._without_leader())] if self._without_leader else []

    def _is_unreachable(self) -> bool:
        return self._monotonic() - self._answered_at > UNREACHABLE_SECONDS

    def _silence(self, watch: str, since: float = 0.0) -> float:
        """Return for how many seconds nothing was received on a watch although the API server answered."""
        if self._is_unreachable():
            return 0.0
        return self._monotonic() - max(self._received_at[watch], self._up_since, since)

    def _watch_check(self, name: str) -> HealthCheck:
        if self._is_unreachable():
            away = self._monotonic() - self._answered_at
            note = f"the API server has not answered for {away:.0f}s"
            if not self._tls_problem():
                note += "; a restart would not help"
            return HealthCheck(f"watch {name}", note=note)
        silence = self._silence(name)
        problem = f"nothing received for {silence:.0f}s" if silence > DEAD_SECONDS else ""
        return HealthCheck(f"watch {name}", problem)

    def _tls_problem(self) -> str:
        since = self._tls_failing_since
        if since is None or (failing := self._monotonic() - since) <= TLS_FAILED_SECONDS:
            return ""
        return f"every request has failed with a TLS error for {failing:.0f}s; a restart reads the CA again"

    def _loop_problem(self) -> str:
        now = self._monotonic()
        if now - self._loop_turned_at > LATE_SECONDS:
            return f"has not turned for {now - self._loop_turned_at:.0f}s"
        return f"turned {self._late_seconds:.0f}s late" if now - self._late_at < LATE_REPORT_SECONDS else ""
