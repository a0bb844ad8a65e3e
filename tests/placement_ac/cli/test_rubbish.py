"""
No option, argument, file or variable ends a command in a traceback, whatever it holds.

The tests walk the commands themselves: a new command or option is tested without being named here.
"""

import asyncio
import json
import os
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import click
import pytest
import yaml
from click.testing import CliRunner, Result

from kubectl_placement.cli.ui import start
from kubectl_placement.cli.ui_feed import Feed
from placement_ac.cli.main import COMMANDS, main
from placement_ac.config.load import PREFIX
from placement_ac.config.settings import Settings
from placement_ac.controller.manager import Manager

SAMPLES: Final = Path(__file__).parents[3] / "samples"
STORY: Final = SAMPLES / "placement-demo2-2.yaml"
LINES: Final = 12
"""The most lines of an error message; click's has the usage and a hint as well."""

TEXTS: Final = {
    "empty": "",
    "a space": " ",
    "many spaces": " " * 300,
    "a tab": "\t",
    "a line break": "a\nb",
    "a carriage return": "a\rb",
    "NUL": "\0",
    "a NUL inside": "a\0b",
    "an escape sequence": "\x1b[31mred",
    "a byte that is not UTF-8": "\udcff",
    "a lone surrogate": "a\ud800b",
    "right to left": "\u202eabc",
    "a combining accent": "e\u0301",
    "an emoji": "🦆",
    "a line separator": "a\u2028b",
    "a byte order mark": "\ufeffa",
    "no break space": "\u00a0",
    "very long": "a" * 70_000,
    "a long label": "a" * 64 + ".b",
    "many commas": "," * 500,
    "commas and spaces": " , , ",
    "the same twice": "a,a",
    "an option": "--x",
    "a dash": "-",
    "two dashes": "--",
    "a short option": "-x",
    "an equals sign": "=",
    "a key": "a=b",
    "a level of no module": "a.b=debug",
    "a level twice": "info,debug",
    "a parent folder": "../..",
    "the root": "/",
    "no folder": "/nowhere/at/all",
    "a slash inside": "a/b",
    "two slashes": "a//b",
    "a slash at the end": "check/",
    "three parts": "check/a/b",
    "a type alone": "placement",
    "a home": "~nobody/x",
    "a variable": "$HOME",
    "a command": "$(false)",
    "quotes": "'\"",
    "a backslash": "\\",
    "a format": "%s{0}{x}%(y)s",
    "markup": "[bold]x[/nothing]",
    "a regular expression": "(((((a*)*)*",
    "HTML": "<script>&",
    "null": "null",
    "true": "true",
    "a list": "[1, 2]",
    "a map": "{a: b}",
    "zero": "0",
    "minus zero": "-0",
    "one": "1",
    "minus one": "-1",
    "a fraction": "0.5",
    "too many digits": "9" * 5000,
    "an integer beyond 64 bits": str(2**64),
    "nan": "nan",
    "inf": "inf",
    "minus inf": "-inf",
    "infinite": "1e999",
    "nearly infinite": "1e308",
    "tiny": "1e-320",
    "an underscore in a number": "1_0",
    "hexadecimal": "0x10",
    "Arabic digit": "٣",
    "Arabic digits": "٣٣٣٣",
    "a superscript": "²",
    "a full-width digit": "\uff13",
    "a Roman numeral": "\u2163",
    "no unit": "5",
    "an Arabic duration": "٣s",
    "a negative duration": "-5s",
    "units only": "hms",
    "a huge duration": "9" * 400 + "h",
    "a duration beyond datetime": "99999999999h",
    "a duration beyond the calendar": "20000000h",
    "a duration of nothing": "0s",
    "a dot as number": ".s",
    "no such unit": "5y",
    "a time": "2024-01-01T00:00:00Z",
    "a day that is none": "2024-02-31",
    "a release": "0.19.1",
    "a release in Arabic digits": "\u0660.\u0661\u0669.\u0661",
    "half a release": "v0.",
    "a huge release": "99999999999999999999.1.1",
    "a framework": "Kind.v1.example.com",
    "half a framework": "Kind..",
    "a port": ":0",
    "a port alone": "127.0.0.1:0",
    "no port": "127.0.0.1:",
    "a port that is too large": "127.0.0.1:99999",
    "a negative port": "127.0.0.1:-1",
    "a port in Arabic digits": "127.0.0.1:٣",
    "a superscript port": "127.0.0.1:²",
    "a port with a plus": "127.0.0.1:+1",
    "a port with a line break": "127.0.0.1:0\n",
    "IPv6": "[::1]:0",
    "IPv6 with a zone": "[fe80::1%nothing]:0",
    "IPv6 not closed": "[::1:0",
    "IPv6 of nothing": "[]:0",
    "IPv6 of rubbish": "[::gg]:0",
    "IPv6 in URL not closed": "http://[::1",
    "IPv6 in URL of rubbish": "http://[::gg]:1",
    "a host of spaces": " :0",
    "a host that is too long": "a" * 64 + ":0",
    "a name that is too long": "a." * 200 + "b:0",
    "a host with an empty label": "a..b:0",
    "a host that begins with a dot": ".a:0",
    "a host of other letters": "ü" * 70 + ":0",
    "a host with a NUL": "a\0b:0",
    "a host with a surrogate": "a\udcffb:0",
    "a host that is no name": "a_b!:0",
    "a host that is an octal address": "0127.1:0",
    "an address that is too large": "256.256.256.256:0",
    "no scheme": "://x",
    "only a scheme": "http://",
    "a scheme without slashes": "http:x",
    "another scheme": "ftp://127.0.0.1:1/",
    "a file URL": "file:///etc/passwd",
    "JavaScript": "javascript:1",
    "a URL of a closed port": "http://127.0.0.1:1",
    "a secure URL of a closed port": "https://127.0.0.1:1",
    "a URL of port zero": "http://127.0.0.1:0",
    "a URL with a large port": "http://127.0.0.1:99999",
    "a URL with a negative port": "http://127.0.0.1:-1",
    "a URL with an Arabic port": "http://127.0.0.1:٣",
    "a URL with a word as port": "http://127.0.0.1:x",
    "a URL with a password": "http://a:b@127.0.0.1:1",
    "a URL with a space": "http://a b/",
    "a URL with a line break": "http://127.0.0.1:1/\nx",
    "a URL with an empty label": "http://a..b/",
    "a URL with a long label": "http://" + "a" * 64 + "/",
    "a URL with other letters": "http://" + "ü" * 70 + "/",
    "a URL with a surrogate": "http://a\udcffb/",
    "a URL with a NUL": "http://a\0b/",
    "a URL with half an escape": "http://127.0.0.1:1/%zz",
    "a URL with a query": "http://127.0.0.1:1/?a=b#c",
    "a secure URL with an Arabic port": "https://127.0.0.1:٣",
    "a secure URL of rubbish": "https://[",
}
"""Values of any option."""


