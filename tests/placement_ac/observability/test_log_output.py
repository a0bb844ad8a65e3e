"""Stderr may be a pipe that nobody reads, or that is closed: the controller goes on."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

import pytest

from placement_ac.observability.log_output import WAIT_SECONDS, LogOutput
from placement_lab.hub import Hub
from tests.support.driver import Driver, eventually

SMALL = 4096
LINE = "x" * 100
MORE = 5
"""Checks: the lines of one are more than a small pipe takes."""


@contextmanager
def pipe(size: int = SMALL) -> Iterator[tuple[FileIO, FileIO]]:
    """The two ends of a pipe as files, which are closed once: their numbers are soon those of other files."""
    reader, writer = os.pipe()
    with FileIO(reader, "r") as read, FileIO(writer, "w") as write:
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, size)
        yield read, write


@pytest.mark.parametrize("blocks", [True, False])
def test_a_full_pipe_loses_lines_and_holds_nobody(blocks: bool) -> None:
    with pipe() as (reader, writer), os.fdopen(os.dup(writer.fileno()), "w") as file:
        os.set_blocking(writer.fileno(), blocks)
        output = LogOutput(file)
        began = time.monotonic()
        taken = [output.write(LINE) for _ in range(1000)]
        assert time.monotonic() - began < 20 * WAIT_SECONDS
        assert 0 < sum(taken) < 50
        assert output.lost == 1000 - sum(taken)
        reader.read(SMALL)
        assert output.write("again")


def test_a_closed_pipe_and_a_closed_file_are_no_failure() -> None:
    with pipe() as (reader, writer):
        file = os.fdopen(os.dup(writer.fileno()), "w")
        output = LogOutput(file)
        reader.close()
        assert not output.write(LINE)
        file.close()
        assert not output.write(LINE)
        assert output.lost == 2


def test_a_long_line_is_written_whole(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as file:
        assert LogOutput(file).write("ä" * 5000)
    assert (tmp_path / "log").read_text() == "ä" * 5000 + "\n"


def test_the_controller_goes_on(hub: Hub, admin: Driver, tmp_path: Path) -> None:
    """While the pipe is full, and when it is closed."""

    def ask_for(name: str) -> None:
        admin.check(name)
        admin.placement(name)
        admin.decide(name, "a")

    admin.check("p")
    admin.select("p", "a")
    hub.write_kubeconfig(tmp_path / "kubeconfig")
    words = ["run", "--kubeconfig", str(tmp_path / "kubeconfig"), "--log-level=debug", "--log-format=json"]
    with pipe() as (reader, writer):
        run = subprocess.Popen([sys.executable, "-m", "placement_ac", *words], stderr=writer)
        try:
            eventually(lambda: admin.reason("p"), "Active", seconds=60)
            for number in range(MORE):
                ask_for(f"q{number}")
            eventually(lambda: admin.reason(f"q{MORE - 1}"), "Active", seconds=60)
            assert json.loads((reader.read(SMALL) or b"").partition(b"\n")[0])["level"]
            reader.close()
            ask_for("last")
            eventually(lambda: admin.reason("last"), "Active", seconds=60)
            run.send_signal(signal.SIGTERM)
            assert run.wait(60) == 0
        finally:
            run.kill()
            run.wait()


def test_the_controller_starts_with_closed_streams(hub: Hub, admin: Driver, tmp_path: Path) -> None:
    """It ended with exit code 1 at its first line."""
    admin.check("p")
    admin.select("p", "a")
    hub.write_kubeconfig(tmp_path / "kubeconfig")
    words = ["placement_ac", "run", "--kubeconfig", str(tmp_path / "kubeconfig")]
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-m", *words]
    run = subprocess.Popen(closed)
    try:
        eventually(lambda: admin.reason("p"), "Active", seconds=60)
        run.send_signal(signal.SIGTERM)
        assert run.wait(60) == 0
    finally:
        run.kill()
        run.wait()
