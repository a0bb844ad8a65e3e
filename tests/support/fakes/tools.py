"""Fakes of docker, kind, kubectl, helm and clusteradm for `setup-env.sh`.

Each accepts the call forms of the real tool that the script needs, fails on any other, and checks the
preconditions of a call. The programs on PATH only forward their arguments to the test process.
"""

import json
import shlex
import socketserver
import threading
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Self

ROOT = Path(__file__).resolve().parents[3]
State = dict[str, Any]
TOKEN = "the.hub.token"
CA = "Y2VydGlmaWNhdGU="
API_SERVER = "https://127.0.0.1:40001"
VERSIONS = {
    "docker": "27.3.1",
    "kind": "kind v0.27.0 go1.23.6 linux/amd64",
    "kubectl": "Client Version: v1.34.1\nKustomize Version: v5.7.1",
    "helm": 'version.BuildInfo{Version:"v3.17.0", GitCommit:"", GitTreeState:"clean", GoVersion:"go1.23.4"}',
    "clusteradm": "client\t\tversion\t:v1.1.0\nserver release\tversion\t:v1.34.0",
}


SCRIPT = """\
#!/bin/bash
exec 9<>/dev/tcp/127.0.0.1/{port}
printf '%s\\0' "$(($# + 1))" {tool} "$@" >&9
IFS= read -r code <&9
IFS= read -r stream <&9
IFS= read -r -d '' output <&9
printf '%s' "$output" >&"$stream"
exit "$code"
"""
OUT, ERR = 1, 2


class Refused(Exception):
    """A call that the real tool would reject; the message says why."""


class NotFound(Exception):
    """The requested object does not exist."""


class Form(NamedTuple):
    """The arguments of a subcommand: their number (at least, at most), flags, and flags with a value."""

    arguments: tuple[int, int] = (0, 0)
    flags: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()


def form(least: int = 0, most: int | None = None, flags: str = "", values: str = "") -> Form:
    return Form((least, least if most is None else most), frozenset(flags.split()), frozenset(values.split()))


ANY = 99
FORMS = {
    "docker": {"version": form(values="--format"), "build": form(1, values="--tag")},
    "kind": {
        "version": form(),
        "get clusters": form(),
        "create cluster": form(values="--name --wait"),
        "delete cluster": form(values="--name"),
        "load docker-image": form(1, values="--name"),
    },
    "clusteradm": {
        "version": form(),
        "init": form(flags="--wait", values="--feature-gates --context"),
        "get token": form(values="--context"),
        "join": form(
            flags="--force-internal-endpoint-lookup --wait",
            values="--hub-token --hub-apiserver --cluster-name --context",
        ),
        "accept": form(flags="--wait", values="--clusters --context"),
    },
    "helm": {
        "version": form(),
        "repo add": form(2, flags="--force-update"),
        "repo update": form(1),
        "upgrade": form(
            2,
            flags="--install --create-namespace --wait",
            values="--namespace --kube-context --timeout --version --values --set",
        ),
    },
    "kubectl": {
        "version": form(flags="--client"),
        "config view": form(flags="--raw --minify --flatten", values="--context -o"),
        "get": form(2, values="--context -n -o"),
        "patch": form(2, values="--context -n --type --patch --patch-file --subresource"),
        "apply": form(flags="--server-side", values="--context -f -k"),
        "label": form(3, ANY, flags="--overwrite", values="--context"),
        "wait": form(1, ANY, values="--context -n --for --timeout"),
        "rollout status": form(1, values="--context -n --timeout"),
        "rollout restart": form(1, values="--context -n"),
    },
}
CHARTS = {
    "oci://registry.k8s.io/kueue/charts/kueue": [],
    "ocm/managed-serviceaccount": ["featureGates.clusterProfile", "featureGates.clusterProfileCredSyncer"],
    "ocm/cluster-permission": ["global.imageOverrides.cluster_permission"],
    "ocm/cluster-proxy": [
        "installByPlacement.placementName",
        "installByPlacement.placementNamespace",
        "userServer.enabled",
        "enableServiceProxy",
        "featureGates.clusterProfileAccessProvider",
    ],
    "ocm/resource-usage-collect-addon": ["skipClusterSetBinding", "global.image.repository"],
}
ADDONS = {
    "managed-serviceaccount": "managed-serviceaccount",
    "cluster-proxy": "cluster-proxy",
    "resource-usage-collect-addon": "resource-usage-collect",
}
"""The addons that the charts install."""


