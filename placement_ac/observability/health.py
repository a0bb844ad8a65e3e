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
AWAY_SECONDS: Final = 60.0
"""After this long without any answer the API server counts as away; it is asked every 30 seconds at least."""
MUTE_SECONDS: Final = 150.0
"""After this long without a request of ours, answered or not, we are stuck ourselves."""
TURN_SECONDS: Final = 1.0
"""How often the loop shows that it turns."""
LATE_SECONDS: Final = 30.0
"""A loop that turns so late is not well."""
LATE_TOLD_SECONDS: Final = 15.0
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
        self._away = False

    def lost(self, why: str) -> None:
        """Note that it did not answer."""
        if not self._away:
            self._away = True
            log.warning("the API server does not answer; trying again", error=why)

    def back(self) -> None:
        """Note that it did."""
        if self._away:
            self._away = False
            log.info("the API server answers again")


class WatchHealth:
    """What one watch of one session tells of itself."""

    def __init__(self, name: str, vitals: "Health") -> None:
        self.name = name
        self.is_listed = False
        self.trouble = ""
        self._vitals = vitals
        self.heard = partial(vitals.answered, name)
        """Note that something came over the watch."""

    def listed(self) -> None:
        """Note that everything has been listed."""
        self.is_listed, self.trouble = True, ""
        self._vitals.answered()

    def failed(self, error: ApiError) -> None:
        """Note why it cannot be listed or watched."""
        self.trouble = error.message
        self._vitals.failed(error)


class Health:
    """The signs of life of one controller, over all its sessions. Not thread-safe: for its loop only."""

    def __init__(self, ticks: Callable[[], float] = time.monotonic) -> None:
        self._ticks = ticks
        now = ticks()
        self._began = now
        """When the session that lives now began."""
        self._heard: dict[str, float] = {}
        """Watch → when a word last came over it, in this session or one before."""
        self._asked = now
        """When anything was last asked of the API server."""
        self._answered = self._up_since = now
        """When it last answered anybody, and since when it does so without a long pause."""
        self._turned, self._late, self._late_at = now, 0.0, float("-inf")
        self._waits_for = "the hub has not been asked yet"
        self._signs: list[WatchHealth] = []

    # -- told by those who live

    def turns(self) -> None:
        """Note that the loop turns; it is to say so every TURN_SECONDS."""
        now = self._ticks()
        late = now - self._turned - TURN_SECONDS
        self._turned = now
        if late > LATE_SECONDS:
            self._late, self._late_at = late, now

    def asked(self) -> None:
        """Note that the API server is asked something."""
        self._asked = self._ticks()

    def answered(self, watch: str = "") -> None:
        """Note that the API server has answered something, or that something came over a watch."""
        self._asked = now = self._ticks()
        if now - self._answered > AWAY_SECONDS:
            self._up_since = now
        self._answered = now
        if watch:
            self._heard[watch] = now

    def failed(self, error: ApiError) -> None:
        """Note a request that failed: a refusal is an answer as well."""
        if error.status:
            self.answered()
        else:
            self.asked()

    def waits(self, why: str) -> None:
        """Note that there is no session, and what is waited for."""
        self._signs, self._waits_for = [], why

    def begin(self, watches: Iterable[str]) -> dict[str, WatchHealth]:
        """Return a sign for each watch of a session that begins."""
        self._began = self._ticks()
        found = {name: WatchHealth(name, self) for name in watches}
        self._heard = {name: self._heard.get(name, self._began) for name in found}
        self._signs, self._waits_for = list(found.values()), ""
        return found

    # -- asked by those who judge

    def lost(self) -> list[str]:
        """Return the watches that this session cannot revive."""
        return [name for name in self._heard if self._silence(name, self._began) > REVIVE_SECONDS]

    def live(self) -> list[HealthCheck]:
        """Return what `/healthz` looks at: only what a restart of the process may cure."""
        mute = self._ticks() - self._asked
        stuck = f"nothing has been asked of the API server for {mute:.0f}s" if mute > MUTE_SECONDS else ""
        return [
            HealthCheck("loop", self._loops_problem()),
            HealthCheck("session", stuck),
            *(self._watch(sign.name) for sign in self._signs),
        ]

    def ready(self) -> list[HealthCheck]:
        """Return what `/readyz` looks at: everything has been listed once, in this session."""
        found = [HealthCheck("session", self._waits_for)]
        for sign in self._signs:
            why = f"not listed yet{': ' if sign.trouble else ''}{sign.trouble}"
            found.append(HealthCheck(f"list {sign.name}", "" if sign.is_listed else why))
        return found

    def _away(self) -> bool:
        return self._ticks() - self._answered > AWAY_SECONDS

    def _silence(self, watch: str, since: float = 0.0) -> float:
        """Return for how long nothing came over a watch although the API server was there. Unit: seconds."""
        return 0.0 if self._away() else self._ticks() - max(self._heard[watch], self._up_since, since)

    def _watch(self, name: str) -> HealthCheck:
        if self._away():
            away = self._ticks() - self._answered
            note = f"the API server has not answered for {away:.0f}s; a restart would not help"
            return HealthCheck(f"watch {name}", note=note)
        silence = self._silence(name)
        return HealthCheck(f"watch {name}", f"no word for {silence:.0f}s" if silence > DEAD_SECONDS else "")

    def _loops_problem(self) -> str:
        now = self._ticks()
        if now - self._turned > LATE_SECONDS:
            return f"has not turned for {now - self._turned:.0f}s"
        return f"turned {self._late:.0f}s late" if now - self._late_at < LATE_TOLD_SECONDS else ""
