"""The cost of label selectors, and the words for a requirement and for what a cluster lacks. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from placement_ac.core.api.label_selector import Requirement, Selector

CHECKS = 2_000_000
"""The most checks of one requirement on one cluster for one Placement; they take about a second."""
_VALUES_PER_CHECK = 64  # comparing that many values takes as long as all else of a check
_SHOWN_VALUES = 10


class UnsupportedError(ValueError):
    """OCM takes this selector, but this package cannot evaluate it: what OCM decides is unknown."""


def require_affordable(selectors: Iterable[Selector], clusters: int) -> None:
    """Raise UnsupportedError if so many clusters cannot be compared with these selectors in a second."""
    requirements = [requirement for selector in selectors for requirement in selector]
    checks = clusters * sum(1 + len(requirement.values) // _VALUES_PER_CHECK for requirement in requirements)
    if checks > CHECKS:
        raise UnsupportedError(
            f"the label selectors are too large: {len(requirements):,} requirements on {clusters:,} clusters"
        )


def lack(requirement: Requirement, labels: Mapping[str, str], who: str) -> str:
    """Return how `labels` differ from what `who` wants: `region is us, and the predicate wants eu`."""
    has = f"is {labels[requirement.key] or 'empty'}" if requirement.key in labels else "is missing"
    values = " or ".join(value or "an empty one" for value in _first(requirement.values))
    wants = {"In": values, "NotIn": f"any but {values}", "Exists": "one"}.get(requirement.operator, "none")
    return f"{requirement.key} {has}, and {who} wants {wants}"


def requirement_text(requirement: Requirement) -> str:
    """Return a requirement as `region In (eu, us)`."""
    return f"{requirement.key} {requirement.operator}" + (
        f" ({', '.join(_first(requirement.values))})" if requirement.values else ""
    )


def _first(values: Sequence[str]) -> list[str]:
    """Return the first values, and how many more there are."""
    more = len(values) - _SHOWN_VALUES
    return [*values[:_SHOWN_VALUES], *([f"{more} more"] if more > 0 else [])]
