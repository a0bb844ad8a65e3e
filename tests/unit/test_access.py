"""Which kubeconfigs a worker is entered with, and why others are refused."""

import base64
from typing import Any

import pytest
import yaml

from placement_ac.access import Access, of_kubeconfig, of_profile
from placement_ac.snapshot import Unusable

Raw = dict[str, Any]
SECRET = "SeCrEt-42"
PEM = base64.b64encode(b"-----BEGIN X-----\nabc\n-----END X-----\n").decode()
DECODED = "-----BEGIN X-----\nabc\n-----END X-----\n"
SERVER = "https://worker1.example.com:6443"


def kubeconfig(user: Raw | None = None, cluster: Raw | None = None, **top: Any) -> Raw:
    """A kubeconfig with a token, but for what is told."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": SERVER} | (cluster or {})}],
        "users": [{"name": "u", "user": {"token": SECRET} if user is None else user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    } | top


def read(config: object) -> Access | Unusable:
    return of_kubeconfig(yaml.safe_dump(config).encode())


def others(section: str, name: str, content: Raw) -> list[Raw]:
    """The entries of a kubeconfig, and one that the current context does not use."""
    return [*kubeconfig()[section], {"name": "other", name: content}]


@pytest.mark.parametrize(
    ("config", "access"),
    [
        pytest.param(kubeconfig(), Access(SERVER, token=SECRET), id="a token"),
        pytest.param(
            kubeconfig({"client-certificate-data": PEM, "client-key-data": PEM}),
            Access(SERVER, certificate=DECODED, key=DECODED),
            id="a client certificate",
        ),
        pytest.param(
            kubeconfig(
                cluster={
                    "server": f"{SERVER}/clusters/1/",
                    "certificate-authority-data": PEM,
                    "tls-server-name": "kubernetes",
                    "proxy-url": "http://proxy:3128",
                }
            ),
            Access(
                f"{SERVER}/clusters/1",
                token=SECRET,
                authority=DECODED,
                server_name="kubernetes",
                proxy="http://proxy:3128",
            ),
            id="all that is known of a cluster",
        ),
        pytest.param(
            kubeconfig(cluster={"server": "http://[::1]:80"}), Access("http://[::1]:80", SECRET), id="http"
        ),
        pytest.param(
            kubeconfig(cluster={"proxy-url": None, "insecure-skip-tls-verify": False}, preferences={}),
            Access(SERVER, SECRET),
            id="null and false are nothing",
        ),
        pytest.param(
            kubeconfig(users=others("users", "user", {"exec": {"command": "x"}})),
            Access(SERVER, SECRET),
            id="a plugin of a user that is not used",
        ),
    ],
)
def test_a_way_in(config: Raw, access: Access) -> None:
    assert read(config) == access


TOKEN = {"token": SECRET}


@pytest.mark.parametrize(
    ("config", "why"),
    [
        pytest.param(kubeconfig({"tokenFile": "/token"}), "has a tokenFile", id="tokenFile"),
        pytest.param(
            kubeconfig(users=others("users", "user", {"tokenFile": "/token"})),
            "has a tokenFile",
            id="anybody's tokenFile",
        ),
        pytest.param(
            kubeconfig(cluster={"insecure-skip-tls-verify": True}),
            "has insecure-skip-tls-verify",
            id="insecure",
        ),
        pytest.param(
            kubeconfig(
                clusters=others("clusters", "cluster", {"server": SERVER, "insecure-skip-tls-verify": True})
            ),
            "has insecure-skip-tls-verify",
            id="another cluster is insecure",
        ),
        pytest.param(
            kubeconfig(cluster={"certificate-authority": "/etc/passwd"}),
            "has a certificate-authority file",
            id="an authority's file",
        ),
        pytest.param(kubeconfig(cluster={"server": ""}), "has a cluster without a server", id="no server"),
        pytest.param(kubeconfig(clusters=[]), "has a current context without its cluster", id="no cluster"),
        pytest.param(
            kubeconfig(users=None), "has a current context without its cluster or its user", id="no user"
        ),
        pytest.param(kubeconfig(contexts=[]), "has no current context", id="no context"),
        pytest.param(
            kubeconfig({"username": "u", "password": SECRET}), "has a user name and password", id="basic"
        ),
        pytest.param(kubeconfig(TOKEN | {"exec": {"command": "x"}}), "has an exec plugin", id="a plugin"),
        pytest.param(
            kubeconfig(TOKEN | {"auth-provider": {"name": "gcp"}}), "has an auth-provider", id="a provider"
        ),
        pytest.param(
            kubeconfig(TOKEN | {"client-certificate": "/c"}),
            "has a client certificate or key in a file",
            id="files",
        ),
        pytest.param(
            kubeconfig({"client-key": "/k"}), "has a client certificate or key in a file", id="a key's file"
        ),
        pytest.param(kubeconfig(TOKEN | {"as": "admin"}), "stands in for another user", id="stands in"),
        pytest.param(kubeconfig({}), "has neither a token nor a client certificate", id="no credentials"),
        pytest.param(
            kubeconfig({"client-key-data": PEM}), "has a client certificate without its key", id="half"
        ),
        pytest.param(
            kubeconfig({"token": f"{SECRET}\nX-Evil: 1"}), "has a token with characters", id="two headers"
        ),
        pytest.param(
            kubeconfig(cluster={"certificate-authority-data": f"{SECRET}!"}),
            "has certificate-authority-data that is not base64",
            id="not base64",
        ),
        pytest.param(
            kubeconfig(cluster={"proxy-url": "socks5://h:1"}), "has a proxy-url that is not http", id="socks"
        ),
        pytest.param(
            kubeconfig({"token": [SECRET]}), "has a users.0.user.token that is unusable", id="a list"
        ),
        pytest.param(
            kubeconfig(users={"u": SECRET}), "has a users that is unusable: it should be a list", id="a map"
        ),
        pytest.param([SECRET], "is unusable: it should be a map", id="no map"),
        pytest.param(SECRET, "is unusable: it should be a map", id="a word"),
        pytest.param(None, "is unusable: it should be a map", id="empty"),
    ],
)
def test_what_is_refused_is_told_without_what_it_holds(config: object, why: str) -> None:
    answer = read(config)
    assert isinstance(answer, Unusable)
    assert answer.why.startswith(why)
    assert SECRET not in answer.why


@pytest.mark.parametrize(
    "server",
    [
        "worker1:6443",
        "ftp://worker1",
        "https://",
        f"https://user:{SECRET}@worker1",
        "https://worker1?x=1",
        "https://worker1#x",
        "https://worker_1",
        "https://worker1:port",
        "https://[::1",
        "unix:///run/x.sock",
        "file:///etc/passwd",
    ],
)
def test_a_server_that_is_no_plain_address_is_refused(server: str) -> None:
    refused = Unusable("has a server that is no http or https address of a host")
    assert read(kubeconfig(cluster={"server": server})) == refused


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(b"}{" + SECRET.encode(), "is not YAML", id="braces"),
        pytest.param(b"\xff\xfe\xff", "is not YAML", id="bytes"),
        pytest.param(b"\x00", "is not YAML", id="zero"),
        pytest.param(b"a: 2020-13-45", "is not YAML", id="no such date"),
        pytest.param(b"--- a\n--- b", "is not YAML", id="two documents"),
        pytest.param(b"a: !!python/name:os.system", "is not YAML", id="a tag"),
        pytest.param(b"[" * 100_000, "is nested too deeply for a kubeconfig", id="nested"),
        pytest.param(b"a: &a [1]\nb: [*a, *a]", "has YAML aliases: write it without", id="aliases"),
    ],
)
def test_what_is_not_plain_yaml_is_refused_without_a_quotation(text: bytes, why: str) -> None:
    assert of_kubeconfig(text) == Unusable(why)


def test_no_secret_is_in_the_repr() -> None:
    access = read(kubeconfig({"token": SECRET, "client-certificate-data": PEM, "client-key-data": PEM}))
    assert repr(access) == f"Access(server='{SERVER}', server_name='')"


@pytest.mark.parametrize(
    ("cluster", "access"),
    [
        pytest.param(
            {
                "server": SERVER,
                "certificate-authority-data": PEM,
                "extensions": [{"name": "x", "extension": {}}],
            },
            Access(SERVER, token=SECRET, authority=DECODED),
            id="as OCM writes it",
        ),
        pytest.param(
            {"server": SERVER, "insecure-skip-tls-verify": True, "certificate-authority": "/etc/passwd"},
            Access(SERVER, token=SECRET),
            id="verified all the same, and no file is read",
        ),
        pytest.param({}, Unusable("has a server that is no http or https address of a host"), id="nothing"),
        pytest.param(
            {"server": 7}, Unusable("has a server that is unusable: Input should be a valid string"), id="7"
        ),
    ],
)
def test_the_cluster_of_an_access_provider(cluster: Raw, access: Access | Unusable) -> None:
    assert of_profile(cluster, SECRET) == access
