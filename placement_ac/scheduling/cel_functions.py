"""
The functions OCM adds to CEL, less `scores`, which needs the fleet.

Pure. Sources: open-cluster-management.io/sdk-go `pkg/cel` names the libraries,
cel-go `ext.Strings` and k8s.io/apiserver `pkg/cel/library` (lists, regex,
quantity, semver) what they do. A function given what it does not take raises
ValueError or TypeError, which CEL turns into an error of the expression. Not
here: optionals, URLs, IP, CIDR and format; see `ABSENT`.
"""

import itertools
import json
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from celpy.adapter import json_to_cel
from celpy.celtypes import BoolType, DoubleType, IntType, ListType, StringType, UintType
from celpy.evaluation import CELEvalError

from placement_ac.scheduling.quantities import QuantityError, parse_quantity
from placement_ac.scheduling.versions import SemanticVersion, parse_version

Function: TypeAlias = Callable[..., Any]
"""From CEL values to a CEL value; celpy itself types them no closer."""


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """A Kubernetes quantity inside an expression."""

    value: Fraction


def _quantity(text: str) -> Quantity:
    return Quantity(parse_quantity(text))


def _is_quantity(text: str) -> BoolType:
    try:
        parse_quantity(text)
    except QuantityError:
        return BoolType(False)
    return BoolType(True)


def _amount(other: Any) -> Fraction:
    return other.value if isinstance(other, Quantity) else Fraction(int(other))


def _semver(text: str, normalize: bool = False) -> SemanticVersion:
    return parse_version(text, normalize=bool(normalize))


def _is_semver(text: str, normalize: bool = False) -> BoolType:
    try:
        _semver(text, normalize)
    except ValueError:
        return BoolType(False)
    return BoolType(True)


def _same_kind(one: Any, other: Any) -> None:
    if type(one) is not type(other) or not isinstance(one, Quantity | SemanticVersion):
        raise TypeError("no such overload")


def _less(one: Any, other: Any) -> BoolType:
    _same_kind(one, other)
    return BoolType(one < other)


def _greater(one: Any, other: Any) -> BoolType:
    _same_kind(one, other)
    return BoolType(one > other)


def _compare(one: Any, other: Any) -> IntType:
    _same_kind(one, other)
    return IntType((one > other) - (one < other))


def _as_integer(quantity: Quantity) -> IntType:
    if quantity.value.denominator != 1:
        raise ValueError("cannot convert value to integer")
    return IntType(int(quantity.value))


def _sign(quantity: Quantity) -> IntType:
    return IntType((quantity.value > 0) - (quantity.value < 0))


def _strings(found: list[str]) -> ListType:
    return ListType([StringType(one) for one in found])


def _position(where: Any, what: Any, start: int = 0) -> IntType:
    if isinstance(where, str):
        return IntType(str(where).find(str(what), int(start)))
    return IntType(where.index(what) if what in where else -1)


def _last_position(where: Any, what: Any, last: int | None = None) -> IntType:
    if isinstance(where, str):
        return IntType(str(where).rfind(str(what), 0, None if last is None else int(last) + len(str(what))))
    return IntType(max((index for index, one in enumerate(where) if one == what), default=-1))


def _substring(text: str, start: int, end: int | None = None) -> StringType:
    stop = len(text) if end is None else int(end)
    if not 0 <= start <= stop <= len(text):
        raise ValueError("index out of range")
    return StringType(str(text)[int(start) : stop])


def _char_at(text: str, index: int) -> StringType:
    return _substring(text, index, min(int(index) + 1, len(text)))


def _split(text: str, separator: str, limit: int = -1) -> ListType:
    if limit in (0, 1):
        return _strings([str(text)] if limit else [])
    if not separator:
        raise ValueError("an empty separator is not supported here")
    return _strings(str(text).split(str(separator), int(limit) - 1 if limit > 0 else -1))


def _replace(text: str, old: str, new: str, limit: int = -1) -> StringType:
    return StringType(str(text).replace(str(old), str(new), int(limit)))


def _join(parts: list[str], separator: str = "") -> StringType:
    return StringType(str(separator).join(str(part) for part in parts))


def _ascii(change: Callable[[str], str]) -> Function:
    return lambda text: StringType("".join(change(one) if one.isascii() else one for one in str(text)))


def _sum(values: list[Any]) -> Any:
    return sum(values[1:], values[0]) if values else IntType(0)


def _is_sorted(values: list[Any]) -> BoolType:
    return BoolType(all(one <= other for one, other in itertools.pairwise(values)))


def _find(text: str, pattern: str) -> StringType:
    found = re.search(str(pattern), str(text))
    return StringType(found[0] if found else "")


def _find_all(text: str, pattern: str, limit: int = -1) -> ListType:
    found = [one[0] for one in re.finditer(str(pattern), str(text))]
    return _strings(found if limit < 0 else found[: int(limit)])


def _parse_json(text: str) -> Any:
    return json_to_cel(json.loads(str(text)))


def _numeric(compare: Function) -> Function:
    """Let integers and doubles be compared with each other, as cel-go does at run time."""
    numbers = (IntType, UintType, DoubleType)

    def compared(one: Any, other: Any) -> Any:
        if isinstance(one, numbers) and isinstance(other, numbers):
            return BoolType(compare(Fraction(one), Fraction(other)))
        wrong = next((side for side in (one, other) if isinstance(side, CELEvalError)), None)
        return wrong or BoolType(compare(one, other))

    return compared


FUNCTIONS: dict[str, Function] = {
    "quantity": _quantity,
    "isQuantity": _is_quantity,
    "sign": _sign,
    "isInteger": lambda quantity: BoolType(quantity.value.denominator == 1),
    "asInteger": _as_integer,
    "asApproximateFloat": lambda quantity: DoubleType(float(quantity.value)),
    "add": lambda quantity, other: Quantity(quantity.value + _amount(other)),
    "sub": lambda quantity, other: Quantity(quantity.value - _amount(other)),
    "semver": _semver,
    "isSemver": _is_semver,
    "major": lambda version: IntType(version.major),
    "minor": lambda version: IntType(version.minor),
    "patch": lambda version: IntType(version.patch),
    "isLessThan": _less,
    "isGreaterThan": _greater,
    "compareTo": _compare,
    "parseJSON": _parse_json,
    "charAt": _char_at,
    "indexOf": _position,
    "lastIndexOf": _last_position,
    "join": _join,
    "lowerAscii": _ascii(str.lower),
    "upperAscii": _ascii(str.upper),
    "replace": _replace,
    "split": _split,
    "substring": _substring,
    "trim": lambda text: StringType(str(text).strip()),
    "reverse": lambda text: StringType(str(text)[::-1]),
    "sum": _sum,
    "min": min,
    "max": max,
    "isSorted": _is_sorted,
    "find": _find,
    "findAll": _find_all,
    "_<_": _numeric(operator.lt),
    "_<=_": _numeric(operator.le),
    "_>_": _numeric(operator.gt),
    "_>=_": _numeric(operator.ge),
}

ABSENT = frozenset(
    (
        *("url", "isURL", "getScheme", "getHost", "getHostname", "getPort", "getEscapedPath", "getQuery"),
        *("ip", "isIP", "family", "isUnspecified", "isLoopback", "isGlobalUnicast", "isLinkLocalUnicast"),
        *("cidr", "isCIDR", "containsIP", "containsCIDR", "prefixLength", "masked"),
        *("format", "validate", "quote", "of", "none", "orValue", "hasValue", "optMap", "optFlatMap"),
    )
)
"""What OCM's environment has and this one lacks; named so that the message can say so."""
