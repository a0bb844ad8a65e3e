"""Story 4 of `placement-ac demo`: the dispatcher chooses a cluster for each job."""

import functools
import io
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from kubectl_placement.jobs.choice import ClusterChoice, PlacementChoice
from placement_lab.cli.demo import command
from placement_lab.demo.renderers import TerminalRenderer, TextRenderer
from placement_lab.demo.runner import DemoStepResult, JobResult
from placement_lab.demo.steps import ExpectedResult
from placement_lab.demo.story4 import STORY_4
from placement_lab.demo.viewer import JobStatus
from placement_lab.standins.fleet import JobCounts

LONG = pytest.mark.long
DISPATCH = Path(__file__).resolve().parents[3] / "docs" / "dispatch.md"
ONCE = JobCounts(maxCopies=1, starts=1, finished=False)


@functools.cache
def played(*words: str) -> tuple[int, str]:
    """Play the story once; return the exit code and the output."""
    run = CliRunner().invoke(command, ["--story", "4", *words])
    return run.exit_code, run.output


def documents() -> list[dict[str, Any]]:
    return [json.loads(line) for line in played("-o", "json")[1].splitlines()]


def jobs() -> list[dict[str, Any]]:
    """The job of each step, with what decided about it."""
    return [document["job"] for document in documents() if "job" in document]


def test_each_job_runs_once_on_the_cluster_that_fits_best() -> None:
    *steps, last = documents()
    assert [(step["step"], step["ok"]) for step in steps] == [(number, True) for number in range(1, 11)]
    assert [(job["name"], job["runsOn"]) for job in jobs()] == [
        ("h100", ["cluster1"]),
        ("ingest", ["cluster2"]),
        ("finetune", ["cluster2"]),
        ("large", ["cluster2"]),
        ("small-1", ["cluster3"]),
        ("small-2", ["cluster3"]),
        ("small-3", ["cluster1"]),
        ("eu", []),
        ("eu", ["cluster1"]),
    ]
    names = ("h100", "ingest", "finetune", "large", "small-1", "small-2", "small-3", "eu")
    assert (played("-o", "json")[0], last["ok"], last["jobs"]) == (0, True, dict.fromkeys(names, ONCE))


def test_the_reason_agrees_with_where_the_job_runs() -> None:
    for job in jobs():
        [best, *_] = job["choice"]["clusters"]
        assert job["runsOn"] == ([best["name"]] if best["total"] is not None else []), job["name"]
        assert job["message"].startswith("NoClusterFits: ") == bool(job["choice"]["problem"])


@LONG
def test_the_documented_output_is_current() -> None:
    """Every step in the section, but for times and random names."""
    exit_code, shown = played()
    section = DISPATCH.read_text("utf-8").partition("## See it\n")[2].partition("\n## ")[0]
    documented = section.partition("```console\n")[2].partition("```")[0]
    parts = [part for part in varied(documented).split("\n\n") if part]
    assert len(parts) > 1
    assert exit_code == 0
    for part in parts:
        assert part.strip() in varied(shown)


def varied(text: str) -> str:
    """Return the text without what varies from run to run."""
    text = re.sub(r"\d+(\.\d)? (ms|s)\b", "… ms", text)
    return re.sub(r"(job-[\w-]+)-[0-9a-f]{5}\b", r"\1-…", text)


