"""docs/draining.md shows the states of a draining cluster as the code has them, in the order of its rules."""

import re
from pathlib import Path

import pytest

from placement_ac.core.draining.rules import RULES
from placement_ac.core.draining.state import DrainState, DrainStep

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "draining.md").read_text("utf-8")


def title(state: DrainState) -> str:
    return state.name.lower().replace("_", " ")


def test_the_table_of_states() -> None:
    _, _, after = PAGE.partition("### The states of a draining cluster\n")
    lines = [line for line in after.partition("\n## ")[0].splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    assert rows == [
        [
            title(rule.state),
            rule.when,
            f"`{rule.state.message.format('…')}`" if rule.state.message else "",
            "closed" if rule.state.closes_gate else "open",
            rule.ends_when,
        ]
        for rule in RULES
    ]
    assert {rule.state for rule in RULES} == {*DrainState}


def test_the_drawing_names_states_of_the_table() -> None:
    _, _, drawing = PAGE.partition("state draining {")
    drawn = re.findall(r"^ +(\w+) --> (\w+):", drawing.partition("}")[0], re.MULTILINE)
    assert drawn
    assert {name for pair in drawn for name in pair} <= {state.name.lower() for state in DrainState}


@pytest.mark.parametrize("state", DrainState)
def test_a_cluster_stays_in_every_state_but_unlisted_and_its_message_says_why(state: DrainState) -> None:
    step = DrainStep("a", "p-a", state, "detail")
    assert step.stays is bool(step.message) is (state is not DrainState.UNLISTED)
    assert ("detail" in step.message) is ("{}" in state.message)


@pytest.mark.parametrize("state", DrainState)
def test_an_event_counts_the_jobs_if_the_reason_is_that_they_run_there(state: DrainState) -> None:
    assert state.waits_for_jobs is state.message.startswith("Workloads run there")
