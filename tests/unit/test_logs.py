"""Log lines are text for people or JSON for programs, on stderr, from a level on."""

import json

import pytest
import structlog

from placement_ac import logs


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
