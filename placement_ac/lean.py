"""Libraries less what they take along or hold, and nobody here asks for."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

TLS_BUFFER: Final = 16 * 1024
"""What is read at once of an encrypted connection, in bytes: the largest record that TLS has.

asyncio's own is 256 KiB, for as long as the connection lasts: with 14 watches and 16 requests, 7 MB.
"""


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Let imports of these packages fail, as if they were not installed; what is imported already stays."""
    hidden = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None: as importlib has it
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def hold_little_for_tls() -> None:
    """Let asyncio hold less for each encrypted connection of this process from now on.

    The attribute is not documented; a Python that has none reads as it likes.
    """
    from asyncio import sslproto  # noqa: PLC0415  # not every command has a loop

    if hasattr(sslproto.SSLProtocol, "max_size"):
        sslproto.SSLProtocol.max_size = TLS_BUFFER
