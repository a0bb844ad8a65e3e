"""A queue of events in which each check has its turn: the events of one keep no other waiting. No I/O."""

from collections import deque
from typing import Final

from placement_ac.controller.event_writer import QueuedEvent

QUEUED: Final = 100
"""How many events of one check wait to be posted; one more drops the oldest."""


class FairQueue:
    """Events by check, oldest first."""

    def __init__(self) -> None:
        self._checks: dict[str, deque[QueuedEvent]] = {}
        """The check whose turn it is comes first."""

    def __bool__(self) -> bool:
        return bool(self._checks)

    def put(self, event: QueuedEvent) -> QueuedEvent | None:
        """Add an event; return the one that is dropped for it, if any."""
        queue = self._checks.setdefault(event.of, deque())
        queue.append(event)
        return queue.popleft() if len(queue) > QUEUED else None

    def take(self) -> QueuedEvent:
        """Remove and return the next event of the check whose turn it is; there must be one."""
        of = next(iter(self._checks))
        queue = self._checks.pop(of)
        event = queue.popleft()
        if queue:
            self._checks[of] = queue
        return event

    def clear(self) -> None:
        self._checks.clear()
