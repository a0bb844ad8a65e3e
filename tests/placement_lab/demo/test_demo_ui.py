"""`placement-ac demo --ui`: the page follows the stories while they are played."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.driver import eventually
from tests.support.ui import events

pytestmark = pytest.mark.long


def test_the_demo_serves_the_page_while_it_plays(tmp_path: Path) -> None:
    words = ["demo", "--story", "3", "--ui", "--pause", "1s", "-o", "json"]
    log = tmp_path / "log"
    with log.open("w") as errors:
        demo = subprocess.Popen(
            [sys.executable, "-m", "placement_ac", *words],
            env=os.environ | {"BROWSER": "false"},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        found = eventually(lambda: re.search(r"The page is at (\S+)", log.read_text()), seconds=30)
        with events(found[1], "placement-demo2") as page:
            draining = page.until("check", lambda one: _states(one).get("cluster3") == "draining")
            assert _states(draining)["cluster2"] in ("selected", "listed")
            assert [job["cluster"] for job in draining["status"]["jobs"]] == ["cluster3"]
            lanes = {lane["name"]: lane for lane in page.until("timeline")["lanes"]}
            assert lanes["cluster3"]["scores"][-1]["value"] == 10, "OCM no longer selects it"
            assert [run["gpus"] for run in lanes["cluster3"]["runs"]] == [1]
            page.until("check", lambda one: _states(one) == {"cluster2": "listed"})
            page.until("check", lambda one: _states(one) == {"cluster3": "listed"})
        eventually(lambda: "export KUBECONFIG=" in log.read_text(), seconds=20)
        demo.send_signal(signal.SIGINT)
        assert demo.wait(20) == 0
    finally:
        demo.kill()
        demo.communicate()


def _states(document: object) -> dict[str, str]:
    return {row["name"]: row["state"] for row in document["status"]["clusters"]}  # type: ignore[index]
