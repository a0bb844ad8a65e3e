"""The hub gives the recorded responses of a real API server, with either set of CRDs."""

import subprocess
import sys

import pytest

from placement_lab.hub import Hub
from placement_lab.hub.kinds import bundled
from tests.published.shared import SHARED

pytestmark = pytest.mark.long

RECORDED = [crd for crd in bundled() if crd["spec"]["names"]["kind"] != "Topology"]
"""The package's kinds without the one that the real API server lacked."""


@pytest.mark.parametrize(
    ("crds", "options"), [(RECORDED, []), ([], ["--crds"])], ids=["the package's kinds", "the published CRDs"]
)
def test_the_recorded_answers_are_reproduced(crds: list[dict[str, object]], options: list[str]) -> None:
    script = SHARED / "hub" / "replay.py"
    with Hub(crds=crds) as hub:
        command = [sys.executable, str(script), "--server", hub.url, "--token", hub.token, "-v", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.splitlines()[-1:] == ["126 passed, 0 failed"], done.stdout + done.stderr
