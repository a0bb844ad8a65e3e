"""The two that are compared, each in a process of its own: the controller, and the floor."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Side:
    """Who is measured: its name, its module with arguments, and the User-Agent of its requests."""

    name: str
    words: tuple[str, ...]
    agent: str


CONTROLLER: Final = Side(
    "controller",
    # One of it, alone, as the floor is; each change is to go out at once, and nobody reads the log.
    ("placement_ac", "run", "--leader-elect=false", "--log-level=warning", "--kubeconfig"),
    "placement-ac",
)
FLOOR: Final = Side("floor", ("bench.floor",), "bench-floor")
WHOLE_FLOOR: Final = Side("floor", ("bench.floor", "--whole"), "bench-floor")


@contextmanager
def running(side: Side, kubeconfig: Path) -> Iterator[int]:
    """Run one of the two, and give its process id."""
    command = [sys.executable, "-m", *side.words, str(kubeconfig)]
    with subprocess.Popen(command) as process:  # noqa: S603  # our own
        try:
            yield process.pid
        finally:
            process.terminate()


def memory(pid: int) -> float:
    """Return the memory of a process, in MB (10^6 bytes)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024 / 1e6


def cpu_seconds(pid: int) -> float:
    """Return what CPU time a process has taken."""
    fields: Sequence[str] = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
