"""
Label and field selectors: parse them into tests of an object. Pure.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from placement_ac.lab.hub.errors import bad_request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Test = Callable[[Mapping[str, Any]], bool]

NAME = r"(?:[a-z0-9A-Z](?:[-a-z0-9A-Z._/]*[a-z0-9A-Z])?)"
VALUE = r"(?:[a-z0-9A-Z](?:[-a-z0-9A-Z._]*[a-z0-9A-Z])?)?"
EQUALITY = re.compile(rf"({NAME})\s*(==|=|!=)\s*({VALUE})")
MEMBERSHIP = re.compile(rf"({NAME})\s+(in|notin)\s*\(([^()]*)\)")
EXISTENCE = re.compile(rf"(!?)\s*({NAME})")
ORDER = re.compile(rf"({NAME})\s*([<>])\s*(-?\d+)")
# A comma ends a requirement only outside of parentheses.
COMMA = re.compile(r",(?![^(]*\))")

ALWAYS = ("metadata.name", "metadata.namespace")


def selects_all(_: Mapping[str, Any]) -> bool:
    return True


@lru_cache(maxsize=1024)
def labels(text: str) -> Test:
    """Return a test of an object's labels; raises 400 for an invalid label selector."""
    if not text.strip():
        return selects_all
    tests = [_requirement(part.strip()) for part in COMMA.split(text)]
    if len(tests) == 1:
        only = tests[0]
        return lambda obj: only(obj["metadata"].get("labels") or {})
    return lambda obj: all(test(obj["metadata"].get("labels") or {}) for test in tests)


def _requirement(text: str) -> Test:
    if match := EQUALITY.fullmatch(text):
        key, sign, value = match.groups()
        return _differs(key, {value}) if sign == "!=" else _is_one_of(key, {value})
    if match := MEMBERSHIP.fullmatch(text):
        key, sign, listed = match.groups()
        values = {part.strip() for part in listed.split(",")}
        return _differs(key, values) if sign == "notin" else _is_one_of(key, values)
    if match := EXISTENCE.fullmatch(text):
        absent, key = match.groups()
        return (lambda found: key not in found) if absent else (lambda found: key in found)
    if match := ORDER.fullmatch(text):
        return _compares(match[1], match[2], int(match[3]))
    raise bad_request(f"unable to parse requirement: {text!r} is not a label selector")


def _is_one_of(key: str, values: set[str]) -> Test:
    return lambda found: found.get(key) in values


def _differs(key: str, values: set[str]) -> Test:
    return lambda found: found.get(key) not in values


def _compares(key: str, sign: str, bound: int) -> Test:
    def compares(found: Mapping[str, Any]) -> bool:
        value = found.get(key, "")
        if not re.fullmatch(r"-?\d+", value):
            return False
        return int(value) > bound if sign == ">" else int(value) < bound

    return compares


@lru_cache(maxsize=1024)
def fields(text: str, known: tuple[str, ...]) -> Test:
    """Return a test of an object's fields; raises 400 for a path that is not in `known`."""
    if not text:
        return selects_all
    tests = [_field(part, known) for part in text.split(",")]
    return lambda obj: all(test(obj) for test in tests)


def _field(text: str, known: tuple[str, ...]) -> Test:
    match = re.fullmatch(r"([^=!]+)(==|=|!=)(.*)", text.strip())
    if match is None:
        raise bad_request(f"invalid field selector: {text!r}")
    path, sign, value = match.groups()
    if path not in known:
        raise bad_request(f"field label not supported: {path}")
    keys, wanted = path.split("."), sign != "!="
    return lambda obj: (_at(obj, keys) == value) is wanted


def _at(obj: Any, keys: list[str]) -> str:
    for key in keys:
        if not isinstance(obj, dict):
            return ""
        obj = obj.get(key)
    if keys == ["source"] and isinstance(obj, dict):
        return str(obj.get("component", ""))
    return "" if obj is None or isinstance(obj, dict) else str(obj)


@lru_cache(maxsize=256)
def name_in(text: str) -> str | None:
    """Return the name that a field selector requires, so that a list can look it up directly."""
    match = re.fullmatch(r"metadata\.name==?([^,=!]+)", text)
    return match[1] if match else None
