"""Our login compared with kubectl's, by tables of kubeconfigs: both reach a server alike, or neither does."""

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from tests.support.authorities import ADDRESS, ServedBy, authorities
from tests.support.exec_plugins import BETA, V1, exec_credential, executable, gives
from tests.support.kubectl_login import (
    HOST,
    Reach,
    Reached,
    as_a_worker,
    by_kubectl,
    by_us,
    encoded,
    environment,
)

Raw = dict[str, Any]
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def reach() -> Iterator[Reach]:
    with Reach().running() as opened:
        yield opened


@dataclass
class Shell:
    """A folder with files, and the variables of a shell."""

    reach: Reach
    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, content: object) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def config(self, user: Raw | None = None, **cluster: Any) -> None:
        """Write a kubeconfig, and name it in KUBECONFIG."""
        self.variables["KUBECONFIG"] = self.write("config", self.reach.kubeconfig(user, **cluster))

    def plugin(self, script: str, name: str = "plugin") -> str:
        return executable(self.folder / name, script)

    def both(self, *flags: str) -> tuple[Reached, Reached, str, str]:
        """Return how kubectl and we reach the server, and why not."""
        env = environment(self.folder / "home", **self.variables)
        theirs, why = by_kubectl(env, self.folder, *flags)
        self.reach.through, through = [], self.reach.through
        ours, why_not = by_us(env, self.folder, *flags)
        self.reach.through, used = [], self.reach.through
        assert sorted(set(used)) == sorted(set(through)), "not through the same proxies"
        return theirs, ours, why, why_not


@pytest.fixture
def shell(reach: Reach, tmp_path: Path) -> Shell:
    reach.through = []
    (tmp_path / "home").mkdir()
    return Shell(reach, tmp_path)


