"""
Read the lifetimes of tokens and certificates.

Pure: no clock. It verifies no signature and quotes nothing.
"""

import re
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import orjson

from placement_ac.core.kubeconfig.refusals import KubeconfigRefused, Refusal

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

TOKEN: Final = "token"  # noqa: S105  its name
CLIENT_CERTIFICATE: Final = "client certificate"
AUTHORITY: Final = "certificate authority"

CERTIFICATE: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----\s[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----", re.ASCII
)
"""As Go reads them: no other label, no headers."""
_KEY: Final = re.compile(
    r"-----BEGIN ((?:[A-Z0-9]+ )*PRIVATE KEY)-----\s[A-Za-z0-9+/=\s]+-----END \1-----", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Lifetime:
    """When something becomes valid and when it expires, in UTC; None where it is not known."""

    what: str
    issued: datetime | None = None
    expires: datetime | None = None


def token_lifetime(token: str) -> Lifetime:
    """Return the lifetime in a JSON Web Token (RFC 7519: `exp`, `nbf`, `iat`); other tokens have none."""
    claims = _claims(token)
    issued = _moment(claims.get("nbf")) or _moment(claims.get("iat"))
    return Lifetime(TOKEN, issued, _moment(claims.get("exp")))


def authorities_lifetime(text: str) -> tuple[str, Lifetime | None]:
    """Return the PEM blocks of `text` that are certificates, and the lifetime of the one that expires last.

    Anything else is left out, as Go does; without any certificate, this is ("", None).
    """
    certificates = tuple(_parsed(text)) if text else ()
    last = max(certificates, key=lambda certificate: certificate.expires, default=None)
    lifetime = Lifetime(AUTHORITY, last.issued, last.expires) if last else None
    return "".join(f"{certificate.pem}\n" for certificate in certificates), lifetime


def key_pair_lifetime(certificate: str, key: str) -> Lifetime:
    """Return the lifetime of a client certificate, as PEM: the first one counts.

    Raises KubeconfigRefused unless `key` is its private key, without a password.
    """
    leaf, public = next(_parsed(certificate), None), _public_of_key(key)
    certified = _public_of_certificate(leaf) if leaf else None
    if leaf is None or certified is None:
        raise KubeconfigRefused(Refusal.NO_PAIR if public is None else Refusal.NO_CERTIFICATE)
    if public is None:
        raise KubeconfigRefused(Refusal.NO_KEY)
    if certified != public:
        raise KubeconfigRefused(Refusal.OTHER_KEY)
    return Lifetime(CLIENT_CERTIFICATE, leaf.issued, leaf.expires)


def first_to_end(*lifetimes: Lifetime | None) -> Lifetime:
    """Return the one that expires first; one that never expires comes last."""
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
    """Return the time of a NumericDate; None for anything else, or beyond the calendar."""
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool):
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


@dataclass(frozen=True, slots=True)
class _Parsed:
    pem: str
    certificate: "Certificate"
    issued: datetime
    expires: datetime


# cryptography raises errors of many kinds, some of them bare Exceptions, for an invalid certificate or
# key: an X.509 version that is not 1 or 3, an unknown curve, an impossible year. Their texts may quote it.


def _parsed(text: str) -> Iterator[_Parsed]:
    from cryptography import x509  # noqa: PLC0415  0.1 s to load, for the commands that need it

    for block in CERTIFICATE.findall(text):
        try:
            loaded = x509.load_pem_x509_certificate(block.encode())
            parsed = _Parsed(block, loaded, loaded.not_valid_before_utc, loaded.not_valid_after_utc)
        except Exception:  # noqa: S112  of many kinds, InvalidVersion too; it is left out, as in Go
            continue
        yield parsed


def _public_of_certificate(parsed: _Parsed) -> object:
    """Return the key that a certificate is for, or None."""
    try:
        return parsed.certificate.public_key()
    except Exception:  # UnsupportedAlgorithm, ValueError and more, by the curve: a Secret must not stop us
        return None


def _public_of_key(key: str) -> object:
    """Return the public half of a private key, or None."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415  likewise

    block = _KEY.search(key)
    if block is None:
        return None
    try:
        # Only the public half is of interest; to test the primes of an RSA key takes seconds.
        private = load_pem_private_key(block[0].encode(), password=None, unsafe_skip_rsa_key_validation=True)
        return private.public_key()
    except Exception:  # as above, and TypeError for one with a password
        return None
