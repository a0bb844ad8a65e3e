"""Capacity that is published and is not so is found in a day."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from placement_ac.controller import capacity_reporter
from placement_ac.core.capacity_report import compute
from placement_ac.core.capacity_report.model import added
from tests.day.bare import BareFleet
from tests.day.day import found_with
from tests.day.test_bare_day import trouble
from tests.day.test_day import research
from tests.day.trace import HOUR, Item

Fault = Callable[[pytest.MonkeyPatch], None]
FULL: Final = research(full=10, more=2)
"""Ten jobs that fill all clusters, and two that wait until these have ended."""
OWN: Final = (*research(full=4, more=2), *(trouble(5 + n, "own", "a100-eu-3", 50) for n in range(4)))
"""Somebody queues jobs on a worker itself."""


def none_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity_reporter, "came_since", lambda *_: ())


def wrong_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    def less(parts: Any) -> Any:
        return {supply: one._replace(used=one.used // 2) for supply, one in added(parts).items()}

    monkeypatch.setattr(compute, "added", less)


def counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity_reporter, "came_since", lambda _, __, running, ___: running)


def others_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = BareFleet.facts

    def ours(fleet: BareFleet, cluster: str) -> Any:
        own = sum(one.gpus for one in fleet.worker(cluster).own.values() if one.admitted)
        return {
            queue: replace(
                found,
                quotas={
                    name: tuple(one._replace(reserved=one.reserved - own * 1000) for one in flavors)
                    for name, flavors in found.quotas.items()
                },
            )
            for queue, found in facts(fleet, cluster).items()
        }

    monkeypatch.setattr(BareFleet, "facts", ours)


@pytest.mark.parametrize(
    ("mode", "items", "fault", "says"),
    [
        pytest.param("dispatcher", FULL, none_came, "and capacity shows", id="jobs that came do not count"),
        pytest.param("shared", FULL, counted_twice, "and capacity shows", id="jobs count twice"),
        pytest.param("dispatcher", FULL, wrong_sum, "the queues of", id="a sum is wrong"),
        pytest.param(
            "bare", OWN, others_are_not_counted, "and capacity shows", id="jobs of others do not count"
        ),
    ],
)
def test_false_capacity_is_found(mode: str, items: tuple[Item, ...], fault: Fault, says: str) -> None:
    assert says in found_with(fault, mode, items, HOUR, ["capacity"], ["capacity"]).message
