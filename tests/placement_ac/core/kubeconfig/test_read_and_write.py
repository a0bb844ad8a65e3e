"""Which kubeconfigs are used, why others are refused, and how ours is written."""

import base64
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization as ser
from cryptography.hazmat.primitives.asymmetric import rsa

from placement_ac.core.kubeconfig import expiry
from placement_ac.core.kubeconfig.parse import MARKS_MAX, SIZE_MAX, parse_kubeconfig
from placement_ac.core.kubeconfig.read import read_kubeconfig, read_profile, strict_problem
from placement_ac.core.kubeconfig.refusals import NotSupportedHere, Refusal, StricterRule
from placement_ac.core.kubeconfig.source import ClusterAccess, Unusable, UsableByKueueOnly
from placement_ac.core.kubeconfig.write import write_kubeconfig

Raw = dict[str, Any]
SECRET = "SeCrEt-42"
SERVER = "https://worker1.example.com:6443"
DAY = datetime(2030, 1, 1, tzinfo=UTC)
CA = trustme.CA()


def encoded(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


def issued(begin: datetime = DAY, end: datetime = datetime(2030, 2, 1, tzinfo=UTC)) -> tuple[str, str]:
    """A certificate that is good from then to then, and its key: PEM."""
    leaf = CA.issue_cert("client@example.com", not_before=begin, not_after=end)
    return leaf.cert_chain_pems[0].bytes().decode(), leaf.private_key_pem.bytes().decode()


def jwt(**claims: object) -> str:
    return ".".join(encoded(json.dumps(part)).rstrip("=") for part in ({}, claims, {"signature": SECRET}))


AUTHORITY = CA.cert_pem.bytes().decode()
CERTIFICATE, KEY = issued()
TOKEN = {"token": SECRET}
PAIR = {"client-certificate-data": encoded(CERTIFICATE), "client-key-data": encoded(KEY)}
NO_PEM = encoded("-----BEGIN X-----\nabc\n-----END X-----\n")
FAR = datetime(3000, 1, 1, tzinfo=UTC)
"""When an authority of trustme ends."""


def kubeconfig(user: Raw | None = None, cluster: Raw | None = None, **top: Any) -> Raw:
    """A kubeconfig with a token; the arguments replace parts of it."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": SERVER} | (cluster or {})}],
        "users": [{"name": "u", "user": dict(TOKEN) if user is None else user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    } | {name.replace("_", "-"): value for name, value in top.items()}


def read(config: object) -> ClusterAccess | Unusable:
    """A kubeconfig as it is read: the same from YAML and from JSON."""
    answer = read_kubeconfig(yaml.safe_dump(config).encode())
    assert read_kubeconfig(json.dumps(config).encode()) == answer
    return answer


def others(section: str, name: str, content: Raw) -> list[Raw]:
    """The entries of a kubeconfig, and one that the current context does not use."""
    return [*kubeconfig()[section], {"name": "other", name: content}]


def second_version(certificate: str) -> str:
    """It, as a certificate of X.509 version 2, for which cryptography has an error of no known kind."""
    der = x509.load_pem_x509_certificate(certificate.encode()).public_bytes(ser.Encoding.DER)
    assert der.count(b"\xa0\x03\x02\x01\x02") == 1
    second = der.replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x01")
    return f"-----BEGIN CERTIFICATE-----\n{encoded(second)}\n-----END CERTIFICATE-----\n"


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


@pytest.mark.parametrize(
    ("config", "access"),
    [
        pytest.param(kubeconfig(), ClusterAccess(SERVER, token=SECRET), id="a token"),
        pytest.param(
            kubeconfig(PAIR),
            ClusterAccess(
                SERVER,
                certificate=CERTIFICATE,
                key=KEY,
                expires=datetime(2030, 2, 1, tzinfo=UTC),
                expires_what=expiry.CLIENT_CERTIFICATE,
                issued=DAY,
            ),
            id="a client certificate",
        ),
        pytest.param(
            kubeconfig(
                cluster={
                    "server": f"{SERVER}/clusters/1/",
                    "certificate-authority-data": encoded(AUTHORITY),
                    "tls-server-name": "kubernetes",
                    "proxy-url": "http://proxy:3128",
                }
            ),
            ClusterAccess(
                f"{SERVER}/clusters/1",
                token=SECRET,
                authority=AUTHORITY,
                server_name="kubernetes",
                proxy="http://proxy:3128",
                expires=FAR,
                expires_what=expiry.AUTHORITY,
                issued=datetime(2000, 1, 1, tzinfo=UTC),
            ),
            id="all that is known of a cluster",
        ),
        *(
            pytest.param(
                kubeconfig(user, {"server": "HTTP://[::1]:80"} | more),
                ClusterAccess("http://[::1]:80"),
                id=name,
            )
            for name, user, more in (
                ("nobody over http", {}, {}),
                ("no token over http", TOKEN, {}),
                ("no certificate over http", PAIR, {}),
                ("no password over http", {"username": "u", "password": SECRET}, {}),
                ("no plugin over http", {"exec": {"command": "x"}}, {}),
                ("no authority over http", {}, {"certificate-authority-data": encoded(AUTHORITY)}),
                ("none that is none over http", {}, {"certificate-authority-data": NO_PEM}),
            )
        ),
        pytest.param(
            kubeconfig(cluster={"server": f"{SERVER}/a?x=1#y"}),
            ClusterAccess(f"{SERVER}/a", SECRET),
            id="a query",
        ),
        pytest.param(
            kubeconfig(cluster={"proxy-url": None, "insecure-skip-tls-verify": False}, preferences={}),
            ClusterAccess(SERVER, SECRET),
            id="null and false are nothing",
        ),
        pytest.param(kubeconfig(apiVersion=None, kind=None), ClusterAccess(SERVER, SECRET), id="no kind"),
        pytest.param(
            kubeconfig(users=others("users", "user", {"exec": {"command": "x"}})),
            ClusterAccess(SERVER, SECRET),
            id="a plugin of a user that is not used",
        ),
        pytest.param(
            kubeconfig(TOKEN | {"client-key-data": encoded(KEY)}),
            ClusterAccess(SERVER, SECRET),
            id="a key too many",
        ),
        pytest.param(
            kubeconfig({"token": f"{SECRET} \t"}), ClusterAccess(SERVER, SECRET), id="a blank at the end"
        ),
        pytest.param(
            kubeconfig(cluster={"proxy-url": "HTTP://proxy:3128"}),
            ClusterAccess(SERVER, SECRET, proxy="HTTP://proxy:3128"),
            id="a proxy in upper case",
        ),
    ],
)
def test_the_access_in_a_kubeconfig(config: Raw, access: ClusterAccess) -> None:
    assert read(config) == access


YAML = """
apiVersion: v1
kind: Config
clusters:
- name: {name}
  cluster: {{server: "https://worker1.example.com:6443"{more}}}
users: [{{name: u, user: {user}}}]
contexts: [{{name: {name}, context: {{cluster: {name}, user: u}}}}]
current-context: {name}
"""


def written(
    name: str = "x", more: str = "", user: str = f"{{token: {SECRET}}}", before: str = "", after: str = ""
) -> ClusterAccess | Unusable:
    """A kubeconfig with these pieces of YAML in it, as it is read."""
    return read_kubeconfig((before + YAML.format(name=name, more=more, user=user) + after).encode())


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param({"before": "---\n", "after": "---\n"}, id="two marks"),
        pytest.param({"after": "---\nkind: Secret\n"}, id="a second document"),
        pytest.param({"after": "---\n}{ [*x"}, id="a second one that is none"),
        *(
            pytest.param({"name": name}, id=name)
            for name in (
                "2026-08-01",
                "1:30",
                "1:30.5",
                "2024-13-45",
                "=",
                "2026-08-01T10:00:00Z",
                "0x",
                "1.2.3",
            )
        ),
        pytest.param({"more": ", extensions: [2024-13-45, 1:99, =, .inf, 0o7]"}, id="odd values"),
        pytest.param({"more": ", insecure-skip-tls-verify: n"}, id="n is false"),
        pytest.param({"more": ", insecure-skip-tls-verify: !!bool off"}, id="off is false"),
        pytest.param({"name": "!!timestamp 2026-08-01"}, id="a date by its tag"),
        pytest.param({"before": f"extensions: &t {SECRET}\n", "user": "{token: *t}"}, id="an alias"),
        pytest.param(
            {"before": f"extensions: &t {{token: {SECRET}}}\n", "user": "{<<: *t}"}, id="a merged alias"
        ),
    ],
)
def test_yaml_is_read_as_go_reads_it(pieces: dict[str, str]) -> None:
    assert written(**pieces) == ClusterAccess(SERVER, SECRET)


@pytest.mark.parametrize(
    "name",
    ["y", "N", "on", "OFF", "Yes", "1", "-1_000", "0x1f", "0o17", "017", "089", "1e3", ".5", "1.", ".inf"],
)
def test_a_value_that_is_not_a_string_in_go_is_refused(name: str) -> None:
    assert written(name) == Unusable("fix clusters.0.name: it should be a string")


def test_null_is_an_empty_name() -> None:
    assert written("~") == ClusterAccess(SERVER, SECRET)


REFUSED = [
    (Refusal.TOO_LARGE, kubeconfig({"token": "x" * SIZE_MAX})),
    (Refusal.TOO_MANY, kubeconfig(extensions=[0] * MARKS_MAX)),
    (Refusal.TOO_DEEP, kubeconfig(extensions=deep(50))),
    (Refusal.NO_MAP, [SECRET]),
    (Refusal.NO_MAP, SECRET),
    (Refusal.NO_MAP, None),
    (
        "fix users.0.user.token: it should be a string",
        kubeconfig({"token": [SECRET]}),
    ),
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


@pytest.mark.parametrize(
    ("why", "config", "access"),
    [
        (
            NotSupportedHere.USER_INFO,
            kubeconfig(cluster={"server": f"https://user:{SECRET}@worker1/"}),
            ClusterAccess("https://worker1", SECRET),
        ),
        (
            NotSupportedHere.FILES,
            kubeconfig({"client-certificate": "/c", "client-key": "/k", "token": jwt(exp=DAY.timestamp())}),
            ClusterAccess(SERVER, jwt(exp=DAY.timestamp()), expires=DAY, expires_what=expiry.TOKEN),
        ),
        (
            NotSupportedHere.FILES,
            kubeconfig({"client-certificate": "/c", "client-key": "/k"}),
            ClusterAccess(SERVER),
        ),
        (NotSupportedHere.FILES, kubeconfig(TOKEN | {"client-key": "/k"}), ClusterAccess(SERVER, SECRET)),
        (NotSupportedHere.NOBODY, kubeconfig({}), ClusterAccess(SERVER)),
        (NotSupportedHere.NOBODY, kubeconfig({"client-key-data": encoded(KEY)}), ClusterAccess(SERVER)),
        (NotSupportedHere.NOBODY, kubeconfig(users=None), ClusterAccess(SERVER)),
    ],
)
def test_a_kubeconfig_that_only_kueue_can_use(why: str, config: Raw, access: ClusterAccess) -> None:
    answer = read(config)
    assert answer == UsableByKueueOnly(why, access)
    assert SECRET not in repr(answer)
    assert strict_problem(json.dumps(config).encode()) == why


@pytest.mark.parametrize(
    ("user", "cluster", "expected"),
    [
        (
            {"as": "jane", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"a/b%": ["1", "2"]}},
            {},
            ClusterAccess(
                SERVER,
                SECRET,
                impersonation=(
                    ("Impersonate-User", "jane"),
                    ("Impersonate-Uid", "7"),
                    ("Impersonate-Group", "a"),
                    ("Impersonate-Group", "b"),
                    ("Impersonate-Extra-a%2Fb%25", "1"),
                    ("Impersonate-Extra-a%2Fb%25", "2"),
                ),
            ),
        ),
        (
            {"as": "jane"},
            {"server": "http://worker1"},
            ClusterAccess("http://worker1", impersonation=(("Impersonate-User", "jane"),)),
        ),
        ({}, {"proxy-url": "Socks5://h:1"}, ClusterAccess(SERVER, SECRET, proxy="Socks5://h:1")),
    ],
)
def test_the_user_to_impersonate_and_the_proxy(user: Raw, cluster: Raw, expected: ClusterAccess) -> None:
    assert read(kubeconfig(TOKEN | user, cluster)) == expected


def test_all_that_only_kueue_can_use_is_tested() -> None:
    assert len(NotSupportedHere) == 3


def test_no_secret_is_in_the_repr() -> None:
    config = kubeconfig(TOKEN | PAIR)
    access = read(config)
    assert isinstance(access, ClusterAccess)
    assert repr(access).startswith(
        f"ClusterAccess(server='{SERVER}', server_name='', impersonation=(), insecure=False,"
        " expires=datetime.datetime(2030"
    )
    assert not any(secret in repr(access) for secret in (SECRET, CERTIFICATE, KEY))
    assert repr(parse_kubeconfig(json.dumps(config).encode())) == "Kubeconfig()"


# -- expiry


@pytest.mark.parametrize(
    ("user", "authority", "end"),
    [
        pytest.param(TOKEN, None, (None, "", None), id="a token that does not say"),
        pytest.param(
            {"token": jwt(exp=DAY.timestamp(), iat=0, nbf=60)},
            None,
            (DAY, expiry.TOKEN, datetime(1970, 1, 1, 0, 1, tzinfo=UTC)),
            id="nbf",
        ),
        pytest.param(
            {"token": jwt(exp=1.5, iat=0)},
            None,
            (
                datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC),
                expiry.TOKEN,
                datetime(1970, 1, 1, tzinfo=UTC),
            ),
            id="iat",
        ),
        pytest.param({"token": jwt(iat=0)}, None, (None, "", None), id="a token for ever"),
        pytest.param({"token": jwt(exp="tomorrow")}, None, (None, "", None), id="no number"),
        pytest.param({"token": jwt(exp=True)}, None, (None, "", None), id="no number either"),
        pytest.param({"token": jwt(exp=1e300)}, None, (None, "", None), id="beyond the calendar"),
        pytest.param({"token": "a.b!.c"}, None, (None, "", None), id="three words"),
        pytest.param({"token": f"a.{encoded('[1]')}.c"}, None, (None, "", None), id="no map"),
        pytest.param(
            PAIR | {"token": jwt(exp=DAY.timestamp())}, None, (DAY, expiry.TOKEN, None), id="the first of two"
        ),
        pytest.param(
            {"token": jwt(exp=DAY.timestamp())},
            AUTHORITY,
            (DAY, expiry.TOKEN, None),
            id="before its authority",
        ),
        pytest.param(
            TOKEN, AUTHORITY, (FAR, expiry.AUTHORITY, datetime(2000, 1, 1, tzinfo=UTC)), id="authority"
        ),
        pytest.param(
            TOKEN,
            f"{CERTIFICATE}{issued(end=datetime(2031, 1, 1, tzinfo=UTC))[0]}",
            (datetime(2031, 1, 1, tzinfo=UTC), expiry.AUTHORITY, DAY),
            id="the last of several authorities",
        ),
    ],
)
def test_when_it_ends(user: Raw, authority: str | None, end: tuple[object, ...]) -> None:
    cluster = {"certificate-authority-data": encoded(authority)} if authority else {}
    access = read(kubeconfig(user, cluster))
    assert isinstance(access, ClusterAccess)
    assert (access.expires, access.expires_what, access.issued) == end


def test_the_certificates_of_a_bundle_are_read() -> None:
    broken = AUTHORITY.replace("MII", "MIJ", 1)
    bundle = f"# ours\n{KEY}{broken}{AUTHORITY}"
    access = read(kubeconfig(cluster={"certificate-authority-data": encoded(bundle)}))
    assert isinstance(access, ClusterAccess)
    assert access.authority == AUTHORITY


def untested(key: rsa.RSAPrivateKey) -> str:
    """The key, with a secret half that a test of it finds to be none."""
    parts = key.private_numbers()
    wrong = rsa.RSAPrivateNumbers(
        parts.p, parts.q, parts.d + 2, parts.dmp1, parts.dmq1, parts.iqmp, parts.public_numbers
    ).private_key(unsafe_skip_rsa_key_validation=True)
    return wrong.private_bytes(
        ser.Encoding.PEM, ser.PrivateFormat.TraditionalOpenSSL, ser.NoEncryption()
    ).decode()


def test_the_primes_of_an_rsa_key_are_not_tested_as_that_takes_seconds() -> None:
    leaf = CA.issue_cert("client@example.com", key_type=trustme.KeyType.RSA)
    key = ser.load_pem_private_key(leaf.private_key_pem.bytes(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    with pytest.raises(ValueError, match=r"(?i)key"):
        ser.load_pem_private_key(untested(key).encode(), None)
    user = {
        "client-certificate-data": encoded(leaf.cert_chain_pems[0].bytes()),
        "client-key-data": encoded(untested(key)),
    }
    assert isinstance(read(kubeconfig(user)), ClusterAccess)


# -- ours


def test_ours_is_taken_by_every_rule_and_always_the_same() -> None:
    made = write_kubeconfig(SERVER, AUTHORITY.encode(), SECRET, "worker1")
    assert isinstance(made, bytes)
    assert strict_problem(made) == ""
    assert (
        json.loads(made)
        == yaml.safe_load(made)
        == {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "worker1",
                    "cluster": {"server": SERVER, "certificate-authority-data": encoded(AUTHORITY)},
                }
            ],
            "users": [{"name": "worker1", "user": {"token": SECRET}}],
            "contexts": [{"name": "worker1", "context": {"cluster": "worker1", "user": "worker1"}}],
            "current-context": "worker1",
        }
    )
    assert made == write_kubeconfig(SERVER, f"# theirs\n{AUTHORITY}{KEY}", SECRET, "worker1")


def test_ours_may_have_no_authority_of_its_own() -> None:
    made = write_kubeconfig(SERVER, "", SECRET, "worker1")
    assert isinstance(made, bytes)
    assert read_kubeconfig(made) == ClusterAccess(SERVER, SECRET)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        pytest.param(("", AUTHORITY, SECRET), Refusal.NO_SERVER, id="no server"),
        pytest.param(("http://worker1", AUTHORITY, SECRET), StricterRule.HTTPS, id="http"),
        pytest.param(
            (f"https://{SECRET}@worker1", AUTHORITY, SECRET), NotSupportedHere.USER_INFO, id="user info"
        ),
        pytest.param(("worker1", AUTHORITY, SECRET), Refusal.ADDRESS, id="no URL"),
        pytest.param(("https://\ud800", AUTHORITY, SECRET), Refusal.NOT_YAML, id="no text"),
        pytest.param((SERVER, KEY, SECRET), Refusal.AUTHORITY, id="no authority"),
        pytest.param((SERVER, b"\xff\x00", SECRET), Refusal.AUTHORITY, id="no PEM"),
        pytest.param((SERVER, second_version(AUTHORITY), SECRET), Refusal.AUTHORITY, id="version 2"),
        pytest.param((SERVER, AUTHORITY, ""), NotSupportedHere.NOBODY, id="no token"),
        pytest.param((SERVER, AUTHORITY, f"{SECRET}\n"), Refusal.TOKEN, id="a line break"),
    ],
)
def test_arguments_that_give_no_kubeconfig(arguments: tuple[str, str | bytes, str], why: str) -> None:
    assert write_kubeconfig(*arguments, "worker1") == Unusable(why)


# -- ClusterProfiles


@pytest.mark.parametrize(
    ("cluster", "access"),
    [
        pytest.param(
            {
                "server": SERVER,
                "certificate-authority-data": encoded(CERTIFICATE),
                "extensions": [{"name": "x", "extension": {}}],
            },
            ClusterAccess(
                SERVER,
                token=SECRET,
                authority=CERTIFICATE,
                expires=datetime(2030, 2, 1, tzinfo=UTC),
                expires_what=expiry.AUTHORITY,
                issued=DAY,
            ),
            id="as OCM writes it",
        ),
        pytest.param(
            {"server": SERVER, "insecure-skip-tls-verify": True, "certificate-authority": "/etc/passwd"},
            ClusterAccess(SERVER, token=SECRET),
            id="verified all the same, and no file is read",
        ),
        pytest.param({}, Unusable(Refusal.ADDRESS), id="nothing"),
        pytest.param({"server": "http://worker1"}, Unusable(StricterRule.HTTPS), id="http"),
        pytest.param({"server": 7}, Unusable("fix server: it should be a string"), id="7"),
    ],
)
def test_the_cluster_of_an_access_provider(cluster: Raw, access: ClusterAccess | Unusable) -> None:
    assert read_profile(cluster, SECRET) == access


def test_half_a_key_pair_of_a_plugin_is_refused() -> None:
    assert read_profile({"server": SERVER}, SECRET, key=KEY) == Unusable(Refusal.HALF_A_PAIR)


# -- the page


def test_the_page_has_every_message_and_no_other() -> None:
    page = (Path(__file__).parents[4] / "docs/credentials.md").read_text()
    section = page.split("\n## What is checked in a kubeconfig\n")[1].split("\n## ")[0]
    on_page = re.findall(r"^\| `(.+?)` \|", section, re.MULTILINE)
    assert on_page == [
        message.replace("{", "<").replace("}", ">")
        for message in (*Refusal, *NotSupportedHere, *StricterRule)
    ]
