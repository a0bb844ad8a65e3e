"""The cases of `../shared/cases`: scripts from public reports of people who run fleets."""

import os
import subprocess
import sys
from pathlib import Path

from tests.published.shared import SHARED

SECONDS = 240
"""The time that a script gets: the slowest takes a minute on a quiet machine."""


def run_case(number: str, script: str = "run.sh") -> str:
    """Return the output of a case's script, played with the commands of this checkout; `number`: as `01`."""
    [folder] = (SHARED / "cases").glob(f"{number}-*")
    commands = Path(sys.executable).parent
    environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    environment |= {
        "PAC": str(commands / "placement-ac"),
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
    }
    ended = subprocess.run(
        ["bash", str(folder / script)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return ended.stdout + ended.stderr


def section(output: str, title: str) -> str:
    """Return what a script printed below the line `== title`, up to the next such line."""
    _, _, rest = output.partition(f"== {title}")
    return rest.partition("\n== ")[0].partition("\n")[2]
