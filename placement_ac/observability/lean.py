"""Imports and libraries less what they take along or hold, and nobody here asks for."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Final

TLS_BUFFER: Final = 16 * 1024
"""What is read at once of an encrypted connection, in bytes: the largest record that TLS has.

asyncio's own is 256 KiB, for as long as the connection lasts: with 14 watches and 16 requests, 7 MB.
"""
_AUTHORITIES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""OpenSSL's own variables: where it reads whom this machine trusts."""


def loaded(name: str) -> ModuleType:
    """Return a module of ours and import it, if need be, with what can be spared on the way.

    Nothing that is imported goes again, so the garbage collector need not look for that meanwhile: of the
    start of `run` that was a sixth, 0.09 s.
    """
    if name in sys.modules:
        return sys.modules[name]
    collects = gc.isenabled()
    gc.disable()
    try:
        with _trusting_nobody():
            return import_module(name)
    finally:
        if collects:
            gc.enable()


@contextmanager
def _trusting_nobody() -> Iterator[None]:
    """Let SSL contexts that are made meanwhile trust nobody, instead of all whom this machine trusts.

    aiohttp makes one when it is imported, for sessions that are given none: 2 MB and 50 ms for what no
    session here uses. One that forgets to bring its own trusts nobody then.
    """
    before = {name: os.environ.get(name) for name in _AUTHORITIES}
    os.environ.update(dict.fromkeys(_AUTHORITIES, os.devnull))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


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
