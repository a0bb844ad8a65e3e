"""
Limit the cost of evaluating a CEL expression.

Pure, and a count instead of a clock, so that the answer is the same on every
machine. Kubernetes does likewise (`PerCallLimit`, 1,000,000 units, which OCM
sets as well), but cel-go is about a hundred times as fast as celpy: what is
too costly here may still be cheap enough for OCM.
"""

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import lark
from celpy.evaluation import Activation, CELEvalError, Context, Evaluator, Result, base_functions

STEPS = 50_000
"""The steps of one expression on one cluster. A step, a node of the syntax tree, takes about 3 µs."""

_ITERATION = 20  # celpy copies all names for each iteration of a macro
_CHARACTERS = 10  # a step per so many; source: `StringTraversalCostFactor` of Kubernetes
_CONSTANT = frozenset(("size", "type"))
_OPERATORS = frozenset(name for name in base_functions if name.startswith(("_", "-", "!"))) - {"_[_]"}


class TooCostlyError(Exception):
    """The expression has used up its budget. No ValueError: celpy turns those into values."""


class Budget:
    """The steps that are left of `steps`."""

    def __init__(self, steps: int = STEPS) -> None:
        self.left = steps

    def pay(self, steps: int) -> None:
        """Take `steps`; raise TooCostlyError if fewer are left."""
        self.left -= steps
        if self.left < 0:
            raise TooCostlyError

    def weigh(self, value: object) -> int:
        """Pay for reading `value`, and return how many steps that were.

        A list that contains another one twice is read as often as comparing or printing it would read it.
        """
        before = self.left
        self.pay(1 + (len(value) // _CHARACTERS if isinstance(value, str | bytes) else 0))
        if isinstance(value, list | dict):
            for item in value:
                self.weigh(item)
        if isinstance(value, dict):
            for item in value.values():
                self.weigh(item)
        return before - self.left

    def weigh_call(self, name: str, arguments: list[Any]) -> None:
        """Pay for a call before it is made.

        The price is the product of the arguments' weights: `replace` and `join` may return that much.
        """
        if name not in _CONSTANT:
            self.pay(math.prod(map(self.weigh, arguments)))


def paid_operators(budget: Budget, functions: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """Return the operators, paying for their operands: celpy also prints those of a wrong type."""

    def paid(operator: Callable[..., Any], *operands: Any) -> Any:
        for operand in operands:
            budget.weigh(operand)
        return operator(*operands)

    known = {**base_functions, **functions}
    return {name: partial(paid, known[name]) for name in _OPERATORS}


class PayingEvaluator(Evaluator):
    """celpy's evaluator, paying a step for each node that it visits and for the arguments of each call."""

    def __init__(self, tree: lark.Tree[Any], activation: Activation, budget: Budget) -> None:
        super().__init__(tree, activation)
        self._budget = budget

    def sub_evaluator(self, ast: lark.Tree[Any]) -> "PayingEvaluator":
        """Return the evaluator of a macro's body."""
        return PayingEvaluator(ast, self.activation, self._budget)

    def evaluate(self, context: Context | None = None) -> Any:
        """Evaluate the expression, or the body of a macro once."""
        self._budget.pay(_ITERATION)
        value = super().evaluate(context)
        self._budget.weigh(value)
        return value

    def visit(self, tree: lark.Tree[Any]) -> Result:
        """Evaluate what a field is read of, or what a macro runs over."""
        value: Result = super().visit(tree)
        if not isinstance(value, dict):  # a field of it is found at once
            self._budget.weigh(value)
        return value

    def visit_children(self, tree: lark.Tree[Any]) -> list[Result]:
        """Evaluate the children of a node."""
        self._budget.pay(len(tree.children))
        return super().visit_children(tree)

    def function_eval(self, name_token: lark.Token, exprlist: Any = None) -> Result:
        """Call a function."""
        return self._unknown(name_token, exprlist or ()) or super().function_eval(name_token, exprlist)

    def method_eval(self, object: Any, method_ident: lark.Token, exprlist: Any = None) -> Result:  # noqa: A002, RUF100  # the name in celpy
        """Call a method."""
        arguments = (object, *(exprlist or ()))
        return self._unknown(method_ident, arguments) or super().method_eval(object, method_ident, exprlist)

    def _unknown(self, name: lark.Token, arguments: Iterable[Any]) -> CELEvalError | None:
        """Pay for a call; return an error if there is no such function. celpy's would print all variables."""
        if name not in self.activation.functions:
            return CELEvalError(f"undeclared reference to '{name}'")
        self._budget.weigh_call(str(name), list(arguments))
        return None
