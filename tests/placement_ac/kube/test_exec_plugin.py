"""Credential plugins of the hub's kubeconfig: what they leave behind, what is shown, what is never sent."""

import os
import signal
import time
from pathlib import Path

import pytest
import yaml

from placement_ac.core.api.constants import ADMISSION_CHECK
from placement_ac.core.api.errors import Unavailable
from placement_ac.kube import exec_plugin
from placement_ac.kube.client import Client
from placement_ac.kube.exec_plugin import ExecPlugin, PluginFailed, run_plugin
from placement_ac.kube.login import Login
from placement_lab.hub import Hub
from tests.support import commands
from tests.support.exec_plugins import TOKEN, V1, Plugin, gives


def has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    status = Path(f"/proc/{pid}/stat")  # a zombie of a container whose init reaps nothing
    return status.exists() and ") Z " in status.read_text()


def child_of(folder: Path) -> int:
    return int((folder / "pid").read_text())


def eventually_ended(pid: int) -> None:
    end = time.monotonic() + 10
    while not has_ended(pid):
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            pytest.fail("the child still runs")
        time.sleep(0.02)  # only init can wait for the end of a child of another process


@pytest.mark.parametrize("output", ["", ">/dev/null", ">/dev/null 2>&1"])
async def test_a_child_does_not_outlive_its_plugin(plugin: Plugin, tmp_path: Path, output: str) -> None:
    """Nor does anybody wait for a child that keeps the output open."""
    command = plugin(f"sleep 300 {output} & echo $! > {tmp_path}/pid; {gives()}")
    got = await run_plugin(ExecPlugin(command, V1), None, lambda _: None)
    assert got.token == TOKEN
    eventually_ended(child_of(tmp_path))


@pytest.mark.parametrize("script", ["wait", "trap '' TERM; wait", "exec >&-; wait"])
async def test_a_child_does_not_outlive_the_time_of_its_plugin(
    plugin: Plugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.setattr(exec_plugin, "PLUGIN_SECONDS", 2.0)
    command = plugin(f"sleep 300 & echo $! > {tmp_path}/pid; echo log in first >&2; {script}")
    with pytest.raises(PluginFailed, match="gave no credentials within 2 s: log in first"):
        await run_plugin(ExecPlugin(command, V1), None, lambda _: None)
    eventually_ended(child_of(tmp_path))


async def test_a_message_is_shown_without_control_characters_and_up_to_a_limit(plugin: Plugin) -> None:
    shown: list[str] = []
    noise = "\\033[31mred\\033[0m \\342\\200\\256bidi\\n"
    command = plugin(f"printf '{noise}' >&2; yes x | head -n 20000 >&2; printf 'the end\\n' >&2; exit 3")
    with pytest.raises(PluginFailed) as failed:
        await run_plugin(ExecPlugin(command, V1), None, shown.append)
    text = "".join(shown)
    assert text.startswith(" [31mred [0m  bidi\nx\n")
    assert len(text) == exec_plugin.MAX_SHOWN
    assert str(failed.value).startswith(f"plugin {command} ended with code 3: … ")
    assert str(failed.value).endswith(" x the end")
    assert len(str(failed.value)) < exec_plugin.MAX_QUOTED + 200


def kubeconfig(hub: Hub, folder: Path, command: str) -> Path:
    content = hub.kubeconfig()
    spec = {"apiVersion": V1, "command": command, "interactiveMode": "Never", "installHint": "Get it!"}
    content["users"][0]["user"] = {"exec": spec}
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (f"echo {TOKEN}; echo expired >&2; exit 255", "ended with code 255: expired"),
        (gives(""), "gave no token and no certificate"),
    ],
)
def test_without_credentials_nothing_is_sent(
    hub: Hub, plugin: Plugin, tmp_path: Path, script: str, problem: str
) -> None:
    path = kubeconfig(hub, tmp_path, plugin(script))
    before = len(hub.journal)
    done = commands.run("status", "--kubeconfig", str(path))
    *_, last = done.stderr.splitlines()
    assert done.exit_code == 1
    assert last.startswith(f"Error: cannot log in with {path}: plugin {tmp_path / 'plugin'} {problem}")
    assert TOKEN not in done.output
    assert len(hub.journal) == before


def test_a_plugin_that_is_not_installed_is_named_with_its_hint(hub: Hub, tmp_path: Path) -> None:
    path = kubeconfig(hub, tmp_path, "no-such-cloud-cli")
    done = commands.run("status", "--kubeconfig", str(path))
    assert done.stderr == (
        f"Error: cannot log in with {path}: plugin no-such-cloud-cli cannot be started:"
        " No such file or directory; Get it!\n"
    )


def test_a_command_shows_the_messages_of_a_plugin_that_succeeds(
    hub: Hub, plugin: Plugin, tmp_path: Path
) -> None:
    path = kubeconfig(hub, tmp_path, plugin(f"echo 'use code ABC' >&2; {gives(hub.token)}"))
    done = commands.run("status", "-o", "name", "--kubeconfig", str(path))
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "use code ABC\nNo checks found\n")


async def test_a_plugin_is_run_again_when_its_token_has_expired_or_is_refused(
    hub: Hub, plugin: Plugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placement_ac.kube.login.HEADERS_SECONDS", 0.0)
    runs = tmp_path / "runs"

    def script(token: str, **status: str) -> None:
        plugin(f"echo run >> {runs}; {gives(token, **status)}")

    def count() -> int:
        return len(runs.read_text().splitlines())

    script(hub.token)
    path = kubeconfig(hub, tmp_path, str(tmp_path / "plugin"))
    async with Client(Login(path)) as client:
        checks = ADMISSION_CHECK.at("v1beta2")
        await client.list(checks)
        await client.list(checks)
        assert count() == 1
        hub.faults.add("GET", "admissionchecks", status=401)
        script("refused")
        with pytest.raises(Unavailable):
            await client.list(checks)
        with pytest.raises(Unavailable):
            await client.list(checks)
        script(hub.token, expirationTimestamp="2020-01-01T00:00:00Z")
        await client.list(checks)
        before = count()
        await client.list(checks)
        assert count() == before + 1
