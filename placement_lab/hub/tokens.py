"""
JSON Web Tokens signed with the hub's key (ES256). The claims are checked elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cached_property
from typing import Any

import orjson
from cachetools import LRUCache, cachedmethod
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

SHA256 = ec.ECDSA(hashes.SHA256())
HALF = 32  # bytes of each of the two numbers that make a signature


class TokenSigner:
    """Signs and verifies tokens. The key is generated on first use; verified tokens are cached."""

    def __init__(self) -> None:
        self._read: LRUCache[str, dict[str, Any] | None] = LRUCache(1024)

    @cached_property
    def _key(self) -> ec.EllipticCurvePrivateKey:
        return ec.generate_private_key(ec.SECP256R1())

    @cached_property
    def _head(self) -> str:
        public = self._key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return _encode(orjson.dumps({"alg": "ES256", "kid": _encode(hashlib.sha256(public).digest())}))

    def sign(self, claims: dict[str, Any]) -> str:
        """Return a signed token with these claims."""
        signed = f"{self._head}.{_encode(orjson.dumps(claims))}"
        r, s = decode_dss_signature(self._key.sign(signed.encode(), SHA256))
        return f"{signed}.{_encode(r.to_bytes(HALF, 'big') + s.to_bytes(HALF, 'big'))}"

    @cachedmethod(lambda self: self._read)
    def verify(self, token: str) -> dict[str, Any] | None:
        """Return the claims of a token, None if this key did not sign it."""
        signed, _, signature = token.rpartition(".")
        head, _, claims = signed.partition(".")
        if head != self._head:
            return None
        try:
            numbers = _decode(signature)
            if _encode(numbers) != signature:
                return None  # not canonical base64
            r, s = int.from_bytes(numbers[:HALF], "big"), int.from_bytes(numbers[HALF:], "big")
            self._key.public_key().verify(encode_dss_signature(r, s), signed.encode(), SHA256)
        except (InvalidSignature, ValueError):
            return None
        content: dict[str, Any] = orjson.loads(_decode(claims))
        return content


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
