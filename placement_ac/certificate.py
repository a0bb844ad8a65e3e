"""
Reads when a certificate is good that has the form that nearly all have: X.509 version 3 in strict DER, its
text in UTF-8 or less, signed with and for a key of RSA, ECDSA on a NIST curve or Ed25519.

Pure. Of any other one this says nothing, be it a certificate or not: that is left to the `cryptography`
package, which takes 8 MB and 30 ms to load, and so is loaded only when there is one. Nothing is accepted here
that it would refuse: `tests/property/test_certificate.py` compares the two. Source: RFC 5280, section 4.1.
"""

import re
from binascii import a2b_base64, b2a_base64
from datetime import UTC, datetime
from typing import Final

_BOOLEAN_TRUE: Final = b"\x01\x01\xff"
_INTEGER: Final = 0x02
_BITS: Final = 0x03
_OCTETS: Final = 0x04
_OID: Final = 0x06
_UTC_TIME: Final = 0x17
_TIME: Final = 0x18
_SEQUENCE: Final = 0x30
_SET: Final = 0x31
_EXTENSIONS: Final = 0xA3
_VERSION_3: Final = bytes.fromhex("a003020102")
_SERIAL_MOST: Final = 20
"""Bytes."""
_LONGEST: Final = 12_000
"""Characters of a PEM block: it bounds the time that reading takes. Usual are 500 to 3,000."""
_SIGNED_WITH: Final = frozenset(
    map(
        bytes.fromhex,
        (
            "06092a864886f70d0101050500",  # sha1WithRSAEncryption
            "06092a864886f70d01010b0500",  # sha256WithRSAEncryption
            "06092a864886f70d01010c0500",  # sha384WithRSAEncryption
            "06092a864886f70d01010d0500",  # sha512WithRSAEncryption
            "06082a8648ce3d040302",  # ecdsa-with-SHA256
            "06082a8648ce3d040303",  # ecdsa-with-SHA384
            "06082a8648ce3d040304",  # ecdsa-with-SHA512
            "06032b6570",  # Ed25519
        ),
    )
)
_KEYS: Final = frozenset(
    map(
        bytes.fromhex,
        (
            "06092a864886f70d0101010500",  # rsaEncryption
            "06072a8648ce3d020106082a8648ce3d030107",  # P-256
            "06072a8648ce3d020106052b81040022",  # P-384
            "06072a8648ce3d020106052b81040023",  # P-521
            "06032b6570",  # Ed25519
        ),
    )
)
_LINE: Final = r"[A-Za-z0-9+/]+"
_BLOCK: Final = re.compile(
    rf"-----BEGIN CERTIFICATE-----\r?\n((?:{_LINE}\r?\n)*{_LINE}={{0,2}}\r?\n)-----END CERTIFICATE-----"
)
_ID: Final = re.compile(rb"(?:(?:[\x81-\xff][\x80-\xff]{0,2})?[\x00-\x7f])+")
_MOMENT: Final = re.compile(rb"[0-9]{14}Z")
_TEXT: Final = {
    0x0C: re.compile(rb"(?s:.+)"),  # UTF8String; whether it is UTF-8 is asked apart
    0x13: re.compile(rb"[A-Za-z0-9 '()+,\-./:=?]+"),  # PrintableString
    0x16: re.compile(rb"[\x00-\x7f]+"),  # IA5String
}


def good(pem: str) -> tuple[datetime, datetime] | None:
    """Return from when until when the certificate in one PEM block is good, in UTC; None: not read here."""
    block = _BLOCK.fullmatch(pem) if len(pem) <= _LONGEST else None
    if block is None:
        return None
    text = "".join(block[1].split()).encode()
    try:
        der = a2b_base64(text, strict_mode=True)
        _refuse(b2a_base64(der, newline=False) != text)
        return _of_certificate(_whole(der, _SEQUENCE))
    except (ValueError, IndexError):  # IndexError: it ends too soon
        return None


