"""Our login compared with kubectl's: which files and contexts are read, and how they are merged."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tests.support.builders import Raw
from tests.support.kubectl_shell import Case, Shell

pytestmark = pytest.mark.long


def named(config: Raw, name: str, user: Raw | None = None) -> Raw:
    """Return a kubeconfig whose cluster, user and context have another name."""
    return config | {
        "clusters": [config["clusters"][0] | {"name": name}],
        "users": [{"name": name, "user": user or {"token": f"token-of-{name}"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


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
CASES: dict[str, Case] = {
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


def case(name: str) -> Callable[[Case], Case]:
    def add(function: Case) -> Case:
        CASES[name] = function
        return function

    return add


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


@pytest.mark.parametrize("name", CASES)
def test_the_server_is_reached_as_by_kubectl(shell: Shell, name: str) -> None:
    shell.reaches_the_same(CASES[name])
