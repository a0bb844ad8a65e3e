"""
Notices that the wall clock was set: what waits for a time of day is to be looked at again.

Waiting goes by the monotonic clock, which nobody sets; what is waited for (the end of a token,
a deadline told in an annotation) goes by the wall clock.
"""

import asyncio
import time
from collections.abc import Callable
from datetime import datetime
from typing import Final

import structlog

log = structlog.get_logger(__name__)

CHECK_INTERVAL_SECONDS: Final = 1.0
JUMP_SECONDS: Final = 2.0
"""A clock that goes wrong by less is left to itself: credentials are given up half a minute early."""


async def watch_clock(clock: Callable[[], datetime], on_jump: Callable[[], None]) -> None:
    """Call `jumped` whenever `clock` was set; ends only when cancelled."""
    offset = _offset(clock)
    while True:
        await asyncio.sleep(CHECK_INTERVAL_SECONDS)
        now = _offset(clock)
        if abs(now - offset) > JUMP_SECONDS:
            log.warning("the clock was set; looking at everything again", seconds=round(now - offset))
            offset = now
            on_jump()


def _offset(clock: Callable[[], datetime]) -> float:
    return clock().timestamp() - time.monotonic()
