"""Logs why a key could not be reconciled: once while the reason stays the same, and once when it is over."""

import structlog

from placement_ac.core.api.errors import ApiError, Conflict, NotFound, NotLeading, Refused, WorkloadTrouble
from placement_ac.core.inputs.state import Key
from placement_ac.observability.logs import LogDeduplicator

log = structlog.get_logger(__name__)


class ErrorLog:
    """Logs write errors by key."""

    def __init__(self) -> None:
        self._logged = LogDeduplicator()

    def failed(self, key: Key, error: ApiError) -> None:
        """Log why `key` could not be written."""
        if isinstance(error, NotLeading):
            log.debug("not written; another replica leads", key=key.name)
        elif isinstance(error, WorkloadTrouble):
            log.debug("a Workload could not be written; trying again", key=key.name, error=error.message)
        elif isinstance(error, Conflict | NotFound):
            log.debug("an object has changed meanwhile; trying again", key=key.name, error=error.message)
        elif isinstance(error, Refused):
            level = self._logged.level(key, error.message)
            log.log(level, "the API server refused a write", key=key.name, error=error.message)
        elif error.status:
            level = self._logged.level(key, error.message)
            log.log(level, "the API server failed; trying again", key=key.name, error=error.message)
        else:  # the informers log that once for all keys
            log.debug("the API server does not answer; trying again", key=key.name, error=error.message)

    def condition_failed(self, key: Key, error: ApiError) -> None:
        """Log why the condition that reports a failure could not be set."""
        level = self._logged.level((key, "condition"), error.message)
        log.log(level, "the condition could not be set", key=key.name, error=error.message)

    def succeeded(self, key: Key) -> None:
        """Log that `key` has been written, if an error was logged before."""
        self._logged.ended((key, "condition"))
        if self._logged.ended(key):
            log.info("the write has succeeded", key=key.name)
