"""
The console of the commands that show tables: only rich may send escape sequences, those of colours.

It writes to the stream below those of the commands, and shows the texts that it prints likewise.
"""

import errno
import os
import sys
from collections.abc import Iterator
from typing import Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from placement_ac.cli.terminal import stream_below
from placement_ac.core.api.printable import visible

UNWRAPPED: Final = 100_000
"""Columns without a terminal: output for programs is not wrapped, as with kubectl."""


class ShownConsole(Console):
    """A console whose texts cannot control the terminal; its colours can.

    It leaves a closed pipe, and so the exit code, to the command; rich would exit with 1.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            shown = segment.text if segment.control else visible(segment.text)
            yield segment if shown == segment.text else Segment(shown, segment.style)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def console() -> Console:
    """Return a console on the current stdout."""
    terminal = sys.stdout.isatty()
    width = None if terminal else UNWRAPPED
    return ShownConsole(file=stream_below(sys.stdout), width=width, highlight=False, soft_wrap=not terminal)
