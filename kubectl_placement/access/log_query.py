"""The part of a container's log that is asked for, as the parameters of a request. Pure."""

from dataclasses import dataclass
from io import BytesIO
from typing import Final

BLOCK_BYTES: Final = 256 * 1024
"""A line that is longer is printed in parts."""


@dataclass(frozen=True, slots=True)
class LogQuery:
    """The part of each log to show; None or "": no bound."""

    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    since_seconds: int | None = None
    since_time: str = ""
    limit_bytes: int | None = None

    def parameters(self, container: str, *, follow: bool = False) -> dict[str, str]:
        """Return the query of a request (PodLogOptions)."""
        given: dict[str, object] = {
            "container": container,
            "follow": "true" if follow else None,
            "previous": "true" if self.previous else None,
            "timestamps": "true" if self.timestamps else None,
            "tailLines": self.tail,
            "sinceSeconds": self.since_seconds,
            "sinceTime": self.since_time or None,
            "limitBytes": self.limit_bytes,
        }
        return {name: str(value) for name, value in given.items() if value is not None}


def lines_of(block: bytes) -> list[bytes]:
    """Return the lines of a block with their line breaks; only LF ends one: a progress bar writes CR."""
    return BytesIO(block).readlines()


class LineSplitter:
    """Turns parts of a log into blocks of whole lines; only a very long line is split."""

    def __init__(self) -> None:
        self._rest = b""

    def add(self, part: bytes) -> bytes:
        """Return the whole lines so far, each with its line break; b"": none."""
        block, found, rest = (self._rest + part).rpartition(b"\n")
        if not found and len(rest) > BLOCK_BYTES:
            self._rest = b""
            return rest
        self._rest = rest
        return block + found

    def end(self) -> bytes:
        """Return the last line if it has no line break."""
        rest, self._rest = self._rest, b""
        return rest


class StampedLines:
    """Lines with timestamps that may come again after a lost connection: each is returned once.

    `shown`: whether the caller wants the timestamps. A block that begins no line continues the last one.
    """

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self.last = ""
        """The time of the last line; "": none has come."""
        self._of_last = 0
        self._latest = ""
        """The latest time of all lines: two streams of a container may be out of order."""
        self._again: int | None = None
        """How many lines of the last time have come again; None: all that come are new."""
        self._is_open = False
        """The last line goes on in the next block."""
        self._dropped = False
        """The last line is not new."""

    def reconnect(self) -> None:
        """Expect lines again: an API server sends those of the whole second of the last one."""
        self._again = 0 if self.last else None
        self._is_open = False

    def new(self, block: bytes) -> bytes:
        """Return the lines of a block that are new."""
        return b"".join(filter(None, map(self._part, lines_of(block))))

    def _part(self, part: bytes) -> bytes:
        continues, self._is_open = self._is_open, not part.endswith(b"\n")
        if continues:
            return b"" if self._dropped else part
        stamp, _, text = part.partition(b" ")
        self._dropped = self._is_known(stamp.decode("ascii", "replace"))
        if self._dropped:
            return b""
        return part if self._shown else text

    def _is_known(self, when: str) -> bool:
        """Whether the next line, of this time, has come before."""
        if self._again is not None and when <= self._latest:
            if when == self.last:
                self._again += 1
                if self._again == self._of_last:
                    self._again = None
            return True
        self._again = None
        self._of_last = self._of_last + 1 if when == self.last else 1
        self.last, self._latest = when, max(when, self._latest)
        return False