def named(config: Raw, name: str, user: Raw | None = None) -> Raw:
    """Return a kubeconfig whose cluster, user and context have another name."""
    return config | {
        "clusters": [config["clusters"][0] | {"name": name}],
        "users": [{"name": name, "user": user or {"token": f"token-of-{name}"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


Case = Callable[[Shell], tuple[str, ...] | None]
CASES: dict[str, Case] = {}


def case(name: str) -> Callable[[Case], Case]:
    def add(function: Case) -> Case:
        CASES[name] = function
        return function

    return add


def several(*parts: Callable[[Raw], Any]) -> Case:
    """Return a case of a list of files; each part makes the content of one (None: it is missing)."""

    def write(shell: Shell) -> None:
        base = shell.reach.kubeconfig()
        files = []
        for number, part in enumerate(parts):
            content = part(base)
            path = str(shell.folder / str(number))
            files.append(path if content is None else shell.write(str(number), content))
        shell.variables["KUBECONFIG"] = ":".join(files)

    return write


EMPTY_CONTEXT = {"current-context": ""}
CASES |= {
    "two files, each with a context": several(lambda c: named(c, "a"), lambda c: named(c, "b")),
    "the other way round": several(lambda c: named(c, "b"), lambda c: named(c, "a")),
    "a later file with an empty context": several(
        lambda c: named(c, "a"), lambda c: named(c, "b") | EMPTY_CONTEXT
    ),
    "a first file with an empty context": several(
        lambda c: named(c, "a") | EMPTY_CONTEXT, lambda c: named(c, "b")
    ),
    "an empty first file": several(lambda _: "", lambda c: named(c, "a")),
    "an empty last file": several(lambda c: named(c, "a"), lambda _: ""),
    "a file of blanks and one of a comment": several(
        lambda _: " \n\n", lambda _: "# nothing\n", lambda c: named(c, "a")
    ),
    "null, {} and ---": several(lambda _: "null", lambda _: "{}", lambda _: "---\n", lambda c: named(c, "a")),
    "a missing file": several(lambda _: None, lambda c: named(c, "a")),
    "all files are missing": several(lambda _: None, lambda _: None),
    "one user in two files: all of the first": several(
        lambda c: named(c, "a", {"token": "first"}),
        lambda c: named(c, "a", {"token": "second", "as": "jane"}),
    ),
    "one user in two files, the first without a token": several(
        lambda c: named(c, "a", {"as": "jane"}) | {"current-context": ""},
        lambda c: named(c, "a", {"token": "second"}),
    ),
    "one cluster in two files": several(
        lambda c: c | {"clusters": [{"name": "hub", "cluster": {"server": "https://127.0.0.1:1"}}]},
        lambda c: c,
    ),
    "one context in two files": several(
        lambda c: (
            {"contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "other"}}]}
            | {"users": [{"name": "other", "user": {"token": "other"}}]}
        ),
        lambda c: c,
    ),
    "cluster, user and context in files of their own": several(
        lambda c: {"clusters": c["clusters"]},
        lambda c: {"users": c["users"]},
        lambda c: {"contexts": c["contexts"]},
        lambda c: {"current-context": "hub"},
    ),
    "a broken second file": several(lambda c: named(c, "a"), lambda _: "}{"),
    "a list for a second file": several(lambda c: named(c, "a"), lambda _: "- a\n"),
    "a context that does not exist": several(lambda c: c | {"current-context": "nobody"}),
    "a context without a cluster": several(lambda c: c | {"clusters": []}),
    "another kind": several(lambda c: c | {"kind": "Pod"}),
    "another version": several(lambda c: c | {"apiVersion": "v2"}),
    "no kind and no version": several(
        lambda c: {k: v for k, v in c.items() if k not in ("kind", "apiVersion")}
    ),
    "two users of one name in one file": several(lambda c: c | {"users": 2 * c["users"]}),
    "a number for a token": several(lambda c: named(c, "a", {"token": 1})),
    "no base64 in another user": several(
        lambda c: c | {"users": [*c["users"], {"name": "x", "user": {"client-key-data": "%"}}]}
    ),
    "unknown fields, null, an alias, two documents": several(
        lambda c: yaml.safe_dump(c | {"new": 1, "preferences": None}) + "---\nnot: read\n"
    ),
    "the same key twice": several(
        lambda c: json.dumps(c).replace('"token": "token"', '"token": "a", "token": "b"')
    ),
    "keys in capitals": several(lambda c: json.dumps(c).replace('"current-context"', '"Current-Context"')),
    "line breaks of Windows": several(lambda c: yaml.safe_dump(c).replace("\n", "\r\n").encode()),
    "UTF-8 with BOM": several(lambda c: b"\xef\xbb\xbf" + yaml.safe_dump(c).encode()),
    "UTF-8 with BOM, JSON": several(lambda c: b"\xef\xbb\xbf" + json.dumps(c).encode()),
    "UTF-16 LE with BOM": several(lambda c: b"\xff\xfe" + yaml.safe_dump(c).encode("utf-16-le")),
    "UTF-16 BE with BOM": several(lambda c: b"\xfe\xff" + yaml.safe_dump(c).encode("utf-16-be")),
    "UTF-16 without BOM": several(lambda c: yaml.safe_dump(c).encode("utf-16-le")),
    "UTF-32 with BOM": several(lambda c: yaml.safe_dump(c).encode("utf-32")),
    "Latin-1": several(
        lambda c: yaml.safe_dump(named(c, "a")).replace("token-of-a", '"\xe9"').encode("latin-1")
    ),
    "a null character": several(lambda c: yaml.safe_dump(c).encode() + b"\0"),
}


@case("a name in the list twice, and empty names")
def _(shell: Shell) -> None:
    shell.config()
    shell.variables["KUBECONFIG"] = ":{0}::{0}:".format(shell.variables["KUBECONFIG"])


@case("a tilde in KUBECONFIG is none")
def _(shell: Shell) -> None:
    shell.write("home/config", named(shell.reach.kubeconfig(), "home"))
    shell.config()
    shell.variables["KUBECONFIG"] = "~/config:" + shell.variables["KUBECONFIG"]


@case("a folder in the list")
def _(shell: Shell) -> None:
    shell.config()
    shell.variables["KUBECONFIG"] += f":{shell.folder}"


@case("~/.kube/config")
def _(shell: Shell) -> None:
    shell.write("home/.kube/config", shell.reach.kubeconfig())


@case("KUBECONFIG before ~/.kube/config")
def _(shell: Shell) -> None:
    shell.write("home/.kube/config", named(shell.reach.kubeconfig(), "home"))
    shell.config()


@case("--kubeconfig before KUBECONFIG, and it is no list")
def _(shell: Shell) -> tuple[str, ...]:
    shell.config()
    return (f"--kubeconfig={shell.write('a:b', named(shell.reach.kubeconfig(), 'flag'))}",)


@case("--kubeconfig that is missing")
def _(shell: Shell) -> tuple[str, ...]:
    shell.config()
    return ("--kubeconfig=missing",)


@case("--context")
def _(shell: Shell) -> tuple[str, ...]:
    several(lambda c: named(c, "a"), lambda c: named(c, "b"))(shell)
    return ("--context=b",)


@case("--context that does not exist")
def _(shell: Shell) -> tuple[str, ...]:
    shell.config()
    return ("--context=c",)


@case("KUBECONFIG in a Pod")
def _(shell: Shell) -> None:
    shell.variables |= {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}
    shell.config()


@case("~/.kube/config in a Pod")
def _(shell: Shell) -> None:
    shell.variables |= {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}
    shell.write("home/.kube/config", shell.reach.kubeconfig())


@case("relative paths, each to its own file")
def _(shell: Shell) -> None:
    leaf = shell.reach.clients.issue_cert("me@example.com", common_name="me")
    base = shell.reach.kubeconfig({"client-certificate": "c.pem", "client-key": "keys/k.pem"})
    cluster = {"server": base["clusters"][0]["cluster"]["server"], "certificate-authority": "../ca.pem"}
    shell.write("a/ca.pem", shell.reach.ca.cert_pem.bytes())
    shell.write("b/c.pem", leaf.cert_chain_pems[0].bytes())
    shell.write("b/keys/k.pem", leaf.private_key_pem.bytes())
    shell.write("a/x/config", base | {"clusters": [{"name": "hub", "cluster": cluster}], "users": []})
    shell.write("b/config", base | {"clusters": []})
    shell.variables["KUBECONFIG"] = "a/x/config:b/config"


@case("a token file, relative")
def _(shell: Shell) -> None:
    shell.write("t", " from-the-file\n")
    shell.config({"tokenFile": "t"})


@case("a token file before the token")
def _(shell: Shell) -> None:
    shell.write("t", "from-the-file")
    shell.config({"tokenFile": "t", "token": "token"})


@case("a token file that is missing, with a token")
def _(shell: Shell) -> None:
    shell.config({"tokenFile": "t", "token": "token"})


@case("a token file that is missing")
def _(shell: Shell) -> None:
    shell.config({"tokenFile": "t"})


def user(**fields: Any) -> Case:
    return lambda shell: shell.config(fields)


def pair(shell: Shell, name: str = "me") -> Raw:
    leaf = shell.reach.clients.issue_cert("me@example.com", common_name=name)
    return {
        "client-certificate-data": encoded(leaf.cert_chain_pems[0].bytes()),
        "client-key-data": encoded(leaf.private_key_pem.bytes()),
    }


CASES |= {
    "a user name and a password": user(username="u", password="p"),
    "a token and a password": user(token="t", username="u", password="p"),
    "as": user(token="t", **{"as": "jane"}),
    "as, as-uid, as-groups, as-user-extra": user(
        token="t",
        **{
            "as": "jané",
            "as-uid": "7",
            "as-groups": ["a", "b"],
            "as-user-extra": {"scopes": ["view", "edit"], "example.com/a%b": ["x"]},
        },
    ),
    "as-groups alone": user(token="t", **{"as-groups": ["a"]}),
    "as-uid alone": user(token="t", **{"as-uid": "7"}),
    "as-user-extra alone": user(token="t", **{"as-user-extra": {"a": ["b"]}}),
    "as with a line break": user(token="t", **{"as": "jane\r\nX: y"}),
    "as-groups that is no list": user(token="t", **{"as-groups": "a"}),
    "a token with a line break": user(token="a\nb"),
    "a token with a blank at its end": user(token="a "),
    "a client certificate": lambda shell: shell.config(pair(shell)),
    "a client certificate and a token": lambda shell: shell.config(pair(shell) | {"token": "t"}),
    "a client certificate without its key": lambda shell: shell.config(
        {"client-certificate-data": pair(shell)["client-certificate-data"]}
    ),
    "the key of another": lambda shell: shell.config(
        pair(shell) | {"client-key-data": pair(shell)["client-key-data"]}
    ),
    "a certificate in a file and as data": lambda shell: shell.config(
        pair(shell) | {"client-certificate": "c"}
    ),
    "auth-provider of old": user(**{"auth-provider": {"name": "gcp", "config": {}}}),
    "auth-provider oidc": user(
        **{
            "auth-provider": {
                "name": "oidc",
                "config": {
                    "id-token": "e30."
                    + base64.urlsafe_b64encode(b'{"exp": 4102444800}').decode().rstrip("=")
                    + ".e30",
                    "client-id": "c",
                    "idp-issuer-url": "https://issuer.example.invalid",
                },
            }
        }
    ),
}


def cluster(**fields: Any) -> Case:
    return lambda shell: shell.config(
        None, **{name.replace("_", "-"): value for name, value in fields.items()}
    )


@case("a server behind another name, tls-server-name")
def _(shell: Shell) -> None:
    shell.config(None, **{"tls-server-name": HOST})


@case("a wrong tls-server-name")
def _(shell: Shell) -> None:
    shell.config(None, **{"tls-server-name": "other.example.com"})


@case("insecure-skip-tls-verify")
def _(shell: Shell) -> None:
    shell.config(None, **{"insecure-skip-tls-verify": True})


@case("insecure-skip-tls-verify and a CA")
def _(shell: Shell) -> None:
    data = encoded(shell.reach.ca.cert_pem.bytes())
    shell.config(None, **{"insecure-skip-tls-verify": True, "certificate-authority-data": data})


@case("a CA in a file and as data")
def _(shell: Shell) -> None:
    shell.write("ca", shell.reach.ca.cert_pem.bytes())
    data = encoded(shell.reach.ca.cert_pem.bytes())
    shell.config(None, **{"certificate-authority": "ca", "certificate-authority-data": data})


@case("a CA file that is missing")
def _(shell: Shell) -> None:
    shell.config(None, **{"certificate-authority": "ca"})


@case("a CA that is no certificate")
def _(shell: Shell) -> None:
    shell.config(None, **{"certificate-authority-data": encoded(b"no certificate")})


@case("a CA among others, with comments")
def _(shell: Shell) -> None:
    others = (
        trustme.CA().cert_pem.bytes()
        + b"\n# \xc3\xa9\n-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n"
    )
    shell.config(None, **{"certificate-authority-data": encoded(others + shell.reach.ca.cert_pem.bytes())})


@case("the CA of others")
def _(shell: Shell) -> None:
    shell.config(None, **{"certificate-authority-data": encoded(trustme.CA().cert_pem.bytes())})


@case("a server without a scheme, with a CA")
def _(shell: Shell) -> None:
    shell.config(None, server=f"127.0.0.1:{shell.reach.ports['https']}")


@case("a server without a scheme or CA")
def _(shell: Shell) -> None:
    port = shell.reach.ports["http"]
    shell.config({}, server=f"127.0.0.1:{port}", **{"certificate-authority-data": ""})


@case("a server with a path, a query and a slash at its end")
def _(shell: Shell) -> None:
    shell.config(None, server=f"https://127.0.0.1:{shell.reach.ports['https']}/a/b/?c=d")


@case("no server")
def _(shell: Shell) -> None:
    shell.config(None, server="")


@case("a server of another scheme")
def _(shell: Shell) -> None:
    shell.config(None, server="ftp://127.0.0.1:1")


# -- proxies


def proxied(scheme: str, login: str = "", **variables: str) -> Case:
    """Return a case with a proxy-url."""

    def write(shell: Shell) -> None:
        shell.variables |= variables
        shell.config(None, server=f"https://{HOST}:6443", **{"proxy-url": shell.reach.proxy(scheme, login)})

    return write


def by_environment(server: str = f"https://{HOST}:6443", /, **variables: str) -> Case:
    """Return a case with variables, in which {http} stands for the address of a proxy."""

    def write(shell: Shell) -> None:
        proxies = {scheme: shell.reach.proxy(scheme) for scheme in ("http", "https", "socks5")}
        proxies["bare"] = proxies["http"].removeprefix("http://")
        shell.variables |= {name: value.format(**proxies) for name, value in variables.items()}
        data = {} if server.startswith("https") else {"certificate-authority-data": ""}
        shell.config(None, server=server.format(**shell.reach.ports), **data)

    return write


CASES |= {
    "proxy-url http": proxied("http"),
    "proxy-url https": proxied("https"),
    "proxy-url socks5": proxied("socks5"),
    "proxy-url http with a password": proxied("http", "me:se%40cret@"),
    "proxy-url socks5 with a password": proxied("socks5", "me:se%40cret@"),
    "proxy-url before NO_PROXY and HTTPS_PROXY": proxied(
        "http", HTTPS_PROXY="http://127.0.0.1:9", NO_PROXY="*"
    ),
    "proxy-url of another scheme": cluster(proxy_url="ftp://127.0.0.1:1"),
    "proxy-url without a scheme": cluster(proxy_url="127.0.0.1:1"),
    "HTTPS_PROXY": by_environment(HTTPS_PROXY="{http}"),
    "https_proxy": by_environment(https_proxy="{http}"),
    "HTTPS_PROXY before https_proxy": by_environment(HTTPS_PROXY="{http}", https_proxy="http://127.0.0.1:9"),
    "an empty HTTPS_PROXY": by_environment(HTTPS_PROXY="", https_proxy="{http}"),
    "HTTPS_PROXY without a scheme": by_environment(HTTPS_PROXY="{bare}"),
    "HTTPS_PROXY https": by_environment(HTTPS_PROXY="{https}"),
    "HTTPS_PROXY socks5": by_environment(HTTPS_PROXY="{socks5}"),
    "HTTP_PROXY is not for https": by_environment(HTTP_PROXY="{http}"),
    "ALL_PROXY is ignored": by_environment(ALL_PROXY="{http}", all_proxy="{http}"),
    "HTTP_PROXY for http": by_environment(f"http://{HOST}:8080", HTTP_PROXY="{http}"),
    "HTTPS_PROXY is not for http": by_environment(f"http://{HOST}:8080", HTTPS_PROXY="{http}"),
    "a loopback address has no proxy": by_environment(
        "https://127.0.0.1:{https}", HTTPS_PROXY="http://127.0.0.1:9"
    ),
    "localhost has no proxy": by_environment("https://localhost:{https}", HTTPS_PROXY="http://127.0.0.1:9"),
    **{
        f"NO_PROXY={entry}": by_environment(HTTPS_PROXY="{http}", NO_PROXY=entry)
        for entry in (
            "*",
            HOST,
            "example.invalid",
            ".example.invalid",
            "*.example.invalid",
            ".invalid, other",
            f"{HOST}:6443",
            f"{HOST}:443",
            "HUB.EXAMPLE.INVALID",
            "ub.example.invalid",
            "other.example.invalid",
            f".{HOST}",
            "10.0.0.0/8",
        )
    },
    "no_proxy": by_environment(HTTPS_PROXY="{http}", no_proxy="example.invalid"),
    "NO_PROXY before no_proxy": by_environment(HTTPS_PROXY="{http}", NO_PROXY="other", no_proxy="*"),
}


@case("over plain http, whom to impersonate")
def _(shell: Shell) -> None:
    shell.variables["HTTP_PROXY"] = shell.reach.proxy("http")
    shell.config({"token": "t", "as": "jane"}, server=f"http://{HOST}:8080")


@pytest.mark.parametrize("name", CASES)
def test_the_server_is_reached_as_by_kubectl(shell: Shell, name: str) -> None:
    theirs, ours, why, why_not = shell.both(*(CASES[name](shell) or ()))
    assert ours == theirs, f"kubectl: {why}; we: {why_not}"


WORKERS: dict[str, Case] = {
    name: CASES[name]
    for name in (
        "as",
        "as, as-uid, as-groups, as-user-extra",
        "a client certificate and a token",
        "a server behind another name, tls-server-name",
        "over plain http, whom to impersonate",
        "proxy-url http",
        "proxy-url https",
        "proxy-url socks5 with a password",
        "proxy-url before NO_PROXY and HTTPS_PROXY",
        "HTTPS_PROXY",
        "HTTPS_PROXY socks5",
        "https_proxy",
        "NO_PROXY=*",
        "NO_PROXY=.example.invalid",
    )
}


@pytest.mark.parametrize("name", WORKERS)
def test_a_worker_is_reached_as_by_kubectl(shell: Shell, name: str) -> None:
    WORKERS[name](shell)
    env = environment(shell.folder / "home", **shell.variables)
    theirs, why = by_kubectl(env, shell.folder)
    shell.reach.through, through = [], shell.reach.through
    ours, why_not = as_a_worker(env, json.loads((shell.folder / "config").read_text()))
    assert ours == theirs, f"kubectl: {why}; we: {why_not}"
    assert {*shell.reach.through} == {*through}


@pytest.mark.parametrize(("name", "served"), [(name, served) for name, (served, _) in authorities().items()])
def test_authorities_are_taken_as_by_kubectl(shell: Shell, name: str, served: ServedBy) -> None:
    port = shell.reach.serve(served.context())
    data = {"certificate-authority-data": encoded(served.authority)}
    shell.config(None, server=f"https://{ADDRESS}:{port}", **data)
    theirs, ours, why, why_not = shell.both()
    assert ours == theirs, f"{name}: kubectl: {why}; we: {why_not}"


def test_over_plain_http_credentials_are_sent_to_this_machine_alone(shell: Shell) -> None:
    """Kubectl sends none at all; another server is compared above."""
    shell.config({"token": "t", "as": "jane"}, server=f"http://127.0.0.1:{shell.reach.ports['http']}")
    theirs, ours, *_ = shell.both()
    impersonation = ["impersonate-user", "jane"]
    assert theirs
    assert ours
    assert (theirs["headers"], ours["headers"]) == (
        [impersonation],
        [["authorization", "Bearer t"], impersonation],
    )


# -- plugins


def execs(script: str, **fields: Any) -> Case:
    """Return a case with a plugin; in the script, {pair} stands for a client certificate and its key."""

    def write(shell: Shell) -> None:
        leaf = shell.reach.clients.issue_cert("me@example.com", common_name="plugin")
        both = (leaf.cert_chain_pems[0].bytes().decode(), leaf.private_key_pem.bytes().decode())
        certificate = exec_credential(clientCertificateData=both[0], clientKeyData=both[1])
        command = shell.plugin(script.replace("{pair}", certificate.replace("\\n", "\\\\n")))
        spec = {"apiVersion": V1, "command": command, "interactiveMode": "Never"} | fields
        shell.config({"exec": {name: value for name, value in spec.items() if value is not None}})

    return write


GIVES = gives("from-the-plugin")
PLUGINS: dict[str, Case] = {
    "a token": execs(GIVES),
    "a token, v1beta1 without interactiveMode": execs(
        f"echo '{exec_credential(BETA, token='t')}'", apiVersion=BETA, interactiveMode=None
    ),
    "env: null, args: null": execs(GIVES, env=None, args=None),
    "arguments and variables": execs(
        f"echo '{exec_credential(token='x')}' | sed \"s/x/$1-$E/\"",
        args=["a"],
        env=[{"name": "E", "value": "e"}],
    ),
    "a variable without a value": execs(GIVES, env=[{"name": "E", "value": ""}]),
    "a variable without a name": execs(GIVES, env=[{"name": "", "value": "e"}]),
    "a certificate": execs("echo '{pair}'"),
    "a message on stderr beside a token": execs(f"echo hello >&2; {GIVES}"),
    "not installed": execs(GIVES, command="no-such-cloud-cli"),
    "no such file": execs(GIVES, command="./missing"),
    "no right to run it": execs(GIVES, command="./config"),
    "a path relative to the kubeconfig": execs(GIVES, command="./plugin"),
    "fails": execs("echo 'session has expired' >&2; exit 255"),
    "fails after it gave a token": execs(f"{GIVES}; exit 1"),
    "gives nothing": execs("true"),
    "gives no JSON": execs("echo hello"),
    "prints before its token": execs(f"echo hello; {GIVES}"),
    "gives no status": execs(f"echo '{json.dumps({'apiVersion': V1, 'kind': 'ExecCredential'})}'"),
    "gives an empty status": execs(f"echo '{exec_credential()}'"),
    "gives half a pair": execs(f"echo '{exec_credential(clientKeyData='k')}'"),
    "gives a certificate that is none": execs(
        f"echo '{exec_credential(clientKeyData='k', clientCertificateData='c')}'"
    ),
    "gives another version": execs(f"echo '{exec_credential(BETA, token='t')}'"),
    "gives another kind": execs(f"echo '{exec_credential(token='t')}' | sed s/ExecCredential/Pod/"),
    "of another version": execs(GIVES, apiVersion="client.authentication.k8s.io/v1alpha1"),
    "without a version": execs(GIVES, apiVersion=None),
    "without a command": execs(GIVES, command=None),
    "v1 without interactiveMode": execs(GIVES, interactiveMode=None),
    "an unknown interactiveMode": execs(GIVES, interactiveMode="Sometimes"),
    "needs a terminal": execs(GIVES, interactiveMode="Always"),
    "may have a terminal": execs(GIVES, interactiveMode="IfAvailable"),
    "beside auth-provider": lambda shell: shell.config(
        {
            "exec": {"apiVersion": V1, "command": shell.plugin(GIVES), "interactiveMode": "Never"},
            "auth-provider": {"name": "oidc", "config": {}},
        }
    ),
    "beside a token": lambda shell: shell.config(
        {
            "token": "token",
            "exec": {"apiVersion": V1, "command": shell.plugin("exit 3"), "interactiveMode": "Never"},
        }
    ),
}


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin_is_run_as_by_kubectl(shell: Shell, name: str) -> None:
    theirs, ours, why, why_not = shell.both(*(PLUGINS[name](shell) or ()))
    assert ours == theirs, f"kubectl: {why}; we: {why_not}"
