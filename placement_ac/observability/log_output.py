"""
Write log lines to a file that may be a pipe which nobody reads: it never fails, and waits once at most.

A pipe that is full for longer, or closed, loses lines instead of holding or ending the process.
"""

import os
import select
from contextlib import suppress
from typing import Final, TextIO

WAIT_SECONDS: Final = 0.1
"""How long a full pipe is waited for; until it takes a line again, the next ones do not wait."""
PIECE: Final = 512
"""Bytes that a pipe takes without waiting if it takes any (POSIX: PIPE_BUF, at least 512)."""


class LogOutput:
    """A file for log lines. `lost`: the lines that it did not take since `lost` was reset."""

    def __init__(self, file: TextIO) -> None:
        self.lost = 0
        self._file = file
        self._poll: select.poll | None = None
        with suppress(OSError, ValueError, AttributeError):  # a file in memory has no descriptor
            self._descriptor = file.fileno()
            self._poll = select.poll()
            self._poll.register(self._descriptor, select.POLLOUT)

    def write(self, line: str) -> bool:
        """Write a line; return whether all of it was taken."""
        try:
            taken = self._write(f"{line}\n")
        except (OSError, ValueError):  # closed, or the disk is full
            taken = False
        self.lost += not taken
        return taken

    def _write(self, text: str) -> bool:
        if self._poll is None:
            self._file.write(text)
            self._file.flush()
            return True
        rest = text.encode(errors="backslashreplace")
        while rest:
            wait = 0.0 if self.lost else WAIT_SECONDS
            if not self._poll.poll(wait * 1000):
                return False
            rest = rest[os.write(self._descriptor, rest[:PIECE]) :]
        return True
