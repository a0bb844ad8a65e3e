"""
CEL expressions of a Placement's `celSelector`.

Pure. Compiling objects to what cel-go objects to: wrong syntax, and names
nobody declared. An expression that cel-go compiles and celpy does not is unsupported,
and no objection: see `cel_syntax`, and `ABSENT`. Types are checked when the expression
runs, where a wrong one makes the cluster not match; cel-go finds some of them
when compiling. The cost is limited, see `cel_budget`. Source of the environment:
open-cluster-management.io/sdk-go `pkg/cel` and ocm `pkg/placement/helpers/cel.go`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import celpy
import lark
from celpy.adapter import json_to_cel
from celpy.celparser import CELParseError
from celpy.celtypes import BoolType
from celpy.evaluation import base_functions

from kubectl_placement.scheduling.cel_budget import (
    STEPS,
    Budget,
    PayingEvaluator,
    TooCostlyError,
    paid_operators,
)
from kubectl_placement.scheduling.cel_functions import ABSENT, ABSENT_NAMESPACES, FUNCTIONS, Function
from kubectl_placement.scheduling.cel_regex import Regex
from kubectl_placement.scheduling.cel_syntax import plain_syntax
from kubectl_placement.scheduling.fleet import Fleet
from kubectl_placement.scheduling.selectors import UnsupportedError
from placement_ac.core.api.fields import Obj, get_dict, get_list, name_of
from placement_ac.core.api.label_selector import SelectorError

_MACROS = frozenset(("map", "filter", "all", "exists", "exists_one"))
_MACRO_ARGUMENTS = 2
"""A variable and an expression. cel-go also has macros of three, which celpy evaluates wrongly."""
_DECLARED = frozenset(
    ("managedCluster", "bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint")
)
_CALLABLE = (
    frozenset(base_functions) | frozenset(FUNCTIONS) | _MACROS | {"has", "dyn", "scores", "find", "findAll"}
)
_KEPT_EXPRESSIONS = 512
KEPT_ANSWERS = 20_000
_SHOWN = 40
_LONG = 200
_NOT_TRUE = "is not true"
TOO_COSTLY = f"is too costly: it takes more than {STEPS:,} steps"
"""The answer of an expression that is given up; the cluster does not match then, as in OCM."""


class CelError(SelectorError):
    """The expression does not compile."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression: its text, the tree celpy runs, and whether it looks beyond the cluster."""

    text: str
    tree: lark.Tree[lark.Token]
    reads_scores: bool

    def is_true(self, cluster: Obj, fleet: Fleet) -> bool:
        """Say whether it gives true for `cluster`; an error or another value counts as false."""
        return not self.lack(cluster, fleet)

    def lack(self, cluster: Obj, fleet: Fleet) -> str:
        """Return why `cluster` does not match: the predicate of a sentence, empty if it matches."""
        answer = _evaluate(self, cluster, fleet) if self.reads_scores else self._known(cluster, fleet)
        if answer == TOO_COSTLY:
            fleet.costly[self.text] = answer
        return answer

    def _known(self, cluster: Obj, fleet: Fleet) -> str:
        # The cluster is kept with its answer, for the id of a freed one may come again.
        known, answer = fleet.memo.get((self.text, id(cluster)), (None, ""))
        if known is not cluster:
            if len(fleet.memo) >= KEPT_ANSWERS:
                fleet.memo.clear()
            answer = _evaluate(self, cluster, fleet)
            fleet.memo[self.text, id(cluster)] = cluster, answer
        return answer