class Call(NamedTuple):
    """A parsed call."""

    command: str
    arguments: list[str]
    options: dict[str, list[str]]

    def one(self, name: str) -> str:
        found = self.options.get(name, [""])
        if len(found) > 1:
            fail(f"{name} is given twice")
        return found[0]


def fail(reason: str) -> NoReturn:
    raise Refused(reason)


def parse(tool: str, words: list[str]) -> Call:
    plain, options = _split(tool, words)
    for length in (2, 1):
        command = " ".join(plain[:length])
        if command in FORMS[tool]:
            break
    else:
        fail(f"{tool} has no subcommand {' '.join(plain[:2])}")
    wanted, arguments = FORMS[tool][command], plain[length:]
    unknown = set(options) - wanted.flags - wanted.values
    if unknown:
        fail(f"{tool} {command} takes no {' '.join(sorted(unknown))}")
    if not wanted.arguments[0] <= len(arguments) <= wanted.arguments[1]:
        fail(f"{tool} {command} takes {wanted.arguments} arguments, not {arguments}")
    return Call(command, arguments, options)


def _split(tool: str, words: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    taking = frozenset().union(*(one.values for one in FORMS[tool].values()))
    plain: list[str] = []
    options: dict[str, list[str]] = {}
    rest = iter(words)
    for word in rest:
        name, sign, value = word.partition("=")
        if not word.startswith("-"):
            plain.append(word)
        elif name not in taking:
            options.setdefault(word, []).append("")
        else:
            given = value if sign else next(rest, None)
            if not given or given.startswith("-"):
                fail(f"{name} needs a value")
            options.setdefault(name, []).append(given)
    return plain, options


# -- preconditions and effects


def there(state: State, context: str) -> str:
    """Return the cluster of a context."""
    cluster = context.removeprefix("kind-")
    if not context.startswith("kind-") or cluster not in state["clusters"]:
        fail(f"there is no context {context!r}")
    return cluster


def file_is_there(name: str) -> None:
    if not (ROOT / name).is_file():
        fail(f"there is no {name}")


def kind(state: State, call: Call) -> str:
    name, clusters = call.one("--name"), state["clusters"]
    if call.command == "get clusters":
        return "\n".join(clusters)
    if (name in clusters) is (call.command == "create cluster"):
        fail(f"{call.command}: is {name!r} there?")
    if call.command == "create cluster":
        clusters.append(name)
    elif call.command == "delete cluster":
        clusters.remove(name)
    elif call.arguments[0] not in state["images"]:
        fail(f"there is no image {call.arguments[0]}")
    return ""


def docker(state: State, call: Call) -> str:
    if call.arguments != ["."]:
        fail("there is no such folder")
    state["images"][call.one("--tag")] = True
    return ""


def clusteradm(state: State, call: Call) -> str:
    cluster = there(state, call.one("--context"))
    if call.command != "join" and cluster != "hub":
        fail(f"{cluster} is no hub")
    return {"init": _init, "get token": _token, "join": _join, "accept": _accept}[call.command](state, call)


def _init(state: State, call: Call) -> str:
    state["hub"] = {"gates": call.one("--feature-gates")}
    return "The multicluster hub control plane has been initialized successfully!"


def _token(state: State, _: Call) -> str:
    if not state["hub"]:
        fail("this is not a hub")
    join = f"clusteradm join --hub-token {TOKEN} --hub-apiserver {API_SERVER} --cluster-name <cluster_name>"
    return f"token={TOKEN}\nplease log on spoke and run:\n{join}\n"


def _join(state: State, call: Call) -> str:
    name = call.one("--cluster-name")
    if (call.one("--hub-token"), call.one("--hub-apiserver")) != (TOKEN, API_SERVER):
        fail("the hub does not let this in")
    if call.one("--context") != f"kind-{name}":
        fail(f"{name} is another cluster")
    state["managed"][name] = False
    return ""


def _accept(state: State, call: Call) -> str:
    for name in call.one("--clusters").split(","):
        if name not in state["managed"]:
            fail(f"{name} has not joined")
        state["managed"][name] = True
    return ""


def helm(state: State, call: Call) -> str:
    if call.command == "repo add":
        state["repositories"][call.arguments[0]] = call.arguments[1]
        return ""
    if call.command == "repo update":
        if call.arguments[0] not in state["repositories"]:
            fail(f"there is no repository {call.arguments[0]}")
        return ""
    cluster, (name, chart) = there(state, call.one("--kube-context")), call.arguments
    if chart not in CHARTS or (chart.startswith("ocm/") and "ocm" not in state["repositories"]):
        fail(f"there is no chart {chart}")
    unknown = [one for one in call.options.get("--set", []) if one.partition("=")[0] not in CHARTS[chart]]
    if unknown:
        fail(f"{chart} has no values {unknown}")
    for values in call.options.get("--values", []):
        file_is_there(values)
    state["releases"][f"{cluster}/{name}"] = call.one("--version")
    return ""


def kubectl(state: State, call: Call) -> str:
    cluster = there(state, call.one("--context"))
    if call.command == "config view":
        return CA
    if call.command == "get":
        return _get(state, cluster, call)
    if call.command == "apply":
        for name in call.options.get("-f", []):
            file_is_there(name)
    if call.command == "patch":
        _patch(state, cluster, call)
    if call.command == "wait":
        _wait(state, cluster, call)
    return ""


def _get(state: State, cluster: str, call: Call) -> str:
    kind_of, name = call.arguments
    found = {"clustermanager": state["hub"], "managedcluster": state["managed"].get(name)}[kind_of]
    if cluster != "hub" or found is None:
        raise NotFound(f"{kind_of} {name!r} not found")
    asked = call.one("-o")
    if asked not in ("", "jsonpath={.spec.hubAcceptsClient}"):
        fail(f"what is {asked}?")
    return str(found is True).lower() if asked else name


def _patch(state: State, cluster: str, call: Call) -> None:
    kind_of, name = call.arguments
    if call.one("--patch-file"):
        file_is_there(call.one("--patch-file"))
    else:
        json.loads(call.one("--patch"))
    missing = {
        "klusterlet": cluster not in state["managed"] or name != "klusterlet",
        "node": name != f"{cluster}-control-plane" or call.one("--subresource") != "status",
        "deployment": f"{cluster}/kueue" not in state["releases"] or name != "kueue-controller-manager",
    }
    if missing[kind_of]:
        fail(f"{cluster} has no {kind_of} {name}")


def _wait(state: State, cluster: str, call: Call) -> None:
    """A fake never needs time: the object exists now or never."""
    kind_of, _, name = call.arguments[0].partition("/")
    addons = {addon for chart, addon in ADDONS.items() if f"hub/{chart}" in state["releases"]}
    namespace = call.one("-n")
    never = {
        "managedcluster": not all(state["managed"].get(argument) for argument in call.arguments[1:]),
        "managedclusteraddon": name not in addons or not state["managed"].get(namespace),
        "addonplacementscore": "resource-usage-collect" not in addons or name != "resource-usage-score",
    }
    if cluster != "hub" or never[kind_of]:
        fail(f"{' '.join(call.arguments)}: never")


TOOLS = {"docker": docker, "kind": kind, "clusteradm": clusteradm, "helm": helm, "kubectl": kubectl}


class Tools:
    """The tools of one machine, callable inside `with`. `bin`: the folder for the programs."""

    def __init__(self, bin: Path) -> None:  # noqa: A002  # as it is called
        self.bin = bin
        self.calls: list[list[str]] = []
        self.refused: list[str] = []
        self.versions = dict(VERSIONS)
        self.broken: set[str] = set()
        """`TOOL SUBCOMMAND` of the calls that always fail."""
        self.state: State = {
            "clusters": [],
            "images": {},
            "hub": None,
            "managed": {},
            "repositories": {},
            "releases": {},
        }
        self._server = socketserver.TCPServer(("127.0.0.1", 0), self._handler())

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        for tool in TOOLS:
            script = SCRIPT.format(port=self._server.server_address[1], tool=shlex.quote(tool))
            (self.bin / tool).write_text(script)
            (self.bin / tool).chmod(0o755)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[socketserver.StreamRequestHandler]:
        tools = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                words = [self._word() for _ in range(int(self._word()))]
                code, stream, output = tools.call(words[0], words[1:])
                self.wfile.write(f"{code}\n{stream}\n{output}\0".encode())

            def _word(self) -> str:
                word = b""
                while (byte := self.rfile.read(1)) not in (b"", b"\0"):
                    word += byte
                return word.decode()

        return Handler

    def call(self, tool: str, words: list[str]) -> tuple[int, int, str]:
        """Return exit code, stream, and the output on that stream."""
        try:
            call = parse(tool, words)
            if call.command == "version":
                return 0, OUT, self.versions[tool]
            self.calls.append([tool, *words])
            if f"{tool} {call.command}" in self.broken:
                return 1, ERR, "no such luck\n"
            return 0, OUT, TOOLS[tool](self.state, call)
        except NotFound as missing:
            return 1, ERR, f"Error from server (NotFound): {missing}\n"
        except Refused as refused:
            self.refused.append(str(refused))
            return 64, ERR, f"{refused}\n"
