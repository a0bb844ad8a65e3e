"""
Label selectors and their requirements.

Pure. Source: k8s.io/apimachinery `metav1.LabelSelectorAsSelector` and
`labels.NewRequirement`: the operators, what they demand of `values`, the
syntax of keys and values, and that an absent label satisfies `NotIn`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from placement_ac.scheduling.objects import Obj, at, listed, section, text, words

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_PREFIX = 253


class SelectorError(ValueError):
    """Kubernetes would not take this selector."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One demand on the labels, e.g. `region in (eu, us)`."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def is_met_by(self, labels: Mapping[str, str]) -> bool:
        has = self.key in labels
        match self.operator:
            case "In":
                return has and labels[self.key] in self.values
            case "NotIn":
                return not has or labels[self.key] not in self.values
            case "Exists":
                return has
            case _:
                return not has

    def lack(self, labels: Mapping[str, str], who: str) -> str:
        """Return how `labels` differ from what `who` wants: `region is us, and the predicate wants eu`."""
        has = f"is {labels[self.key] or 'empty'}" if self.key in labels else "is missing"
        wants = {
            "In": " or ".join(value or "an empty one" for value in self.values),
            "NotIn": f"any but {' or '.join(value or 'an empty one' for value in self.values)}",
            "Exists": "one",
        }
        return f"{self.key} {has}, and {who} wants {wants.get(self.operator, 'none')}"

    def __str__(self) -> str:
        values = f" ({', '.join(self.values)})" if self.values else ""
        return f"{self.key} {self.operator}{values}"


@dataclass(frozen=True, slots=True)
class Selector:
    """Demands that must all be met; without any it selects everything."""

    requirements: tuple[Requirement, ...] = ()

    def first_unmet(self, labels: Mapping[str, str]) -> Requirement | None:
        return next((demand for demand in self.requirements if not demand.is_met_by(labels)), None)

    def matches(self, labels: Mapping[str, str]) -> bool:
        return self.first_unmet(labels) is None


def parse_selector(selector: Obj) -> Selector:
    """Read `{matchLabels, matchExpressions}`; raise SelectorError with the message of Kubernetes."""
    equal = [
        Requirement(key, "In", (_word(value),)) for key, value in section(selector, "matchLabels").items()
    ]
    wanted = [_requirement(expression) for expression in listed(selector, "matchExpressions")]
    return Selector(tuple(_checked(demand) for demand in [*equal, *wanted]))


def _word(value: object) -> str:
    if isinstance(value, str):
        return value
    raise SelectorError(f"values: Invalid value: {value!r}: must be a string")


def _requirement(expression: Obj) -> Requirement:
    operator = text(expression, "operator")
    if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
        shown = at(expression, "operator")
        raise SelectorError(f'"{operator or shown}" is not a valid label selector operator')
    return Requirement(text(expression, "key"), operator, tuple(words(expression, "values")))


def _checked(demand: Requirement) -> Requirement:
    if demand.operator in ("In", "NotIn") and not demand.values:
        raise SelectorError(
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
        )
    if demand.operator in ("Exists", "DoesNotExist") and demand.values:
        raise SelectorError("values: Invalid value: values set must be empty for exists and does not exist")
    if not _is_label_key(demand.key):
        raise SelectorError(f"key: Invalid value: {demand.key!r}: must be a qualified name")
    for value in demand.values:
        if value and not _NAME.fullmatch(value):
            raise SelectorError(f"values: Invalid value: {value!r}: must be a valid label value")
    return demand


def _is_label_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > _LONGEST_PREFIX or not _PREFIX.fullmatch(prefix)):
        return False
    return _NAME.fullmatch(name) is not None
