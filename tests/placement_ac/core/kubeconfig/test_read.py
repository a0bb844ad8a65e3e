"""Which kubeconfigs are used, and what of them."""

import json
from datetime import UTC, datetime

import pytest
import trustme
from cryptography.hazmat.primitives import serialization as ser
from cryptography.hazmat.primitives.asymmetric import rsa

from placement_ac.core.kubeconfig import expiry
from placement_ac.core.kubeconfig.parse import parse_kubeconfig
from placement_ac.core.kubeconfig.read import read_kubeconfig, read_profile, strict_problem
from placement_ac.core.kubeconfig.refusals import NotSupportedHere, Refusal, StricterRule
from placement_ac.core.kubeconfig.source import ClusterAccess, Unusable, UsableByKueueOnly
from tests.support.builders import encoded
from tests.support.kubeconfigs import (
    AUTHORITY,
    CA,
    CERTIFICATE,
    DAY,
    FAR,
    KEY,
    NO_PEM,
    PAIR,
    SECRET,
    SERVER,
    TOKEN,
    Raw,
    jwt,
    kubeconfig,
    others,
    read,
)


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