@LONG
def test_the_commands_that_a_kept_hub_prints_explain_a_job() -> None:
    demo = subprocess.Popen(
        [sys.executable, "-m", "placement_ac", "demo", "--story", "4", "--keep", "-o", "json"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert demo.stderr
        export = next(line for line in demo.stderr if "export KUBECONFIG=" in line).strip()
        explain = next(line for line in demo.stderr if "placement-ac explain" in line).split()
        run = subprocess.run(
            [sys.executable, "-m", "placement_ac", *explain[1:]],
            env=os.environ | {"KUBECONFIG": export.partition("=")[2]},
            capture_output=True,
            text=True,
            check=False,
        )
        assert "placed on placement-demo4-cluster2" in run.stdout, run.stderr
        assert run.stdout.count("(Capacity)") == 2
        assert "profile Placement=3,Headroom=2,Preferred=10,Sticky=10" in run.stdout
        demo.send_signal(signal.SIGINT)
        assert demo.wait(20) == 0
    finally:
        demo.kill()
        demo.communicate()


CHOICE = PlacementChoice(
    "kueue-system/placement-demo4",
    ("placement-demo4",),
    dispatcher=True,
    profile="Placement=3,Headroom=2,Preferred=10,Sticky=10",
    weights={"Placement": 3, "Headroom": 2, "Preferred": 10, "Sticky": 10},
    problem="",
    clusters=(
        ClusterChoice(
            "cluster2",
            "p-cluster2",
            "eligible",
            points={"Placement": 100 / 3, "Headroom": 400 / 7, "Preferred": None, "Sticky": None},
            total=42.857,
        ),
        ClusterChoice(
            "cluster3",
            "p-cluster3",
            "eligible",
            filter="Capacity",
            reason="had too little quota: 12 nvidia.com/gpu asked, 4 at most",
        ),
    ),
)


def result_of(choice: PlacementChoice) -> DemoStepResult:
    workload = {
        "kind": "Workload",
        "metadata": {"name": "job-large-1dfa2", "ownerReferences": [{"name": "large"}]},
    }
    job = JobStatus("large", ("cluster2",), ONCE, objects=(workload,))
    step = STORY_4.steps[4]
    return DemoStepResult(5, step, True, 42.0, None, (), (), {}, job, choice=choice)


def test_a_terminal_of_80_columns_shows_the_choice() -> None:
    console = Console(force_terminal=True, width=80, record=True, file=io.StringIO())
    with TerminalRenderer(console) as show:
        for number, step in enumerate(STORY_4.steps, start=11):
            show.step_finished(replace(result_of(CHOICE), number=number, step=step))
    lines = [line.strip("│ ") for line in console.export_text().splitlines()]
    assert [line for line in lines if "…" in line] == []
    for number, step in enumerate(STORY_4.steps, start=11):
        assert any(f" Story 4, step {number}: {step.title} " in line for line in lines)
    assert "cluster2: 42.9 points (Placement 33.3, Headroom 57.1)" in lines
    assert "Why: best first by Placement=3,Headroom=2,Preferred=10,Sticky=10:" in lines


@pytest.mark.parametrize(
    ("choice", "shown"),
    [
        pytest.param(
            CHOICE,
            [
                "# why: best first by Placement=3,Headroom=2,Preferred=10,Sticky=10:",
                "#   cluster2: 42.9 points (Placement 33.3, Headroom 57.1)",
                "#   cluster3: had too little quota: 12 nvidia.com/gpu asked, 4 at most (Capacity)",
            ],
            id="chosen",
        ),
        pytest.param(
            replace(CHOICE, problem="0/3 clusters fit: 3 didn't match region=eu (ClusterAffinity)"),
            ["# why: 0/3 clusters fit: 3 didn't match region=eu (ClusterAffinity)"],
            id="none fits",
        ),
    ],
)
def test_the_choice_as_plain_text(
    choice: PlacementChoice, shown: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    TextRenderer().step_finished(result_of(choice))
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[lines.index(shown[0]) : lines.index("OK after 42 ms")] == shown


def test_the_jobs_with_wrong_counts_are_named_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    twice = JobCounts(maxCopies=2, starts=2, finished=False)
    wanted = ExpectedResult(ONCE, "all is well", ("one", "two"))
    results = [
        JobResult((JobStatus("one", (), ONCE), JobStatus("two", (), counts)), wanted)
        for counts in (ONCE, twice)
    ]
    TextRenderer().demo_finished((), results)
    right, wrong, _ = capsys.readouterr().out.splitlines()
    assert right == (
        "Jobs one and two: each started 1 time, at most 1 copy at a time, not finished: all is well."
    )
    assert wrong == (
        "Job two: started 2 times, 2 copies at a time, not finished: FAILED; "
        'expected {"maxCopies":1,"starts":1,"finished":false}'
    )
