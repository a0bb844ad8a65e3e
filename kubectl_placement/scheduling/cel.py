"""
CEL expressions of a Placement's `celSelector`.

Pure. Compiling objects to what OCM's package objects to, types too. An expression beyond a limit that
OCM does not have is not evaluated: that says nothing about what OCM does. Source of the environment:
open-cluster-management.io/sdk-go `pkg/cel` and ocm `pkg/placement/helpers/cel.go`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final

from kubectl_placement.scheduling.canonical_quantities import canonical
from kubectl_placement.scheduling.cel_environment import (
    Environment,
    Function,
    NotEvaluatedError,
    Program,
    RefusedError,
)
from kubectl_placement.scheduling.cel_functions import JSON, KUBERNETES
from kubectl_placement.scheduling.cel_growth import require_bounded
from kubectl_placement.scheduling.fleet import Fleet
from kubectl_placement.scheduling.selectors import UnsupportedError
from placement_ac.core.api.fields import Obj, get_dict, get_list
from placement_ac.core.api.label_selector import SelectorError

_KEPT_EXPRESSIONS = 512
KEPT_ANSWERS = 20_000
_LONG = 200
_NOT_TRUE = "is not true"
_FLEET: Final = ContextVar[Fleet]("fleet")
"""Where `scores` looks; functions are bound to the environment, which all fleets share."""


class CelError(SelectorError):
    """The expression does not compile."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression: its text, the program, and whether it looks beyond the cluster."""

    text: str
    program: Program
    reads_scores: bool

    def is_true(self, cluster: Obj, fleet: Fleet) -> bool:
        """Say whether it gives true for `cluster`; an error or another value counts as false."""
        return not self.lack(cluster, fleet)

    def lack(self, cluster: Obj, fleet: Fleet) -> str:
        """Return why `cluster` does not match: the predicate of a sentence, empty if it matches.

        Raises UnsupportedError if the evaluation goes beyond a limit.
        """
        return self._evaluated(cluster, fleet) if self.reads_scores else self._known(cluster, fleet)

    def _known(self, cluster: Obj, fleet: Fleet) -> str:
        # The cluster is kept with its answer, for the id of a freed one may come again.
        known, answer = fleet.memo.get((self.text, id(cluster)), (None, ""))
        if known is not cluster:
            if len(fleet.memo) >= KEPT_ANSWERS:
                fleet.memo.clear()
            answer = self._evaluated(cluster, fleet)
            fleet.memo[self.text, id(cluster)] = cluster, answer
        return answer

    def _evaluated(self, cluster: Obj, fleet: Fleet) -> str:
        try:
            with reading(fleet):
                is_true = self.program.is_true({"managedCluster": as_typed(cluster)})
        except NotEvaluatedError as error:
            raise _not_evaluated(self.text, error) from error
        except RecursionError as error:
            raise _not_evaluated(self.text, NotEvaluatedError("the cluster is too deep")) from error
        return "" if is_true else _NOT_TRUE


@lru_cache(_KEPT_EXPRESSIONS)
def compile_expression(text: str) -> Expression:
    """Return the compiled expression.

    Raises CelError, which says what is wrong and where, or UnsupportedError if OCM may compile it.
    """
    try:
        program = ocm().compile(text)
        require_bounded(text)
    except RefusedError as error:
        raise CelError(f"compilation failed: {error}: {_shown(text)}") from error
    except NotEvaluatedError as error:
        raise _not_evaluated(text, error) from error
    return Expression(text, program, "scores" in text)


def _not_evaluated(text: str, why: NotEvaluatedError) -> UnsupportedError:
    return UnsupportedError(f"the CEL expression is not evaluated, because {why}: {_shown(text)}")


def _shown(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[:_LONG]} …"


@cache
def ocm() -> Environment:
    """Return the environment of OCM's placement controller."""
    scores = Function("dyn.scores(string) list(dyn)", _scores)
    return Environment(
        {"managedCluster": "map(string,dyn)"},
        {"strings": None, "optional": None},
        (*KUBERNETES, *JSON, scores),
    )


@contextmanager
def reading(fleet: Fleet) -> Iterator[None]:
    """Let `scores` look in `fleet`."""
    token = _FLEET.set(fleet)
    try:
        yield
    finally:
        _FLEET.reset(token)


def _scores(cluster: Any, name: str) -> list[dict[str, Any]]:
    """Return the items of an AddOnPlacementScore of `cluster`; raise ValueError if there is none."""
    namespace = cluster["metadata"]["name"]
    obj = _FLEET.get().scores.get((namespace, name))
    if obj is None:
        raise ValueError(f"failed to get score {name}")
    items = get_list(obj, "status", "scores")
    return [{"name": item.get("name"), "value": item.get("value")} for item in items]


def as_typed(cluster: Obj) -> dict[str, Any]:
    """Return `cluster` as OCM's typed object is: no kind, no null, canonical amounts, some fields always."""
    given = _without_nulls(cluster)
    metadata, spec, status = (get_dict(given, field) for field in ("metadata", "spec", "status"))
    amounts = {
        field: {name: canonical(str(value)) for name, value in get_dict(status, field).items()}
        for field in ("allocatable", "capacity")
        if field in status
    }
    return {
        "metadata": metadata,
        "spec": {"hubAcceptsClient": False, **spec},
        "status": {"conditions": None, "version": {}, **status, **amounts},
    }


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
