"""The processes of a measurement: their memory, CPU time and processors; the controller and the floor."""

import asyncio
import compileall
import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import click

import placement_ac

NEVER_SECONDS: Final = 300.0
STOP_SECONDS: Final = 10.0
REST_SHARE: Final = 0.05
"""A process that uses a smaller share of a CPU is idle."""
POLL_SECONDS: Final = 0.01
"""The interval of the readiness probe of the controller."""


@contextmanager
def module(*words: str, **options: Any) -> Iterator["subprocess.Popen[Any]"]:
    """Run a Python module in its own process, and end it. `options`: of Popen."""
    with subprocess.Popen([sys.executable, "-m", *words], **options) as process:  # noqa: S603  # our own
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def controller(kubeconfig: Path, *options: str, **popen: Any) -> "contextlib.AbstractContextManager[Any]":
    """Run `placement-ac run` in its own process."""
    return module("placement_ac", "run", "--kubeconfig", str(kubeconfig), *options, **popen)


@cache
def compile_ours() -> None:
    """Compile our code once, as pip does: no start shall wait for it."""
    for file in (__file__, placement_ac.__file__):
        compileall.compile_dir(Path(file).parent, quiet=1)


# -- the two sides of the comparison


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
        self.began, self.pid = began, popen.pid

    def check(self) -> None:
        """Raise if the process has ended by itself."""
        if (code := self._popen.poll()) is not None:
            raise click.ClickException(f"process {self.pid} has ended with {code}")

    def memory(self) -> float:
        return round(memory(self.pid)[0], 1)

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
                await asyncio.sleep(POLL_SECONDS)
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
def running(side: Side, kubeconfig: Path, *, probed: bool = False) -> Iterator[Process]:
    """Run one side; with `probed` the controller serves its readiness."""
    port = _free_port() if probed and side.is_controller else 0
    probes = [f"--health-probe-bind-address=127.0.0.1:{port}"] if port else []
    compile_ours()
    began = asyncio.get_running_loop().time()
    # A session of its own: Ctrl-C reaches the bench alone, which then stops it.
    options = {"stdout": None if side.is_controller else subprocess.PIPE, "start_new_session": True}
    with module(*side.words, str(kubeconfig), *side.options, *probes, **options) as popen:
        yield Process(popen, port, began)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


# -- what a process takes


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


# -- processors


def usable() -> set[int]:
    """Return the processors that this process may use; none when the system cannot report them."""
    return os.sched_getaffinity(0) if sys.platform == "linux" else set()


def shared_out(processors: set[int]) -> tuple[set[int], set[int]] | None:
    """Return the processors of the hubs and those of the rest; None with fewer than two processors."""
    if len(processors) < 2:
        return None
    first = {min(processors)}
    return first, processors - first


@contextmanager
def of_their_own(pids: Iterable[int]) -> Iterator[None]:
    """Give these processes one processor, and this one and its children the others; undo it at the end.

    Otherwise a hub with a request waits for a processor, longer with more processes, and the wait would be
    measured.
    """
    before = usable()
    shares = shared_out(before)
    if shares is None:
        yield
        return
    try:
        for pid in pids:
            _tie(pid, shares[0])
        _tie(os.getpid(), shares[1])
        yield
    finally:
        _tie(os.getpid(), before)


def _tie(pid: int, processors: set[int]) -> None:
    """Set the affinity of a process's threads; threads that they start inherit it."""
    for thread in list(Path(f"/proc/{pid}/task").iterdir()):
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.sched_setaffinity(int(thread.name), processors)
