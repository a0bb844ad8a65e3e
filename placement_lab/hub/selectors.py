"""
Label and field selectors: parse them into tests of an object. Pure.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from placement_ac.core.api.label_selector import CLAIM, SelectorError, parse_label_selector
from placement_lab.hub.errors import bad_request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Test = Callable[[Mapping[str, Any]], bool]

ALWAYS = ("metadata.name", "metadata.namespace")


def selects_all(_: Mapping[str, Any]) -> bool:
    return True


@lru_cache(maxsize=1024)
def labels(text: str) -> Test:
    """Return a test of an object's labels; raises 400 for an invalid label selector."""
    try:
        requirements = parse_label_selector(text)
    except SelectorError as error:
        raise bad_request(f"unable to parse requirement: {error}") from None
    for requirement in requirements:
        if requirement.key.startswith(CLAIM):
            raise bad_request(f"unable to parse requirement: {str(requirement)!r} is not a label selector")
    if not requirements:
        return selects_all
    if len(requirements) == 1:
        only = requirements[0].is_met_by
        return lambda obj: only(obj["metadata"].get("labels") or {})
    return lambda obj: all(
        requirement.is_met_by(obj["metadata"].get("labels") or {}) for requirement in requirements
    )


@lru_cache(maxsize=1024)
def fields(text: str, known: tuple[str, ...]) -> Test:
    """Return a test of an object's fields; raises 400 for a path that is not in `known`."""
    if not text:
        return selects_all
    tests = [_field(text, part, known) for part in text.split(",") if part]
    return lambda obj: all(test(obj) for test in tests)


def _field(whole: str, text: str, known: tuple[str, ...]) -> Test:
    match = re.fullmatch(r"([^=!]+)(==|=|!=)(.*)", text.strip())
    if match is None:
        raise bad_request(f"invalid selector: '{whole}'; can't understand '{text}'")
    path, sign, value = match.groups()
    if path not in known:
        raise bad_request(f"field label not supported: {path}")
    keys, wanted = path.split("."), sign != "!="
    return lambda obj: (_at(obj, keys) == value) is wanted


def _at(obj: Any, keys: list[str]) -> str:
    if keys == ["status", "successful"]:  # of Jobs: the name in selectors
        return _at(obj, ["status", "succeeded"]) or "0"
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
    match = re.fullmatch(r",*metadata\.name==?([^,=!]+),*", text)
    return match[1] if match else None
