"""A kubeconfig that a command of the access file has printed is removed when the process is ended."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kubectl_placement.access.stage import JobStage
from tests.support.driver import eventually


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def hanging_command(stage: JobStage, folder: Path) -> Path:
    """Let the access file name a command for worker a, whose kubeconfig has a plugin that hangs.

    Returns the file that the plugin writes when it is run.
    """
    ready = folder / "ready"
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": script(folder / "plugin.sh", f"touch {ready}\nexec sleep 60"),
        "interactiveMode": "Never",
    }
    config = stage.fleet.hubs["a"].kubeconfig()
    config["users"][0]["user"] = {"exec": plugin}
    printed = folder / "printed"
    printed.write_text(json.dumps(config))
    entry = {"cluster": "a", "command": [script(folder / "command.sh", f"cat {printed}")]}
    file = stage.kubeconfig.parent / "placement-ac" / "access.yaml"
    file.parent.mkdir()
    file.write_text(json.dumps({"clusters": [entry]}))
    return ready


@pytest.mark.parametrize(
    ("words", "number"),
    [
        pytest.param("job train --watch", signal.SIGTERM, id="job --watch removes it at SIGTERM"),
        pytest.param("logs train -f", signal.SIGHUP, id="logs -f removes it at SIGHUP"),
    ],
)
def test_a_signal_leaves_no_kubeconfig(
    stage: JobStage, tmp_path: Path, words: str, number: signal.Signals
) -> None:
    stage.job()
    stage.write_kubeconfig()
    ready = hanging_command(stage, tmp_path)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    env = os.environ | {"XDG_CONFIG_HOME": str(stage.kubeconfig.parent), "TMPDIR": str(temporary)}
    command = [sys.executable, "-m", "placement_ac", *words.split(), "--kubeconfig", str(stage.kubeconfig)]
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL) as process:
        eventually(ready.exists, True, seconds=30)
        assert len([*temporary.glob("*/kubeconfig")]) == 1
        process.send_signal(number)
        assert process.wait(20) == 128 + number
    assert [*temporary.iterdir()] == []
