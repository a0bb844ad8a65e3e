"""
SSL contexts for API servers, TLS errors, and whether the files behind a context have changed.

OpenSSL reads client certificates from files only. Keeps digests of files, never their content.
"""

import contextlib
import hashlib
import io
import os
import ssl
import sys
import tempfile
from asyncio import sslproto
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from placement_ac.core.api.errors import LoginFailed
from placement_ac.core.kubeconfig.expiry import CERTIFICATE
from placement_ac.core.kubeconfig.source import ClusterAccess

Digests = Mapping[str, str]
"""Path of a file → digest of its content; "" if it cannot be read."""

BUFFER_BYTES: Final = 32 * 1024
"""The buffer of each encrypted connection: two records of TLS.

asyncio's has 256 KiB, and OpenSSL keeps as much again: with those, 100 connections took 70 MB instead of 25.
"""
sslproto.SSLProtocol.max_size = BUFFER_BYTES  # asyncio has no other way to set it

_SERVER_IS_AWAY: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
"""A connection that was closed in the middle: no certificate was refused."""


def is_tls_error(error: BaseException) -> bool:
    """Whether an error of aiohttp means that the server's certificate or ours was not accepted."""
    cause = error.__cause__ or error  # aiohttp makes an OSError of an alert that comes after the handshake
    return isinstance(cause, ssl.SSLError) and not isinstance(cause, _SERVER_IS_AWAY)


def digests_of(files: Iterable[str]) -> Digests:
    """Return the digest of each file as it is now."""
    return {path: _digest(path) for path in files}


def _digest(path: str) -> str:
    file = Path(path)
    try:  # a pipe can be read only once
        return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
    except OSError:
        return ""


def ssl_context(access: ClusterAccess) -> ssl.SSLContext:
    """Return a context that trusts what Go trusts. Raises LoginFailed.

    In Go, any certificate among the authorities is trusted, one that is no root as well; it may lack what
    RFC 5280 asks of an authority (Python 3.13 and newer insist on it); and a name in the subject counts for
    nothing.
    """
    try:
        context = ssl.create_default_context(cadata=access.authority or None)
    except ssl.SSLError:
        raise LoginFailed("has certificate-authority-data that is no certificate") from None
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.hostname_checks_common_name = False
    if access.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if access.certificate:
        try:
            _load_client_certificate(context, access.certificate, access.key)
        except ssl.SSLError:
            raise LoginFailed("has a client certificate or key that is none, or they do not match") from None
    return context


def certificates_in(text: str) -> str:
    """Return the PEM blocks of `text` that are certificates; anything else is left out, as Go does.

    OpenSSL reads them: `cryptography` takes 0.1 s and 8 MB to load.
    """
    return "".join(f"{block}\n" for block in CERTIFICATE.findall(text) if _is_certificate(block))


def _is_certificate(block: str) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=block)
    except ssl.SSLError:
        return False
    return True


def tls_digest(access: ClusterAccess) -> str:
    """Return a digest of what `ssl_context` reads: another one asks for another context."""
    trusted = ssl.get_default_verify_paths().cafile
    system = _digest(trusted) if trusted and not access.authority else ""
    parts = (access.insecure, access.authority, access.certificate, access.key, system)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _load_client_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Load them from a private file, removed on return."""
    with _private_file() as (file, path):
        file.write(f"{certificate}\n{key}\n".encode())
        context.load_cert_chain(path, password="")  # or it asks for one at the terminal


@contextlib.contextmanager
def _private_file() -> Iterator[tuple[io.FileIO, Path]]:
    """Yield an unbuffered file and its name; on Linux it is in memory, and so gone after a crash as well."""
    if sys.platform == "linux":
        with os.fdopen(os.memfd_create("client.pem"), "wb", buffering=0) as file:
            yield file, Path(f"/proc/self/fd/{file.fileno()}")
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "client.pem"
            with path.open("wb", buffering=0) as file:
                yield file, path
