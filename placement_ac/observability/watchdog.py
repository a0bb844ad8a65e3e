"""
Watches the event loop: notes in `Health` that it runs, and logs where it is blocked.

A blocked loop cannot log, so a thread does. Restarting the process is left to the kubelet, whose probes a
blocked loop does not answer.
"""

import asyncio
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import structlog

from placement_ac.observability.health import TURN_SECONDS, Health

log = structlog.get_logger(__name__)

BLOCKED_SECONDS: Final = 5.0
"""A loop that has not run for this long is logged, once."""


class _Loop:
    """The event loop as the thread sees it: its thread, and when it last ran."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.turned = time.monotonic()


@asynccontextmanager
async def watch_event_loop(health: Health) -> AsyncIterator[None]:
    """Watch the running loop as long as the `with` lasts."""
    loop, end = _Loop(), threading.Event()
    guard = threading.Thread(target=_report_blocked_loop, args=(loop, end), name="watchdog", daemon=True)
    guard.start()
    turning = asyncio.create_task(_note_turns(health, loop))
    try:
        yield
    finally:
        turning.cancel()
        end.set()
        await asyncio.gather(turning, asyncio.to_thread(guard.join), return_exceptions=True)


async def _note_turns(health: Health, loop: _Loop) -> None:
    while True:
        health.note_loop_turn()
        loop.turned = time.monotonic()
        await asyncio.sleep(TURN_SECONDS)


def _report_blocked_loop(loop: _Loop, end: threading.Event) -> None:
    """Log each block of the loop once."""
    reported = 0.0
    while not end.wait(BLOCKED_SECONDS / 4):
        turned = loop.turned
        if turned != reported and time.monotonic() - turned > BLOCKED_SECONDS:
            reported = turned
            log.error("the event loop is blocked", where=_thread_stack(loop.thread))


def _thread_stack(thread: int) -> str:
    """Return the stack of a thread as places in the code, innermost last, without values."""
    stack = traceback.extract_stack(sys._current_frames().get(thread))  # noqa: SLF001  # there is no public way
    return " > ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in stack[-4:])