def bomb(levels: int) -> str:
    """Return YAML whose last line means 9 to the power of `levels` items."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines)


def manifest(**fields: Any) -> str:
    return yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}} | fields)


def object_of(kind: str, group: str, **fields: Any) -> str:
    return manifest(apiVersion=group, kind=kind, **fields)


OCM: Final = "cluster.open-cluster-management.io/v1beta1"
KUEUE: Final = "kueue.x-k8s.io/v1beta1"
LIST_BOMB: Final = "\n".join(
    [
        "x0: &x0 {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
        "x1: &x1 {apiVersion: v1, kind: List, items: [" + ", ".join(["*x0"] * 9) + "]}",
        *(
            f"x{n}: &x{n} {{apiVersion: v1, kind: List, items: [" + ", ".join([f"*x{n - 1}"] * 9) + "]}"
            for n in range(2, 8)
        ),
        "apiVersion: v1",
        "kind: List",
        "items: [" + ", ".join(["*x7"] * 9) + "]",
    ]
)
"""Lists of lists that mean 43 million objects."""
CONTENTS: Final[dict[str, str | bytes]] = {
    "empty": "",
    "a line break": "\n",
    "spaces": "   \n  ",
    "a tab": "\t",
    "a comment": "# nothing\n",
    "three dashes": "---\n---\n---\n",
    "dots": "...\n",
    "null": "null",
    "true": "true",
    "a number": "1",
    "a huge number": "9" * 5000,
    "a huge exponent": "1e999999",
    "nan": ".nan",
    "an infinite number": "a: .inf",
    "a time": "2024-01-01T00:00:00Z",
    "a day that is none": "a: 2024-02-31",
    "an hour that is none": "a: 2024-01-01T99:99:99Z",
    "sexagesimal": "a: 1:99:99",
    "an octal that is none": "a: 0o9",
    "plain text": "plain text",
    "a list": "- a\n- list\n",
    "an empty list": "[]",
    "a list of nothing": "- \n- \n",
    "an empty map": "{}",
    "a map": "a: b",
    "a key that is a number": "1: 2",
    "a key that is null": "null: 2",
    "a key that is a list": "[1, 2]: 3",
    "a key that is a map": "{a: b}: 3",
    "a key with many digits": "1" * 5000 + ": 1",
    "a key twice": "a: 1\na: 2",
    "a setting twice": "settle: 1\nsettle: 2",
    "a merge": "a: &a {b: c}\nd: {<<: *a}",
    "a merge of nothing": "<<: 1",
    "a merge of itself": "&a {<<: *a}",
    "an alias of nothing": "a: *b",
    "an alias of itself": "&a [*a]",
    "a map that contains itself": "a: &a {b: *a}",
    "an object that contains itself": ("&a {apiVersion: v1, kind: List, metadata: {name: a}, items: [*a]}"),
    "a billion laughs": bomb(8),
    "a billion laughs as an object": (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n{bomb(8)}"
    ),
    "a billion laughs of lists": LIST_BOMB,
    "a billion laughs as names": f"{bomb(8)}\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: *a7}}",
    "a tag of Python": "!!python/object/apply:os.system [false]",
    "an unknown tag": "!x a",
    "a binary that is none": "a: !!binary '?'",
    "an integer that is none": "a: !!int x",
    "a float that is none": "a: !!float x",
    "a boolean that is none": "a: !!bool x",
    "a time that is none": "a: !!timestamp x",
    "a set": "!!set {a, b}",
    "an ordered map": "!!omap [a: b]",
    "an ordered map that is none": "!!omap [1]",
    "pairs": "!!pairs [a: b]",
    "a version": "%YAML 9.9\n---\na: b",
    "a directive": "%X\n---\na: b",
    "braces": "}{",
    "a brace that stays open": "{a: [",
    "a quote that stays open": 'a: "b',
    "an escape that is none": 'a: "\\q"',
    "an escape of a surrogate": 'a: "\\ud800"',
    "a NUL in quotes": 'a: "\\0"',
    "a kubeconfig with a NUL": 'kubeconfig: "a\\0b"',
    "settings with a NUL": 'access-providers: "a\\0b"\ncluster-proxy-ca: "a\\0b"',
    "settings with another NUL": 'cluster-proxy-ca: "a\\0b"',
    "settings with a surrogate": 'context: "\\ud800"',
    "settings with Arabic digits": "settle: ٣\nmetrics-bind-address: ':٣'\nreorder-margin: ٣",
    "settings of any size": f"settle: {'9' * 400}\nreorder-margin: {'9' * 5000}",
    "a setting that is a map": "settle: {a: b}",
    "a setting that is a list": "settle: [a, b]",
    "a setting that nests itself": "settle: &a [*a]",
    "a list that nests itself": "credentials: &a [*a]",
    "the file itself": "config: here",
    "deep lists": "[" * 1500,
    "deep lists that end": "[" * 1200 + "]" * 1200,
    "deep maps": "{a: " * 3000 + "}" * 3000,
    "deep indents": "".join(f"{' ' * n}a:\n" for n in range(300)),
    "deep JSON": '{"a":' * 3000 + "1" + "}" * 3000,
    "deep dashes": "- " * 3000 + "a",
    "a long line": "a" * 200_000,
    "many lines": "a\n" * 20_000,
    "JSON": '{"a": 1}',
    "JSON of text": '"text"',
    "JSON with a comma too many": '{"a": 1,}',
    "JSON lines": '{"a": 1}\n{"b": 2}\n',
    "JSON with nan": '{"a": NaN}',
    "JSON with a surrogate": '{"a": "\\ud800"}',
    "binary": bytes(range(256)),
    "NUL bytes": b"\0" * 1000,
    "a NUL": "a: b\0c",
    "not UTF-8": b"a: \xff\xfe",
    "half a character": "a: ü".encode()[:-1],
    "Latin 1": "a: ü".encode("latin-1"),
    "UTF-16": "a: b".encode("utf-16"),
    "UTF-32": "a: b".encode("utf-32"),
    "a byte order mark": b"\xef\xbb\xbfa: b",
    "a byte order mark inside": "a: b\n\ufeffc: d",
    "CRLF": "a: b\r\nc: d\r\n",
    "CR": "a: b\rc: d\r",
    "an escape character": "a: \x1b[31m",
    "a control character": "a: \x01",
    "a line separator": "a: b\u2028c",
    "ELF": b"\x7fELF" + bytes(200),
    "gzip": b"\x1f\x8b\x08\0" + bytes(200),
    "PEM": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    "half PEM": "-----BEGIN CERTIFICATE-----\n",
    "a key": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    "an object": manifest(),
    "an object without a name": manifest(metadata={}),
    "an object without metadata": manifest(metadata=None),
    "a name that is a number": manifest(metadata={"name": 1}),
    "a name with a slash": manifest(metadata={"name": "a/b"}),
    "a name with a NUL": manifest(metadata={"name": "a\0b"}),
    "a kind that is a list": manifest(kind=["a"]),
    "a version that is a number": manifest(apiVersion=1),
    "labels that are a list": manifest(metadata={"name": "a", "labels": ["b"]}),
    "managed fields of rubbish": manifest(metadata={"name": "a", "managedFields": [{"fieldsV1": [1]}]}),
    "a list of rubbish": manifest(kind="List", items=[1, None, "a"]),
    "a list that is a map": manifest(kind="List", items={"a": "b"}),
    "a typed list": object_of("PlacementList", OCM, items=[{"spec": {}}]),
    "a Placement of rubbish": object_of("Placement", OCM, spec=["a"]),
    "a Placement with numbers": object_of(
        "Placement",
        OCM,
        spec={"numberOfClusters": "٣", "clusterSets": 1, "predicates": 1, "tolerations": "a"},
    ),
    "a Placement with huge numbers": object_of("Placement", OCM, spec={"numberOfClusters": 10**400}),
    "a Placement with CEL": object_of(
        "Placement",
        OCM,
        spec={
            "predicates": [
                {
                    "requiredClusterSelector": {
                        "celSelector": {
                            "celExpressions": [
                                "semver('\u0661.\u0662.\u0663').major() > 0",
                                "((((",
                                "'a'.matches('(((a*)*)*')",
                                "[1][5] == 1",
                                "9999999999999999999999",
                            ]
                        }
                    }
                }
            ]
        },
    ),
    "a decision of rubbish": object_of(
        "PlacementDecision", OCM, status={"decisions": [1, {"clusterName": 2}]}
    ),
    "a check of rubbish": object_of("AdmissionCheck", KUEUE, spec=1, status=["a"]),
    "a check that is ours": object_of(
        "AdmissionCheck",
        KUEUE,
        spec={
            "controllerName": "kueue.x-k8s.io/multikueue",
            "parameters": {"apiGroup": 1, "kind": [], "name": {}},
        },
        status={"conditions": {"a": "b"}},
    ),
    "a config of rubbish": object_of("MultiKueueConfig", KUEUE, spec={"clusters": {"a": 1}}),
    "a cluster of rubbish": object_of("MultiKueueCluster", KUEUE, spec={"kubeConfig": []}, status=1),
    "a queue of rubbish": object_of(
        "ClusterQueue", KUEUE, spec={"admissionChecks": 1, "resourceGroups": "a"}
    ),
    "a Workload of rubbish": object_of(
        "Workload", KUEUE, spec={"podSets": [{"count": "٣"}]}, status={"admissionChecks": [{"state": 1}]}
    ),
    "a Secret of rubbish": manifest(kind="Secret", data={"kubeconfig": "?"}),
    "a Deployment of rubbish": object_of(
        "Deployment",
        "apps/v1",
        metadata={"name": "a", "namespace": "placement-ac-system"},
        spec={
            "template": {
                "spec": {
                    "containers": [
                        1,
                        {
                            "name": "controller",
                            "args": ["--config", "a\0b", "--settle=٣"],
                            "env": [{"name": 1}],
                        },
                    ]
                }
            }
        },
    ),
    "an Event of rubbish": manifest(kind="Event", involvedObject=1, lastTimestamp="a", count="٣"),
    "providers that are text": "providers: text",
    "providers of rubbish": "providers: [1, null, {name: []}]",
    "no providers": "providers: []",
    "a provider with suffixes of rubbish": (
        "providers: [{name: a, execConfig: {apiVersion: client.authentication.k8s.io/v1, command: "
        "'a\\0b'}, allowedServerSuffixes: ['..', '[', 1]}]"
    ),
    "a kubeconfig of text": "current-context: c\ncontexts: text",
    "an embedded hub's of rubbish": "current-context: placement-ac\nclusters: {0: 1}",
    "a hub's with an odd server": (
        "current-context: embedded-hub\nclusters: [{cluster: {server: 'https://[::1'}}]"
    ),
    "a hub's with a long host": (
        "current-context: embedded-hub\nclusters: [{cluster: {server: 'https://" + "a" * 64 + ":1'}}]"
    ),
    "a recording of nothing": '{"time": "2024-01-01T00:00:00Z"}',
    "a recording of rubbish": json.dumps(
        {"time": "x", "check": 1, "listed": {}, "draining": "a", "scores": [1], "running": 1}
    ),
    "a recording in the year 1": json.dumps(
        {"time": "0001-01-01T00:00:00+23:59", "check": "a", "listed": ["b"], "draining": []}
    ),
    "a recording in the year 9999": json.dumps(
        {"time": "9999-12-31T23:59:59-23:59", "check": "a", "listed": ["b"], "draining": []}
    ),
    "a recording from the first to the last year": "\n".join(
        json.dumps({"time": time, "check": "a", "listed": ["b"], "draining": ["c"], "scores": {"b": 10**17}})
        for time in ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z")
    ),
    "a recording of one moment": json.dumps(
        {"time": "2024-01-01T00:00:00Z", "check": "", "listed": [""], "draining": ["\0"], "scores": {"": -1}}
    ),
    "a recording with many digits": (
        '{"time": "2024-01-01T00:00:00Z", "check": "a", "listed": [], "draining": [], "scores": {"a": '
        + "9" * 5000
        + "}}"
    ),
    "a recording with a number beyond 64 bits": (
        '{"time": "2024-01-01T00:00:00Z", "check": "a", "listed": ["a"], "draining": [], "scores": {"a": '
        + "9" * 30
        + "}}"
    ),
    "a recording at a huge time": '{"time": 99999999999999999, "check": "a", "listed": [], "draining": []}',
}
"""The contents of any file."""


@dataclass(frozen=True)
class Option:
    """An option or argument of a command, or a setting as a variable of the environment."""

    command: str
    param: click.Parameter
    variable: str = ""

    def __str__(self) -> str:
        return f"{self.command} {self.variable or max(self.param.opts, key=len)}"

    @property
    def takes_file(self) -> bool:
        file = isinstance(self.param.type, click.Path) or (self.param.metavar or "").startswith("FILE")
        return file or self.variable.removeprefix(PREFIX).lower() in _FILE_SETTINGS


_FILE_SETTINGS: Final = {name for name, one in Settings.model_fields.items() if "Path" in str(one.annotation)}


def all_options() -> list[Option]:
    """Return every option and argument of every command, and every setting in the environment."""
    context = click.Context(main)
    commands = {name: main.get_command(context, name) for name in main.list_commands(context)}
    found = [Option(name, param) for name, one in commands.items() if one for param in one.params]
    variables = [
        Option(one.command, one.param, f"{PREFIX}{one.param.name}".upper())
        for one in found
        if one.command == "run" and one.param.name in Settings.model_fields
    ]
    return found + variables


OPTIONS: Final = all_options()
NEEDS: Final = {
    ("timeline", "lasts"): ("--record", "new"),
    ("doctor", "cluster"): ("--workers",),
    ("doctor", "timeout"): ("--workers",),
    ("doctor", "access_providers"): ("--workers",),
    ("explain", "timeout"): ("--workers",),
    ("explain", "access_providers"): ("--workers",),
    ("plan", "timeout"): ("--workers",),
    ("plan", "access_providers"): ("--workers",),
}
"""Other options that an option needs, or it is refused without being read."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, without a network, where commands that run for ever end at once."""
    numeric, bind = socket.getaddrinfo, socket.socket.bind

    def offline(host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0) -> Any:  # noqa: A002  # as Python names it
        return numeric(host, port, family, type, proto, flags | socket.AI_NUMERICHOST)

    def bind_offline(self: socket.socket, address: Any) -> None:
        if isinstance(address[0], str) and address[0] and _is_name(address[0]):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        bind(self, address)

    def _is_name(host: str) -> bool:
        try:
            numeric(host, None, flags=socket.AI_NUMERICHOST)
        except socket.gaierror:
            return True
        except (UnicodeError, ValueError):
            pass
        return False

    monkeypatch.setattr(socket, "getaddrinfo", offline)
    monkeypatch.setattr(socket.socket, "bind", bind_offline)
    monkeypatch.setattr(
        "placement_ac.cli.run.run_until_signal", lambda manager: asyncio.run(_run_once(manager))
    )
    monkeypatch.setattr("placement_lab.cli.hub.threading", SimpleNamespace(Event=_Ended))
    monkeypatch.setattr("kubectl_placement.cli.ui.start", _start_and_stop)
    monkeypatch.setattr("placement_lab.cli.demo.DemoEnvironment", _ends)
    for name in os.environ:
        if name.startswith((PREFIX, "KUBE")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hub").write_text(yaml.safe_dump(CLOSED_HUB))
    (tmp_path / "dump").write_text("\n---\n".join(map(Path.read_text, SETUP)))
    return tmp_path


class _Ended:
    def set(self) -> None:
        """Nothing: it is set."""

    def wait(self) -> None:
        """Wait for nothing."""


async def _start_and_stop(stack: AsyncExitStack, feed: Feed, port: int, stop: asyncio.Event) -> str:
    url = await start(stack, feed, port, stop)
    stop.set()
    return url


async def _run_once(manager: Manager) -> None:
    stop = asyncio.Event()
    stop.set()
    await manager.run(stop)


def _ends(*_: Any, **__: Any) -> None:
    """End the command, which would go on until it is stopped."""
    raise click.exceptions.Exit(0)


CLOSED_HUB: Final = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "c",
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
}
"""A kubeconfig of a port on which nothing listens."""
SETUP: Final = (STORY, SAMPLES / "multikueue-setup-demo2.yaml", *sorted((SAMPLES / "fleet").glob("*.yaml")))
"""A hub with our check placement-demo2, its Placement and clusters."""


