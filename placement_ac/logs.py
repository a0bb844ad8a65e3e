"""
How log lines look: constant messages with keys, as text for people or JSON for programs.
"""

import logging
import sys
import traceback
from typing import Literal

import structlog


def configure(form: Literal["text", "json"] = "text", level: str = "info") -> None:
    """Send every log line from `level` on to stderr."""
    renderer: structlog.typing.Processor
    renderer = (
        structlog.processors.JSONRenderer() if form == "json" else structlog.dev.ConsoleRenderer(colors=False)
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def without_words(error: BaseException) -> str:
    """Return the type of an error and where it came up, and nothing of its text, which may quote a token."""
    frames = (f"{frame.f_code.co_filename}:{line}" for frame, line in traceback.walk_tb(error.__traceback__))
    return " ".join((type(error).__name__, *frames))
