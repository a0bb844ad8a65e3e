"""
Annotations of a job that select clusters or Workloads, as requirements.

Pure. A job that is over a limit of `core.api.job_spec` is refused, with the limit as reason.
"""

from collections.abc import Iterable

from placement_ac.core.api.job_spec import TERMS_MAX
from placement_ac.core.api.label_selector import Requirement, SelectorError, parse_label_selector


def parse_selector(text: str) -> tuple[Requirement, ...]:
    """Return the requirements of an annotation. Raises SelectorError."""
    selector = parse_label_selector(text)
    limit_terms(selector)
    return selector


def limit_terms(requirements: Iterable[Requirement]) -> None:
    """Raise SelectorError if there are more keys and values than are read."""
    size = sum(1 + len(requirement.values) for requirement in requirements)
    if size > TERMS_MAX:
        raise SelectorError(f"use fewer keys and values: at most {TERMS_MAX} are read, it has {size:,}")
