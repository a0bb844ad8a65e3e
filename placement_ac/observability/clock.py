"""
Notices that the wall clock was set: then timers for a time of day are wrong.

Timers use the monotonic clock, but wait for times of the wall clock: a token's expiry, or a deadline in an
annotation.
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
"""A smaller jump is ignored: credentials are renewed half a minute early anyway."""


async def watch_clock(clock: Callable[[], datetime], on_jump: Callable[[], None]) -> None:
    """Call `on_jump` whenever `clock` was set; ends only when cancelled."""
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
