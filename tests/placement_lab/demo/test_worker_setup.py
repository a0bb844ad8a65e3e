"""`placement-ac demo --worker-setup`: story 1 from bare workers, with the sample of worker set-up."""

import functools
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from placement_lab.cli.demo import command
from placement_lab.demo.worker_setup import WORKER_SETUP
from tests.placement_lab.demo.test_demo import untimed

STORIES = Path(__file__).resolve().parents[3] / "docs" / "stories.md"


@functools.cache
def played(*words: str) -> tuple[int, str]:
    run = CliRunner().invoke(command, ["--worker-setup", *words])
    return run.exit_code, run.output


def documents() -> list[dict[str, Any]]:
    return [json.loads(line) for line in played("-o", "json")[1].splitlines()]


@pytest.mark.long
def test_bare_workers_become_ready_one_by_one_and_run_jobs() -> None:
    *steps, last = documents()
    assert [step["ok"] for step in steps] == [True] * len(WORKER_SETUP.steps)
    lists = [
        obj["spec"]["clusters"]
        for step in steps
        for obj in step["objects"]
        if obj["kind"] == "MultiKueueConfig"
    ]
    names = [[name.removeprefix("placement-setup-") for name in one] for one in lists]
    three = ["cluster1", "cluster2", "cluster3"]
    assert names == [["cluster2"], three[1:], three, three, [*three, "cluster4"], [*three, "cluster4"]]
    assert steps[0]["condition"]["message"].count("give cluster1 the label accelerator") == 1
    once = {"maxCopies": 1, "starts": 1, "finished": False}
    assert last["jobs"] == {"job": once, "job-large": once}
    [workload] = [obj for obj in steps[5]["objects"] if obj["kind"] == "Workload"]
    assert workload["status"]["clusterName"] == "placement-setup-cluster4"


@pytest.mark.long
def test_the_documented_step_is_current() -> None:
    code, shown = played()
    assert code == 0, shown
    block = STORIES.read_text("utf-8").partition("## Bare workers\n")[2].split("```console\n")[1]
    assert untimed(block.partition("```")[0]) in untimed(shown)


@pytest.mark.parametrize("words", [("--unsafe",), ("--story", "2"), ("--credentials", "made")])
def test_it_goes_with_no_other_story(words: tuple[str, ...]) -> None:
    run = CliRunner().invoke(command, ["--worker-setup", *words])
    assert (run.exit_code, "--worker-setup is for story 1" in run.output) == (2, True)
