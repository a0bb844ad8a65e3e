"""
No option, argument, file or variable ends a command in a traceback, whatever it holds.

The tests walk the commands themselves: a new command or option is tested without being named here.
"""

import asyncio
import os
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import click
import pytest
import yaml
from click.testing import Result

from kubectl_placement.cli.ui import start
from kubectl_placement.cli.ui_feed import Feed
from placement_ac.cli.main import COMMANDS
from placement_ac.config.load import PREFIX
from placement_ac.controller.manager import Manager
from tests.placement_ac.cli.rubbish_contents import CONTENTS
from tests.placement_ac.cli.rubbish_options import OPTIONS, SAMPLES, STORY, Option, command_named, invoke
from tests.placement_ac.cli.rubbish_texts import TEXTS
from tests.support import commands
from tests.support.kubeconfigs import one_context

LINES: Final = 12
"""The most lines of an error message; click's has the usage and a hint as well."""


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


CLOSED_HUB: Final = one_context({"server": "http://127.0.0.1:1"}, {"token": "t"})
"""A kubeconfig of a port on which nothing listens."""
SETUP: Final = (STORY, SAMPLES / "multikueue-setup-demo2.yaml", *sorted((SAMPLES / "fleet").glob("*.yaml")))
"""A hub with our check placement-demo2, its Placement and clusters."""


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
    shared = next((param for param in command_named(option.command).params if "--output" in param.opts), None)
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


def test_at_least_200_kinds_are_thrown(folder: Path) -> None:
    assert set(FOUND) <= set(map(str, OPTIONS))
    assert len(TEXTS) + len(CONTENTS) >= 200


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_word_that_is_no_unicode_is_printed_with_a_question_mark(folder: Path, form: str) -> None:
    words = ["doctor", "--from-dump", "dump", "--controller-namespace", "a\udcffü", "-o", form]
    done = commands.run(*words)
    assert not done.exception or isinstance(done.exception, SystemExit)
    assert "namespace a?ü" in done.stdout
