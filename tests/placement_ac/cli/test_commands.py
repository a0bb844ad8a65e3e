"""The commands as a person types them: wrong words, what they print, how they stop."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import structlog
import yaml
from click.testing import CliRunner

from placement_ac.cli.read_command import ReadCommand
from placement_lab.cli.hub import command as hub_command
from placement_lab.hub import Hub
from tests.kubectl_placement.cli.test_examples import examples
from tests.support import commands


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["run", "--nothing"], "No such option", id="unknown option"),
        pytest.param(["hub", "--listen", "nowhere"], "'nowhere' is not ADDRESS:PORT", id="bad address"),
        pytest.param(["hub", "--listen", "127.0.0.1:70000"], "is not ADDRESS:PORT", id="bad port"),
        pytest.param(["hub", "--with", "ocm,nova"], "'nova' is not a stand-in; known are", id="bad stand-in"),
        pytest.param(["demo", "--story", "6"], "6 is not in the range 1<=x<=5", id="no such story"),
        pytest.param(["demo", "-o", "xml"], "'xml' is not 'json'", id="no such output"),
        pytest.param(["statu"], "No such command 'statu'; did you mean status?", id="a misspelt command"),
    ],
)
def test_usage_errors_exit_with_2(words: list[str], expected: str) -> None:
    run = commands.run(*words)
    assert run.exit_code == 2
    assert expected in run.output


def test_a_command_that_only_reads_keeps_log_lines_out_of_its_answer() -> None:
    structlog.reset_defaults()  # which print to stdout
    logs = ReadCommand("logs", callback=lambda: structlog.get_logger("placement_ac").error("a line"))
    run = CliRunner().invoke(logs)
    assert ("a line" in run.stderr, run.stdout) == (True, "")


def test_a_missing_kubeconfig_exits_with_1(tmp_path: Path) -> None:
    run = commands.run("run", "--kubeconfig", str(tmp_path / "none"))
    assert run.exit_code == 1
    assert f"there is no kubeconfig {tmp_path / 'none'}" in run.output


def test_hub_writes_its_kubeconfig_when_it_is_ready(tmp_path: Path) -> None:
    """Run as its help shows."""
    path = tmp_path / "hub.kubeconfig"
    (line,) = examples("hub")
    run = subprocess.Popen(
        [sys.executable, "-m", "placement_ac", *shlex.split(line)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert run.stdout is not None
        output = run.stdout.readline()
        server = yaml.safe_load(path.read_text())["clusters"][0]["cluster"]["server"]
        run.send_signal(signal.SIGTERM)
        assert run.wait(20) == 0
    finally:
        run.kill()
        run.communicate()
    assert output == f"The hub listens on {server}\n"
    assert not path.exists(), "the token in it is no longer worth anything"


def test_hub_writes_over_no_kubeconfig_but_its_own(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("current-context: production\n")
    run = CliRunner().invoke(hub_command, ["--kubeconfig", str(path)])
    assert run.exit_code == 2
    assert f"{path} exists and is not an embedded hub's" in run.output
    assert path.read_text() == "current-context: production\n"


def test_hub_leaves_the_kubeconfig_of_a_hub_that_runs(hub: Hub, tmp_path: Path) -> None:
    path = tmp_path / "config"
    hub.write_kubeconfig(path)
    before = path.read_text()
    run = CliRunner().invoke(hub_command, ["--kubeconfig", str(path)])
    assert run.exit_code == 2
    assert f"name another file: {path} belongs to the hub that runs at {hub.secure_url}" in run.output
    assert path.read_text() == before


def start_hub(path: Path) -> tuple[subprocess.Popen[str], str]:
    """Start the command; return it when it is ready, and the server that it tells."""
    words = ["-m", "placement_ac", "hub", "--kubeconfig", str(path)]
    run = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    return run, run.stdout.readline().split()[-1]


def test_hub_replaces_the_kubeconfig_of_a_hub_that_is_gone(hub: Hub, tmp_path: Path) -> None:
    path = tmp_path / "config"
    hub.write_kubeconfig(path)
    with hub.outage():
        run, server = start_hub(path)
    try:
        assert yaml.safe_load(path.read_text())["clusters"][0]["cluster"]["server"] == server
        hub.write_kubeconfig(path)  # somebody else's by now: it is not removed
        run.send_signal(signal.SIGTERM)
        assert run.wait(20) == 0
    finally:
        run.kill()
        run.communicate()
    assert path.exists()


def test_a_kubeconfig_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "config"
    run = CliRunner().invoke(hub_command, ["--kubeconfig", str(path)])
    assert run.exit_code == 1
    assert f"cannot write {path}: No such file or directory" in run.output


def test_a_port_in_use_is_an_error(hub: Hub) -> None:
    address = hub.url.removeprefix("http://")
    run = CliRunner().invoke(hub_command, ["--listen", address])
    assert run.exit_code == 1
    assert f"cannot listen on {address}: " in run.output


def test_the_hub_replaces_no_device(tmp_path: Path) -> None:
    """A pipe here; /dev/null would be replaced by a file, and removed when the hub stops."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    done = commands.run("hub", "--kubeconfig", str(pipe))
    assert done.exit_code == 2
    assert done.output.endswith(f"name another file: {pipe} is not a regular file\n")
    assert pipe.is_fifo()


def test_credentials_that_are_not_accepted_and_a_hub_that_is_away(hub: Hub, tmp_path: Path) -> None:
    content = hub.kubeconfig()
    content["users"][0]["user"] = {"token": "expired"}
    (tmp_path / "expired").write_text(yaml.safe_dump(content))
    content["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    (tmp_path / "away").write_text(yaml.safe_dump(content))
    away = "ClientConnectorError: Cannot connect to host 127.0.0.1:1 [Connect call failed ('127.0.0.1', 1)]"
    for name, message in (
        ("expired", "log in again: the API server does not accept your credentials (Unauthorized)"),
        ("away", f"GET /apis/apps: {away}"),
    ):
        run = commands.run("status", "--kubeconfig", str(tmp_path / name))
        assert (run.exit_code, run.stderr) == (1, f"Error: {message}\n")


@pytest.mark.parametrize(
    ("words", "same"),
    [
        pytest.param(["help"], ["--help"], id="help"),
        pytest.param(["help", "adopt"], ["adopt", "--help"], id="help of a command"),
    ],
)
def test_help_is_a_word_as_in_kubectl(words: list[str], same: list[str]) -> None:
    done, expected = commands.run(*words), commands.run(*same)
    assert (done.exit_code, done.output) == (0, expected.output)
