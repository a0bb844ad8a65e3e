"""The mode with moves: each fault in moves, quarantines and scores is found."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest

from placement_ac.core.api.objects import Workload
from placement_ac.core.dispatch.filters import FILTERS, QUARANTINE, Filter
from placement_ac.core.inputs.score_reports import ScorePolicy
from placement_ac.core.moves.history import MoveHistory
from placement_ac.core.moves.planning import MovePlan, plan_moves
from tests.day import moving, quarantine_rules
from tests.day.day import play_day
from tests.day.rules import Finding
from tests.day.trace import HOUR, Item, Job, Trouble

MINUTE: Final = 60.0
Fault = Callable[[pytest.MonkeyPatch], None]


def job(number: int, at: float, gpus: int = 2, lasts: float = 170.0, pool: str = "") -> Job:
    """A job of Placement research, which may be moved unless three divides its number; times in minutes."""
    return Job(at * MINUTE, f"j{number}", "research", "research", gpus, lasts * MINUTE, pool)


def taint(cluster: str, at: float, lasts: float = 120.0) -> Trouble:
    return Trouble(at * MINUTE, "taint", cluster, lasts * MINUTE)


LEAVES: Final = taint("a100-eu-1", 10)
"""OCM selects the cluster of the first jobs no more, so those that may be moved are."""
STAYS: Final = (job(3, 2), LEAVES)
TWICE: Final = (job(1, 2), LEAVES, *(taint(one, 25) for one in ("a100-eu-2", "a100-eu-3", "a100-us-1")))
MANY: Final = (*(job(n, 2 + n / 60) for n in (1, 2, 4, 5, 7, 8, 10, 11)), LEAVES)
BROKEN: Final = Trouble(1 * MINUTE, "broken", "a100-eu-1", 2 * HOUR)
FAILING: Final = (
    BROKEN,
    *(taint(one, 1) for one in ("a100-eu-3", "a100-us-2")),
    *(job(n, 3 + n / 2, gpus=1, lasts=5, pool="blue") for n in range(80)),
)
"""Of the pool, one other cluster is left. Each job is nominated to both."""
USED: Final = tuple(job(n, 2 + 3 * n, gpus=1) for n in range(8))


def every_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Workload, "movable", True)


def no_cooldown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MoveHistory, "cooling", {})
    monkeypatch.setattr(MoveHistory, "rests_until", lambda *_: None)


def no_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MoveHistory, "left", lambda *_: 1)


def no_quarantine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placement_ac.core.failures.memory.THRESHOLD", 0.0)


def no_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placement_ac.core.score_reports.planning._left", lambda *_: 0.0)
    monkeypatch.setattr("placement_ac.core.score_reports.planning._is_due", lambda *_: True)


def always_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placement_ac.core.score_reports.planning._is_due", lambda *_: True)


def no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def latest(cluster: str, _: Any, history: Any, step: int) -> dict[str, int]:
        return dict(history.last(cluster))

    monkeypatch.setattr("placement_ac.core.score_reports.planning.changed_scores", latest)
    monkeypatch.setattr("placement_ac.core.score_reports.planning.bounded_scores", lambda _, __, it, *___: it)


def too_long_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScorePolicy, "valid", 600.0)


STORIES: Final[dict[str, tuple[tuple[Item, ...], float]]] = {
    "stays": (STAYS, 20 * MINUTE),
    "twice": (TWICE, 35 * MINUTE),
    "many": (MANY, 30 * MINUTE),
    "failing": (FAILING, 45 * MINUTE),
    "used": (USED, 25 * MINUTE),
}
"""Each with its length."""


@pytest.mark.parametrize("story", STORIES)
def test_without_a_fault_nothing_is_found(story: str) -> None:
    items, seconds = STORIES[story]
    assert play_day("moves", 1, items, seconds).finding is None


@pytest.mark.parametrize(
    ("story", "fault", "rule", "message"),
    [
        pytest.param("stays", every_job, "movable", "j3 was moved", id="of a job that does not say so"),
        pytest.param("twice", no_cooldown, "cooldown", "j1 was moved twice", id="of the same job again"),
        pytest.param("many", no_budget, "budget", "5 jobs of research were moved", id="beyond the budget"),
        pytest.param(
            "failing", no_quarantine, "black-hole", "started on a100-eu-1", id="to a broken cluster"
        ),
        pytest.param("used", no_interval, "scores", "written twice", id="of scores within the interval"),
        pytest.param("used", always_due, "scores", "with the same values", id="of scores that stay"),
        pytest.param("used", no_step, "scores", "less than the step", id="of scores by less than the step"),
        pytest.param("used", too_long_valid, "scores", "valid for 6", id="of scores that are valid for long"),
    ],
)
def test_a_wrong_move_or_write_is_found(
    story: str, fault: Fault, rule: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    finding = play_day("moves", 1, *STORIES[story], [rule]).finding
    assert finding
    assert (finding.rule, message in finding.message) == (rule, True), finding


def no_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placement_ac.core.plan.job_fit._tried_by", lambda *_: None)


def test_a_quarantine_that_does_not_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of two jobs fills the other cluster; for the second one there is only the recovered one."""
    monkeypatch.setattr(moving, "LONGEST_SECONDS", 900.0)  # there is time for few failures
    failing = (replace(BROKEN, seconds=0.5 * HOUR), *FAILING[1:19])
    items = (*failing, *(job(100 + n, 50 + 20 * n, gpus=8, pool="blue") for n in range(2)))
    assert play_day("moves", 1, items, 1.5 * HOUR).finding is None
    no_try(monkeypatch)
    finding = play_day("moves", 1, items, 1.5 * HOUR, ["returns"]).finding
    assert finding
    assert "beside a100-eu-1" in finding.message