def words_around(option: Option) -> list[str]:
    """Return the words of a command besides the option, so that it is read."""
    params = {one.name: one for one in _command(option.command).params}
    words = list(NEEDS.get((option.command, option.param.name or ""), ()))
    if option.variable:
        return ["--print-settings"]
    if option.param.name not in ("kubeconfig", "dump_files", "record"):
        if "dump_files" in params and not words and option.param.name != "context":
            words += ["--from-dump", "dump"]
        elif "kubeconfig" in params and option.command != "hub":
            words += ["--kubeconfig", "hub"]
    for name, param in params.items():
        if param.required and name != option.param.name:
            value = str(STORY) if (param.metavar or "").startswith("FILE") else "check/placement-demo2"
            words += [param.opts[-1], value] if isinstance(param, click.Option) else [value]
    return words


def _command(name: str) -> click.Command:
    found = main.get_command(click.Context(main), name)
    assert found
    return found


def invoke(option: Option, value: str, form: str = "") -> Result:
    words = [*words_around(option), *(["-o", form] if form else [])]
    environment = {}
    if option.variable:
        environment = {option.variable: value}
    elif isinstance(option.param, click.Argument):
        words += [value]
    else:
        words += [f"{max(option.param.opts, key=len)}={value}"]
    return CliRunner(env=environment).invoke(main, [option.command, *words], prog_name="placement-ac")


