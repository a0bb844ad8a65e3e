"""
How log lines look: constant messages with keys, as text for people or JSON for programs.

A state that lasts is logged once: see `LogDeduplicator`. Messages of libraries are not shown, as they may
quote secrets; of their failures, only the place in the code is logged.
"""

import logging
import re
import sys
import traceback
from collections.abc import Callable, Hashable, Mapping
from functools import cache, partial
from typing import Any, Final, Literal, TextIO

import structlog
from cachetools import LRUCache

from placement_ac.config.log_levels import LEVELS, parse_log_levels

log = structlog.get_logger(__name__)

MAX_REMEMBERED: Final = 10_000
_PACKAGE: Final = "placement_ac."


def configure(form: Literal["text", "json"] = "text", *levels: str) -> None:
    """Send log lines to stderr: those from a level on, as `parse_log_levels` reads it (nothing: info)."""
    least = parse_log_levels(levels)
    renderer: structlog.typing.Processor
    renderer = (
        structlog.processors.JSONRenderer() if form == "json" else structlog.dev.ConsoleRenderer(colors=False)
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            _level_filter(least),
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(min(least.values())),
        logger_factory=partial(_ModuleLogger, sys.stderr),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers = [
        *(handler for handler in root.handlers if type(handler) is not _LibraryErrorHandler),
        _LibraryErrorHandler(),
    ]


class LogDeduplicator:
    """Remembers what was said of whom, so that what lasts is told once and its end as well."""

    def __init__(self) -> None:
        self._said: LRUCache[Hashable, str] = LRUCache(MAX_REMEMBERED)

    def level(self, about: Hashable, what: str, first: int = logging.WARNING) -> int:
        """Return the level at which to say `what` now: `first`, or debug if it was said last."""
        news = self._said.get(about) != what
        self._said[about] = what
        return first if news else logging.DEBUG

    def ended(self, about: Hashable) -> bool:
        """Whether something was said of it; forget that."""
        return self._said.pop(about, None) is not None


def error_place(error: BaseException) -> str:
    """Return the type of an error and where it came up, and nothing of its text, which may quote a token."""
    frames = (f"{frame.f_code.co_filename}:{line}" for frame, line in traceback.walk_tb(error.__traceback__))
    return " ".join((type(error).__name__, *frames))


def redacted(error: BaseException) -> str:
    """Return the type and the text of an error of aiohttp, which may quote a proxy's URL, login and all."""
    return f"{type(error).__name__}: {re.sub(r'//.*@', '//…@', str(error))}"


class _ModuleLogger(structlog.PrintLogger):
    """Prints the lines of one module."""

    def __init__(self, file: TextIO, name: str = "") -> None:
        super().__init__(file)
        self.name = name.removeprefix(_PACKAGE)


class _LibraryErrorHandler(logging.Handler):
    """Tells where a library says that it failed; without a handler, Python prints what libraries say."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        told = error_place(error) if error else f"{record.pathname}:{record.lineno}"
        log.error("a library failed", library=record.name, error=told)


def _level_filter(least: Mapping[str, int]) -> structlog.typing.Processor:
    """Return what drops the lines below their module's level, and puts first what each line has."""
    of = cache(_level_of(least))

    def choose(logger: Any, _: str, line: structlog.typing.EventDict) -> structlog.typing.EventDict:
        level = line.pop("level")
        if LEVELS[level] < of(logger.name):
            raise structlog.DropEvent
        return {"level": level, "logger": logger.name, "event": line.pop("event"), **line}

    return choose


def _level_of(least: Mapping[str, int]) -> Callable[[str], int]:
    def of(name: str) -> int:
        while name and name not in least:
            name = name.rpartition(".")[0]
        return least[name]

    return of
