"""
The standard streams of the commands: text that others wrote cannot control a terminal.

Every command writes to these streams, by click, rich, logs or Python itself. Only rich may send escape
sequences, those of colours: it writes to the stream below, and shows the texts that it prints likewise.
"""

import errno
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from placement_ac.core.api.printable import visible

UNWRAPPED: Final = 100_000
"""Columns without a terminal: output for programs is not wrapped, as with kubectl."""
_NAMES: Final = ("stdout", "stderr")


class _ShownStream:
    """A text stream that shows control and format characters. It has no `buffer`, which would bypass it."""

    def __init__(self, below: TextIO) -> None:
        self.below = below

    def write(self, text: str | bytes) -> int:
        """Write a text. As there is no `buffer`, click passes the completions of a shell as UTF-8."""
        self.below.write(visible(text if isinstance(text, str) else text.decode()))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":
            raise AttributeError(name)
        return getattr(self.below, name)


def show_controls() -> None:
    """Show control characters in all that this process prints from now on."""
    for name in _NAMES:
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, _ShownStream):
            setattr(sys, name, _ShownStream(stream))


@contextmanager
def controls_shown() -> Iterator[None]:
    """Do so as long as the `with` lasts."""
    before = [getattr(sys, name) for name in _NAMES]
    show_controls()
    try:
        yield
    finally:
        for name, stream in zip(_NAMES, before, strict=True):
            setattr(sys, name, stream)


def stream_below(stream: TextIO) -> TextIO:
    """Return the stream to which a stream of a command writes."""
    return stream.below if isinstance(stream, _ShownStream) else stream


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
