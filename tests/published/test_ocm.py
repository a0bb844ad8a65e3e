"""The stand-in for OCM decides the recorded fleets over HTTP as OCM's placement controller did."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from placement_lab.hub import Hub
from placement_lab.standins.ocm import Scheduler
from placement_lab.standins.runner import StandIns
from tests.published.shared import SHARED

PARTS = 4
"""The number of parallel parts of the recorded fleets: replay.py mostly waits."""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """A hub with only the stand-in for OCM."""
    with Hub() as hub:
        hub.write_kubeconfig(tmp_path / "kubeconfig")
        with StandIns(tmp_path / "kubeconfig", [Scheduler]):
            yield hub


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(PARTS))
def test_decides_the_recorded_fleets(hub: Hub, part: int) -> None:
    folder = SHARED / "ocm"
    lines = (folder / "placements.jsonl").read_text().splitlines()
    assert len(lines) == 60
    fleets = [json.loads(line)["name"] for line in lines[part::PARTS]]
    command = [sys.executable, str(folder / "replay.py"), "--server", hub.url, "--token", hub.token]
    command += ["-v", *(f"--only={name}" for name in fleets)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert ended.stdout.endswith(f"{len(fleets)} passed, 0 failed\n"), ended.stdout + ended.stderr