def problem(option: Option, done: Result) -> str:
    """Return why an end is not as it should be; "" for a good one."""
    if done.exception and not isinstance(done.exception, SystemExit):
        return f"{type(done.exception).__name__}: {str(done.exception)[:200]}"
    if "Traceback" in done.output:
        return "a traceback"
    if done.exit_code not in (0, 1, 2):
        return f"exit code {done.exit_code}"
    says_more = (option.command, done.exit_code) in (("plan", 1), ("doctor", 2))  # it has findings
    if done.exit_code and not says_more and not done.output.strip():
        return "no message"
    if done.exit_code and not says_more and len(done.stderr.splitlines()) > LINES:
        return f"{len(done.stderr.splitlines())} lines"
    return ""


def _can_be_a_word(text: str) -> bool:
    """Whether the operating system passes it to a program: files may hold the others."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def rubbish(option: Option, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the kinds of rubbish for an option, and the word for each."""
    yield from ((kind, text) for kind, text in TEXTS.items() if _can_be_a_word(text))
    if option.takes_file:
        for number, (kind, content) in enumerate(CONTENTS.items()):
            path = folder / f"file{number}"
            path.write_bytes(
                content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
            )
            yield f"a file: {kind}", str(path)
        yield "a folder", str(folder)
        yield "an empty device", os.devnull


