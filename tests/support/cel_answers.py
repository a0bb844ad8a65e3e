"""The answers of cel-go to expressions, recorded with OCM's package and with that of an API server."""

import base64
import json
import math
from functools import cache
from pathlib import Path
from typing import Any, Literal

from cel_expr_python import cel

from kubectl_placement.scheduling.cel_environment import Environment, NotEvaluatedError, RefusedError

Who = Literal["ocm", "kubernetes"]
Answer = tuple[str, Any]
"""The type of the value and the value, or `error`, `refused`, `not evaluated`, and None."""
ERROR: Answer = ("error", None)
REFUSED: Answer = ("refused", None)
NOT_EVALUATED: Answer = ("not evaluated", None)
_WITHOUT_VALUE = ("null_type", "type")


@cache
def recording() -> dict[str, Any]:
    """Return the file: `cluster`, its `scores`, and `answers`."""
    content: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text())
    return content


def recorded(who: Who) -> dict[str, Answer]:
    """Return cel-go's answer to each expression."""
    return {row["expression"]: _read(row.get(who, row["ocm"])) for row in recording()["answers"]}


def answered(environment: Environment, text: str, variables: dict[str, object]) -> Answer:
    """Return what `environment` answers."""
    try:
        value = environment.compile(text).evaluate(variables)
    except RefusedError:
        return REFUSED
    except NotEvaluatedError:
        return NOT_EVALUATED
    if value.type() == cel.Type.ERROR:
        return ERROR
    name = {"NULL": "null_type"}.get(value.type().name(), value.type().name().partition("<")[0].lower())
    return name, None if name in _WITHOUT_VALUE else _json(value.plain_value())


def _read(answer: dict[str, Any]) -> Answer:
    if "type" not in answer:
        return ERROR if "error" in answer else REFUSED
    return answer["type"], None if answer["type"] in _WITHOUT_VALUE else answer["value"]


def _json(value: Any) -> Any:
    if isinstance(value, bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if isinstance(value, dict):
        return {str(key): _json(item) for key, item in value.items()}
    return value
