"""Completion, by the shells themselves and as kubectl asks for it; and the plugin of kubectl."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kubectl_placement.cli.completion import complete
from kubectl_placement.cli.main import NOT_OF_KUBECTL, plugin
from placement_ac.cli.main import COMMANDS
from tests.support import commands

BIN = str(Path(sys.executable).parent)
ENV = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.parametrize(
    ("words", "values", "directive"),
    [
        pytest.param([""], [name for name in COMMANDS if name not in NOT_OF_KUBECTL], 4, id="commands"),
        pytest.param(["cle"], ["cleanup"], 4, id="the rest of a command"),
        pytest.param(["cleanup", "--f"], ["--force"], 4, id="an option"),
        pytest.param(["cleanup", "--kubeconfig", ""], [], 0, id="files"),
        pytest.param(
            ["dance", ""], [name for name in COMMANDS if name not in NOT_OF_KUBECTL], 4, id="unknown"
        ),
        pytest.param([], [name for name in COMMANDS if name not in NOT_OF_KUBECTL], 4, id="nothing"),
    ],
)
def test_completions_for_kubectl(words: list[str], values: list[str], directive: int) -> None:
    *lines, last = complete(words).splitlines()
    assert [line.partition("\t")[0] for line in lines] == values
    assert last == f":{directive}"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_completion_script(shell: str) -> None:
    run = commands.run("completion", shell)
    assert run.exit_code == 0
    assert f"_PLACEMENT_AC_COMPLETE={shell}_complete" in run.output


def test_bash_completes_a_command() -> None:
    asked = {
        **ENV,
        "_PLACEMENT_AC_COMPLETE": "bash_complete",
        "COMP_WORDS": "placement-ac cl",
        "COMP_CWORD": "1",
    }
    output = subprocess.run(["placement-ac"], env=asked, capture_output=True, text=True, check=True)
    assert output.stdout == "plain,cleanup\n"


def test_the_plugin_has_no_hub_and_no_controller() -> None:
    output = CliRunner().invoke(plugin, ["--help"], prog_name="kubectl placement").output
    assert output.startswith("Usage: kubectl placement [OPTIONS] COMMAND")
    assert CliRunner().invoke(plugin, ["run"]).exit_code == 2


def test_kubectl_finds_the_plugin_and_completes_its_words() -> None:
    if not shutil.which("kubectl"):
        (pytest.fail if os.environ.get("CI") else pytest.skip)("kubectl is not on PATH: it runs the plugin")
    version = subprocess.run(
        ["kubectl", "placement", "--version"], env=ENV, capture_output=True, text=True, check=False
    )
    assert (version.returncode, version.stdout.split(",")[0]) == (0, "kubectl placement")
    words = ["kubectl", "__complete", "placement", "cle"]
    output = subprocess.run(words, env=ENV, capture_output=True, text=True, check=False)
    assert output.stdout.splitlines()[0].split("\t")[0] == "cleanup"
