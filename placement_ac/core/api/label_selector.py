"""
Label selectors: in kubectl's syntax, `a=b,c!=d,e in (f, g),h notin (i),j,!k,l>5`, and as objects.

Pure. Sources: k8s.io/apimachinery `labels.Parse`, `metav1.LabelSelectorAsSelector`, `labels.NewRequirement`.
A key that is missing satisfies `!=` and `notin`.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from typing import Final, NamedTuple, TypeVar

from placement_ac.core.api import fields
from placement_ac.core.api.text import shortened

T = TypeVar("T")
CLAIM: Final = "claim:"
"""The prefix of a key that names a ClusterClaim instead of a label."""

_KEY: Final = r"(?:claim:)?[a-z0-9A-Z](?:[-a-z0-9A-Z._/]*[a-z0-9A-Z])?"
_VALUE: Final = r"(?:[a-z0-9A-Z](?:[-a-z0-9A-Z._]*[a-z0-9A-Z])?)?"
_EQUALITY: Final = re.compile(rf"({_KEY})\s*(==|=|!=)\s*({_VALUE})")
_MEMBERSHIP: Final = re.compile(rf"({_KEY})\s+(in|notin)\s*\(([^()]*)\)")
_EXISTENCE: Final = re.compile(rf"(!?)\s*({_KEY})")
_ORDER: Final = re.compile(rf"({_KEY})\s*([<>])\s*(-?\d+)")
_PART: Final = re.compile(r"((?:[^,(]|\([^)]*\)?)*),")
"""A requirement up to the comma outside of parentheses that ends it; the alternatives exclude each other."""

_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_PREFIX: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_PREFIX_MAX: Final = 253


class SelectorError(ValueError):
    """It is no label selector; the message quotes what is wrong, of an object in Kubernetes' words."""


class Requirement(NamedTuple):
    """One requirement. `operator` is one of Kubernetes' for node affinity: In, NotIn, Exists, Gt, …"""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def is_met_by(self, labels: Mapping[str, str]) -> bool:
        return self.accepts(labels.get(self.key))

    def accepts(self, value: str | None) -> bool:
        """Whether it is met by that value of the label; None: the label is missing."""
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return _is_beyond(self.operator, value, self.values)
        return False

    def __str__(self) -> str:
        values = ", ".join(self.values)
        match self.operator:
            case "In":
                return f"{self.key}={values}" if len(self.values) == 1 else f"{self.key} in ({values})"
            case "NotIn":
                return f"{self.key}!={values}" if len(self.values) == 1 else f"{self.key} notin ({values})"
            case "Exists":
                return self.key
            case "DoesNotExist":
                return f"!{self.key}"
        return f"{self.key}{'>' if self.operator == 'Gt' else '<'}{values}"


Selector = tuple[Requirement, ...]
"""Requirements that must all be met; without any it selects everything."""


def first_unmet(selector: Selector, labels: Mapping[str, str]) -> Requirement | None:
    """Return the first requirement that these labels do not meet; None if they match."""
    return next((requirement for requirement in selector if not requirement.is_met_by(labels)), None)


def _is_beyond(operator: str, value: str | None, bounds: tuple[str, ...]) -> bool:
    try:
        number, bound = int(value or ""), int(bounds[0] if bounds else "")
    except ValueError:
        return False
    return number > bound if operator == "Gt" else number < bound


def remembered(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Return a parser of annotations that remembers its last answers, those that are SelectorErrors too.

    A text is judged for each cluster, also a wrong one.
    """

    @lru_cache(maxsize=64)  # of annotations of up to 8 KB
    def answer(text: str) -> T | SelectorError:
        try:
            return parse(text)
        except SelectorError as error:
            return SelectorError(str(error))

    @wraps(parse)
    def parsed(text: str) -> T:
        found = answer(text)
        if isinstance(found, SelectorError):
            raise SelectorError(str(found))
        return found

    return parsed


@remembered
def parse_label_selector(text: str) -> Selector:
    """Return the requirements; none for an empty text. Raises SelectorError."""
    return tuple([_requirement(part.strip()) for part in _PART.findall(f"{text},")]) if text.strip() else ()


def _requirement(text: str) -> Requirement:
    if match := _EQUALITY.fullmatch(text):
        key, sign, value = match.groups()
        return Requirement(key, "NotIn" if sign == "!=" else "In", (value,))
    if match := _MEMBERSHIP.fullmatch(text):
        key, sign, listed = match.groups()
        values = tuple(part.strip() for part in listed.split(","))
        return Requirement(key, "NotIn" if sign == "notin" else "In", values)
    if match := _EXISTENCE.fullmatch(text):
        absent, key = match.groups()
        return Requirement(key, "DoesNotExist" if absent else "Exists")
    if match := _ORDER.fullmatch(text):
        return Requirement(match[1], "Gt" if match[2] == ">" else "Lt", (match[3],))
    raise SelectorError(f"{shortened(text)!r} is not a label selector")


# -- as objects


def read_label_selector(obj: fields.Obj) -> Selector:
    """Return the requirements of `{matchLabels, matchExpressions}`. Raises SelectorError."""
    labels = fields.get_dict(obj, "matchLabels").items()
    equal = [Requirement(key, "In", (_label_value(value),)) for key, value in labels]
    return tuple(map(_checked, [*equal, *map(_expression, fields.get_list(obj, "matchExpressions"))]))


def _label_value(value: object) -> str:
    if isinstance(value, str):
        return value
    raise SelectorError(f"values: Invalid value: {value!r}: must be a string")


def _expression(obj: fields.Obj) -> Requirement:
    operator = fields.get_str(obj, "operator")
    if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
        shown = operator or fields.get_value(obj, "operator")
        raise SelectorError(f'"{shown}" is not a valid label selector operator')
    return Requirement(fields.get_str(obj, "key"), operator, tuple(fields.get_strs(obj, "values")))


def _checked(requirement: Requirement) -> Requirement:
    has_values = requirement.operator in ("In", "NotIn")
    if has_values and not requirement.values:
        raise SelectorError(
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
        )
    if requirement.values and not has_values:
        raise SelectorError("values: Invalid value: values set must be empty for exists and does not exist")
    if not _is_label_key(requirement.key):
        raise SelectorError(f"key: Invalid value: {requirement.key!r}: must be a qualified name")
    for value in requirement.values:
        if value and not _NAME.fullmatch(value):
            raise SelectorError(f"values: Invalid value: {value!r}: must be a valid label value")
    return requirement


def _is_label_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > _PREFIX_MAX or not _PREFIX.fullmatch(prefix)):
        return False
    return _NAME.fullmatch(name) is not None
