"""`make test-envtest`: what it says where it cannot begin."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests import envtest

ROOT = Path(__file__).resolve().parents[2]
HINT = "name a folder with kube-apiserver and etcd (`setup-envtest use -p path` prints one)"
CRD = "kind: CustomResourceDefinition"


def a_folder(path: Path, programs: Sequence[str], script: str = "exit 0") -> Path:
    path.mkdir()
    for name in programs:
        (path / name).write_text(f"#!/bin/sh\n{script}\n")
        (path / name).chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("programs", "said"),
    [
        pytest.param(["etcd"], "holds no program kube-apiserver", id="no API server"),
        pytest.param(["kube-apiserver"], "holds no program etcd", id="no etcd"),
        pytest.param(["kubectl"], "holds no program kube-apiserver and no etcd", id="another folder"),
    ],
)
def test_a_folder_without_the_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: list[str], said: str
) -> None:
    folder = a_folder(tmp_path / "bin", programs)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(folder))
    with pytest.raises(envtest.Missing) as told:
        envtest.assets()
    assert str(told.value) == f"KUBEBUILDER_ASSETS={folder} {said}: {HINT}"


def test_a_program_that_may_not_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = a_folder(tmp_path / "bin", envtest.PROGRAMS)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(folder))
    assert envtest.assets() == folder
    (folder / "etcd").unlink()
    (folder / "etcd").mkdir()
    with pytest.raises(envtest.Missing, match="holds no program etcd: "):
        envtest.assets()


@pytest.mark.parametrize("content", ["kind: ConfigMap", None], ids=["no CRD", "nothing"])
def test_a_folder_without_crds(tmp_path: Path, content: str | None) -> None:
    if content:
        (tmp_path / "one.yaml").write_text(content)
    with pytest.raises(envtest.Missing, match=f"^{tmp_path} holds no CustomResourceDefinition: "):
        envtest.crds_in(tmp_path)
    (tmp_path / "two.yaml").write_text(f"{CRD}\n---\n{content or ''}\n---\n{CRD}\n")
    assert len(envtest.crds_in(tmp_path)) == 2


@pytest.mark.parametrize(
    ("assets", "said"),
    [
        pytest.param(None, "KUBEBUILDER_ASSETS is not set", id="missing"),
        pytest.param("/no/such/folder", "KUBEBUILDER_ASSETS=/no/such/folder is not a folder", id="wrong"),
    ],
)
def test_make_says_so_in_one_line(assets: str | None, said: str) -> None:
    given = {name: value for name, value in os.environ.items() if not name.startswith(("KUBEB", "MAKE"))}
    made = f"{sys.prefix}/installed"
    done = subprocess.run(
        ["make", f"--old-file={made}", f"VENV={sys.prefix}", "test-envtest"],
        cwd=ROOT,
        env=given if assets is None else given | {"KUBEBUILDER_ASSETS": assets},
        capture_output=True,
        text=True,
        check=False,
    )
    told = [line for line in (done.stdout + done.stderr).splitlines() if line and not line.startswith("make")]
    assert (done.returncode, told) == (2, [f"ERROR: {said}: {HINT}"])


def test_an_api_server_that_does_not_come_up_has_the_last_word(tmp_path: Path) -> None:
    folder = a_folder(tmp_path / "bin", envtest.PROGRAMS, "echo no such flag: --tls; exit 1")
    with (
        pytest.raises(pytest.exit.Exception, match="did not come up: no such flag: --tls"),
        envtest.RealHub(folder, tmp_path, []),
    ):
        pass