@lru_cache(_KEPT_EXPRESSIONS)
def compile_expression(text: str) -> Expression:
    """Return the compiled expression.

    Raises CelError, which says what is wrong and where, or UnsupportedError if OCM may compile it.
    """
    plain, extension = plain_syntax(text)
    try:
        tree = celpy.Environment().compile(plain)
    except CELParseError as error:
        where = f" at line {error.line}, column {error.column}" if error.line else ""
        raise CelError(f"compilation failed: syntax error{where}: {text}") from error
    try:
        undeclared = list(_undeclared(tree, frozenset()))
    except RecursionError as error:
        raise CelError(f"compilation failed: recursion limit exceeded: {text[:_SHOWN]} …") from error
    wrong = next((name for name in undeclared if name not in ABSENT | ABSENT_NAMESPACES), "")
    if wrong:
        raise CelError(f"compilation failed: undeclared reference to '{wrong}': {text}")
    if extension or undeclared:
        name = extension or undeclared[0]
        raise UnsupportedError(f"the CEL expression uses {name}, which only OCM can evaluate: {text[:_LONG]}")
    return Expression(text, tree, any(_called(node) == "scores" for node in tree.iter_subtrees()))


def _evaluate(expression: Expression, cluster: Obj, fleet: Fleet) -> str:
    budget = Budget()
    functions = {
        **FUNCTIONS,
        **paid_operators(budget, FUNCTIONS),
        **Regex(budget).functions(),
        "scores": _scores_of(fleet),
    }
    activation = celpy.Environment().program(expression.tree, functions).new_activation()
    try:
        evaluator = PayingEvaluator(expression.tree, activation, budget)
        answer = evaluator.evaluate({"managedCluster": json_to_cel(_as_typed(cluster))})
    except TooCostlyError:
        return TOO_COSTLY
    except Exception:  # noqa: BLE001, RUF100  celpy lets any Python error of a wrong operand through
        return _NOT_TRUE
    return "" if isinstance(answer, BoolType) and answer else _NOT_TRUE


def _scores_of(fleet: Fleet) -> Function:
    """Make `<cluster>.scores(<name>)`: the items of an AddOnPlacementScore, an error if there is none."""

    def scores(cluster: Obj, name: str) -> object:
        obj = fleet.scores.get((str(name_of(cluster)), str(name)))
        if obj is None:
            raise ValueError(f"failed to get score {name}")
        items = get_list(obj, "status", "scores")
        return json_to_cel([{"name": item.get("name"), "value": item.get("value")} for item in items])

    return scores


def _as_typed(cluster: Obj) -> dict[str, Any]:
    """Return `cluster` with its quantities as text, as Go's typed object holds them."""
    status = get_dict(cluster, "status")
    amounts = {
        field: {name: str(value) for name, value in get_dict(status, field).items()}
        for field in ("allocatable", "capacity")
        if field in status
    }
    return {**cluster, "status": {**status, **amounts}} if amounts else dict(cluster)


def _undeclared(tree: lark.Tree[lark.Token], known: frozenset[str]) -> Iterator[str]:
    """Yield the names in `tree` that nothing declares; `known`: the variables of the macros around it."""
    if tree.data == "ident" and str(tree.children[0]) not in _DECLARED | known:
        yield str(tree.children[0])
    called = _called(tree)
    arguments = _arguments(tree)
    if called and called not in _CALLABLE:
        yield called
    if tree.data == "member_dot_arg" and called in _MACROS | ABSENT:
        known |= _macro_variables(arguments)
        if called in _MACROS and len(arguments) > _MACRO_ARGUMENTS:
            yield f"{called}/{len(arguments)}"
    for child in tree.children:
        if isinstance(child, lark.Tree):
            yield from _undeclared(child, known)


def _called(tree: lark.Tree[lark.Token]) -> str:
    place = {"member_dot_arg": 1, "ident_arg": 0}.get(str(tree.data))
    return "" if place is None else str(tree.children[place])


def _arguments(tree: lark.Tree[lark.Token]) -> list[lark.Tree[lark.Token]]:
    last = tree.children[-1] if tree.data in ("member_dot_arg", "ident_arg") else None
    return [arg for arg in last.children if isinstance(arg, lark.Tree)] if isinstance(last, lark.Tree) else []


def _macro_variables(arguments: list[lark.Tree[lark.Token]]) -> frozenset[str]:
    """Return the names that a macro may declare: the last argument of one is an expression."""
    return frozenset(str(ident.children[0]) for each in arguments[:-1] for ident in each.find_data("ident"))