STRIDE: Final = 37
"""Of so many kinds of rubbish an option gets one, the next option the next one."""
LONG_STRIDE: Final = 4
"""The same for the long test; with 1 it takes minutes, and it passed."""
FOUND: Final = {
    "hub --listen": ("a host with an empty label", "a host that is too long", "a host of spaces"),
    "hub --kubeconfig": (
        "a host that is no name",
        "a byte that is not UTF-8",
        "many spaces",
        "a file: a day that is none",
        "a file: deep maps",
    ),
    "adopt --kubeconfig": ("many spaces",),
    "run --access-providers": ("a file: a time that is none", "a file: a huge number", "a file: deep maps"),
    "run --cluster-proxy-ca": ("many spaces",),
    "run --config": (
        "many spaces",
        "a file: deep maps",
        "a file: settings with a NUL",
        "a file: settings with another NUL",
    ),
    "run PLACEMENT_AC_CONTEXT": ("a byte that is not UTF-8",),
    "run PLACEMENT_AC_CONFIG": ("a file: settings with a surrogate",),
    "run --metrics-bind-address": ("a host with an empty label",),
    "run --health-probe-bind-address": ("a host that is too long",),
    "status --from-dump": ("many spaces", "a file: a huge number", "a file: a billion laughs of lists"),
    "timeline --since": ("a duration beyond the calendar", "a duration beyond datetime"),
    "timeline --from": (
        "a file: a recording in the year 1",
        "a file: a recording in the year 9999",
    ),
    "plan --filename": ("many spaces", "a file: a billion laughs as an object"),
}
"""Rubbish that once ended in a traceback, or never ended."""


