"""Kubeconfigs with which kubectl and we log in: users, servers and proxies."""

import base64
from collections.abc import Callable
from typing import Any

import trustme

from tests.support.builders import encoded
from tests.support.kubectl_login import HOST
from tests.support.kubectl_shell import Case, Shell, pair, user

CASES: dict[str, Case] = {}


def case(name: str) -> Callable[[Case], Case]:
    def add(function: Case) -> Case:
        CASES[name] = function
        return function

    return add


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


CASES |= {
    "a server behind another name, tls-server-name": cluster(tls_server_name=HOST),
    "a wrong tls-server-name": cluster(tls_server_name="other.example.com"),
    "insecure-skip-tls-verify": cluster(insecure_skip_tls_verify=True),
    "a CA file that is missing": cluster(certificate_authority="ca"),
    "a CA that is no certificate": cluster(certificate_authority_data=encoded(b"no certificate")),
    "the CA of others": cluster(certificate_authority_data=encoded(trustme.CA().cert_pem.bytes())),
    "a server without a scheme, with a CA": lambda shell: shell.config(
        None, server=f"127.0.0.1:{shell.reach.ports['https']}"
    ),
    "a server with a path, a query and a slash at its end": lambda shell: shell.config(
        None, server=f"https://127.0.0.1:{shell.reach.ports['https']}/a/b/?c=d"
    ),
    "no server": cluster(server=""),
    "a server of another scheme": cluster(server="ftp://127.0.0.1:1"),
}


@case("insecure-skip-tls-verify and a CA")
def _(shell: Shell) -> None:
    data = encoded(shell.reach.ca.cert_pem.bytes())
    shell.config(None, **{"insecure-skip-tls-verify": True, "certificate-authority-data": data})


@case("a CA in a file and as data")
def _(shell: Shell) -> None:
    shell.write("ca", shell.reach.ca.cert_pem.bytes())
    data = encoded(shell.reach.ca.cert_pem.bytes())
    shell.config(None, **{"certificate-authority": "ca", "certificate-authority-data": data})


@case("a CA among others, with comments")
def _(shell: Shell) -> None:
    others = (
        trustme.CA().cert_pem.bytes()
        + b"\n# \xc3\xa9\n-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n"
    )
    shell.config(None, **{"certificate-authority-data": encoded(others + shell.reach.ca.cert_pem.bytes())})


@case("a server without a scheme or CA")
def _(shell: Shell) -> None:
    port = shell.reach.ports["http"]
    shell.config({}, server=f"127.0.0.1:{port}", **{"certificate-authority-data": ""})


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
    "HTTPS_PROXY https": by_environment(HTTPS_PROXY="{https}"),
    "HTTPS_PROXY socks5": by_environment(HTTPS_PROXY="{socks5}"),
    "HTTP_PROXY for http": by_environment(f"http://{HOST}:8080", HTTP_PROXY="{http}"),
    "a loopback address has no proxy": by_environment(
        "https://127.0.0.1:{https}", HTTPS_PROXY="http://127.0.0.1:9"
    ),
    **{
        f"NO_PROXY={entry}": by_environment(HTTPS_PROXY="{http}", NO_PROXY=entry)
        for entry in ("*", HOST, ".example.invalid", "10.0.0.0/8")
    },
}


@case("over plain http, whom to impersonate")
def _(shell: Shell) -> None:
    shell.variables["HTTP_PROXY"] = shell.reach.proxy("http")
    shell.config({"token": "t", "as": "jane"}, server=f"http://{HOST}:8080")
