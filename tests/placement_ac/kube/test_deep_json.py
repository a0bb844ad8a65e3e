"""Objects that are nested more deeply than a parser goes."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement_ac.core.api.errors import Malformed, Unavailable
from placement_ac.kube.deep_json import CUT, MAX_LEVELS, is_cut, loads, name_of
from placement_ac.kube.responses import SKIPPED, event_of, object_of
from tests.support.growth import LINEAR, growth_of

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(alphabet='[]{}\\",:a\n'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='[]{}"\\a'), inner),
)


def deep(levels: int, inner: bytes = b"1", opening: bytes = b'{"a":', closing: bytes = b"}") -> bytes:
    return opening * levels + inner + closing * levels


@pytest.mark.parametrize("levels", [2_000, 10_000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_json_that_is_nested_too_deeply_is_cut_out(levels: int, opening: bytes, closing: bytes) -> None:
    value, has_cuts = loads(deep(levels, opening=opening, closing=closing))
    assert has_cuts
    assert is_cut(value)
    for _ in range(MAX_LEVELS):
        [value] = value.values() if isinstance(value, dict) else value
    assert value == CUT


@settings(max_examples=30)
@given(VALUES)
def test_everything_else_is_left_as_it_is(value: Any) -> None:
    text = b'{"deep":' + deep(2_000) + b',"other":' + orjson.dumps(value) + b"}"
    found, _ = loads(text)
    assert (found["other"], is_cut(found["other"]), is_cut(found["deep"])) == (value, False, True)
    assert loads(orjson.dumps(value)) == (value, False)


@pytest.mark.parametrize("text", [b"[" * 5_000, deep(5_000) + b"}", b"{", b""])
def test_text_that_is_no_json_is_refused(text: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        loads(text)


@pytest.mark.parametrize(
    "text",
    [
        lambda size: b"[" * size + b'"' + b'\\"' * (size // 2),
        lambda size: b"[" * size + b'"',
        lambda size: b"[" * 1_100 + b'"\\"' * (size // 3),
    ],
)
def test_an_unfinished_string_is_read_once(text: Callable[[int], bytes]) -> None:
    """Read anew from each of its quotes, 190 KB of it took minutes."""
    with pytest.raises(orjson.JSONDecodeError):
        loads(text(190_000))

    def read(size: int) -> None:
        with suppress(orjson.JSONDecodeError):
            loads(text(size))

    assert growth_of(read, 11_875) < LINEAR


def an_object(name: str, spec: bytes = b"{}") -> bytes:
    return b'{"metadata":{"name":"' + name.encode() + b'","namespace":"ns"},"spec":' + spec + b"}"


def test_of_a_list_the_object_is_left_out_and_named() -> None:
    text = b'{"items":[' + b",".join((an_object("a"), an_object("b", deep(2_000)), an_object("c"))) + b"]}"
    found = object_of(200, text, "GET /x")
    assert [name_of(item) for item in found["items"]] == ["ns/a", "ns/c"]
    assert found[SKIPPED] == ["ns/b"]
    assert SKIPPED not in object_of(200, b'{"items":[]}', "GET /x")


def test_alone_it_is_an_error() -> None:
    with pytest.raises(Malformed, match="GET /x: the object is nested more than 500 levels deep"):
        object_of(200, an_object("b", deep(2_000)), "GET /x")
    with pytest.raises(Unavailable):
        object_of(503, an_object("b", deep(2_000)), "GET /x")


def test_its_events_are_marked() -> None:
    line = b'{"type":"MODIFIED","object":' + an_object("b", deep(2_000)) + b"}"
    change, item = event_of(line, "WATCH /x")
    assert (change, name_of(item)) == (SKIPPED, "ns/b")


@pytest.mark.parametrize("obj", [None, [], {}, {"metadata": 1}, {"metadata": {"name": 1}}])
def test_the_name_of_what_has_none(obj: Any) -> None:
    assert name_of(obj) == ""
