"""
The functions OCM adds to CEL, less `scores`, which needs the fleet, and `cel_regex`.

Pure. Sources: open-cluster-management.io/sdk-go `pkg/cel` for the libraries;
cel-go `ext.Strings` and k8s.io/apiserver `pkg/cel/library` (lists, regex,
quantity, semver) for the functions. Wrong arguments raise ValueError or
TypeError, which CEL turns into an error of the expression. Not here:
those in `ABSENT`.
"""

import json
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from celpy.adapter import json_to_cel
from celpy.celtypes import BoolType, DoubleType, DurationType, IntType, ListType, StringType, UintType
from celpy.evaluation import CELEvalError

from placement_ac.core.api.quantities import exact

Function: TypeAlias = Callable[..., Any]
"""From CEL values to a CEL value; celpy itself types them no closer."""

# Sources: semver.org 2.0.0; `semverlib.go` for `normalize`: a leading `v`, leading zeros, missing numbers.
_NUMBER = r"(0|[1-9][0-9]*)"
_PRE = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"  # a number has no leading zeros
_TAIL = rf"(?:-(?P<pre>{_PRE}(?:\.{_PRE})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
_STRICT = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}{_TAIL}")
_LOOSE = re.compile(rf"v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?{_TAIL}")

_DURATION = re.compile(
    r"[-+]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|ms|s|m|h))+"
)  # Go: time.ParseDuration


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """A Kubernetes quantity inside an expression."""

    value: Fraction


@dataclass(frozen=True, slots=True, order=True)
class SemanticVersion:
    """A version in its order; build metadata does not count and is not kept.

    `pre`: of each part of a prerelease, whether it is a text, its number and its text.
    """

    major: int
    minor: int
    patch: int
    is_release: bool
    pre: tuple[tuple[bool, int, str], ...]


def parse_version(text: str, normalize: bool = False) -> SemanticVersion:
    """Return the version; raise ValueError if `text` is none."""
    match = (_LOOSE if normalize else _STRICT).fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no semantic version")
    major, minor, patch = (int(match[index] or 0) for index in (1, 2, 3))
    parts = match["pre"].split(".") if match["pre"] else ()
    pre = tuple((False, int(part), "") if part.isdigit() else (True, 0, part) for part in parts)
    return SemanticVersion(major, minor, patch, not pre, pre)


def _quantity(text: Any) -> Quantity:
    if (value := exact(text)) is None:
        raise ValueError(f"{text!r} is no quantity")
    return Quantity(value)


def _accepts(parse: Function) -> Function:
    """Return the function that says whether `parse` takes its arguments."""

    def accepted(*arguments: Any) -> BoolType:
        try:
            parse(*arguments)
        except ValueError:
            return BoolType(False)
        return BoolType(True)

    return accepted


def _amount(other: Any) -> Fraction:
    return other.value if isinstance(other, Quantity) else Fraction(int(other))


def _compare(left: Any, right: Any) -> IntType:
    if type(left) is not type(right) or not isinstance(left, Quantity | SemanticVersion):
        raise TypeError("no such overload")
    return IntType((left > right) - (left < right))


def _as_integer(quantity: Quantity) -> IntType:
    if quantity.value.denominator != 1:
        raise ValueError("cannot convert value to integer")
    return IntType(int(quantity.value))


def _strings(texts: list[str]) -> ListType:
    return ListType([StringType(text) for text in texts])


def _position(where: Any, what: Any, start: int = 0) -> IntType:
    if isinstance(where, str):
        return IntType(str(where).find(str(what), int(start)))
    return IntType(where.index(what) if what in where else -1)


def _last_position(where: Any, what: Any, last: int | None = None) -> IntType:
    if isinstance(where, str):
        return IntType(str(where).rfind(str(what), 0, None if last is None else int(last) + len(str(what))))
    return IntType(max((index for index, item in enumerate(where) if item == what), default=-1))


def _substring(text: str, start: int, end: int | None = None) -> StringType:
    stop = len(text) if end is None else int(end)
    if not 0 <= start <= stop <= len(text):
        raise ValueError("index out of range")
    return StringType(str(text)[int(start) : stop])


def _split(text: str, separator: str, limit: int = -1) -> ListType:
    if limit in (0, 1):
        return _strings([str(text)] if limit else [])
    if not separator:
        raise ValueError("an empty separator is not supported here")
    return _strings(str(text).split(str(separator), int(limit) - 1 if limit > 0 else -1))


def _ascii(change: Callable[[str], str]) -> Function:
    return lambda text: StringType("".join(change(char) if char.isascii() else char for char in str(text)))


def _sum(values: Any) -> Any:
    if not all(isinstance(value, IntType | UintType | DoubleType | DurationType) for value in values):
        raise TypeError("no such overload")  # Python adds lists as well, in quadratic time
    return sum(values[1:], values[0]) if values else IntType(0)