@pytest.mark.parametrize("command", COMMANDS)
def test_rubbish_never_ends_in_a_traceback(folder: Path, command: str) -> None:
    options = [(number, one) for number, one in enumerate(OPTIONS) if one.command == command]
    assert options
    assert problems((one, sampled(one, number, folder)) for number, one in options) == []


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("command", COMMANDS)
def test_more_rubbish_never_ends_in_a_traceback(folder: Path, command: str) -> None:
    options = ((number, one) for number, one in enumerate(OPTIONS) if one.command == command)
    assert problems((one, sampled(one, number, folder, LONG_STRIDE)) for number, one in options) == []


def _form(option: Option, number: int) -> str:
    """Return an output format of the command, another one for each kind of rubbish; "" for the default."""
    shared = next((param for param in _command(option.command).params if "--output" in param.opts), None)
    if shared is None or shared is option.param or option.command == "run":
        return ""
    forms = ("", *getattr(shared.type, "choices", ()))
    return str(forms[number % len(forms)])


def problems(thrown: Iterable[tuple[Option, Iterable[tuple[str, str]]]]) -> list[str]:
    return [
        f"{option} with {kind}: {found}"
        for option, kinds in thrown
        for number, (kind, value) in enumerate(kinds)
        if (found := problem(option, invoke(option, value, _form(option, number))))
    ]


