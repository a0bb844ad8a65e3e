"""The messages of `make test-envtest` and `make test-kind` when a precondition is missing."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.kind import environment
from tests.support import envtest
from tests.support.exec_plugins import executable

ROOT = Path(__file__).resolve().parents[2]
HINT = "name a folder with kube-apiserver and etcd (`setup-envtest use -p path` prints one)"
CRD = "kind: CustomResourceDefinition"


def a_folder(path: Path, programs: Sequence[str], script: str = "exit 0") -> Path:
    path.mkdir()
    for name in programs:
        executable(path / name, script)
    return path


@pytest.mark.parametrize(
    ("programs", "message"),
    [
        pytest.param(["etcd"], "holds no program kube-apiserver", id="no API server"),
        pytest.param(["kube-apiserver"], "holds no program etcd", id="no etcd"),
        pytest.param(["kubectl"], "holds no program kube-apiserver and no etcd", id="another folder"),
        pytest.param([], "is not a folder", id="no folder"),
    ],
)
def test_a_folder_without_the_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: list[str], message: str
) -> None:
    folder = a_folder(tmp_path / "bin", programs) if programs else tmp_path / "bin"
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(folder))
    with pytest.raises(envtest.Missing) as raised:
        envtest.assets()
    assert str(raised.value) == f"KUBEBUILDER_ASSETS={folder} {message}: {HINT}"


@pytest.mark.parametrize("content", ["kind: ConfigMap", None], ids=["no CRD", "nothing"])
def test_a_folder_without_crds(tmp_path: Path, content: str | None) -> None:
    if content:
        (tmp_path / "one.yaml").write_text(content)
    with pytest.raises(envtest.Missing, match=f"^{tmp_path} holds no CustomResourceDefinition: "):
        envtest.crds_in(tmp_path)
    (tmp_path / "two.yaml").write_text(f"{CRD}\n---\n{content or ''}\n---\n{CRD}\n")
    assert len(envtest.crds_in(tmp_path)) == 2


@pytest.mark.parametrize(
    ("target", "given", "message"),
    [
        pytest.param("test-envtest", {}, f"KUBEBUILDER_ASSETS is not set: {HINT}", id="no assets"),
        pytest.param("test-kind", {}, f"kind and kubectl: not on PATH; {environment.HINT}", id="no kind"),
    ],
)
def test_make_says_so_in_one_line(tmp_path: Path, target: str, given: dict[str, str], message: str) -> None:
    installed = f"{sys.prefix}/installed"
    done = subprocess.run(
        [
            shutil.which("make") or "make",
            f"--old-file={installed}",
            f"VENV={sys.prefix}",
            "WORKERS=1",
            target,
        ],
        cwd=ROOT,
        env={"PATH": str(tmp_path)} | given,
        capture_output=True,
        text=True,
        check=False,
    )
    output = [
        line for line in (done.stdout + done.stderr).splitlines() if line and not line.startswith("make")
    ]
    assert (done.returncode, output) == (2, [f"ERROR: {message}"])


def test_an_api_server_that_does_not_come_up_has_the_last_word(tmp_path: Path) -> None:
    folder = a_folder(tmp_path / "bin", envtest.PROGRAMS, "echo no such flag: --tls; exit 1")
    with (
        pytest.raises(pytest.exit.Exception, match="did not come up: no such flag: --tls"),
        envtest.KubeApiServer(folder, tmp_path),
    ):
        pass
