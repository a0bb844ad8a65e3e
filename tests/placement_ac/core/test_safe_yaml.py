"""Whatever is wrong with a text, there is one error, which does not quote it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from placement_ac.core.safe_yaml import (
    TOO_DEEP,
    TOO_MANY_ALIASES,
    VALUES_PER_CHARACTER,
    NotYaml,
    load_yaml,
    yaml_errors,
)
from tests.support.growth import LINEAR, calls_of, growth_of


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("a: [", "line 1: expected the node content, but found '<stream end>'", id="not closed"),
        pytest.param("a: !s3cret x", "line 1: could not determine a constructor for the tag", id="a tag"),
        pytest.param("a: *s3cret", "line 1: found undefined alias", id="an alias"),
        pytest.param("a: \x00", "it has control characters", id="no text"),
        pytest.param("a: !!int s3cret", "a value is not of its type", id="no number"),
        pytest.param("a: !!timestamp s3cret", "a value is not of its type", id="no time"),
    ],
)
def test_the_error_says_what_and_where(text: str, problem: str) -> None:
    with pytest.raises(NotYaml) as error, yaml_errors():
        yaml.safe_load(text)
    assert (str(error.value), error.value.is_too_deep) == (f"it is not YAML: {problem}", False)
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__


def too_deep_for_libyaml() -> None:
    yaml.load("[" * 3000, yaml.CSafeLoader)  # a safe loader


def too_deep_for_python() -> None:
    """PyYAML's own parser is recursive; how deep it comes depends on the limit, which hypothesis raises."""
    raise RecursionError


@pytest.mark.parametrize("load", [too_deep_for_libyaml, too_deep_for_python])
def test_yaml_that_is_nested_too_deeply_is_refused(load: Callable[[], None]) -> None:
    with pytest.raises(NotYaml, match=TOO_DEEP) as error, yaml_errors():
        load()
    assert error.value.is_too_deep


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"a: \xff")
    with pytest.raises(NotYaml, match=r"^it is not text in UTF-8$"), yaml_errors():
        yaml.safe_load((tmp_path / "x").read_text("utf-8"))


def test_an_error_that_the_caller_handles_itself_is_passed_on() -> None:
    with pytest.raises(OSError, match="no disk"), yaml_errors(OSError):
        raise OSError("no disk")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1:30", "1:30"),
        ("2026-11-25", "2026-11-25"),
        ("=", "="),
        ("yes", True),
        ("n", False),
        ("~", None),
        ("-0x1F", -31),
        ("0o17", 15),
        ("017", 15),
        ("089", 89),
        ("1.0", 1),
        ("-2e3", -2000),
        ("1e30", 1e30),
        ("1_000", 1000),
        (".5", 0.5),
        ("0b11", 3),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", 2.0**64),
        ("9" * 400, "9" * 400),
        ("0x" + "f" * 70, "0x" + "f" * 70),
        (".nan", ".nan"),
        ("1.2.3", "1.2.3"),
        ("12e03", 12000),
        ("1e", "1e"),
        ("+_1.", 1),
        (".1_1", 0.11),
        (".1__1", ".1__1"),
        ("0b-1", -1),
        ("-a.b", "-a.b"),
    ],
)
def test_types_are_those_of_kubectl(text: str, value: Any) -> None:
    found = load_yaml(f"a: {text}")["a"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("first", "more"), [pytest.param("1", ":00", id="sexagesimal"), ("9", "9"), ("0", "7")]
)
def test_a_long_number_takes_no_time(first: str, more: str) -> None:
    def load(size: int) -> None:
        number = first + more * (size // len(more))
        assert load_yaml(f"a: {number}") == {"a": number}

    assert growth_of(load, 36_625) < LINEAR


def test_merge_keys() -> None:
    text = "a: &a {x: 1, u: 2}\nb: &b {<<: *a, u: 3}\nc: {<<: [*b, {z: 4}]}"
    assert load_yaml(text)["c"] == {"x": 1, "u": 3, "z": 4}


MANY_KEYS = ", ".join(f"k{number}: 1" for number in range(1_000))
COPIES = f"a: &a {{{MANY_KEYS}}}\nb: {{<<: [{', '.join(['*a'] * 1_000)}]}}"


def test_merge_keys_that_copy_too_much() -> None:
    def load() -> None:
        with pytest.raises(NotYaml) as error:
            load_yaml(COPIES)
        assert str(error.value) == TOO_MANY_ALIASES

    assert calls_of(load) < 2 * VALUES_PER_CHARACTER * len(COPIES)


def test_keys_are_texts() -> None:
    assert load_yaml("{1: a, y: b, 1.5: c, ~: d, e: f}") == {
        "1": "a",
        "true": "b",
        "1.5": "c",
        "null": "d",
        "e": "f",
    }
