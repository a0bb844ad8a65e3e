"""The mode with scores: each fault in quarantines and scores is found."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest

from placement_ac.core.dispatch.filters import FILTERS, QUARANTINE, Filter
from tests.day import quarantine_rules, scores
from tests.day.day import play_day
from tests.day.rules import Finding
from tests.day.trace import HOUR, Item, Job, Trouble

MINUTE: Final = 60.0
Fault = Callable[[pytest.MonkeyPatch], None]


def job(number: int, at: float, gpus: int = 2, lasts: float = 170.0, pool: str = "") -> Job:
    """A job of Placement research; times in minutes."""
    return Job(at * MINUTE, f"j{number}", "research", "research", gpus, lasts * MINUTE, pool)


def taint(cluster: str, at: float, lasts: float = 120.0) -> Trouble:
    return Trouble(at * MINUTE, "taint", cluster, lasts * MINUTE)


BROKEN: Final = Trouble(1 * MINUTE, "broken", "a100-eu-1", 2 * HOUR)
FAILING: Final = (
    BROKEN,
    *(taint(one, 1) for one in ("a100-eu-3", "a100-us-2")),
    *(job(n, 3 + n / 2, gpus=1, lasts=5, pool="blue") for n in range(80)),
)
"""Of the pool, one other cluster is left. Each job is nominated to both."""
USED: Final = tuple(job(n, 2 + 3 * n, gpus=1) for n in range(8))


def no_quarantine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placement_ac.core.failures.memory.THRESHOLD", 0.0)


def no_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placement_ac.core.score_reports.planning._left", lambda *_: 0.0)
    monkeypatch.setattr("placement_ac.core.score_reports.planning._is_due", lambda *_: True)


def no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def latest(cluster: str, _: Any, history: Any, step: int) -> dict[str, int]:
        return dict(history.last(cluster))

    monkeypatch.setattr("placement_ac.core.score_reports.planning.changed_scores", latest)
    monkeypatch.setattr("placement_ac.core.score_reports.planning.bounded_scores", lambda _, __, it, *___: it)


STORIES: Final[dict[str, tuple[tuple[Item, ...], float]]] = {
    "failing": (FAILING, 45 * MINUTE),
    "used": (USED, 25 * MINUTE),
}
"""Each with its length."""


@pytest.mark.parametrize(
    ("story", "fault", "rule", "message"),
    [
        pytest.param(
            "failing", no_quarantine, "black-hole", "started on a100-eu-1", id="to a broken cluster"
        ),
        pytest.param("used", no_interval, "scores", "written twice", id="of scores within the interval"),
        pytest.param("used", no_step, "scores", "less than the step", id="of scores by less than the step"),
    ],
)
def test_a_wrong_nomination_or_write_is_found(
    story: str, fault: Fault, rule: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    finding = play_day("scores", 1, *STORIES[story], [rule]).finding
    assert finding
    assert (finding.rule, message in finding.message) == (rule, True), finding


def no_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placement_ac.core.plan.job_fit._tried_by", lambda *_: None)


def test_a_quarantine_that_does_not_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of two jobs fills the other cluster; for the second one there is only the recovered one."""
    monkeypatch.setattr(scores, "LONGEST_SECONDS", 900.0)  # there is time for few failures
    failing = (replace(BROKEN, seconds=0.5 * HOUR), *FAILING[1:19])
    items = (*failing, *(job(100 + n, 50 + 20 * n, gpus=8, pool="blue") for n in range(2)))
    assert play_day("scores", 1, items, 1.5 * HOUR).finding is None
    no_try(monkeypatch)
    finding = play_day("scores", 1, items, 1.5 * HOUR, ["returns"]).finding
    assert finding
    assert "beside a100-eu-1" in finding.message


def found_in_a_day(items: Sequence[Item], seconds: float, rule: str) -> Finding | None:
    """Return the finding of the first of five days that has one: the order of events is random."""
    days = (play_day("scores", seed, items, seconds, [rule]).finding for seed in range(1, 6))
    return next(filter(None, days), None)


def test_a_job_that_is_sent_to_a_quarantined_cluster_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check says that it is quarantined, and the dispatcher does not care."""
    assert play_day("scores", 1, FAILING, HOUR).finding is None
    monkeypatch.setitem(FILTERS, QUARANTINE, Filter(lambda *_: None))
    finding = play_day("scores", 1, FAILING, HOUR, ["refused"]).finding
    assert finding
    assert "starts on a100-eu-1, quarantined" in finding.message


def test_a_quarantine_that_is_not_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """No job comes any more, and the bound is shorter than the controller's memory."""
    items = (replace(BROKEN, seconds=0.25 * HOUR), *FAILING[1:25])
    monkeypatch.setattr(quarantine_rules, "FORGOTTEN_SECONDS", 900.0)
    finding = found_in_a_day(items, HOUR, "forgotten")
    assert finding
    assert "has a100-eu-1 in quarantine" in finding.message