def found_in_a_day(items: Sequence[Item], seconds: float, rule: str) -> Finding | None:
    """Return the finding of the first of five days that has one: the order of events is random."""
    days = (play_day("moves", seed, items, seconds, [rule]).finding for seed in range(1, 6))
    return next(filter(None, days), None)


def outage(at: float) -> Trouble:
    """Most clusters of the Placement are selected no more, for half an hour."""
    return Trouble(at * MINUTE, "outage", "research", 0.5 * HOUR)


def test_a_move_while_the_list_is_held_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def always(fleet: Any, sent_again: Any, *, in_step: bool, mass_loss: bool) -> MovePlan:
        del mass_loss
        return plan_moves(fleet, sent_again, in_step=in_step, mass_loss=False)

    crowd = tuple(job(n, 5 + n / 60, gpus=1) for n in range(40))
    items = (*crowd, outage(7.3))
    assert play_day("moves", 1, items, 20 * MINUTE).finding is None
    monkeypatch.setattr("placement_ac.core.plan.moving.plan_moves", always)
    finding = found_in_a_day(items, 20 * MINUTE, "held")
    assert finding
    assert "the list of research has been held" in finding.message


def test_a_job_that_is_sent_to_a_quarantined_cluster_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check says that it is quarantined, and the dispatcher does not care."""
    assert play_day("moves", 1, FAILING, HOUR).finding is None
    monkeypatch.setitem(FILTERS, QUARANTINE, Filter(lambda *_: None))
    finding = play_day("moves", 1, FAILING, HOUR, ["refused"]).finding
    assert finding
    assert "starts on a100-eu-1, quarantined" in finding.message


def test_a_quarantine_that_is_not_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """No job comes any more, and the bound is shorter than the controller's memory."""
    items = (replace(BROKEN, seconds=0.25 * HOUR), *FAILING[1:25])
    monkeypatch.setattr(quarantine_rules, "FORGOTTEN_SECONDS", 900.0)
    finding = found_in_a_day(items, HOUR, "forgotten")
    assert finding
    assert "has a100-eu-1 in quarantine" in finding.message


FIVE_ARE_LEFT: Final = tuple(taint(one, 0.5) for one in ("a100-us-3", "h100-eu-1"))
FAILS_EVERYWHERE: Final = (*(job(n, 5 + n / 60, gpus=8) for n in range(1, 10)), job(39, 12, gpus=8))
MOVED_AWAY_AGAIN: Final = (
    Trouble(2 * MINUTE, "window", "a100-eu-1", 2 * HOUR),
    *(job(n, 5 + n / 60, gpus=8) for n in (1, 2, 4, 5, 7, 8, 10, 11)),
    job(14, 12, gpus=8),
)


@pytest.mark.parametrize("items", [FAILS_EVERYWHERE, MOVED_AWAY_AGAIN], ids=["failed", "maintenance"])
def test_a_job_waits_beside_a_cluster_that_comes_last(items: tuple[Item, ...]) -> None:
    """The other four clusters are full: it is nominated to three of them first, and then to the fourth."""
    assert play_day("moves", 1, (*FIVE_ARE_LEFT, *items), 0.5 * HOUR).finding is None
