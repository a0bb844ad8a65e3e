"""
The standard streams of the commands: text that others wrote cannot control a terminal.

Every command writes to these streams, by click, logs or Python itself.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TextIO

from placement_ac.core.api.printable import visible

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
