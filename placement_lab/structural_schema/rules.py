"""
x-kubernetes-validations: evaluate CEL rules on a value and, for transition rules, its old value.

celpy parses a rule. Rules that use only common functions are compiled to Python functions, which
are several hundred times faster than celpy's interpreter; the interpreter evaluates all others. A
rule whose evaluation fails counts as violated, with the error as its message, as in Kubernetes; so does one
that celpy does not know, but then the violation says so.
"""

from __future__ import annotations

import operator
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import celpy
from celpy.adapter import json_to_cel
from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError
from lark import Token, Tree

from placement_lab.structural_schema.schema_node import UNSET

if TYPE_CHECKING:
    from collections.abc import Callable

    Names = dict[str, Any]
    Value = Callable[[Names], Any]

FAILURES = (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError, CELEvalError, CELParseError)


class OutsideError(Exception):
    """The rule uses something that this module cannot compile."""


class Violation(NamedTuple):
    """The message of a violated rule. `evaluated`: False if celpy may lack what Kubernetes knows."""

    message: str
    evaluated: bool = True


def violation(rule: dict[str, Any], value: Any, old: Any) -> Violation | None:
    """Return the violation if `value` violates the rule, else None. `old` may be UNSET."""
    text: str = rule["rule"]
    if old is UNSET and "oldSelf" in text:
        return None  # a transition rule does not apply to a new value
    try:
        program = _program(text)
    except CELParseError as error:
        return Violation(f"rule {text} failed: {error}", evaluated=False)
    try:
        holds = program.evaluate({"self": value, "oldSelf": old})
    except FAILURES as error:
        return Violation(f"rule {text} failed: {error}", program.compiled)
    return None if holds is True else Violation(rule.get("message") or f"failed rule: {text}")


class _Program(NamedTuple):
    evaluate: Value
    compiled: bool
    """Whether it is a Python function; if not, celpy interprets it, which lacks functions of Kubernetes."""


@lru_cache(maxsize=4096)
def _program(text: str) -> _Program:
    environment = celpy.Environment()
    tree = environment.compile(text)
    try:
        return _Program(_function(tree), True)
    except OutsideError:
        program = environment.program(tree)
        return _Program(
            lambda names: bool(
                program.evaluate({k: json_to_cel(v) for k, v in names.items() if v is not UNSET})
            ),
            False,
        )


def _function(tree: Any) -> Value:
    """Return the function for a node of the syntax tree; nodes with a single child are skipped."""
    if isinstance(tree, Token):
        raise OutsideError(tree)
    build = NODES.get(tree.data)
    if build is not None:
        return build(*tree.children)
    if len(tree.children) == 1:
        return _function(tree.children[0])
    raise OutsideError(tree.data)


# -- operators


def _ternary(condition: Any, yes: Any = None, no: Any = None) -> Value:
    if yes is None:
        return _function(condition)
    test, then, otherwise = _function(condition), _function(yes), _function(no)
    return lambda names: then(names) if _bool(test(names)) else otherwise(names)


def _logic(decisive: bool) -> Callable[..., Value]:
    """Return the function for || or &&: an error on one side is ignored if the other side decides."""

    def build(left: Any, right: Any = None) -> Value:
        if right is None:
            return _function(left)
        left_value, right_value = _function(left), _function(right)

        def value(names: Names) -> bool:
            try:
                first = _bool(left_value(names))
            except FAILURES:
                if _bool(right_value(names)) is decisive:
                    return decisive
                raise
            return first if first is decisive else _bool(right_value(names))

        return value

    return build


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise TypeError("no such overload: a bool is needed")


def _binary(left: Any, right: Any = None) -> Value:
    """Return the function for a binary operation: (operator (left)) right, or a single operand."""
    if right is None:
        return _function(left)
    apply = OPERATORS[left.data]
    left_value, right_value = _function(left.children[0]), _function(right)
    return lambda names: apply(left_value(names), right_value(names))


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


def _within(a: Any, b: Any) -> bool:
    return a in b if isinstance(b, dict) else any(_equal(a, item) for item in b)


def _divided(a: Any, b: Any) -> Any:
    return int(a / b) if isinstance(a, int) and isinstance(b, int) else a / b


def _unary(sign: Any, operand: Any = None) -> Value:
    if operand is None:
        return _function(sign)
    value = _function(operand)
    if sign.data == "unary_not":
        return lambda names: not _bool(value(names))
    return lambda names: -value(names)


# -- members, calls, macros


