"""The logs of a job with 100 Pods: all of them, in order, and never held whole in memory."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubectl_placement.access.stage import JobStage, job_stage

PODS = 100
LINES = 2_000
TEXT = "x" * 100
MEGABYTE = 2**20
pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[JobStage]:
    with job_stage(tmp_path, ["a"]) as opened:
        yield opened


def logs(stage: JobStage, *words: str, wanted: int) -> tuple[int, int]:
    """Run `logs` in a process of its own until so many lines have come.

    Returns their bytes, and the most memory that it had, in MB.
    """
    command = [sys.executable, "-m", "placement_ac", "logs", *words, "--kubeconfig", str(stage.kubeconfig)]
    env = os.environ | {"XDG_CONFIG_HOME": str(stage.kubeconfig.parent)}
    size = memory = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as process:
        assert process.stdout
        for number, line in enumerate(process.stdout, 1):
            size += len(line)
            if number % 1000 == 1:
                memory = memory_of(process.pid) or memory
            if number == wanted:
                break
        assert number == wanted
        process.kill()
    return size, memory


def memory_of(pid: int) -> int:
    """Return the most memory that a process has had, in MB; 0: it has ended."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM")), 0)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize(
    "follow",
    [pytest.param([], id="printed once"), pytest.param(["-f"], id="followed at the same time")],
)
def test_the_logs_of_100_pods_take_no_more_memory_than_their_connections(
    stage: JobStage, follow: list[str]
) -> None:
    pods = stage.job(count=PODS)
    for pod in pods:
        stage.write(pod, *[TEXT] * LINES)
    _, alone = logs(stage, "train", *follow, wanted=LINES + 1)
    size, memory = logs(stage, "train", "--all-pods", *follow, wanted=PODS * (LINES + 1))
    assert size > 20 * MEGABYTE
    assert memory - alone <= 35
