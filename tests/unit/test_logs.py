"""Log lines are text for people or JSON for programs, on stderr, from a level on."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable

import pytest
import structlog

from placement_ac import logs
from placement_ac.operator import _guard
from placement_ac.watch import _Grumbles
from placement_ac.workqueue import Workqueue


def say() -> None:
    log = structlog.get_logger("test")
    log.debug("unheard")
    log.info("applied", kind="MultiKueueConfig", name="p")


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("json")
    say()
    (line,) = capsys.readouterr().err.splitlines()
    told = json.loads(line)
    assert told.pop("timestamp").endswith("Z")
    assert told == {"event": "applied", "kind": "MultiKueueConfig", "name": "p", "level": "info"}


def test_text(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("text")
    say()
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), err.split()[-2:]) == ("", 1, ["kind=MultiKueueConfig", "name=p"])


@pytest.mark.parametrize(("level", "lines"), [("debug", 2), ("info", 1), ("error", 0)])
def test_the_level_is_the_least_that_is_told(
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


# -- errors that may quote a token


async def fail(_: object = None) -> None:
    raise KeyError("SeCrEt-42")


async def in_a_queue() -> None:
    queue = Workqueue(fail)
    queue.add("key")
    await asyncio.sleep(0)
    await queue.close()


async def in_a_part_of_the_session() -> None:
    await _guard(fail(), asyncio.Event())


async def in_kopf() -> None:
    grumbles = _Grumbles.instead_of_kopfs_log()
    try:
        await fail()
    except KeyError:
        logging.getLogger("kopf").exception("it failed on SeCrEt-42")
    structlog.get_logger("test").error("told", error=grumbles.last)


@pytest.mark.parametrize("where", [in_a_queue, in_a_part_of_the_session, in_kopf])
def test_an_unexpected_error_is_told_by_its_type_and_place_alone(
    capsys: pytest.CaptureFixture[str], where: Callable[[], Awaitable[None]]
) -> None:
    logs.configure("json", "debug")

    async def run() -> None:
        await where()

    asyncio.run(run())
    told = capsys.readouterr().err
    line = fail.__code__.co_firstlineno + 1
    assert json.loads(told)["error"].startswith("KeyError /")
    assert json.loads(told)["error"].endswith(f"{__file__}:{line}")
    assert "SeCrEt-42" not in told
