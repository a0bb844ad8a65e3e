"""
CEL expressions of a Placement's `celSelector`.

Pure. Compiling objects to what cel-go objects to: wrong syntax, and names
nobody declared. Types are checked when the expression runs, where a wrong one
makes the cluster not match; cel-go finds some of them when compiling. The cost
is limited, see `cel_budget`. Source of the environment:
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

from placement_ac.scheduling.cel_budget import STEPS, Budget, PayingEvaluator, TooCostlyError, paid_operators
from placement_ac.scheduling.cel_functions import ABSENT, FUNCTIONS, Function
from placement_ac.scheduling.cel_regex import Regex
from placement_ac.scheduling.objects import Fleet, Obj, listed, name_of, section
from placement_ac.scheduling.selectors import SelectorError

_MACROS = frozenset(("map", "filter", "all", "exists", "exists_one"))
_DECLARED = frozenset(
    ("managedCluster", "bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint")
)
_CALLABLE = (
    frozenset(base_functions) | frozenset(FUNCTIONS) | _MACROS | {"has", "dyn", "scores", "find", "findAll"}
)
_KEPT_EXPRESSIONS = 512
_KEPT_ANSWERS = 20_000
_SHOWN = 40
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
            if len(fleet.memo) >= _KEPT_ANSWERS:
                fleet.memo.clear()
            answer = _evaluate(self, cluster, fleet)
            fleet.memo[self.text, id(cluster)] = cluster, answer
        return answer


@lru_cache(_KEPT_EXPRESSIONS)
def compile_expression(text: str) -> Expression:
    """Return the compiled expression; raise CelError saying what is wrong and where."""
    try:
        tree = celpy.Environment().compile(text)
    except CELParseError as error:
        where = f" at line {error.line}, column {error.column}" if error.line else ""
        raise CelError(f"compilation failed: syntax error{where}: {text}") from error
    try:
        unknown = next(_undeclared(tree, frozenset()), "")
    except RecursionError as error:
        raise CelError(f"compilation failed: recursion limit exceeded: {text[:_SHOWN]} …") from error
    if unknown in ABSENT:
        raise CelError(f"compilation failed: '{unknown}' is known to OCM, but not to this stand-in: {text}")
    if unknown:
        raise CelError(f"compilation failed: undeclared reference to '{unknown}': {text}")
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
        found = fleet.scores.get((str(name_of(cluster)), str(name)))
        if found is None:
            raise ValueError(f"failed to get score {name}")
        items = listed(found, "status", "scores")
        return json_to_cel([{"name": one.get("name"), "value": one.get("value")} for one in items])

    return scores


def _as_typed(cluster: Obj) -> dict[str, Any]:
    """Return `cluster` with its quantities as text, as Go's typed object holds them."""
    status = section(cluster, "status")
    amounts = {
        field: {name: str(value) for name, value in section(status, field).items()}
        for field in ("allocatable", "capacity")
        if field in status
    }
    return {**cluster, "status": {**status, **amounts}} if amounts else dict(cluster)


def _undeclared(tree: lark.Tree[lark.Token], known: frozenset[str]) -> Iterator[str]:
    """Yield the names in `tree` that nothing declares; `known`: the variables of the macros around it."""
    if tree.data == "ident" and str(tree.children[0]) not in _DECLARED | known:
        yield str(tree.children[0])
    called = _called(tree)
    if called and called not in _CALLABLE:
        yield called
    if tree.data == "member_dot_arg" and called in _MACROS:
        known |= _macro_variable(tree)
    for child in tree.children:
        if isinstance(child, lark.Tree):
            yield from _undeclared(child, known)


def _called(tree: lark.Tree[lark.Token]) -> str:
    place = {"member_dot_arg": 1, "ident_arg": 0}.get(str(tree.data))
    return "" if place is None else str(tree.children[place])


def _macro_variable(tree: lark.Tree[lark.Token]) -> frozenset[str]:
    arguments = tree.children[2] if len(tree.children) > 2 else None  # noqa: PLR2004, RUF100  receiver, name, arguments
    if not isinstance(arguments, lark.Tree) or not isinstance(arguments.children[0], lark.Tree):
        return frozenset()
    return frozenset(str(ident.children[0]) for ident in arguments.children[0].find_data("ident"))
