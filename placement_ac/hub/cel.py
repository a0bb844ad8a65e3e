"""
x-kubernetes-validations: CEL rules over one value and, for transition rules, its old self.

Programs are compiled once per rule text. A rule that cannot be evaluated counts
as broken, with the error as its message, as on a real server.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import celpy
from celpy.adapter import json_to_cel
from celpy.evaluation import CELEvalError

from placement_ac.hub.schema import UNSET


def broken(rule: dict[str, Any], value: Any, old: Any) -> str | None:
    """Return the message of a rule that `value` breaks, None when it holds. `old` may be UNSET."""
    text: str = rule["rule"]
    if old is UNSET and "oldSelf" in text:
        return None  # a transition rule has nothing to compare a new value with
    try:
        holds = bool(_program(text).evaluate(_names(text, value, old)))
    except CELEvalError as error:
        return f"rule {text} failed: {error}"
    return None if holds else rule.get("message") or f"failed rule: {text}"


@lru_cache(maxsize=4096)
def _program(text: str) -> Any:
    environment = celpy.Environment()
    return environment.program(environment.compile(text))


def _names(text: str, value: Any, old: Any) -> dict[str, Any]:
    names = {"self": json_to_cel(value)}
    if "oldSelf" in text:
        names["oldSelf"] = json_to_cel(old)
    return names
