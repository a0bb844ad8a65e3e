"""Log lines are text for people or JSON for programs, on stderr, from a level on; and say constant words."""

import ast
import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import structlog

from placement_ac.controller.handlers import silence_kopf
from placement_ac.controller.session import run_task
from placement_ac.kube.workqueue import Workqueue
from placement_ac.observability import logs


def say() -> None:
    log = structlog.get_logger("placement_ac.controller.writer")
    log.debug("unheard")
    log.info("applied", kind="MultiKueueConfig", name="p")


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("json")
    say()
    (line,) = capsys.readouterr().err.splitlines()
    logged = json.loads(line)
    assert logged.pop("timestamp").endswith("Z")
    assert logged == {
        "level": "info",
        "logger": "controller.writer",
        "event": "applied",
        "kind": "MultiKueueConfig",
        "name": "p",
    }


def test_text(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("text")
    say()
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), err.split()[-2:]) == ("", 1, ["kind=MultiKueueConfig", "name=p"])


@pytest.mark.parametrize(("level", "lines"), [("debug", 2), ("info", 1), ("error", 0)])
def test_lines_below_the_level_are_not_logged(
    capsys: pytest.CaptureFixture[str], level: str, lines: int
) -> None:
    logs.configure("json", level)
    say()
    assert len(capsys.readouterr().err.splitlines()) == lines


def test_an_exception_keeps_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("json")
    try:
        int("lost")
    except ValueError:
        structlog.get_logger("test").exception("failed")
    assert "ValueError: invalid literal" in json.loads(capsys.readouterr().err)["exception"]


# -- what is said

PACKAGE = Path(logs.__file__).parents[1]
MODULES = sorted(PACKAGE.rglob("*.py"))
FROM_TABLES = {
    "background_queries": (
        "log.log(self._logged.level((what, name), problem), failing,",
        "log.info(works_again,",
    ),
    "writer": ("log.log(level, message,",),
}
"""Calls whose message comes from a table of constants in their module."""


def objections(code: str) -> Iterator[str]:
    """Yield the lines that use `log` for anything but a call with constant words first, then keys."""
    tree = ast.parse(code)
    right = set()
    for call in ast.walk(tree):
        match call:
            case ast.Call(
                ast.Attribute(ast.Name("log") as name, "debug" | "info" | "warning" | "error"),
                [ast.Constant(str())],
            ) | ast.Call(ast.Attribute(ast.Name("log") as name, "log"), [_, ast.Constant(str())]):
                right.add(name)
    for name in ast.walk(tree):
        used = isinstance(name, ast.Name) and name.id == "log" and isinstance(name.ctx, ast.Load)
        if used and name not in right:
            yield code.splitlines()[name.lineno - 1].strip()


def test_messages_are_constant() -> None:
    for path in MODULES:
        found = list(objections(path.read_text("utf-8")))
        allowed = FROM_TABLES.get(path.stem, ())
        assert len(found) == len(allowed), (path, found)
        assert all(line.startswith(begin) for line, begin in zip(found, allowed, strict=True)), path


@pytest.mark.parametrize(
    "line",
    [
        "log.info(f'{x}')",
        "log.info(x)",
        "log.info('%s', x)",
        "log.log(9, x)",
        "tell = log.info",
        "log.msg('a')",
    ],
)
def test_a_log_message_that_is_not_constant_is_found(line: str) -> None:
    assert list(objections(f"log.info('a', b=c)\nlog.log(level, 'a')\n{line}")) == [line]


# -- what lasts


def test_a_lasting_problem_is_logged_once() -> None:
    logged = logs.LogDeduplicator()
    levels = [
        logged.level("a", "no rights"),
        logged.level("a", "no rights"),
        logged.level("b", "no rights"),
        logged.level("a", "no answer", logging.ERROR),
    ]
    assert levels == [logging.WARNING, logging.DEBUG, logging.WARNING, logging.ERROR]
    assert (logged.ended("a"), logged.ended("a"), logged.ended("c")) == (True, False, False)
    assert logged.level("a", "no answer") == logging.WARNING


# -- errors that may quote a token


async def fail(_: object = None) -> None:
    raise KeyError("SeCrEt-42")


async def in_a_queue() -> None:
    queue = Workqueue(fail)
    queue.add("key")
    await asyncio.sleep(0)
    await queue.close()


async def in_a_part_of_the_session() -> None:
    await run_task(fail(), asyncio.Event())


async def in_a_library() -> None:
    logging.getLogger("asyncio").warning("a warning of SeCrEt-42 is nobody's business")
    try:
        await fail()
    except KeyError:
        logging.getLogger("asyncio").exception("it failed on SeCrEt-42")


@pytest.mark.parametrize("where", [in_a_queue, in_a_part_of_the_session, in_a_library])
async def test_an_unexpected_error_is_logged_by_its_type_and_place_alone(
    capsys: pytest.CaptureFixture[str], where: Callable[[], Awaitable[None]]
) -> None:
    logs.configure("json", "debug")
    await where()
    logged = capsys.readouterr().err
    line = fail.__code__.co_firstlineno + 1
    assert json.loads(logged)["error"].startswith("KeyError /")
    assert json.loads(logged)["error"].endswith(f"{__file__}:{line}")
    assert "SeCrEt-42" not in logged


def test_kopf_logs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """It quotes whole objects."""
    logs.configure("json", "debug")
    silence_kopf()
    logging.getLogger("kopf.objects").error("it failed on SeCrEt-42")
    assert capsys.readouterr().err == ""


def test_lines_of_one_kind_are_limited_and_counted_and_keep_no_others_away(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(logs.time, "monotonic", lambda: clock[0])
    logs.configure("json")
    log = structlog.get_logger("placement_ac.controller.recorder")
    for number in range(100_000):
        log.info("event", number=number)
    log.warning("an event was refused")
    clock[0] += 1.0
    for number in range(100):
        log.info("event", number=number)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    events = [line for line in lines if line["event"] == "event"]
    assert (len(events), len(lines)) == (logs.LINES_AT_ONCE + 10, logs.LINES_AT_ONCE + 11)
    left_out = [line["left_out"] for line in events if "left_out" in line]
    assert left_out == [100_000 - logs.LINES_AT_ONCE]


def test_debug_lines_are_all_there(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("json", "debug")
    log = structlog.get_logger("placement_ac.controller.recorder")
    for _ in range(2 * logs.LINES_AT_ONCE):
        log.debug("event")
    assert len(capsys.readouterr().err.splitlines()) == 2 * logs.LINES_AT_ONCE
