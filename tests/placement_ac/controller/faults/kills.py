"""
A controller in a process of its own that is killed as one of its writes arrives at the hub, and a fresh one.

The scene sends a running job back, so that every kind of write is in it.
"""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from placement_lab.hub.faults import WRITES
from tests.placement_ac.controller.faults.plays import OURS, Scene
from tests.support import quick
from tests.support.driver import Object
from tests.support.jobs import soon

SETTINGS: Final = {
    "removal_policy": "immediate",
    "settle": "0s",
    "mass_loss_grace": "0s",
    "leader_elect": "false",
    "log_level": "error",
}
END: Final = {"configs": {"p": ["p-b"]}, "clusters": ["p-b"], "conditions": {"p": ("True", "Active")}}
WAKES_SECONDS: Final = 1000.0
"""A write that waits for the kill waits for ever."""


class Process:
    """`placement-ac run`, up as long as the `with` lasts; `kill_at` has it killed and begun anew."""

    def __init__(self, kubeconfig: Path, **settings: str) -> None:
        options = [f"--{name.replace('_', '-')}={value}" for name, value in (SETTINGS | settings).items()]
        self._command = [sys.executable, "-m", quick.__name__, "run", f"--kubeconfig={kubeconfig}", *options]
        self._killer: threading.Thread | None = None
        self._stopped = threading.Event()
        self.kills = 0
        self.killed_at = 0.0

    def __enter__(self) -> Self:
        self._process = self._start()
        return self

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"})

    def kill_at(self, scene: Scene, number: int, path: str = "", *, after: bool) -> None:
        """Kill it with its write of that number (from 0) to such a path; `after`: it is carried out."""
        faults = scene.hub.faults
        faults.add(WRITES, path, agent=OURS, skip=number, delay=WAKES_SECONDS, hang_up=True, after=after)

        def wait() -> None:
            while not faults.all_met:
                if self._stopped.wait(0.005):
                    return
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self.kills += 1
            self._process = self._start()

        self._killer = threading.Thread(target=wait, daemon=True)
        self._killer.start()

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._stopped.set()
        if self._killer:
            self._killer.join()
        self._process.terminate()
        self._process.wait()


def send_a_job_back(scene: Scene) -> Object:
    """Let a job run on a, put b in a's place, and return the world when the job has finished on b."""
    stage = scene.stage
    stage.submit("j")
    stage.until_runs("j", "a")
    stage.select("b")
    stage.until_runs("j", "b")
    stage.until_listed("b")
    stage.finish("j")
    stage.until_finished("j")
    soon(scene.world, END)
    return scene.world()
