"""The record of moves on the hub, and how often workers are asked while a movable job runs."""

from dataclasses import replace

import pytest

from placement_ac.core.api.constants import MULTIKUEUE_CONFIG
from placement_ac.core.inputs.state import Snapshot
from placement_ac.core.plan.diff import diff
from placement_ac.core.plan.plan import plan
from tests.support.moving import POLICY, after, entry, fleet, job, planned, recorded

THE_MOVE = "check:Workload/job:a:b:better"
BEGAN = entry(0, "Workload/job")
"""The same, recorded just now."""


def config_writes(seen: Snapshot) -> list[str]:
    writes = (action for phase in diff(seen, plan(seen)) for action in phase)
    return [type(action).__name__ for action in writes if action.kind is MULTIKUEUE_CONFIG]


def test_the_record_is_written_once() -> None:
    assert config_writes(after(300.0, job())) == ["Apply"]
    assert config_writes(after(300.0, job(movable=""), moves=[BEGAN])) == []


def test_another_write_keeps_the_record_and_without_moves_it_is_no_reason_to_write() -> None:
    assert recorded(planned(selected="ab", moves=[BEGAN])) == [THE_MOVE]
    assert config_writes(fleet(job(), moves=[BEGAN], policy=replace(POLICY, moves=None))) == []


def test_text_that_is_no_record_counts_for_nothing() -> None:
    assert recorded(planned(job(), moves=["x", "a:b=c", "check:u:a:b:worse=2026-01-01T00:00:00Z"])) == [
        THE_MOVE
    ]


def test_without_movable_jobs_no_worker_is_asked() -> None:
    assert planned(job(movable="")).ask_for_facts == ()
    assert planned(job(), used=dict.fromkeys("ab")).ask_for_facts == ()  # they have just answered


@pytest.mark.parametrize(
    ("ages", "asked", "again"),
    [
        pytest.param((16.0, 12.0), (), 14.0, id="one is due"),
        pytest.param((30.0, 15.0), ("p-a", "p-b"), None, id="one has been due for long"),
        pytest.param((30.0, 14.0), ("p-a",), 16.0, id="the other one is not due"),
    ],
)
def test_workers_are_asked_together_as_nothing_waits(
    ages: tuple[float, float], asked: tuple[str, ...], again: float | None
) -> None:
    seen = fleet(job(), used={"a": (8, 1), "b": (8, 8)})
    known = {
        name: replace(seen.fleet.queue_facts[name], age=age)
        for name, age in zip(("p-a", "p-b"), ages, strict=True)
    }
    answer = plan(replace(seen, fleet=replace(seen.fleet, queue_facts=known)))
    assert (answer.ask_for_facts, answer.requeue_after) == (asked, again)
