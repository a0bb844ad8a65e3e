"""The commands in docs/install.md, The commands: the wheels, and how they are installed elsewhere."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.installation import ROOT, pyproject
from tests.support.venvs import FOLDERS, install, new_environment
from website.markdown import section

pytestmark = pytest.mark.long

PIPX = "pipx==1.18.4"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing but what `make dist` makes."""
    folder = tmp_path_factory.mktemp("machine")
    build = tmp_path_factory.mktemp("build")
    (build / "bin").symlink_to(Path(sys.executable).parent)  # hatchling is here already
    (build / "installed").touch()
    words = ["make", "dist", f"DIST={folder / 'dist'}", f"WHEEL_VENV={build}"]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True, timeout=60)
    return folder


def run(machine: Path, programs: Path, command: str, **environment: str) -> str:
    """Run a command with these programs first on the PATH; return its output."""
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    kept = {
        name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "REQUESTS_"))
    }
    done = subprocess.run(
        shlex.split(command),
        cwd=machine,
        env=kept | {"PATH": path, "HOME": str(machine)} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def documented(program: str) -> str:
    """The line of docs/install.md that begins with this program."""
    page = (ROOT / "docs" / "install.md").read_text("utf-8")
    (line,) = re.findall(rf"^{program} .*", section(page, "The commands"), re.MULTILINE)
    return line


def test_the_wheels(machine: Path) -> None:
    version = pyproject()["project"]["version"]
    wheels = [f"{package}-{version}-py3-none-any.whl" for package in sorted(FOLDERS)]
    assert sorted(path.name for path in (machine / "dist").iterdir()) == sorted(wheels)


@pytest.mark.timeout(400)
def test_pip_installs_from_the_wheels(machine: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "v")], check=True, timeout=100)
    programs = tmp_path / "v" / "bin"
    run(machine, programs, documented("pip"))
    version = pyproject()["project"]["version"]
    assert (
        run(machine, programs, f"{programs}/placement-ac --version") == f"placement-ac, version {version}\n"
    )
    assert "--watch" in run(machine, programs, f"{programs}/placement-ac status --help")
    assert "--watch" in run(machine, programs, f"{programs}/kubectl-placement status --help")


@pytest.mark.timeout(400)
def test_pipx_installs_from_the_wheels(machine: Path, tmp_path: Path) -> None:
    programs = new_environment(tmp_path / "v")
    install(programs, PIPX)
    homes = {"PIPX_HOME": str(tmp_path / "home"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    run(machine, programs, documented("pipx"), **homes)
    assert "--watch" in run(machine, tmp_path / "bin", f"{tmp_path}/bin/kubectl-placement status --help")
