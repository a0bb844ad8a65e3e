"""A day with moves, quarantines and scores: an eventful hour, and that each breach of a rule is found."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from placement_ac.config.policy import score_policy
from placement_ac.controller import score_reporter
from placement_ac.core.api.constants import ANNOTATION_MOVABLE
from placement_ac.core.dispatch.filters import FILTERS, QUARANTINE, Filter
from placement_ac.core.failures.memory import FailureMemory
from placement_ac.core.moves.history import MoveHistory
from placement_ac.core.moves.planning import plan_moves
from placement_ac.core.plan import moving as planned
from tests.day import quarantine_rules, world
from tests.day.day import play_day
from tests.day.moving import MovingFleet
from tests.day.trace import HOUR, Item, Job, Trouble
from tests.day.world import MOVES

MINUTE: Final = 60.0
HERE: Final = "a100-eu-1"
"""The first of the clusters that Placement research selects."""


def job(number: int, at: float, gpus: int = 1, lasts: float = 240.0) -> Job:
    """A job of Placement research; `at` and `lasts` in minutes. Every third one is not movable."""
    return Job(at * MINUTE, f"j{number}", "research", "research", gpus, lasts * MINUTE)


def trouble(at: float, what: str, whom: str = HERE, lasts: float = 0.0, value: int = 0) -> Trouble:
    """`at` and `lasts` in minutes."""
    return Trouble(at * MINUTE, what, whom, lasts * MINUTE, value)


CROWD: Final = tuple(job(n, 5 + n / 60) for n in range(40))
"""Long jobs on all clusters."""
EMPTIED: Final = (*CROWD, trouble(12, "window", lasts=120))
"""Then one of them is to be emptied, of more jobs than the budget has moves."""
BLACK_HOLE: Final = (
    trouble(4, "broken", lasts=60),
    *(job(40 + n, 5 + n / 4, lasts=3) for n in range(100)),
)
"""The first cluster fails each job, and jobs keep coming."""
TWO_LEFT: Final = ("a100-us-3", "h100-eu-1")
TO_AND_FRO: Final = (
    trouble(1, "outage", "research", 120),
    job(1, 8),
    trouble(12, "window", TWO_LEFT[0], 13),
    trouble(30, "window", TWO_LEFT[1], 13),
    trouble(48, "window", TWO_LEFT[0], 13),
)
"""Two clusters are left, and now the one, now the other is to be emptied."""
EVENTFUL: Final = (
    *CROWD[:30],
    *BLACK_HOLE[:60],
    *(job(150 + n, 20 + n, lasts=30) for n in range(40)),
    job(239, 21),
    trouble(12, "window", "a100-eu-2", lasts=90),
    trouble(14, "crash", "leader", 0.3, value=2),
    trouble(18, "outage", "research", 9),
    trouble(25, "smaller", "a100-us-1", 20),
    trouble(33, "crash", "leader", 0.3, value=1),
    trouble(40, "away", "a100-eu-3", 8),
)
"""Each trouble once, crashes while jobs are moved, and one job that fails everywhere."""


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.long) for n in range(2, 5))])
@pytest.mark.timeout(300)
def test_an_eventful_hour(seed: int) -> None:
    played = play_day(MOVES, seed, EVENTFUL, 1.25 * HOUR)
    assert not played.finding
    assert played.world.kueue.starts["j239"]


# -- each breach is found


def scored(**changed: Any) -> Callable[[Any], Any]:
    """The policy of the scores, with another value."""
    return lambda settings: replace(score_policy(settings), **changed)


def too_large(*args: Any) -> dict[str, int]:
    return dict.fromkeys(score_values(*args), 150)


score_values = score_reporter.score_values
ALWAYS: Final = Filter(lambda *_: None)


def also_in_a_mass_loss(fleet: Any, *, in_step: bool, mass_loss: bool) -> Any:
    del mass_loss
    return plan_moves(fleet, in_step=in_step, mass_loss=False)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("items", "minutes", "where", "fault", "rule"),
    [
        pytest.param(
            (*(job(3 * n, 5 + n / 60) for n in range(15)), EMPTIED[-1]),
            *(25, (MovingFleet, "annotations"), lambda *_: {ANNOTATION_MOVABLE: "true"}, "movable"),
            id="a job that may not be moved is",
        ),
        pytest.param(
            *(EMPTIED, 40, (MoveHistory, "left"), lambda *_: 99, "budget"), id="the budget is exceeded"
        ),
        pytest.param(
            *(TO_AND_FRO, 70, (MoveHistory, "cooling"), {}, "cooldown"), id="a job is moved twice in an hour"
        ),
        pytest.param(
            (*CROWD, trouble(7.3, "outage", "research", 30)),
            *(25, (planned, "plan_moves"), also_in_a_mass_loss, "held"),
            id="a job is moved while the list is held",
        ),
        pytest.param(
            BLACK_HOLE,
            *(30, (FailureMemory, "failing"), lambda *_: {}, "black-hole"),
            id="no cluster is quarantined",
        ),
        pytest.param(
            BLACK_HOLE[:4],
            *(12, (score_reporter, "score_values"), too_large, "scores"),
            id="a score is too large",
        ),
        pytest.param(
            (*CROWD[:20], trouble(9, "smaller", lasts=3), trouble(15, "smaller", lasts=3)),
            *(20, (world, "score_policy"), scored(step=1), "scores"),
            id="a score changes by less than the step",
        ),
        pytest.param(
            BLACK_HOLE[:4],
            *(12, (world, "score_policy"), scored(interval=20.0), "scores"),
            id="scores are written too often",
        ),
    ],
)
def test_a_breach_is_found(
    items: tuple[Item, ...],
    minutes: float,
    where: tuple[Any, str],
    fault: Any,
    rule: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert play_day(MOVES, 1, items, minutes * MINUTE).finding is None
    monkeypatch.setattr(*where, fault)
    finding = play_day(MOVES, 1, items, minutes * MINUTE, [rule]).finding
    assert finding
    assert finding.rule == rule


@pytest.mark.timeout(300)
def test_a_job_that_is_sent_to_a_quarantined_cluster_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FILTERS, QUARANTINE, ALWAYS)
    finding = play_day(MOVES, 1, BLACK_HOLE, 30 * MINUTE, ["refused"]).finding
    assert finding
    assert HERE in finding.message


@pytest.mark.timeout(300)
def test_a_quarantine_that_does_not_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is shorter than the controller's memory."""
    items = (trouble(4, "broken", lasts=11), *BLACK_HOLE[1:21])
    monkeypatch.setattr(quarantine_rules, "RETURNS_SECONDS", 10 * MINUTE)
    finding = play_day(MOVES, 1, items, 35 * MINUTE, ["returns"]).finding
    assert finding
    assert HERE in finding.message
