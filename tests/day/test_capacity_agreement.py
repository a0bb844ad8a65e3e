"""Capacity that is published and is not so is found in a day."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from placement_ac.controller import capacity_reporter
from placement_ac.controller.capacity_reporter import CapacityReporter
from placement_ac.core.api.objects import Workload
from placement_ac.core.capacity_report import compute
from placement_ac.core.capacity_report.model import CapacityReport, added
from placement_ac.core.inputs.queue_facts import WorkerFacts
from tests.day.bare import BareFleet
from tests.day.day import found_with
from tests.day.test_bare_day import trouble
from tests.day.test_day import job, research
from tests.day.trace import HOUR, Item

Fault = Callable[[pytest.MonkeyPatch], None]
FULL: Final = research(full=10, more=2)
"""Ten jobs that fill all clusters, and two that wait until these have ended."""
ALONE: Final = (job(0, 1, lasts=10), job(1, 30, lasts=25))
OWN: Final = (*research(full=4, more=2), *(trouble(5 + n, "own", "a100-eu-3", 50) for n in range(4)))
"""Somebody queues jobs on a worker itself."""


def none_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity_reporter, "came_since", lambda *_: ())


def none_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity_reporter, "left_since", lambda *_: ())


def never_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CapacityReport, "steps", ())


def no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(reporter: CapacityReporter, worker: str, asked_at: float) -> Callable[[WorkerFacts], None]:
        take = ask_worker(reporter, worker, asked_at)
        return (lambda _: None) if "a100-eu-2" in worker else take

    ask_worker = CapacityReporter.ask_worker
    monkeypatch.setattr(CapacityReporter, "ask_worker", ask)


def waits_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def first(workload: Workload) -> tuple[str, ...]:
        return (workload.cluster,) if workload.cluster else workload.nominated[:1]

    monkeypatch.setattr("placement_ac.cache.capacity_report._places", first)


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
        pytest.param("shared", FULL, none_left, "and capacity shows", id="jobs that left count"),
        pytest.param(
            "shared", ALONE, never_written_again, "and capacity shows", id="it is not written again"
        ),
        pytest.param("shared", FULL, no_answer, "does not know it", id="an answer is not taken in"),
        pytest.param("shared", FULL, counted_twice, "and capacity shows", id="jobs count twice"),
        pytest.param("shared", FULL, waits_once, "jobs wait for", id="jobs wait on one cluster alone"),
        pytest.param("dispatcher", FULL, wrong_sum, "the queues of", id="a sum is wrong"),
        pytest.param(
            "bare", OWN, others_are_not_counted, "and capacity shows", id="jobs of others do not count"
        ),
    ],
)
def test_false_capacity_is_found(mode: str, items: tuple[Item, ...], fault: Fault, says: str) -> None:
    assert says in found_with(fault, mode, items, HOUR, ["capacity"], ["capacity"]).message
