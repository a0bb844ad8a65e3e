"""Authorities as people have them, and the certificates that they gave to a server."""

import ssl
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

ADDRESS = "127.0.0.1"


@dataclass(frozen=True)
class ServedBy:
    """The authority that a client trusts, and the certificate and key of the server, as PEM."""

    authority: bytes
    certificate: bytes
    key: bytes

    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "server.pem"
            path.write_bytes(self.certificate + self.key)
            context.load_cert_chain(path)
        return context


class _Party:
    """A key with a certificate. It has no extension but those given: no key identifiers, no key usage."""

    def __init__(self, name: str, issuer: "_Party | None", *extensions: x509.ExtensionType) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(self.name)
            .issuer_name(issuer.name if issuer else self.name)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        self.certificate = builder.sign((issuer or self).key, hashes.SHA256())
        self.pem = self.certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def authorities() -> dict[str, tuple[ServedBy, bool]]:
    """Return each by its name, and whether Go trusts it."""
    is_ca = x509.BasicConstraints(ca=True, path_length=None)
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(ADDRESS))])
    root = _Party("root", None, is_ca)
    intermediate = _Party("intermediate", root, is_ca)
    server = _Party("server", root, names)
    below = _Party("server", intermediate, names)
    alone = _Party("server", None, names)
    unnamed = _Party(ADDRESS, root)
    return {
        "a CA without key identifiers": (ServedBy(root.pem, server.pem, server.key_pem), True),
        "an intermediate alone": (ServedBy(intermediate.pem, below.pem, below.key_pem), True),
        "the server's own certificate": (ServedBy(alone.pem, alone.pem, alone.key_pem), True),
        "a root, and the server sends no intermediate": (ServedBy(root.pem, below.pem, below.key_pem), False),
        "a name in the subject alone": (ServedBy(root.pem, unnamed.pem, unnamed.key_pem), False),
    }
