"""
Limits on writes that succeed: one for each object that somebody else keeps changing back, one for all writes.

Without them two controllers that want different things write without an end, as fast as the API server can.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson
from cachetools import TTLCache

from placement_ac.core.api.constants import Kind
from placement_ac.core.plan.diff import Action, Apply, Delete, SetCondition, SetStatus
from placement_ac.core.token_bucket import TokenBucket

UNDONE_MAX: Final = 5
"""A write that was undone so many times in a row is repeated only every PACED_SECONDS."""
PACED_SECONDS: Final = 30.0
"""Also how long a write must last, so that it is not counted as undone."""
FREE_WRITES: Final = 10
"""So many writes of an object, and one a second, take no token: decisions that change do not wait."""
BURST: Final = 200
REMEMBERED: Final = 10_000


class ObjectName(NamedTuple):
    """Which object a write is about."""

    kind: Kind
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind.kind} {self.namespace}/{self.name}".replace(" /", " ")


def object_of(action: Action) -> ObjectName:
    """Return the object that an action writes."""
    if isinstance(action, Apply):
        namespace = action.body["metadata"].get("namespace") or ""
    else:
        namespace = "" if isinstance(action, SetCondition) else action.namespace
    return ObjectName(action.kind, namespace, action.name)


class UndoneWrite(NamedTuple):
    """A write that somebody has undone."""

    times: int
    """In a row, each time within PACED_SECONDS."""
    wait: float
    """Until it may be repeated. Unit: seconds."""
    is_new: bool
    """Whether this was not known before."""


@dataclass(slots=True)
class _LastWrite:
    content: int | None
    """A hash; None for a write that does not count as undone."""
    at: float
    undone: int
    """How many times in a row this write was undone soon."""
    recent: float
    """How many writes of the object there were lately, less one a second."""
    is_undone: bool = False
    """Whether this one was."""


class WriteLimits:
    """Knows the writes of the last minute. Time is an argument: seconds of a monotonic clock."""

    def __init__(self, per_second: float) -> None:
        self._bucket = TokenBucket(per_second, BURST)
        self._now = 0.0
        self._writes: TTLCache[ObjectName, _LastWrite] = TTLCache(
            REMEMBERED, 2 * PACED_SECONDS, timer=lambda: self._now
        )

    def undone(self, action: Action, now: float) -> UndoneWrite | None:
        """Return what is known if this very write was undone; None if it was not.

        Writes to Workloads never count as undone: Kueue resets check states for good reasons.
        """
        last = self._last(action, now)
        if last is None or last.content is None or last.content != _content(action):
            return None
        is_new = not last.is_undone
        if is_new:
            last.is_undone = True
            last.undone = last.undone + 1 if now - last.at < PACED_SECONDS else 0
        wait = last.at + PACED_SECONDS - now if last.undone >= UNDONE_MAX else 0.0
        return UndoneWrite(last.undone, max(wait, 0.0), is_new)

    def reserve(self, action: Action, now: float) -> float:
        """Take a token if the object is written often; return the seconds until it may be written."""
        is_often = _recent(self._last(action, now), now) > FREE_WRITES - 1
        return self._bucket.reserve(now) if is_often else 0.0

    def wrote(self, action: Action, now: float) -> None:
        """Take in that a write has succeeded."""
        last, content = self._last(action, now), _content(action)
        undone = last.undone if last and content is not None and last.content == content else 0
        self._writes[object_of(action)] = _LastWrite(
            content, now, undone, min(_recent(last, now) + 1, FREE_WRITES)
        )

    def _last(self, action: Action, now: float) -> _LastWrite | None:
        self._now = now
        return self._writes.get(object_of(action))


def _recent(last: _LastWrite | None, now: float) -> float:
    return max(last.recent - (now - last.at), 0.0) if last else 0.0


def _content(action: Action) -> int | None:
    """Return a hash of what a write makes of its object, whatever version it was decided on."""
    content: Any
    if isinstance(action, Apply):
        metadata = {k: v for k, v in action.body["metadata"].items() if k not in ("uid", "resourceVersion")}
        content = action.body | {"metadata": metadata}
    elif isinstance(action, SetCondition):
        content = _without_time(action.condition)
    elif isinstance(action, SetStatus):
        status = {key: value for key, value in action.status.items() if key != "validUntil"}
        content = status | {"conditions": [*map(_without_time, status.get("conditions", ()))]}
    elif isinstance(action, Delete):
        content = "deleted"
    else:
        return None
    return hash(orjson.dumps(content, option=orjson.OPT_SORT_KEYS))


def _without_time(condition: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in condition.items() if key != "lastTransitionTime"}
