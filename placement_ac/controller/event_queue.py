"""A queue of events in which each check has its turn: the events of one keep no other waiting. No I/O."""

from collections import deque
from typing import Final

from placement_ac.controller.event_writer import QueuedEvent

QUEUED: Final = 500
"""How many events wait to be posted; when so many do, only a check with fewer than its share adds some."""


class FairQueue:
    """Events by check; of one check, warnings come first."""

    def __init__(self) -> None:
        self._checks: dict[str, tuple[deque[QueuedEvent], deque[QueuedEvent]]] = {}
        """Warnings and others; the check whose turn it is comes first."""
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def put(self, event: QueuedEvent) -> bool:
        """Add an event, and return True; return False if too many wait."""
        known = self._checks.get(event.of)
        waiting = sum(map(len, known)) if known else 0
        if self._length >= QUEUED and waiting >= QUEUED // (len(self._checks) + (known is None)):
            return False
        warnings, others = self._checks.setdefault(event.of, (deque(), deque()))
        (warnings if event.is_warning else others).append(event)
        self._length += 1
        return True

    def take(self) -> QueuedEvent:
        """Remove and return the next event of the check whose turn it is; there must be one."""
        of = next(iter(self._checks))
        queues = self._checks.pop(of)
        event = (queues[0] or queues[1]).popleft()
        if any(queues):
            self._checks[of] = queues
        self._length -= 1
        return event

    def clear(self) -> None:
        self._checks.clear()
        self._length = 0
