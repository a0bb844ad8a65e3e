"""`exec` and `port-forward` hand over to kubectl, with the caller's access; `access` prints its line."""

import json
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubectl_placement.access.handover import kubeconfig_of
from placement_ac.core.kubeconfig.source import ClusterAccess
from tests.kubectl_placement.access.stage import JobStage, let_jane
from tests.support.driver import eventually
from tests.support.rights import rule

RECORDER = """#!/bin/sh
printf '%s\\n' "$@" > "$RECORD/words"
while [ $# -gt 0 ]; do
  if [ "$1" = --kubeconfig ]; then stat -c %a "$2" > "$RECORD/mode"; cat "$2" > "$RECORD/kubeconfig"
    echo "$2" > "$RECORD/path"; fi
  shift
done
cat
exit 7
"""
"""A kubectl that writes down how it is called, copies its input, and fails."""


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "bin"
    folder.mkdir()
    kubectl = folder / "kubectl"
    kubectl.write_text(RECORDER)
    kubectl.chmod(kubectl.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("RECORD", str(tmp_path))
    return tmp_path


def words(record: Path) -> list[str]:
    return (record / "words").read_text().splitlines()


def test_exec_by_the_callers_context(stage: JobStage, record: Path) -> None:
    [pod] = stage.job()
    done = stage.run("exec", "train", "-i", "--", "sh", "-c", "exit 1")
    assert done.exit_code == 7
    flags = ["--kubeconfig", str(stage.kubeconfig), "--context", "a", "--namespace", "default"]
    assert words(record) == [*flags, "exec", "-i", pod, "-c", "c", "--", "sh", "-c", "exit 1"]
    stage.write_kubeconfig("a")  # the recorder has read it into the same file
    assert stage.run("exec", "-it", "job", "train", "-c", "c", "--", "ls").exit_code == 7
    assert words(record)[6:9] == ["exec", "-i", "-t"]
    for given, text in (
        ("exec train", "you must specify at least one command"),
        ("exec -- ls", "Missing argument"),
        ("port-forward train", "Missing argument"),
    ):
        refused = stage.run(*given.split())
        assert (refused.exit_code, text in refused.stderr) == (2, True), given


def test_a_kubectl_that_a_signal_has_ended_and_none_at_all(
    stage: JobStage, record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.job()
    (record / "bin" / "kubectl").write_text("#!/bin/sh\nkill -KILL $$\n")
    assert stage.run("exec", "train", "--", "ls").exit_code == 128 + signal.SIGKILL
    monkeypatch.setenv("PATH", "/nowhere")
    done = stage.run("exec", "train", "--", "ls")
    assert (done.exit_code, done.stderr) == (1, "Error: install kubectl: `exec` hands over to it\n")


def test_port_forward(stage: JobStage, record: Path) -> None:
    pods = stage.job(count=2)
    done = stage.run("port-forward", "job/train", "8080:80", "9090")
    assert done.exit_code == 7
    assert done.stderr.startswith("Found 2 pods, using pod/")
    assert words(record)[6:] == [
        "port-forward",
        "--address",
        "localhost",
        f"pod/{pods[0]}",
        "8080:80",
        "9090",
    ]


def test_without_a_context_kubectl_gets_a_kubeconfig_that_is_removed(stage: JobStage, record: Path) -> None:
    stage.job()
    stage.write_kubeconfig()
    assert stage.run("exec", "train", "--as-hub", "--", "ls").exit_code == 7
    assert (record / "mode").read_text() == "600\n"
    given: dict[str, Any] = json.loads((record / "kubeconfig").read_text())
    theirs = stage.fleet.hubs["a"].kubeconfig()
    assert given["clusters"][0]["cluster"]["server"] == theirs["clusters"][0]["cluster"]["server"]
    assert given["users"][0]["user"] == theirs["users"][0]["user"]
    assert not Path((record / "path").read_text().strip()).exists()


def test_access_prints_the_kubectl_line_of_the_callers_context(stage: JobStage) -> None:
    stage.job()
    done = stage.run("access", "job/train")
    flags = f"--kubeconfig {stage.kubeconfig} --context a"
    assert (done.exit_code, done.stdout) == (0, f"kubectl {flags} --namespace default\n")
    assert done.stderr == "job.batch/train is on cluster a, open by context a\n"


@pytest.mark.parametrize("by", ["--as-hub", "command"])
def test_access_without_a_context_writes_a_kubeconfig_for_the_caller_alone(
    stage: JobStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    stage.job()
    stage.write_kubeconfig()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    theirs = tmp_path / "theirs"
    stage.fleet.hubs["a"].write_kubeconfig(theirs)
    file = tmp_path / "access.json"
    file.write_text(json.dumps({"clusters": [{"cluster": "a", "command": ["cat", str(theirs)]}]}))
    words = [by] if by == "--as-hub" else ["--access-config", str(file)]
    done = stage.run("access", "train", *words)
    [path] = tmp_path.glob("placement-ac-*/kubeconfig")
    assert done.stdout == f"kubectl --kubeconfig {path} --namespace default\n"
    assert done.stderr.endswith(f"delete {path} when you are done: it holds credentials\n")
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    given = json.loads(path.read_text())
    assert given["users"][0]["user"] == stage.fleet.hubs["a"].kubeconfig()["users"][0]["user"]


def test_a_signal_removes_the_kubeconfig(stage: JobStage, record: Path) -> None:
    """SIGHUP: test_signals.py."""
    stage.job()
    stage.write_kubeconfig()
    script = RECORDER.replace("cat\nexit 7", "touch $RECORD/ready\nexec sleep 30")
    (record / "bin" / "kubectl").write_text(script)
    words = ["exec", "train", "--as-hub", "--kubeconfig", str(stage.kubeconfig), "--", "ls"]
    with subprocess.Popen([sys.executable, "-m", "placement_ac", *words]) as process:
        eventually((record / "ready").exists, True)
        process.terminate()
        assert process.wait(20) == 128 + signal.SIGTERM
    assert not Path((record / "path").read_text().strip()).exists()


def test_a_kubeconfig_has_the_extra_fields_of_a_user() -> None:
    headers = (
        ("Impersonate-User", "jane"),
        ("Impersonate-Extra-a%2Fb", "x"),
        ("Impersonate-Extra-a%2Fb", "y"),
    )
    [user] = kubeconfig_of(ClusterAccess("https://a", impersonation=headers))["users"]
    assert user["user"] == {"as": "jane", "as-user-extra": {"a/b": ["x", "y"]}}


def test_the_caller_is_the_same_user_on_the_cluster(stage: JobStage, record: Path) -> None:
    stage.job()
    done = stage.run("exec", "train", "--as", "jane", "--as-group=system:masters", "--", "ls")
    assert done.exit_code == 7
    assert words(record)[4:6] == ["--as=jane", "--as-group=system:masters"]


EVERYTHING = rule("get list", "*", "*")


def test_logs_are_read_as_the_other_user_on_the_cluster(stage: JobStage) -> None:
    [pod] = stage.job()
    stage.write(pod, "a line")
    assert "a line" in stage.run("logs", "train", "--as=jane", "--as-group=system:masters").stdout
    let_jane(stage.hub, EVERYTHING)
    done = stage.run("logs", "train", "--as=jane")
    assert (done.exit_code, done.stdout) == (1, "")
    assert 'User "jane" cannot list resource "pods"' in done.stderr
