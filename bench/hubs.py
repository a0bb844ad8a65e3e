"""
The hub that is measured on: an embedded one in a process of its own, or whichever a kubeconfig leads to.

`python -m bench.hubs KUBECONFIG` serves until its standard input ends; a line there is an order (`down`,
`up`, `journal`), and a line on standard output its answer. Kept apart: what a hub costs must not pass for
what is measured.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import click

from placement_ac.hub import Hub

Requests = dict[str, int]
"""How often each request was made, as `verb plural[/subresource]`."""


class Bench(Protocol):
    """A hub to measure on. `orders` False: nobody can take it down, or read its journal."""

    kubeconfig: Path
    orders: bool

    def down(self) -> None:
        """Let nobody reach it."""

    def up(self) -> None:
        """Let everybody reach it again, with all it had."""

    def requests(self, agent: str) -> Requests:
        """Return what whose User-Agent begins so has asked since the last call."""


class Ours:
    """An embedded hub in a process of its own."""

    orders = True

    def __init__(self, kubeconfig: Path, process: "subprocess.Popen[str]") -> None:
        self.kubeconfig = kubeconfig
        self._process = process

    def _order(self, word: str) -> str:
        assert self._process.stdin  # noqa: S101  # opened as pipes
        assert self._process.stdout  # noqa: S101
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()

    def down(self) -> None:
        self._order("down")

    def up(self) -> None:
        self._order("up")

    def requests(self, agent: str) -> Requests:
        found: Requests = json.loads(self._order(f"journal {agent}"))
        return found


class Theirs:
    """A hub that a kubeconfig leads to."""

    orders = False

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    def down(self) -> None:
        raise NotImplementedError

    def up(self) -> None:
        raise NotImplementedError

    def requests(self, agent: str) -> Requests:
        raise NotImplementedError


@contextmanager
def embedded(kubeconfig: Path) -> Iterator[Ours]:
    """Run an embedded hub, and write the kubeconfig that leads to it."""
    command = [sys.executable, "-m", "bench.hubs", str(kubeconfig)]
    with subprocess.Popen(  # noqa: S603  # our own
        command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        if not process.stdout or process.stdout.readline() != "ready\n":
            raise click.ClickException("the hub did not start")
        try:
            yield Ours(kubeconfig, process)
        finally:
            if process.stdin:
                process.stdin.close()


def _serve(kubeconfig: Path) -> None:
    with Hub() as hub:
        hub.write_kubeconfig(kubeconfig)
        _answer("ready")
        for line in sys.stdin:
            word, _, agent = line.strip().partition(" ")
            if word == "down":
                hub.go_down()
                _answer("")
            elif word == "up":
                hub.come_back()
                _answer("")
            else:
                _answer(json.dumps(_counted(hub, agent)))


def _answer(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _counted(hub: Hub, agent: str) -> Requests:
    requests = hub.journal[:]
    del hub.journal[: len(requests)]
    return dict(
        Counter(_named(r.method, r.path, r.query) for r in requests if r.user_agent.startswith(agent))
    )


def _named(method: str, path: str, query: dict[str, str]) -> str:
    """Return `patch multikueueconfigs`; of a path /apis/GROUP/VERSION[/namespaces/NS]/PLURAL[/NAME[/SUB]]."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    plural, name, sub = (*rest, "", "", "")[:3]
    verb = {"GET": "get" if name else "list"}.get(method, method.lower())
    verb = "watch" if "watch" in query else verb
    return f"{verb} {plural or 'discovery'}{'/' + sub if sub else ''}"


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
