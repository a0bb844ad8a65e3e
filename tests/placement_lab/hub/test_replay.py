"""The hub gives the recorded responses of a real API server, with either set of CRDs."""

import subprocess
import sys

import pytest

from placement_lab.hub.kinds import bundled
from tests.support.real_hub import HubMaker
from tests.support.shared import shared_dir

pytestmark = [
    pytest.mark.long,
    pytest.mark.embedded("a real API server gave these answers, and needs no comparison with itself"),
]

RECORDED = [crd for crd in bundled() if crd["spec"]["names"]["kind"] != "Topology"]
"""The package's kinds without the one that the real API server lacked."""


@pytest.mark.parametrize(
    ("crds", "options"), [(RECORDED, []), ([], ["--crds"])], ids=["the package's kinds", "the published CRDs"]
)
def test_the_recorded_answers_are_reproduced(
    a_hub: HubMaker, crds: list[dict[str, object]], options: list[str]
) -> None:
    script = shared_dir() / "hub" / "replay.py"
    with a_hub(crds=crds) as hub:
        command = [sys.executable, str(script), "--server", hub.url, "--token", hub.token, "-v", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.splitlines()[-1:] == ["126 passed, 0 failed"], done.stdout + done.stderr
