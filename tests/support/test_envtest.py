"""The messages of `make test-envtest` and `make test-kind` when a precondition is missing."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.kind import environment
from tests.support import envtest
from tests.support.exec_plugins import executable

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


def test_a_missing_variable_or_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    with pytest.raises(envtest.Missing) as raised:
        envtest.assets()
    assert str(raised.value) == f"KUBEBUILDER_ASSETS is not set: {HINT}"
    monkeypatch.setenv("PATH", "")
    assert environment.missing() == f"kind and kubectl: not on PATH; {environment.HINT}"


def test_an_api_server_that_does_not_come_up_has_the_last_word(tmp_path: Path) -> None:
    folder = a_folder(tmp_path / "bin", envtest.PROGRAMS, "echo no such flag: --tls; exit 1")
    with (
        pytest.raises(pytest.exit.Exception, match="did not come up: no such flag: --tls"),
        envtest.KubeApiServer(folder, tmp_path),
    ):
        pass
