"""`logs -f` in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.kubectl_placement.access.stage import JobStage


class Followed:
    """The command with `-f`, whose stdout and stderr are one."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        assert process.stdout
        self._lines = iter(process.stdout)

    def next(self) -> str:
        return next(self._lines).rstrip("\n")

    def rest(self) -> list[str]:
        return [line.rstrip("\n") for line in self._lines]


@contextmanager
def followed(stage: JobStage, *words: str) -> Iterator[Followed]:
    """Run `logs -f` with these words; it is killed at the end."""
    command = [
        sys.executable,
        "-m",
        "placement_ac",
        "logs",
        "-f",
        *words,
        "--kubeconfig",
        str(stage.kubeconfig),
    ]
    env = os.environ | {"XDG_CONFIG_HOME": str(stage.kubeconfig.parent)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env
    ) as process:
        try:
            yield Followed(process)
        finally:
            process.kill()
