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


def logs(stage: JobStage, *words: str) -> tuple[int, int, int]:
    """Run `logs` in a process of its own; return its lines, their bytes, and its memory at most in MB."""
    command = [sys.executable, "-m", "placement_ac", "logs", *words, "--kubeconfig", str(stage.kubeconfig)]
    env = os.environ | {"XDG_CONFIG_HOME": str(stage.kubeconfig.parent)}
    lines = size = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as process:
        assert process.stdout
        for line in process.stdout:
            lines, size = lines + 1, size + len(line)
            if lines % 1000 == 1:
                memory = memory_of(process.pid)
    return lines, size, memory


def memory_of(pid: int) -> int:
    """Return the most memory that a process has had, in MB."""
    [line] = [one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("VmHWM")]
    return int(line.split()[1]) // 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_the_logs_of_100_pods_take_no_more_memory_than_their_connections(stage: JobStage) -> None:
    pods = stage.job(count=PODS)
    for pod in pods:
        stage.write(pod, *[TEXT] * LINES)
    _, _, alone = logs(stage, "train")
    lines, size, memory = logs(stage, "train", "--all-pods")
    assert lines == PODS * (LINES + 1)
    assert size > 20 * MEGABYTE
    assert memory - alone <= 50
