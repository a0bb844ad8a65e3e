"""The bench of forecasts in running processes: the hub and the worker that it serves."""

import json
from pathlib import Path

from bench.forecasts_running import fleet
from tests.support.commands import run_with


def test_of_the_last_job_that_waits_the_command_says_when_it_starts(tmp_path: Path) -> None:
    (tmp_path / "settings").write_text("dispatcher: true\n")
    with fleet(tmp_path, clusters=2, waiting=5) as kubeconfig:
        run = run_with(f"--kubeconfig={kubeconfig}", f"--config={tmp_path / 'settings'}")
        done = run("explain", "workload", "waits-4", "--workers", "-ojson")
    start = json.loads(done.stdout)["workload"]["expectedStart"]
    assert (start["position"], start["unknown"]) == (5, "")
    assert start["p50Seconds"] > 0
