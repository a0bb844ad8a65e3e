"""
x-kubernetes-validations: evaluate CEL rules on a value and, for transition rules, its old value.

A rule whose evaluation fails counts as violated, with the error as its message, as in Kubernetes; so does one
that is not evaluated here, but then the violation says so. Types are those of the values, not of the schema:
a rule that an API server refuses for its types is violated at most.
"""

from functools import cache
from itertools import permutations
from typing import Any, NamedTuple

from kubectl_placement.scheduling.cel_environment import (
    Environment,
    NotEvaluatedError,
    Program,
    RefusedError,
)
from kubectl_placement.scheduling.cel_functions import KUBERNETES, NORMALIZED_VERSIONS
from placement_lab.structural_schema.schema_node import UNSET

_EXTENSIONS = {"strings": 2, "optional": None, "sets": None, "lists": None, "two-var-comprehensions": None}
_NUMBERS = ("int", "uint", "double")


class Violation(NamedTuple):
    """The message of a violated rule. `evaluated`: False if it was not, so that it may hold on a server."""

    message: str
    evaluated: bool = True


def environment(*variables: str) -> Environment:
    """Return the environment of an API server of 1.34 or newer, with `variables` of any type."""
    comparisons = permutations(_NUMBERS, 2)
    functions = (*KUBERNETES, *NORMALIZED_VERSIONS)
    return Environment(dict.fromkeys(variables, "dyn"), _EXTENSIONS, functions, comparisons)


def violation(rule: dict[str, Any], value: Any, old: Any) -> Violation | None:
    """Return the violation if `value` violates the rule, else None. `old` may be UNSET."""
    text: str = rule["rule"]
    if old is UNSET and "oldSelf" in text:
        return None  # a transition rule does not apply to a new value
    variables = {"self": value} if old is UNSET else {"self": value, "oldSelf": old}
    try:
        program = _program(text)
        if program.is_true(variables):
            return None
        error = program.error(variables)
    except (RefusedError, NotEvaluatedError) as objection:
        return Violation(f"rule {text} failed: {objection}", evaluated=False)
    if error:
        return Violation(f"rule {text} failed: {error}")
    return Violation(rule.get("message") or f"failed rule: {text}")


@cache
def _program(text: str) -> Program:
    return _environment().compile(text)


@cache
def _environment() -> Environment:
    return environment("self", "oldSelf")
