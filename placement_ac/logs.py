"""
How log lines look: constant messages with keys, as text for people or JSON for programs.
"""

import logging
import sys
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
