"""`job --watch` and `jobs --watch` print a change of the hub."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kubectl_placement.access.stage import JobStage, job_stage
from tests.support.driver import eventually


@pytest.fixture
def there(tmp_path: Path) -> Iterator[JobStage]:
    with job_stage(tmp_path) as stage:
        yield stage


@contextmanager
def watched(there: JobStage, tmp_path: Path, *words: str) -> Iterator[Any]:
    """Run a command with --watch; yield a function that returns the documents that it has printed."""
    with lines_of(there, tmp_path, *words, "-o", "json") as lines:
        yield lambda: [json.loads(line) for line in lines()]


@contextmanager
def lines_of(there: JobStage, tmp_path: Path, *words: str) -> Iterator[Any]:
    """Run a command with --watch; yield a function that returns the lines that it has printed."""
    out = tmp_path / "out"
    command = [sys.executable, "-m", "placement_ac", *words, "--watch"]
    with out.open("w") as stream:
        process = subprocess.Popen([*command, "--kubeconfig", str(there.kubeconfig)], stdout=stream)
        try:
            yield lambda: out.read_text().splitlines()
        finally:
            process.terminate()
            process.wait(20)


def test_a_story_is_told_again_after_each_change(there: JobStage, tmp_path: Path) -> None:
    there.workload("train")
    with watched(there, tmp_path, "job", "train") as shown:
        eventually(lambda: [one["job"]["state"] for one in shown()], ["waiting"], seconds=30)
        there.job("train", "b")
        eventually(lambda: shown()[-1]["job"]["cluster"], "b", seconds=30)
        assert [pod["phase"] for pod in shown()[-1]["pods"]["pods"]] == ["Running"]


def test_jobs_of_one_name_in_two_namespaces_have_a_line_each(there: JobStage, tmp_path: Path) -> None:
    there.workload("train")
    there.workload("train", "team-b")
    assert there.run("jobs", "-A", "-o", "name").stdout == "job/train\n" * 2
    with lines_of(there, tmp_path, "jobs", "-A", "-o", "name") as lines:
        eventually(lines, ["job/train"] * 2, seconds=30)
        there.place("train", "p-a", "team-b")
        eventually(lines, ["job/train"] * 3, seconds=30)
