"""A list of jobs that says what is not so is found in a day."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from kubectl_placement.story.lines import job_lines
from kubectl_placement.story.model import JobLine, JobState
from tests.day import agreement
from tests.day.day import found_with
from tests.day.test_day import research
from tests.day.trace import HOUR

Lines = tuple[JobLine, ...]
ITEMS: Final = research(full=10, more=2)
"""Ten jobs that fill all clusters, and two that wait."""


def without_the_first(lines: Lines) -> Lines:
    return lines[1:]


def all_run(lines: Lines) -> Lines:
    return tuple(replace(line, state=JobState.RUNNING, cluster=line.cluster or "a100-eu-1") for line in lines)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        pytest.param(without_the_first, "is not in the list of jobs", id="one is missing"),
        pytest.param(all_run, "runs nowhere, and jobs says that it runs on a100-eu-1", id="all run"),
    ],
)
def test_a_false_list_is_found(fault: Callable[[Lines], Lines], says: str) -> None:
    def put(patched: pytest.MonkeyPatch) -> None:
        patched.setattr(agreement, "job_lines", lambda view: fault(job_lines(view)))

    assert says in found_with(put, "dispatcher", ITEMS, HOUR, ["jobs"], ["jobs"]).message