def _remainder(left: Any, right: Any) -> Any:
    if isinstance(left, str | bytes):
        raise TypeError("no such overload")  # Python would format it, as long as a width says
    return left % right


def _duration(value: Any) -> DurationType:
    if isinstance(value, str) and not _DURATION.fullmatch(value):
        raise ValueError(f"{value!r} is no duration")  # celpy's own pattern takes exponential time
    return DurationType(value)


def _numeric(compare: Function) -> Function:
    """Let integers and doubles be compared with each other, as cel-go does at run time."""
    numbers = (IntType, UintType, DoubleType)

    def compared(left: Any, right: Any) -> Any:
        if isinstance(left, numbers) and isinstance(right, numbers):
            return BoolType(compare(Fraction(left), Fraction(right)))
        wrong = next((side for side in (left, right) if isinstance(side, CELEvalError)), None)
        return wrong or BoolType(compare(left, right))

    return compared


FUNCTIONS: dict[str, Function] = {
    "quantity": _quantity,
    "isQuantity": _accepts(_quantity),
    "sign": lambda quantity: _compare(quantity, Quantity(Fraction(0))),
    "isInteger": lambda quantity: BoolType(quantity.value.denominator == 1),
    "asInteger": _as_integer,
    "asApproximateFloat": lambda quantity: DoubleType(float(quantity.value)),
    "add": lambda quantity, other: Quantity(quantity.value + _amount(other)),
    "sub": lambda quantity, other: Quantity(quantity.value - _amount(other)),
    "semver": parse_version,
    "isSemver": _accepts(parse_version),
    "major": lambda version: IntType(version.major),
    "minor": lambda version: IntType(version.minor),
    "patch": lambda version: IntType(version.patch),
    "isLessThan": lambda left, right: BoolType(_compare(left, right) < 0),
    "isGreaterThan": lambda left, right: BoolType(_compare(left, right) > 0),
    "compareTo": _compare,
    "parseJSON": lambda text: json_to_cel(json.loads(str(text))),
    "charAt": lambda text, index: _substring(text, index, min(int(index) + 1, len(text))),
    "indexOf": _position,
    "lastIndexOf": _last_position,
    "join": lambda parts, separator="": StringType(str(separator).join(map(str, parts))),
    "lowerAscii": _ascii(str.lower),
    "upperAscii": _ascii(str.upper),
    "replace": lambda text, old, new, limit=-1: StringType(str(text).replace(str(old), str(new), int(limit))),
    "split": _split,
    "substring": _substring,
    "trim": lambda text: StringType(str(text).strip()),
    "reverse": lambda text: StringType(str(text)[::-1]),
    "sum": _sum,
    "min": min,
    "max": max,
    "isSorted": lambda values: BoolType(all(map(operator.le, values, values[1:]))),
    "duration": _duration,
    "_%_": _remainder,
    "_<_": _numeric(operator.lt),
    "_<=_": _numeric(operator.le),
    "_>_": _numeric(operator.gt),
    "_>=_": _numeric(operator.ge),
}

ABSENT = frozenset(
    (
        *("url", "isURL", "getScheme", "getHost", "getHostname", "getPort", "getEscapedPath", "getQuery"),
        *("ip", "isIP", "family", "isUnspecified", "isLoopback", "isGlobalUnicast", "isCanonical"),
        *("isLinkLocalUnicast", "isLinkLocalMulticast"),
        *("cidr", "isCIDR", "containsIP", "containsCIDR", "prefixLength", "masked"),
        *("format", "named", "validate", "quote"),
        *("dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "labelValue", "uri", "uuid"),
        *("dns1123LabelPrefix", "dns1123SubdomainPrefix", "dns1035LabelPrefix", "byte", "date", "datetime"),
        *("of", "ofNonZeroValue", "none", "or", "value", "orValue", "hasValue", "optMap", "optFlatMap"),
        *("unwrap", "unwrapOpt", "first", "last"),
        *("equivalent", "intersects", "existsOne", "transformList", "transformMap", "transformMapEntry"),
        *("bind", "decode", "encode", "greatest", "least", "abs", "ceil", "floor", "round", "trunc"),
        *("isNaN", "isInf", "isFinite", "sqrt"),
        *("distinct", "flatten", "range", "slice", "sort", "sortBy"),
        *(f"{macro}/3" for macro in ("all", "exists", "map")),
    )
)
"""Functions and macros that Kubernetes or cel-go have and that are missing here; `/3`: with three arguments.

Which of cel-go's extensions OCM enables depends on its release: any of them may be known to it.
"""
ABSENT_NAMESPACES = frozenset(("optional", "sets", "base64", "math", "cel", "lists", "strings"))
"""The first part of the names of such functions, as in `optional.of(1)`."""
