"""Whatever is wrong with a text, there is one error, which does not quote it."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from placement_ac.core.safe_yaml import TOO_DEEP, NotYaml, yaml_errors


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
def test_what_is_nested_too_deeply(load: Callable[[], None]) -> None:
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
