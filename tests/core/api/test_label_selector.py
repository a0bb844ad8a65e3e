"""kubectl's syntax of label selectors, with claims."""

import time
from contextlib import suppress

import pytest

from placement_ac.core.api.label_selector import SelectorError, parse_label_selector


@pytest.mark.parametrize(
    "text",
    ["a=b", "a!=b", "a in (b, c)", "a notin (b, c)", "a", "!a", "a>5", "a<5", "x.y/a=b", "claim:a=b", "a="],
)
def test_a_requirement_is_shown_as_it_was_written(text: str) -> None:
    assert [str(one) for one in parse_label_selector(text)] == [text]


@pytest.mark.parametrize("text", ["a b", "=b", "a in b", "a=(b)", "a,,b", "a=b,", "a>x", "-a", "a:b=c"])
def test_what_is_no_selector(text: str) -> None:
    with pytest.raises(SelectorError, match="is not a label selector"):
        parse_label_selector(text)


@pytest.mark.parametrize("part", [",", "(", ")", "a,", "a(", "a ", "a in (", "a=b,", "a in (b),", "!", "a."])
def test_the_time_is_linear(part: str) -> None:
    """A quadratic one took 90 s for 200 KB."""
    text, began = part * (200_000 // len(part)), time.process_time()
    with suppress(SelectorError):
        parse_label_selector(text)
    assert time.process_time() - began < 3.0


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("a=1,b!=2", True),
        ("a==1,b=2", False),
        ("a in (1,2),missing notin (x)", True),
        ("a>0,a<2", True),
        ("a>1", False),
        ("missing>1", False),
        ("b>1", False),
        ("!missing,a", True),
        ("", True),
    ],
)
def test_which_labels_meet_it(text: str, met: bool) -> None:
    labels = {"a": "1", "b": "x"}
    assert all(one.is_met_by(labels) for one in parse_label_selector(text)) is met
