"""Which kubeconfigs are refused, and why."""

import re
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization as ser

from placement_ac.core.kubeconfig.parse import MARKS_MAX, SIZE_MAX
from placement_ac.core.kubeconfig.read import read_kubeconfig
from placement_ac.core.kubeconfig.refusals import NotSupportedHere, Refusal, StricterRule
from placement_ac.core.kubeconfig.source import Unusable
from tests.support.builders import encoded
from tests.support.kubeconfigs import (
    AUTHORITY,
    CERTIFICATE,
    KEY,
    NO_PEM,
    PAIR,
    SECRET,
    SERVER,
    TOKEN,
    issued,
    kubeconfig,
    others,
    read,
    second_version,
)

ODD_CURVE = """-----BEGIN CERTIFICATE-----
MIIBIzCB7qADAgECAhQg2KJyb0xZXVi/+TXjqsy+KfA4+jAKBggqhkjOPQQDAjAM
MQowCAYDVQQDDAF4MCAXDTI2MTEyMTE5NTYyNVoYDzIxMjYxMDI4MTk1NjI1WjAM
MQowCAYDVQQDDAF4MDIwEAYHKoZIzj0CAQYFK4EEAAYDHgAEqUaUjy43Om3YJ7lt
1s12dzqg5O4+6zxUy5NdnqNTMFEwHQYDVR0OBBYEFLm8qDlFaWbzputuBNCAwaJx
tDcoMB8GA1UdIwQYMBaAFLm8qDlFaWbzputuBNCAwaJxtDcoMA8GA1UdEwEB/wQF
MAMBAf8wCgYIKoZIzj0EAwIDJAAwIQIOSdKB4fJ38uzGtJA1NcYCDwC45fHL67xg
RArAYUrG1Q==
-----END CERTIFICATE-----
"""
"""For a key on secp112r1, which cryptography does not know."""


def locked(key: str) -> str:
    private = ser.load_pem_private_key(key.encode(), None)
    lock = ser.BestAvailableEncryption(SECRET.encode())
    return private.private_bytes(ser.Encoding.PEM, ser.PrivateFormat.PKCS8, lock).decode()


def bomb(name: str, twice: str) -> list[bytes]:
    """Lines of YAML of which each has all of the one before, twice."""
    lines = [f"{name}0: &{name}0 {{x: y}}"]
    for level in range(1, 40):
        content = twice.format(*[f"*{name}{level - 1}"] * 2)
        lines.append(f"{name}{level}: &{name}{level} {content}")
    return [line.encode() for line in lines]


def deep(levels: int) -> Any:
    return [deep(levels - 1)] if levels else []


