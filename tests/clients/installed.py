"""The environments that `make test-clients` installs, and how a program runs in one."""

import subprocess
from pathlib import Path

import pytest

from tests.support.installation import ROOT

PROGRAMS = Path(__file__).parent / "programs"
SECONDS = 240.0
"""For a program: Airflow takes 25 s to import on a busy machine."""


def start(client: str, kubeconfig: Path, folder: Path, *words: str, **more: str) -> "subprocess.Popen[str]":
    """Run a program of a client's environment in a folder, with nothing of this process's variables."""
    environment = ROOT / "build" / "clients" / client
    if not (environment / "installed").exists():
        pytest.skip(f"needs {client}: make test-clients installs it")
    return subprocess.Popen(
        [environment / "bin" / words[0], *words[1:]],
        cwd=folder,
        env={
            "PATH": f"{folder}:{environment / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder),
            "KUBECONFIG": str(kubeconfig),
            **more,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output(run: "subprocess.Popen[str]") -> str:
    """Return the standard output of a program that must succeed."""
    try:
        out, errors = run.communicate(timeout=SECONDS)
    finally:
        run.kill()  # snakemake waits for its jobs when it is asked to end
    assert run.returncode == 0, out + errors
    return out
