"""
Label selectors and their requirements.

Pure. Source: k8s.io/apimachinery `metav1.LabelSelectorAsSelector` and
`labels.NewRequirement`: the operators and the values they need, the syntax
of keys and values, and that an absent label satisfies `NotIn`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from placement_ac.core.api.fields import Obj, at, listed, section, text, words

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_PREFIX = 253
CHECKS = 2_000_000
"""The most checks of one requirement on one cluster for one Placement; they take about a second."""
_VALUES_PER_CHECK = 64  # comparing that many values takes as long as all else of a check
_SHOWN_VALUES = 10


class SelectorError(ValueError):
    """Kubernetes would not take this selector."""


class UnsupportedError(ValueError):
    """OCM takes this selector, but this package cannot evaluate it: what OCM decides is unknown."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement on the labels, e.g. `region in (eu, us)`."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def is_met_by(self, labels: Mapping[str, str]) -> bool:
        has = self.key in labels
        if self.operator == "In":
            return has and labels[self.key] in self.values
        if self.operator == "NotIn":
            return not has or labels[self.key] not in self.values
        return has if self.operator == "Exists" else not has

    def lack(self, labels: Mapping[str, str], who: str) -> str:
        """Return how `labels` differ from what `who` wants: `region is us, and the predicate wants eu`."""
        has = f"is {labels[self.key] or 'empty'}" if self.key in labels else "is missing"
        values = _alternatives(self.values)
        wants = {"In": values, "NotIn": f"any but {values}", "Exists": "one"}.get(self.operator, "none")
        return f"{self.key} {has}, and {who} wants {wants}"

    def __str__(self) -> str:
        values = f" ({', '.join(_first(self.values))})" if self.values else ""
        return f"{self.key} {self.operator}{values}"


def _first(values: Sequence[str]) -> list[str]:
    """Return the first values, and how many more there are."""
    more = len(values) - _SHOWN_VALUES
    return [*values[:_SHOWN_VALUES], *([f"{more} more"] if more > 0 else [])]


def _alternatives(values: Sequence[str]) -> str:
    return " or ".join(value or "an empty one" for value in _first(values))


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that must all be met; without any it selects everything."""

    requirements: tuple[Requirement, ...] = ()

    def first_unmet(self, labels: Mapping[str, str]) -> Requirement | None:
        return next((one for one in self.requirements if not one.is_met_by(labels)), None)

    def matches(self, labels: Mapping[str, str]) -> bool:
        return self.first_unmet(labels) is None


def require_affordable(selectors: Iterable[Selector], clusters: int) -> None:
    """Raise UnsupportedError if so many clusters cannot be compared with these selectors in a second."""
    requirements = [one for selector in selectors for one in selector.requirements]
    checks = clusters * sum(1 + len(one.values) // _VALUES_PER_CHECK for one in requirements)
    if checks > CHECKS:
        raise UnsupportedError(
            f"the label selectors are too large: {len(requirements):,} requirements on {clusters:,} clusters"
        )


def parse_selector(selector: Obj) -> Selector:
    """Read `{matchLabels, matchExpressions}`; raise SelectorError with the message of Kubernetes."""
    equal = [
        Requirement(key, "In", (_word(value),)) for key, value in section(selector, "matchLabels").items()
    ]
    wanted = [_requirement(expression) for expression in listed(selector, "matchExpressions")]
    return Selector(tuple(map(_checked, [*equal, *wanted])))


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


def _checked(requirement: Requirement) -> Requirement:
    if requirement.operator in ("In", "NotIn") and not requirement.values:
        raise SelectorError(
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
        )
    if requirement.operator in ("Exists", "DoesNotExist") and requirement.values:
        raise SelectorError("values: Invalid value: values set must be empty for exists and does not exist")
    if not _is_label_key(requirement.key):
        raise SelectorError(f"key: Invalid value: {requirement.key!r}: must be a qualified name")
    for value in requirement.values:
        if value and not _NAME.fullmatch(value):
            raise SelectorError(f"values: Invalid value: {value!r}: must be a valid label value")
    return requirement


def _is_label_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > _LONGEST_PREFIX or not _PREFIX.fullmatch(prefix)):
        return False
    return _NAME.fullmatch(name) is not None
