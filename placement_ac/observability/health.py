"""
Signs of life: what has been heard of each watch, and what `/healthz` and `/readyz` say about it.

A watch is judged by when a word last came over it: an event, or the answer to a request
of its own. While the API server answers nobody, no watch is called dead: beginning anew,
or anew as a process, would cure nothing.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog

from placement_ac.core.api.errors import ApiError

log = structlog.get_logger(__name__)

REVIVE_SECONDS: Final = 180.0
"""After this long without a word on a watch, while others hear some, the session begins anew."""
DEAD_SECONDS: Final = 420.0
"""After this long even that has not helped: `/healthz` fails."""
UNREACHABLE_SECONDS: Final = 60.0
"""After this long without any answer the API server counts as away; it is asked every 30 seconds at least."""
NO_REQUEST_SECONDS: Final = 150.0
"""After this long without a request of ours, answered or not, we are stuck ourselves."""
TURN_SECONDS: Final = 1.0
"""How often the loop shows that it turns."""
LATE_SECONDS: Final = 30.0
"""A loop that turns so late is not well."""
LATE_REPORT_SECONDS: Final = 15.0
"""How long a loop that was late is told of: for one probe of the kubelet, not for the three that end us."""


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One line of a page: what was looked at, and what is wrong with it ("": nothing)."""

    name: str
    problem: str = ""
    note: str = ""


class Reachability:
    """Whether the API server answers: told once, however many ask it."""

    def __init__(self) -> None:
        self._is_unreachable = False

    def unanswered(self, why: str) -> None:
        """Note that it did not answer."""
        if not self._is_unreachable:
            self._is_unreachable = True
            log.warning("the API server does not answer; trying again", error=why)

    def answered(self) -> None:
        """Note that it did."""
        if self._is_unreachable:
            self._is_unreachable = False
            log.info("the API server answers again")


class WatchHealth:
    """What one watch of one session tells of itself."""

    def __init__(self, name: str, health: "Health") -> None:
        self.name = name
        self.is_listed = False
        self.error = ""
        self._health = health
        self.received = partial(health.request_answered, name)
        """Note that something came over the watch."""

    def list_completed(self) -> None:
        """Note that everything has been listed."""
        self.is_listed, self.error = True, ""
        self._health.request_answered()

    def request_failed(self, error: ApiError) -> None:
        """Note why it cannot be listed or watched."""
        self.error = error.message
        self._health.request_failed(error)


class Health:
    """The signs of life of one controller, over all its sessions. Not thread-safe: for its loop only."""

    def __init__(self, ticks: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = ticks
        now = ticks()
        self._session_began_at = now
        """When the session that lives now began."""
        self._received_at: dict[str, float] = {}
        """Watch → when a word last came over it, in this session or one before."""
        self._request_sent_at = now
        """When anything was last asked of the API server."""
        self._answered_at = self._up_since = now
        """When it last answered anybody, and since when it does so without a long pause."""
        self._loop_turned_at, self._late_seconds, self._late_at = now, 0.0, float("-inf")
        self._no_session_reason = "the hub has not been asked yet"
        self._watches: list[WatchHealth] = []

    # -- told by those who live

    def note_loop_turn(self) -> None:
        """Note that the loop turns; it is to say so every TURN_SECONDS."""
        now = self._monotonic()
        late = now - self._loop_turned_at - TURN_SECONDS
        self._loop_turned_at = now
        if late > LATE_SECONDS:
            self._late_seconds, self._late_at = late, now

    def request_sent(self) -> None:
        """Note that the API server is asked something."""
        self._request_sent_at = self._monotonic()

    def request_answered(self, watch: str = "") -> None:
        """Note that the API server has answered something, or that something came over a watch."""
        self._request_sent_at = now = self._monotonic()
        if now - self._answered_at > UNREACHABLE_SECONDS:
            self._up_since = now
        self._answered_at = now
        if watch:
            self._received_at[watch] = now

    def request_failed(self, error: ApiError) -> None:
        """Note a request that failed: a refusal is an answer as well."""
        if error.status:
            self.request_answered()
        else:
            self.request_sent()

    def no_session(self, why: str) -> None:
        """Note that there is no session, and what is waited for."""
        self._watches, self._no_session_reason = [], why

    def begin_session(self, watches: Iterable[str]) -> dict[str, WatchHealth]:
        """Return a sign for each watch of a session that begins."""
        self._session_began_at = self._monotonic()
        found = {name: WatchHealth(name, self) for name in watches}
        self._received_at = {name: self._received_at.get(name, self._session_began_at) for name in found}
        self._watches, self._no_session_reason = list(found.values()), ""
        return found

    # -- asked by those who judge

    def lost_watches(self) -> list[str]:
        """Return the watches that this session cannot revive."""
        return [
            name for name in self._received_at if self._silence(name, self._session_began_at) > REVIVE_SECONDS
        ]

    def liveness(self) -> list[HealthCheck]:
        """Return what `/healthz` looks at: only what a restart of the process may cure."""
        mute = self._monotonic() - self._request_sent_at
        stuck = (
            f"nothing has been asked of the API server for {mute:.0f}s" if mute > NO_REQUEST_SECONDS else ""
        )
        return [
            HealthCheck("loop", self._loop_problem()),
            HealthCheck("session", stuck),
            *(self._watch_check(sign.name) for sign in self._watches),
        ]

    def readiness(self) -> list[HealthCheck]:
        """Return what `/readyz` looks at: everything has been listed once, in this session."""
        found = [HealthCheck("session", self._no_session_reason)]
        for sign in self._watches:
            why = f"not listed yet{': ' if sign.error else ''}{sign.error}"
            found.append(HealthCheck(f"list {sign.name}", "" if sign.is_listed else why))
        return found

    def _is_unreachable(self) -> bool:
        return self._monotonic() - self._answered_at > UNREACHABLE_SECONDS

    def _silence(self, watch: str, since: float = 0.0) -> float:
        """Return for how long nothing came over a watch although the API server was there. Unit: seconds."""
        return (
            0.0
            if self._is_unreachable()
            else self._monotonic() - max(self._received_at[watch], self._up_since, since)
        )

    def _watch_check(self, name: str) -> HealthCheck:
        if self._is_unreachable():
            away = self._monotonic() - self._answered_at
            note = f"the API server has not answered for {away:.0f}s; a restart would not help"
            return HealthCheck(f"watch {name}", note=note)
        silence = self._silence(name)
        return HealthCheck(f"watch {name}", f"no word for {silence:.0f}s" if silence > DEAD_SECONDS else "")

    def _loop_problem(self) -> str:
        now = self._monotonic()
        if now - self._loop_turned_at > LATE_SECONDS:
            return f"has not turned for {now - self._loop_turned_at:.0f}s"
        return f"turned {self._late_seconds:.0f}s late" if now - self._late_at < LATE_REPORT_SECONDS else ""