REFUSED = [
    (Refusal.TOO_LARGE, kubeconfig({"token": "x" * SIZE_MAX})),
    (Refusal.TOO_MANY, kubeconfig(extensions=[0] * MARKS_MAX)),
    (Refusal.TOO_DEEP, kubeconfig(extensions=deep(50))),
    (Refusal.NO_MAP, [SECRET]),
    (Refusal.NO_MAP, SECRET),
    (Refusal.NO_MAP, None),
    ("fix users.0.user.token: it should be a string", kubeconfig({"token": [SECRET]})),
    (
        "fix clusters.0.cluster.insecure-skip-tls-verify: it should be true or false",
        kubeconfig(cluster={"insecure-skip-tls-verify": "false"}),
    ),
    ("fix users.0.user.exec: it should be a map", kubeconfig(TOKEN | {"exec": SECRET})),
    ("fix users: it should be a list", kubeconfig(users={"u": SECRET})),
    ("fix users.0: it should be a map", kubeconfig(users=[SECRET])),
    (Refusal.NOT_CONFIG, kubeconfig(kind="Secret")),
    (Refusal.NOT_CONFIG, kubeconfig(apiVersion="v2")),
    (Refusal.SAME_NAME, kubeconfig(users=[*kubeconfig()["users"], *kubeconfig()["users"]])),
    (Refusal.SAME_NAME, kubeconfig(clusters=[*kubeconfig()["clusters"], *kubeconfig()["clusters"]])),
    (Refusal.SAME_NAME, kubeconfig(contexts=[*kubeconfig()["contexts"], *kubeconfig()["contexts"]])),
    (
        Refusal.NOT_BASE64.format(field="certificate-authority-data"),
        kubeconfig(cluster={"certificate-authority-data": f"{SECRET}!"}),
    ),
    (
        Refusal.NOT_BASE64.format(field="certificate-authority-data"),
        kubeconfig(cluster={"certificate-authority-data": "QU JD"}),
    ),
    (
        Refusal.NOT_BASE64.format(field="client-key-data"),
        kubeconfig(users=others("users", "user", {"client-key-data": SECRET})),
    ),
    (Refusal.TOKEN_FILE, kubeconfig({"tokenFile": "/token"})),
    (Refusal.TOKEN_FILE, kubeconfig(users=others("users", "user", {"tokenFile": "/token"}))),
    (Refusal.INSECURE, kubeconfig(cluster={"insecure-skip-tls-verify": True})),
    (
        Refusal.INSECURE,
        kubeconfig(
            clusters=others("clusters", "cluster", {"server": SERVER, "insecure-skip-tls-verify": True})
        ),
    ),
    (Refusal.AUTHORITY_FILE, kubeconfig(cluster={"certificate-authority": "/etc/passwd"})),
    (Refusal.NO_SERVER, kubeconfig(cluster={"server": ""})),
    (Refusal.NO_SERVER, kubeconfig(clusters=others("clusters", "cluster", {}))),
    (Refusal.NO_CONTEXT, kubeconfig(contexts=[])),
    (Refusal.NO_CONTEXT, kubeconfig(current_context=None)),
    (Refusal.NO_CLUSTER, kubeconfig(clusters=[])),
    (Refusal.BASIC, kubeconfig({"username": "u", "password": SECRET})),
    (Refusal.BASIC, kubeconfig(TOKEN | {"username": "u"})),
    (Refusal.BASIC, kubeconfig(TOKEN | {"username": "u"}, {"server": "http://worker1"})),
    (Refusal.HALF_A_PAIR, kubeconfig({"client-certificate": "/c"}, {"server": "http://worker1"})),
    (Refusal.EXEC, kubeconfig(TOKEN | {"exec": {"command": "x"}})),
    (Refusal.EXEC, kubeconfig(TOKEN | {"exec": {}})),
    (Refusal.AUTH_PROVIDER, kubeconfig(TOKEN | {"auth-provider": {"name": "gcp"}})),
    (Refusal.AS_NOBODY, kubeconfig(TOKEN | {"as-groups": ["system:masters"]})),
    (Refusal.IMPERSONATION, kubeconfig(TOKEN | {"as": "a\r\nX: y"})),
    (Refusal.IMPERSONATION, kubeconfig(TOKEN | {"as": "a", "as-user-extra": {"k": ["\0"]}})),
    (Refusal.FILE_AND_DATA, kubeconfig(PAIR | {"client-certificate": "/c"})),
    (Refusal.FILE_AND_DATA, kubeconfig(PAIR | {"client-key": "/k"})),
    (Refusal.HALF_A_PAIR, kubeconfig({"client-certificate-data": encoded(CERTIFICATE)})),
    (Refusal.PROXY, kubeconfig(cluster={"proxy-url": "http://"})),
    (Refusal.PROXY, kubeconfig(cluster={"proxy-url": "http://proxy:port"})),
    (Refusal.HALF_A_PAIR, kubeconfig(TOKEN | {"client-certificate": "/c"})),
    (Refusal.NO_PAIR, kubeconfig({"client-certificate-data": NO_PEM, "client-key-data": NO_PEM})),
    (Refusal.NO_CERTIFICATE, kubeconfig(PAIR | {"client-certificate-data": NO_PEM})),
    (
        Refusal.NO_CERTIFICATE,
        kubeconfig(PAIR | {"client-certificate-data": encoded(second_version(CERTIFICATE))}),
    ),
    (Refusal.NO_CERTIFICATE, kubeconfig(PAIR | {"client-certificate-data": encoded(ODD_CURVE)})),
    (Refusal.NO_KEY, kubeconfig(PAIR | {"client-key-data": NO_PEM})),
    (Refusal.NO_KEY, kubeconfig(PAIR | {"client-key-data": encoded(locked(KEY))})),
    (Refusal.OTHER_KEY, kubeconfig(PAIR | {"client-key-data": encoded(issued()[1])})),
    (Refusal.TOKEN, kubeconfig({"token": f"{SECRET}\n"})),
    (Refusal.TOKEN, kubeconfig({"token": f"{SECRET}\r\nX-Evil: 1"})),
    (Refusal.AUTHORITY, kubeconfig(cluster={"certificate-authority-data": NO_PEM})),
    (Refusal.AUTHORITY, kubeconfig(cluster={"certificate-authority-data": encoded(KEY)})),
    (
        Refusal.AUTHORITY,
        kubeconfig(cluster={"certificate-authority-data": encoded(second_version(AUTHORITY))}),
    ),
    *(
        (Refusal.ADDRESS, kubeconfig(cluster={"server": server}))
        for server in (
            "worker1:6443",
            "//worker1",
            "ftp://worker1",
            "https://",
            "https://worker1:port",
            "https://worker1:99999",
            "https://[::1",
            " https://worker1",
            "https://worker1\n",
            "unix:///run/x.sock",
            "file:///etc/passwd",
        )
    ),
    *(
        (Refusal.HOST, kubeconfig(cluster={"server": server}))
        for server in (
            "https://worker_1",
            "https://worker1.example.com.",
            f"https://{'a' * 254}",
            "https://[fe80::1%25eth0]:6443",
        )
    ),
    (Refusal.IPV6, kubeconfig(cluster={"server": "https://[::1]"})),
    (Refusal.PROXY, kubeconfig(cluster={"proxy-url": f"socks5h://{SECRET}:1"})),
    (Refusal.PROXY, kubeconfig(cluster={"proxy-url": f"{SECRET}:3128"})),
]
"""Kubeconfigs that are refused, whether written as YAML or as JSON."""
NOT_READ = [
    (Refusal.NOT_YAML, b"}{" + SECRET.encode()),
    (Refusal.NOT_YAML, b"\xff\xfe\xff"),
    (Refusal.NOT_YAML, b"\x00"),
    (Refusal.NOT_YAML, b"a: !!python/name:os.system"),
    (Refusal.NOT_YAML, b'{"token": "\\ud800"}'),
    *(
        (Refusal.NOT_YAML, f"users: [{{user: {{token: !!{tag} {SECRET}}}}}]".encode())
        for tag in ("bool", "int", "float")
    ),
    (Refusal.NOT_YAML, b"a: !!int ''"),
    (Refusal.TOO_DEEP, b"[" * 100_000),
    (Refusal.TOO_DEEP, b'{"a":' * 5_000),
    (Refusal.ALIASES, b"\n".join(bomb("a", "[{}, {}]"))),
    (Refusal.ALIASES, b"\n".join(bomb("a", "{{<<: [{}, {}]}}"))),
    (Refusal.ALIASES, b"a: &a [*a]"),
    (Refusal.ALIASES, b"a: *b"),
    (Refusal.NO_MAP, b""),
    (Refusal.NO_MAP, b"--- a\n--- {b: c}"),
]


@pytest.mark.parametrize(("why", "config"), REFUSED)
def test_a_refusal_quotes_nothing(why: str, config: object) -> None:
    assert read(config) == Unusable(why)
    assert SECRET not in why


@pytest.mark.parametrize(("why", "text"), NOT_READ)
def test_invalid_yaml_is_refused_without_quotation(why: str, text: bytes) -> None:
    assert read_kubeconfig(text) == Unusable(why)


def test_every_rule_has_a_kubeconfig_that_breaks_it() -> None:
    tested = {str(why) for why, _ in [*REFUSED, *NOT_READ]}
    open_ended = {Refusal.SHAPE, Refusal.NOT_BASE64}
    assert [rule for rule in Refusal if rule not in open_ended and rule not in tested] == []


def test_the_page_has_every_message_and_no_other() -> None:
    page = (Path(__file__).parents[4] / "docs/credentials.md").read_text()
    section = page.split("\n## What is checked in a kubeconfig\n")[1].split("\n## ")[0]
    on_page = re.findall(r"^\| `(.+?)` \|", section, re.MULTILINE)
    assert on_page == [
        message.replace("{", "<").replace("}", ">")
        for message in (*Refusal, *NotSupportedHere, *StricterRule)
    ]
