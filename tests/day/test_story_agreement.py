"""A story of a job with a wrong step is found in a day."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import pytest

from kubectl_placement.jobs.queue_position import local_queue_position
from kubectl_placement.story import tell, waits
from kubectl_placement.story.model import StoryStep, Wait
from tests.day.day import found_with, play_day
from tests.day.test_day import research
from tests.day.trace import HOUR

Steps = tuple[StoryStep, ...]
FULL: Final = research(full=10, more=2)
"""Ten jobs that fill all clusters, and two that wait."""


def without(what: str) -> Callable[[Steps], Steps]:
    return lambda steps: tuple(step for step in steps if step.what != what)


def elsewhere(what: str, detail: str) -> Callable[[Steps], Steps]:
    """The step names another cluster."""
    return lambda steps: tuple(replace(step, detail=detail) if step.what == what else step for step in steps)


def later(steps: Steps) -> Steps:
    """It shows that the job was placed an hour later."""
    hour = timedelta(hours=1)
    return tuple(
        replace(step, time=step.time + hour) if step.what == "Placed" and step.time else step
        for step in steps
    )


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        pytest.param(without("Placed"), "and job shows []", id="it does not show that it is placed"),
        pytest.param(
            elsewhere("Placed", "on h100-us-3"), "and job shows ['on h100-us-3']", id="it is placed elsewhere"
        ),
        pytest.param(later, "and job says [", id="it was placed at another time"),
        pytest.param(
            elsewhere("Nominated", "to h100-us-3"), "job shows ['h100-us-3']", id="it is nominated elsewhere"
        ),
    ],
)
def test_a_step_that_is_not_so_is_found(fault: Callable[[Steps], Steps], says: str) -> None:
    assert says in found_with(showing(fault), "dispatcher", FULL, HOUR / 2, ["job"], ["job"]).message


def showing(fault: Callable[[Steps], Steps]) -> Callable[[pytest.MonkeyPatch], None]:
    steps_of = tell.steps_of
    return lambda patched: patched.setattr(tell, "steps_of", lambda *parts: fault(steps_of(*parts)))


def names_another(job: Any) -> Wait | None:
    return Wait("quota on h100-us-3") if job.nominated else None


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        pytest.param(lambda _: Wait(), "does not say for what", id="for nothing"),
        pytest.param(names_another, "job says: quota on h100-us-3", id="for another cluster"),
    ],
)
def test_a_job_that_waits_for_something_else_is_found(
    rule: Callable[[Any], Wait | None], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "RULES", (*waits.RULES[:4], rule, *waits.RULES[4:]))
    finding = play_day("shared", 1, FULL, HOUR / 2, ["job"]).finding
    assert finding
    assert says in finding.message


def test_a_wrong_position_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_more(*parts: Any) -> Any:
        found = local_queue_position(*parts)
        return found and replace(found, jobs=found.jobs + 1)

    monkeypatch.setattr(tell, "local_queue_position", one_more)
    finding = play_day("dispatcher", 1, FULL, HOUR / 2, ["job"]).finding
    assert finding
    assert "jobs wait in the queue of" in finding.message
