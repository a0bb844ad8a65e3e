"""Whatever a Secret holds, it is judged: nothing that reads a kubeconfig raises."""

import base64
import json

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given, settings
from hypothesis import strategies as st

from placement_ac.core.kubeconfig.read import read_kubeconfig
from placement_ac.core.kubeconfig.source import ClusterAccess, Unusable
from placement_ac.core.kubeconfig.write import write_kubeconfig
from tests.support.builders import encoded
from tests.support.kubeconfigs import AUTHORITY, CERTIFICATE, PAIR, SERVER, kubeconfig

DER = x509.load_pem_x509_certificate(CERTIFICATE.encode()).public_bytes(Encoding.DER)
MUTATIONS = st.lists(st.tuples(st.integers(0, len(DER) - 1), st.integers(0, 255)), max_size=4)
TAGS = (
    "bool",
    "int",
    "float",
    "timestamp",
    "binary",
    "null",
    "str",
    "set",
    "omap",
    "pairs",
    "seq",
    "map",
    "x",
)
VALUES = ("''", "abc", "-", "1:99", "2024-13-45", "0x", "1e999", "[a]", "{a: b}", "=", "<<", "{? {a: b} : c}")
TEXT = """a: {}
users: [{{name: u, user: {{token: {}}}}}]
clusters: [{{name: c, cluster: {{server: "https://a:1", insecure-skip-tls-verify: {}}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
"""
TAGGED = st.builds("!!{} {}".format, st.sampled_from(TAGS), st.sampled_from(VALUES))
SCRIBBLE = st.lists(
    st.tuples(st.integers(0, 250), st.sampled_from("!&*{}[]:-0. \n\"'%@`=<>|?,#~\t")), max_size=4
)


@settings(max_examples=300)
@given(MUTATIONS)
def test_any_certificate_is_judged(mutations: list[tuple[int, int]]) -> None:
    der = bytearray(DER)
    for at, byte in mutations:
        der[at] = byte
    pem = f"-----BEGIN CERTIFICATE-----\n{base64.encodebytes(der).decode()}-----END CERTIFICATE-----\n"
    user = PAIR | {"client-certificate-data": encoded(pem)}
    cluster = {"certificate-authority-data": encoded(AUTHORITY + pem)}
    assert isinstance(
        read_kubeconfig(json.dumps(kubeconfig(user, cluster)).encode()), (ClusterAccess, Unusable)
    )
    assert isinstance(write_kubeconfig(SERVER, pem, "t", "c"), (bytes, Unusable))


@settings(max_examples=300)
@given(TAGGED, TAGGED, TAGGED, SCRIBBLE)
def test_any_yaml_is_judged(a: str, token: str, flag: str, scribble: list[tuple[int, str]]) -> None:
    text = list(TEXT.format(a, token, flag))
    for at, character in scribble:
        text[at % len(text)] = character
    assert isinstance(read_kubeconfig("".join(text).encode()), (ClusterAccess, Unusable))