def _of_certificate(content: bytes) -> tuple[datetime, datetime]:
    body, rest = _next(content, _SEQUENCE)
    signed_with, rest = _next(rest, _SEQUENCE)
    _check_bits(rest)
    _refuse(signed_with not in _SIGNED_WITH or not body.startswith(_VERSION_3))
    serial, rest = _next(body[len(_VERSION_3) :], _INTEGER)
    _check_serial(serial)
    same, rest = _next(rest, _SEQUENCE)
    _refuse(same != signed_with)
    issuer, rest = _next(rest, _SEQUENCE)
    validity, rest = _next(rest, _SEQUENCE)
    subject, rest = _next(rest, _SEQUENCE)
    key, rest = _next(rest, _SEQUENCE)
    _check_name(issuer)
    if subject != issuer:
        _check_name(subject)
    _check_key(key)
    _check_extensions(_whole(_whole(rest, _EXTENSIONS), _SEQUENCE))
    begin, rest = _moment(validity)
    end, rest = _moment(rest)
    _refuse(bool(rest))
    return begin, end


def _refuse(it: bool) -> None:
    if it:
        raise ValueError


def _next(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """Return what is in the first element of `data`, which has this tag, and what comes after it."""
    size, begin = data[1], 2
    if size >= 0x80:
        octets = size - 0x80
        begin += octets
        size = int.from_bytes(data[2:begin])
        _refuse(octets not in (1, 2) or size < (0x80, 0x100)[octets - 1])
    end = begin + size
    _refuse(data[0] != tag or end > len(data))
    return data[begin:end], data[end:]


def _whole(data: bytes, tag: int) -> bytes:
    """Return what is in the one element that `data` is."""
    content, rest = _next(data, tag)
    _refuse(bool(rest))
    return content


def _check_serial(serial: bytes) -> None:
    """Zero is none by RFC 5280, but what kubeadm gave its own authority for years."""
    _refuse(len(serial) > _SERIAL_MOST or serial[0] >= 0x80)
    _refuse(len(serial) > 1 and serial[0] == 0 and serial[1] < 0x80)


def _check_bits(data: bytes) -> None:
    content = _whole(data, _BITS)
    _refuse(len(content) < 2 or content[0] != 0)  # how many of the last byte's bits do not count


def _check_key(key: bytes) -> None:
    kind, rest = _next(key, _SEQUENCE)
    _refuse(kind not in _KEYS)
    _check_bits(rest)


def _check_name(name: bytes) -> None:
    while name:
        part, name = _next(name, _SET)
        value = _after_id(_whole(part, _SEQUENCE))
        tag = value[0]
        text = _whole(value, tag)
        _refuse(tag not in _TEXT or not _TEXT[tag].fullmatch(text))
        text.decode()


def _check_extensions(extensions: bytes) -> None:
    _refuse(not extensions)
    while extensions:
        one, extensions = _next(extensions, _SEQUENCE)
        _whole(_after_id(one).removeprefix(_BOOLEAN_TRUE), _OCTETS)


def _after_id(data: bytes) -> bytes:
    """Return what comes after the object identifier with which `data` begins."""
    content, rest = _next(data, _OID)
    _refuse(not _ID.fullmatch(content))
    return rest


def _moment(data: bytes) -> tuple[datetime, bytes]:
    """Return the time with which `data` begins, to the second, by RFC 5280; and what comes after it."""
    tag = _UTC_TIME if data[0] == _UTC_TIME else _TIME
    content, rest = _next(data, tag)
    if tag == _UTC_TIME:
        content = (b"19" if content[0] >= ord("5") else b"20") + content
    _refuse(not _MOMENT.fullmatch(content) or (tag == _TIME and content < b"2050"))
    month, day, hour, minute, second = (int(content[at : at + 2]) for at in range(4, 14, 2))
    return datetime(int(content[:4]), month, day, hour, minute, second, tzinfo=UTC), rest
