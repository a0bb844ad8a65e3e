"""Capacity that is published and is not so is found in a day."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from placement_ac.controller import capacity_reporter
from placement_ac.controller.capacity_reporter import CapacityReporter
from placement_ac.core.api.objects import Workload
from placement_ac.core.capacity_report import compute
from placement_ac.core.capacity_report.model import added
from placement_ac.core.inputs.queue_facts import WorkerFacts
from tests.day.day import found_with
from tests.day.test_day import research
from tests.day.trace import HOUR, Item

Fault = Callable[[pytest.MonkeyPatch], None]
FULL: Final = research(full=10, more=2)
"""Ten jobs that fill all clusters, and two that wait until these have ended."""


def none_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity_reporter, "came_since", lambda *_: ())


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


@pytest.mark.parametrize(
    ("mode", "items", "fault", "says"),
    [
        pytest.param("dispatcher", FULL, none_came, "and capacity shows", id="jobs that came do not count"),
        pytest.param("shared", FULL, no_answer, "does not know it", id="an answer is not taken in"),
        pytest.param("shared", FULL, waits_once, "jobs wait for", id="jobs wait on one cluster alone"),
        pytest.param("dispatcher", FULL, wrong_sum, "the queues of", id="a sum is wrong"),
    ],
)
def test_false_capacity_is_found(mode: str, items: tuple[Item, ...], fault: Fault, says: str) -> None:
    assert says in found_with(fault, mode, items, HOUR, ["capacity"], ["capacity"]).message
