"""
Log lines: constant messages with keys, as text or JSON.

A lasting state is logged once: see `LogDeduplicator`. Messages of libraries are not logged, since they may
quote secrets; of their failures, only the place in the code is logged.
"""

import logging
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Hashable
from functools import partial
from typing import Any, Final, Literal

import structlog
from cachetools import LRUCache

from placement_ac.core.api.errors import error_place
from placement_ac.core.token_bucket import TokenBucket
from placement_ac.observability.log_output import LogOutput

log = structlog.get_logger(__name__)

MAX_REMEMBERED: Final = 10_000
LINES_AT_ONCE: Final = 1_000
LINES_PER_SECOND: Final = 10.0
"""The burst and the rate of lines with the same message, above debug."""
_PACKAGE: Final = "placement_ac."


def configure(form: Literal["text", "json"] = "text", level: str = "info") -> None:
    """Send log lines to stderr, from `level` on: debug, info, warning or error."""
    least = logging.getLevelNamesMapping()[level.upper()]
    renderer: structlog.typing.Processor
    renderer = (
        structlog.processors.JSONRenderer() if form == "json" else structlog.dev.ConsoleRenderer(colors=False)
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            _common_keys_first,
            _line_limiter(),
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=partial(_ModuleLogger, LogOutput(sys.stderr)),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers = [
        *(handler for handler in root.handlers if type(handler) is not _LibraryErrorHandler),
        _LibraryErrorHandler(),
    ]


class LogDeduplicator:
    """Remembers the last message about each subject, so that a lasting state is logged once, and its end."""

    def __init__(self) -> None:
        self._last: LRUCache[Hashable, str] = LRUCache(MAX_REMEMBERED)

    def level(self, about: Hashable, what: str, first: int = logging.WARNING) -> int:
        """Return the level at which to log `what`: `first`, or debug if it was the last message as well."""
        is_new = self._last.get(about) != what
        self._last[about] = what
        return first if is_new else logging.DEBUG

    def ended(self, about: Hashable) -> bool:
        """Forget the last message about this subject; return whether there was one."""
        return self._last.pop(about, None) is not None


def redacted(error: BaseException) -> str:
    """Return the type and the text of an error of aiohttp, without the login in a proxy's URL.

    Its `ssl:<ssl.SSLContext object at 0x…>`, which differs each time, is left out.
    """
    text = re.sub(r" ssl:(?:<[^>]*>|\w+)", "", str(error))
    return f"{type(error).__name__}: {re.sub(r'//.*@', '//…@', text)}"


class _ModuleLogger:
    """Writes the lines of one module."""

    def __init__(self, output: LogOutput, name: str = "") -> None:
        self._output = output
        self.name = name.removeprefix(_PACKAGE)

    def msg(self, line: str) -> None:
        """Write a line, and how many were lost before it."""
        lost = self._output.lost
        if self._output.write(line) and lost:
            self._output.lost = 0
            log.warning("log lines were lost: nobody read stderr", lines=lost)

    debug = info = warning = error = critical = exception = msg


class _LibraryErrorHandler(logging.Handler):
    """Logs the place of a library's error; without a handler, Python would print the library's message."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        place = error_place(error) if error else f"{record.pathname}:{record.lineno}"
        log.error("a library failed", library=record.name, error=place)


def _line_limiter() -> structlog.typing.Processor:
    """Return the processor that drops lines of one kind beyond their rate; the next one has their number.

    Messages are constant, so there are as many kinds as places that log.
    """
    buckets: defaultdict[tuple[str, str], TokenBucket] = defaultdict(
        lambda: TokenBucket(LINES_PER_SECOND, LINES_AT_ONCE)
    )
    dropped: Counter[tuple[str, str]] = Counter()

    def limit(_: Any, __: str, line: structlog.typing.EventDict) -> structlog.typing.EventDict:
        kind = str(line["logger"]), str(line["event"])
        if line["level"] == "debug":
            return line
        if not buckets[kind].take(time.monotonic()):
            dropped[kind] += 1
            raise structlog.DropEvent
        number = dropped.pop(kind, 0)
        if number:
            line["left_out"] = number
        return line

    return limit


def _common_keys_first(logger: Any, _: str, line: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Put the keys that every line has before its own, with the module's name."""
    return {"level": line.pop("level"), "logger": logger.name, "event": line.pop("event"), **line}
