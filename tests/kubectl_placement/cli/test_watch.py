"""The output of `--watch`: a document, and again when it has changed."""

import io
import json
import sys
from collections.abc import Iterable

import pytest
from rich.text import Text

from kubectl_placement.cli.output import watch_printer
from placement_ac.cli.documents import Form

FIRST, SECOND = {"one": 1, "two": 2}, {"one": 1, "two": 3}


def shown(form: Form, *documents: dict[str, int]) -> None:
    with watch_printer(form) as again:
        for document in documents:
            again.show(document, lambda _, of=document: _table(of), document)  # type: ignore[misc]


def _table(document: dict[str, int]) -> Iterable[Text]:
    return (Text(f"{name} is {value}") for name, value in document.items())


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        pytest.param("table", "one is 1\ntwo is 2\n---\none is 1\ntwo is 3\n", id="a table"),
        pytest.param("wide", "one is 1\ntwo is 2\n---\none is 1\ntwo is 3\n", id="a wide one"),
        pytest.param("yaml", "one: 1\ntwo: 2\n---\none: 1\ntwo: 3\n", id="YAML documents"),
        pytest.param("json", '{"one":1,"two":2}\n{"one":1,"two":3}\n', id="JSON lines"),
        pytest.param("name", "one\ntwo\ntwo\n", id="names of what has changed"),
    ],
)
def test_each_change_is_printed_once(form: Form, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown(form, FIRST, FIRST, SECOND, SECOND)
    assert capsys.readouterr().out == expected


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_redrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    shown("table", FIRST, SECOND)
    first, second = terminal.getvalue().split("two is 2")
    assert "one is 1" in first
    assert "\x1b[1A" in second.partition("two is 3")[0]  # the cursor went up
    assert "---" not in terminal.getvalue()


def test_other_forms_are_not_drawn_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    shown("json", FIRST, SECOND)
    assert [json.loads(line) for line in terminal.getvalue().splitlines()] == [FIRST, SECOND]
