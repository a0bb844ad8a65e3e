"""The two sides of the comparison, each in its own process: the controller and the floor."""

import asyncio
import compileall
import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

import click

import placement_ac

NEVER_SECONDS: Final = 300.0
STOP_SECONDS: Final = 10.0
REST_SHARE: Final = 0.05
"""A process that uses a smaller share of a CPU is idle."""
ASK_SECONDS: Final = 0.01
"""The interval of the readiness probe of the controller."""


@dataclass(frozen=True, slots=True)
class Side:
    """A side of the comparison: its name, its module with arguments, and options after the kubeconfig."""

    name: str
    words: tuple[str, ...]
    options: tuple[str, ...] = ()

    @property
    def is_controller(self) -> bool:
        return self.name == CONTROLLER.name

    @property
    def whole(self) -> "Side":
        """The side that writes MultiKueueClusters and conditions as well, as the controller always does."""
        return self if self.is_controller else replace(self, options=(*self.options, "--whole"))


CONTROLLER: Final = Side(
    "controller",
    # A single replica, like the floor; its log is not read and would report the intended outage.
    ("placement_ac", "run", "--leader-elect=false", "--log-level=error", "--kubeconfig"),
)
FLOOR: Final = Side("floor", ("bench.floor",))


class Process:
    """A running side. `began`: its start, by the event loop's clock."""

    def __init__(self, popen: "subprocess.Popen[bytes]", port: int, began: float) -> None:
        self._popen, self._port = popen, port
        self.began = began
        self.pid = popen.pid

    def check(self) -> None:
        """Raise if the process has ended by itself."""
        if (code := self._popen.poll()) is not None:
            raise click.ClickException(f"process {self.pid} has ended with {code}")

    def memory(self) -> float:
        return memory(self.pid)[0]

    def cpu_seconds(self) -> float:
        return cpu_seconds(self.pid)

    async def ready(self) -> float:
        """Return the seconds from its start until it reported that it is ready.

        The controller by `/readyz` (all kinds have been listed), the floor by a line when its watch is open.
        """
        if self._popen.stdout:
            while not await asyncio.to_thread(self._popen.stdout.readline):
                self.check()
        else:
            while not await _says_ok(self._port):
                self.check()
                await asyncio.sleep(ASK_SECONDS)
        return asyncio.get_running_loop().time() - self.began


async def _says_ok(port: int) -> bool:
    with contextlib.suppress(OSError):  # it does not listen yet
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: controller\r\n\r\n")
        line = await reader.readline()
        writer.close()
        return b" 200 " in line
    return False


@contextmanager
def running(side: Side, kubeconfig: Path, *, asked: bool = False) -> Iterator[Process]:
    """Run one side; with `asked` the controller serves its readiness."""
    port = _free_port() if asked and side.is_controller else 0
    probes = [f"--health-probe-bind-address=127.0.0.1:{port}"] if port else []
    command = [sys.executable, "-m", *side.words, str(kubeconfig), *side.options, *probes]
    compile_ours()
    began = asyncio.get_running_loop().time()
    # A session of its own: Ctrl-C reaches the bench alone, which then stops it.
    popen = subprocess.Popen(  # noqa: S603  # our own
        command, stdout=None if side.is_controller else subprocess.PIPE, start_new_session=True
    )
    try:
        yield Process(popen, port, began)
    finally:
        _stop(popen)


@cache
def compile_ours() -> None:
    """Compile our code once, as pip does: no start shall wait for it."""
    for module in (__file__, placement_ac.__file__):
        compileall.compile_dir(Path(module).parent, quiet=1)


def _stop(popen: "subprocess.Popen[bytes]") -> None:
    popen.terminate()
    try:
        popen.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        popen.kill()
        popen.wait()
    if popen.stdout:
        popen.stdout.close()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


async def until_idle(pid: int, seconds: float, check: Callable[[], None] = lambda: None) -> None:
    """Wait until a process uses less than `REST_SHARE` of a CPU for `seconds`; `check` may raise before."""
    end = time.monotonic() + NEVER_SECONDS
    while time.monotonic() < end:
        check()
        before = cpu_seconds(pid)
        await asyncio.sleep(seconds)
        if cpu_seconds(pid) - before < seconds * REST_SHARE:
            return
    raise click.ClickException(f"process {pid} does not become idle")


def memory(pid: int) -> tuple[float, float]:
    """Return the memory of a process in MB (10^6 bytes): now, and the maximum."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    now, peak = (int(lines[name].split()[0]) * 1024 / 1e6 for name in ("VmRSS", "VmHWM"))
    return now, peak


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process, by Linux's clock of the process: /proc counts ticks of 10 ms."""
    return time.clock_gettime((~pid << 3) | 2)  # MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED)
