"""Story 5 of `placement-ac demo`: jobs fill one cluster after the other, by scores of the controller."""

import functools
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from placement_lab.cli.demo import command
from placement_lab.demo.steps import Scenario
from placement_lab.demo.story5 import FIRST, SECOND, STORY_5

ONCE = {"maxCopies": 1, "starts": 1, "finished": True}


@functools.cache
def played() -> tuple[int, tuple[dict[str, Any], ...]]:
    """Play the story once; return the exit code and the JSON documents."""
    run = CliRunner().invoke(command, ["--story", "5", "-o", "json"])
    return run.exit_code, tuple(json.loads(line) for line in run.output.splitlines())


def test_the_next_cluster_takes_over_when_one_is_full_and_no_job_moves() -> None:
    exit_code, (*steps, last) = played()
    assert [(step["step"], step["ok"]) for step in steps] == [(number, True) for number in range(1, 6)]
    assert [step["decision"] for step in steps] == [
        ["cluster1"], ["cluster2"], ["cluster3"], ["cluster3"], ["cluster3"]
    ]  # fmt: skip
    assert (exit_code, last["ok"], last["jobs"]) == (0, True, dict.fromkeys((*FIRST, *SECOND), ONCE))


@pytest.mark.long
def test_a_wrong_score_fails_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    first = replace(STORY_5.steps[0], scores={"cluster1": 50, "cluster2": 100, "cluster3": 100})
    monkeypatch.setattr("placement_lab.cli.demo.STORY_5", Scenario((first,)))
    monkeypatch.setattr("placement_lab.demo.runner.STEP_SECONDS", 3.0)
    run = CliRunner().invoke(command, ["--story", "5"])
    assert run.exit_code == 1
    assert re.search(r"CLUSTER +GPUFREE\n +cluster1 +100\n +cluster2 +100\n +cluster3 +100\n", run.output)
    assert 'gpuFree {"cluster1":50,"cluster2":100,"cluster3":100}' in run.output
