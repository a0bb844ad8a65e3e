"""Find the smallest trace that shows a finding: drop jobs and troubles while the same rule is broken."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tests.day.day import play_day
from tests.day.rules import Finding
from tests.day.trace import HOUR, Item, moved

BEGIN_SECONDS: Final = 60.0
"""When the first item of a smaller trace happens: the controller has listed its clusters by then."""
MORE_SECONDS: Final = 900.0
"""A smaller trace may show it so much later."""


@dataclass(frozen=True, slots=True)
class Smallest:
    """A trace that shows a finding; `whole`: whether there was time for every attempt to make it smaller."""

    items: tuple[Item, ...]
    finding: Finding
    whole: bool


def shrink(mode: str, seed: int, items: Sequence[Item], finding: Finding, budget: float) -> Smallest:
    """Return a part of `items` that breaks the same rule. `budget`: CPU seconds for the search."""
    until = time.process_time() + budget

    def shows(part: Sequence[Item]) -> Finding | None:
        if not part:
            return None
        last = max(item.at for item in part)
        return play_day(mode, seed, part, last + MORE_SECONDS, [finding.rule]).finding

    def is_over() -> bool:
        return time.process_time() > until

    found = Smallest(tuple(item for item in items if item.at <= finding.at), finding, whole=False)
    found = _last_hours(found, shows, is_over)
    return _drop(found, shows, is_over)


def _last_hours(
    found: Smallest, shows: Callable[[Sequence[Item]], Finding | None], is_over: Callable[[], bool]
) -> Smallest:
    """Keep only the hours before the finding that are needed."""
    for hours in (0.5, 1, 2, 4, 8):
        part = [item for item in found.items if item.at > found.finding.at - hours * HOUR]
        if part and len(part) < len(found.items) and not is_over():
            part = _early(part)
            if finding := shows(part):
                part = [item for item in part if item.at <= finding.at]
                return Smallest(tuple(part), finding, whole=False)
    return found


def _drop(
    found: Smallest, shows: Callable[[Sequence[Item]], Finding | None], is_over: Callable[[], bool]
) -> Smallest:
    """Drop parts, half the items first and single ones last, until no item can go."""
    size = max(len(found.items) // 2, 1)
    while True:
        start, smaller = 0, False
        while start < len(found.items):
            if is_over():
                return found
            part = _early([*found.items[:start], *found.items[start + size :]])
            if finding := shows(part):
                part = [item for item in part if item.at <= finding.at]
                found, smaller = Smallest(tuple(part), finding, whole=False), True
            else:
                start += size
        if size == 1 and not smaller:
            return Smallest(found.items, found.finding, whole=True)
        size = max(size // 2, 1)


def _early(items: Sequence[Item]) -> list[Item]:
    """Return the items moved so that the first happens soon after the start."""
    first = min((item.at for item in items), default=0.0)
    return list(moved(items, first - BEGIN_SECONDS))
