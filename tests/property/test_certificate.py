"""What is read of a certificate without the library for it, the library reads alike: of whatever bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement_ac.certificate import good
from tests.unit.test_certificate import ALL, RSA, library, made, pem

pytestmark = pytest.mark.long

WHOLE = (made(), made(RSA), made(subject=ALL))
HEAD = 300
"""The bytes before the key, of all of them: what is in key and signature is not looked at."""
BYTES = st.integers(0, 255) | st.sampled_from(
    (0x02, 0x06, 0x0C, 0x13, 0x17, 0x18, 0x30, 0x31, 0x80, 0x81, 0x82)
)
CHANGES = st.lists(st.tuples(st.sampled_from(("put", "add", "cut")), st.integers(0, HEAD), BYTES), max_size=3)


@settings(max_examples=2000, deadline=None)
@given(st.sampled_from(WHOLE), CHANGES)
def test_nothing_is_read_that_the_library_refuses(der: bytes, changes: list[tuple[str, int, int]]) -> None:
    changed = bytearray(der)
    for how, at, byte in changes:
        changed[at : at + (how != "add")] = b"" if how == "cut" else bytes((byte,))
    read = good(pem(bytes(changed)))
    assert read is None or read == library(pem(bytes(changed)))


@settings(max_examples=500, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 800), st.sampled_from(" \t\r\n\v=-Az09+/")), max_size=3))
def test_so_is_the_text_around_it(changes: list[tuple[int, str]]) -> None:
    text = list(pem(made()))
    for at, character in changes:
        text[at % len(text)] = character
    read = good("".join(text))
    assert read is None or read == library("".join(text))