def sampled(option: Option, number: int, folder: Path, stride: int = STRIDE) -> Sequence[tuple[str, str]]:
    once = FOUND.get(str(option), ())
    kinds = list(rubbish(option, folder))
    assert set(once) <= {kind for kind, _ in kinds}
    return [one for index, one in enumerate(kinds) if one[0] in once or (index + number) % stride == 0]


@pytest.mark.parametrize("form", ["table", "html", "json"])
def test_a_recording_of_all_years_is_drawn(folder: Path, form: str) -> None:
    path = folder / "recording"
    path.write_text(str(CONTENTS["a recording from the first to the last year"]))
    done = CliRunner().invoke(main, ["timeline", "--from", str(path), "-o", form])
    assert (done.exit_code, done.exception) == (0, None)


def test_at_least_200_kinds_are_thrown(folder: Path) -> None:
    assert set(FOUND) <= set(map(str, OPTIONS))
    assert len(TEXTS) + len(CONTENTS) >= 200


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_word_that_is_no_unicode_is_printed_with_a_question_mark(folder: Path, form: str) -> None:
    words = ["doctor", "--from-dump", "dump", "--controller-namespace", "a\udcffü", "-o", form]
    done = CliRunner().invoke(main, words)
    assert not done.exception or isinstance(done.exception, SystemExit)
    assert "namespace a?ü" in done.stdout
