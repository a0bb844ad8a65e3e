"""The examples that `--help` shows can be run as they stand there, on a hub with the samples."""

import re
import shlex
from pathlib import Path

import pytest

from placement_ac.cli.main import COMMANDS
from placement_lab.standins.manifests import apply, connect, load, samples
from tests.support import commands

NOT_RUN = {
    "hub": "runs until it is stopped: tests/placement_ac/cli/test_commands.py runs and stops it",
    "ui": "runs until it is stopped: tests/kubectl_placement/cli/test_ui.py runs and stops it",
    "check": "it reads the settings file of a Pod: tests/install/test_check.py runs it there",
    "exec": "its last words are the command's: tests/kubectl_placement/access/test_handover.py runs it",
}
ON_NO_HUB = ("demo", "completion")
OF_JOBS = ("job", "logs", "access", "port-forward")
ENDS = {"doctor": 2, "plan": 1, "capacity": 1, "top": 1} | dict.fromkeys(OF_JOBS, 1)
"""Exit codes on a small hub where they are not 0: it lacks Kueue, a controller and jobs, and has Story 2."""
SAMPLES = ("fleet", "multikueue-setup-demo2.yaml", "placement-demo2-1.yaml")


def put_samples(kubeconfig: Path) -> None:
    apply(connect(kubeconfig), [one for name in SAMPLES for one in load(samples() / name)])


def examples(name: str) -> list[str]:
    shown = commands.run(name, "--help", terminal_width=200).output
    return re.findall(r"(?:^|\s)placement-ac (\S.*)$", shown.partition("Example")[2], re.MULTILINE)


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - NOT_RUN))
def test_the_examples_run(
    name: str, kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_samples(kubeconfig)
    (tmp_path / "samples").symlink_to(samples())
    monkeypatch.chdir(tmp_path)
    lines = examples(name)
    assert lines != []
    for line in lines:
        words = shlex.split(line) + ([] if name in ON_NO_HUB else ["--kubeconfig", str(kubeconfig)])
        result = commands.run(*words)
        assert result.exit_code == ENDS.get(name, 0), f"{line}: {result.output}"