def _field(of: Any, name: Token) -> Value:
    value, key = _function(of), str(name)
    return lambda names: value(names)[key]


def _index(of: Any, at: Any) -> Value:
    value, key = _function(of), _function(at)
    return lambda names: value(names)[key(names)]


def _method(of: Any, name: Token, arguments: Any = None) -> Value:
    given = list(arguments.children) if arguments is not None else []
    if name in MACROS and len(given) == 2:
        return _macro(MACROS[str(name)], of, *given)
    if name not in METHODS:
        raise OutsideError(name)
    value, values, call = _function(of), [_function(argument) for argument in given], METHODS[str(name)]
    return lambda names: call(value(names), *(argument(names) for argument in values))


def _macro(collect: Callable[[Any, Callable[[Any], Any]], Any], of: Any, variable: Any, body: Any) -> Value:
    value, each, name = _function(of), _function(body), _identifier(variable)

    def result(names: Names) -> Any:
        inner = dict(names)

        def evaluate(item: Any) -> Any:
            inner[name] = item
            return each(inner)

        return collect(value(names), evaluate)

    return result


def _identifier(tree: Any) -> str:
    while isinstance(tree, Tree) and len(tree.children) == 1:
        if tree.data == "ident":
            return str(tree.children[0])
        tree = tree.children[0]
    raise OutsideError("a macro needs a name")


def _call(name: Token, arguments: Any = None) -> Value:
    given = list(arguments.children) if arguments is not None else []
    if name == "has" and len(given) == 1:
        return _has(given[0])
    if name not in FUNCTIONS:
        raise OutsideError(name)
    values, call = [_function(argument) for argument in given], FUNCTIONS[str(name)]
    return lambda names: call(*(value(names) for value in values))


def _has(tree: Any) -> Value:
    while tree.data != "member_dot":
        if len(tree.children) != 1 or not isinstance(tree.children[0], Tree):
            raise OutsideError("has() needs a field")
        tree = tree.children[0]
    value, key = _function(tree.children[0]), str(tree.children[1])
    return lambda names: key in value(names)


def _ident(name: Token) -> Value:
    key = str(name)
    return lambda names: names[key]


def _literal(token: Token) -> Value:
    read = LITERALS.get(token.type)
    if read is None or (token.type == "STRING_LIT" and "\\" in token):
        raise OutsideError(token)
    value = read(str(token))
    return lambda _: value


def _list(items: Any = None) -> Value:
    values = [_function(item) for item in items.children] if items is not None else []
    return lambda names: [value(names) for value in values]


def _exactly_one(items: Any, test: Callable[[Any], Any]) -> bool:
    return sum(_bool(test(item)) for item in items) == 1


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "relation_lt": operator.lt, "relation_le": operator.le,
    "relation_gt": operator.gt, "relation_ge": operator.ge,
    "relation_eq": _equal, "relation_ne": lambda a, b: not _equal(a, b), "relation_in": _within,
    "addition_add": operator.add, "addition_sub": operator.sub,
    "multiplication_mul": operator.mul, "multiplication_div": _divided, "multiplication_mod": operator.mod,
}  # fmt: skip
NODES: dict[str, Callable[..., Value]] = {
    "expr": _ternary, "conditionalor": _logic(True), "conditionaland": _logic(False),
    "relation": _binary, "addition": _binary, "multiplication": _binary, "unary": _unary,
    "member_dot": _field, "member_index": _index, "member_dot_arg": _method, "ident_arg": _call,
    "ident": _ident, "literal": _literal, "list_lit": _list,
}  # fmt: skip
MACROS: dict[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "all": lambda items, test: all(_bool(test(item)) for item in items),
    "exists": lambda items, test: any(_bool(test(item)) for item in items),
    "exists_one": _exactly_one,
    "filter": lambda items, test: [item for item in items if _bool(test(item))],
    "map": lambda items, change: [change(item) for item in items],
}
METHODS: dict[str, Callable[..., Any]] = {
    "size": len,
    "startsWith": lambda text, part: text.startswith(part),
    "endsWith": lambda text, part: text.endswith(part),
    "contains": lambda text, part: part in text,
    "matches": lambda text, pattern: bool(re.search(pattern, text)),
}
FUNCTIONS: dict[str, Callable[..., Any]] = {"size": len, "string": str}
LITERALS: dict[str, Callable[[str], Any]] = {
    "INT_LIT": int,
    "FLOAT_LIT": float,
    "STRING_LIT": lambda text: text[1:-1],
    "BOOL_LIT": lambda text: text == "true",
    "NULL_LIT": lambda _: None,
}
