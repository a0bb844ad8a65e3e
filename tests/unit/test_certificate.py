"""Which certificates are read without the library for it, and that it reads them alike."""

import base64
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from placement_ac.certificate import good

OLD, FAR = datetime(1951, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
BEGIN, END = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), datetime(2036, 1, 1, tzinfo=UTC)
Key = CertificateIssuerPrivateKeyTypes
P256 = ec.generate_private_key(ec.SECP256R1())
RSA = rsa.generate_private_key(65537, 2048)
KUBERNETES = {NameOID.COMMON_NAME: "kubernetes"}
ALL = {
    NameOID.COUNTRY_NAME: "DE",
    NameOID.ORGANIZATION_NAME: "Größe & Söhne",
    NameOID.EMAIL_ADDRESS: "ca@example.com",
    NameOID.DOMAIN_COMPONENT: "example",
}


def named(parts: dict[x509.ObjectIdentifier, str]) -> x509.Name:
    return x509.Name([x509.NameAttribute(oid, value) for oid, value in parts.items()])


def made(
    key: Key = P256,
    subject: dict[x509.ObjectIdentifier, str] = KUBERNETES,
    issuer: dict[x509.ObjectIdentifier, str] = KUBERNETES,
    *,
    begin: datetime = BEGIN,
    end: datetime = END,
    by: Key | None = None,
    extended: bool = True,
) -> bytes:
    """A certificate, DER."""
    builder = (
        x509.CertificateBuilder(named(issuer), named(subject), key.public_key(), 1)
        .not_valid_before(begin)
        .not_valid_after(end)
    )
    if extended:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("a.example")]), False)
    signer = by or key
    signed = builder.sign(signer, None if isinstance(signer, ed25519.Ed25519PrivateKey) else hashes.SHA256())
    return signed.public_bytes(Encoding.DER)


def pem(der: bytes) -> str:
    text = base64.encodebytes(der).decode()
    return f"-----BEGIN CERTIFICATE-----\n{text}-----END CERTIFICATE-----"


def library(text: str) -> tuple[datetime, datetime] | None:
    """What the library says."""
    try:
        found = x509.load_pem_x509_certificate(text.encode())
    except Exception:  # of many kinds
        return None
    return found.not_valid_before_utc, found.not_valid_after_utc


def put(der: bytes, old: str, new: str) -> bytes:
    """It, with the first of some bytes replaced by as many others, in hexadecimal."""
    assert bytes.fromhex(old) in der
    assert len(old) == len(new)
    return der.replace(bytes.fromhex(old), bytes.fromhex(new), 1)


@pytest.mark.filterwarnings("ignore:Parsed a serial number")
@pytest.mark.parametrize(
    ("text", "span"),
    [
        pytest.param(pem(made()), (BEGIN, END), id="P-256"),
        pytest.param(pem(made(RSA)), (BEGIN, END), id="RSA"),
        pytest.param(pem(made(ec.generate_private_key(ec.SECP521R1()))), (BEGIN, END), id="P-521"),
        pytest.param(pem(made(ed25519.Ed25519PrivateKey.generate())), (BEGIN, END), id="Ed25519"),
        pytest.param(pem(made(by=RSA)), (BEGIN, END), id="signed with another key"),
        pytest.param(pem(made(subject=ALL)), (BEGIN, END), id="another subject, in letters of all kinds"),
        pytest.param(pem(made(issuer={})), (BEGIN, END), id="no issuer"),
        pytest.param(pem(made(begin=OLD, end=FAR)), (OLD, FAR), id="another century"),
        pytest.param(pem(put(made(), "020101", "020100")), (BEGIN, END), id="kubeadm's serial number 0"),
        pytest.param(pem(made()).replace("\n", "\r\n"), (BEGIN, END), id="lines as Windows ends them"),
    ],
)
def test_usual_ones_are_read_as_the_library_reads_them(text: str, span: tuple[datetime, datetime]) -> None:
    assert good(text) == span == library(text)


VERSION, SERIAL, CRITICAL = "a003020102", "020101", "0101ff"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param(pem(b""), id="nothing in it"),
        pytest.param(pem(made() + b"\0"), id="something after it"),
        pytest.param(pem(made()[:-1]), id="cut off"),
        pytest.param(pem(put(made(), VERSION, "a003020101")), id="version 2"),
        pytest.param(pem(put(made(), VERSION, "a003020100")), id="version 1, told"),
        pytest.param(pem(made(extended=False)), id="no extensions"),
        pytest.param(pem(put(made(), SERIAL, "020181")), id="a negative serial number"),
        pytest.param(pem(put(made(), CRITICAL, "010100")), id="a default that is told"),
        pytest.param(pem(put(made(), CRITICAL, "010101")), id="true in another way"),
        pytest.param(pem(put(made(subject=ALL), "13024445", "13024440")), id="an @ in a PrintableString"),
        pytest.param(pem(put(made(subject=ALL), "c3b6", "c3c3")), id="no UTF-8"),
        pytest.param(pem(put(made(), "170d3236303130", "170d3236313330")), id="month 13"),
        pytest.param(pem(made(dsa.generate_private_key(1024))), id="an odd key"),
        pytest.param(pem(made()).replace("\n", "\n\n", 2), id="an empty line"),
        pytest.param(pem(made()).replace("CERTIFICATE", "TRUSTED CERTIFICATE"), id="another label"),
        pytest.param(pem(made(subject={NameOID.COMMON_NAME: "x" * 64} | ALL) * 30), id="too long"),
    ],
)
def test_of_any_other_one_nothing_is_said(text: str) -> None:
    assert good(text) is None
