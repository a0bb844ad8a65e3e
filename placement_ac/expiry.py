"""
Read from tokens and certificates what they say of themselves: that they are some, and how long they last.

Pure: no clock, nothing is verified, and nothing of what is read is quoted.
"""

import re
from base64 import urlsafe_b64decode
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import orjson

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

TOKEN: Final = "token"  # noqa: S105  its name
CLIENT_CERTIFICATE: Final = "client certificate"
AUTHORITY: Final = "certificate authority"

_CERTIFICATE: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----\s[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----", re.ASCII
)
"""As Go reads them: no other label, no headers."""
_KEY: Final = re.compile(
    r"-----BEGIN ((?:[A-Z0-9]+ )*PRIVATE KEY)-----\s[A-Za-z0-9+/=\s]+-----END \1-----", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Lifetime:
    """From when and until when something is good, in UTC; None where it does not say."""

    what: str
    issued: datetime | None = None
    expires: datetime | None = None


def of_token(token: str) -> Lifetime:
    """Return what a JSON Web Token says (RFC 7519: `exp`, `nbf`, `iat`); any other token says nothing."""
    claims = _claims(token)
    issued = _moment(claims.get("nbf")) or _moment(claims.get("iat"))
    return Lifetime(TOKEN, issued, _moment(claims.get("exp")))


def certificates(text: str) -> str:
    """Return those PEM blocks of `text` that are certificates, and leave out the others, as Go does."""
    return "".join(f"{block}\n" for block, _ in _parsed(text))


def of_authority(text: str) -> Lifetime | None:
    """Return how long one of these authorities is good at least, or None when there is no certificate."""
    found = [certificate for _, certificate in _parsed(text)]
    if not found:
        return None
    last = max(found, key=lambda certificate: certificate.not_valid_after_utc)
    return _of_certificate(AUTHORITY, last)


def of_client(certificate: str) -> Lifetime | None:
    """Return how long a client certificate is good (the first one counts), or None when it is none."""
    found = [parsed for _, parsed in _parsed(certificate)]
    return _of_certificate(CLIENT_CERTIFICATE, found[0]) if found else None


def is_key(key: str) -> bool:
    """Return whether that PEM is a private key which needs no password."""
    return _public(key) is not None


def belong_together(certificate: str, key: str) -> bool:
    """Return whether the certificate (the first one counts) is for that key."""
    found = _parsed(certificate)
    return bool(found) and found[0][1].public_key() == _public(key)


def first(*lifetimes: Lifetime | None) -> Lifetime:
    """Return the one that ends first; one that never ends comes last."""
    known = [lifetime for lifetime in lifetimes if lifetime and lifetime.expires]
    return min(known, key=lambda lifetime: lifetime.expires or _NEVER, default=Lifetime(""))


_NEVER: Final = datetime.max.replace(tzinfo=UTC)


def _claims(token: str) -> dict[str, Any]:
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = orjson.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return {}
    return claims if isinstance(claims, dict) else {}


def _moment(seconds: object) -> datetime | None:
    """A NumericDate; one that is none, or beyond the calendar, says nothing."""
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool):
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _of_certificate(what: str, certificate: "Certificate") -> Lifetime:
    return Lifetime(what, certificate.not_valid_before_utc, certificate.not_valid_after_utc)


def _parsed(text: str) -> list[tuple[str, "Certificate"]]:
    from cryptography import x509  # noqa: PLC0415  0.1 s to load, for the commands that need it

    found = []
    for block in _CERTIFICATE.findall(text):
        try:
            found.append((block, x509.load_pem_x509_certificate(block.encode())))
        except ValueError:
            continue
    return found


def _public(key: str) -> object:
    """The public half of a private key, or None."""
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415  like its neighbour
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415  likewise

    block = _KEY.search(key)
    if block is None:
        return None
    try:
        return load_pem_private_key(block[0].encode(), password=None).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):  # a TypeError: it has a password
        return None
