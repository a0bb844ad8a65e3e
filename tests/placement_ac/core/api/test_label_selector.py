"""kubectl's syntax of label selectors, with claims."""

from contextlib import suppress
from itertools import count

import pytest

from placement_ac.core.api.label_selector import SelectorError, parse_label_selector
from tests.support.growth import LINEAR, calls_of, growth_of


@pytest.mark.parametrize(
    "text",
    ["a=b", "a!=b", "a in (b, c)", "a notin (b, c)", "a", "!a", "a>5", "a<5", "x.y/a=b", "claim:a=b", "a="],
)
def test_a_requirement_is_shown_as_it_was_written(text: str) -> None:
    assert [str(one) for one in parse_label_selector(text)] == [text]


@pytest.mark.parametrize("text", ["a b", "=b", "a in b", "a=(b)", "a,,b", "a=b,", "a>x", "-a", "a:b=c"])
def test_text_that_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(SelectorError, match="is not a label selector"):
        parse_label_selector(text)


@pytest.mark.parametrize("part", [",", "(", ")", "a,", "a(", "a ", "a in (", "a=b,", "a in (b),", "!", "a."])
def test_the_time_is_linear(part: str) -> None:
    """A quadratic one took 90 s for 200 KB."""
    number = count()  # parsed texts are remembered

    def parse(size: int) -> None:
        with suppress(SelectorError):
            parse_label_selector(f"{part * (size // len(part))}{next(number)}")

    assert growth_of(parse, 4_000) < LINEAR


def test_a_wrong_selector_is_parsed_once() -> None:
    """It is judged for each cluster, and its mistake may come last."""

    def refuse() -> None:
        with pytest.raises(SelectorError, match="is not a label selector"):
            parse_label_selector(f"{'key=value,' * 500}=wrong")

    assert calls_of(refuse) > 20 * calls_of(refuse)


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


def test_a_wrong_text_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(SelectorError, match="'a in b' is not a label selector"):
            parse_label_selector("a in b")
