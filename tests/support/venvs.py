"""Virtual environments of their own, for what the developers' one would hide."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.installation import ROOT

FOLDERS = ("placement_ac", "kubectl_placement", "placement_lab")
"""The three packages."""


def build_wheel(package: str, folder: Path) -> Path:
    """Build the wheel of a package into a new folder; return its path."""
    where = ROOT if package == "placement_ac" else ROOT / package
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=where, check=True, capture_output=True, timeout=50)
    (wheel,) = folder.glob(f"{package}-*.whl")
    return wheel


def new_environment(folder: Path) -> Path:
    """Create an empty environment without pip; return the folder of its programs."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=50)
    return folder / "bin"


def install(programs: Path, *words: str) -> None:
    """Install with these words of pip: by uv, or by pip, where only that knows the package index."""
    uv = [str(Path(sys.executable).parent / "uv"), "pip", "install", "--quiet"]
    environment = os.environ | {"VIRTUAL_ENV": str(programs.parent)}
    if subprocess.run(
        [*uv, *words], env=environment, capture_output=True, check=False, timeout=300
    ).returncode:
        pip = [sys.executable, "-m", "pip", "--python", str(programs / "python"), "install", "--quiet"]
        subprocess.run([*pip, *words], check=True, timeout=300)
