"""The processors during a measurement: one for the hubs, the others for all other processes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from bench.processes import of_their_own, shared_out, usable

THREADS = (
    "import sys, threading; threading.Thread(target=sys.stdin.read).start(); print('up', flush=True); input()"
)
ALL = usable()
two_processors = pytest.mark.skipif(len(ALL) < 2, reason="it takes two processors to share them out")


@pytest.fixture
def two_threads() -> Iterator[int]:
    """The pid of a process with a second thread."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", THREADS], stdin=pipe, stdout=pipe) as process:
        assert process.stdout
        process.stdout.readline()
        yield process.pid
        process.kill()


@pytest.fixture
def one_thread_more() -> Iterator[None]:
    """A second thread of this process."""
    end = Event()
    thread = Thread(target=end.wait)
    thread.start()
    yield
    end.set()
    thread.join()


def of_threads(pid: int) -> list[set[int]]:
    return [os.sched_getaffinity(int(task.name)) for task in Path(f"/proc/{pid}/task").iterdir()]


def of_a_child() -> set[int]:
    words = "import os; print(*os.sched_getaffinity(0))"
    printed = subprocess.run([sys.executable, "-c", words], capture_output=True, check=True).stdout
    return {int(word) for word in printed.split()}


@pytest.mark.parametrize(
    ("processors", "shares"),
    [
        pytest.param(set(), None, id="the system reports none"),
        pytest.param({3}, None, id="one alone"),
        pytest.param({0, 1}, ({0}, {1}), id="one for each"),
        pytest.param({7, 5, 6}, ({5}, {6, 7}), id="never more than one for the hubs"),
    ],
)
def test_how_processors_are_shared_out(
    processors: set[int], shares: tuple[set[int], set[int]] | None
) -> None:
    assert shared_out(processors) == shares


@two_processors
@pytest.mark.usefixtures("one_thread_more")
def test_hubs_and_the_rest_are_apart_until_the_end(two_threads: int) -> None:
    others = ALL - {min(ALL)}
    with of_their_own([two_threads]):
        assert of_threads(two_threads) == [{min(ALL)}] * 2
        here = of_threads(os.getpid())
        assert len(here) > 1
        assert [*here, of_a_child()] == [others] * (len(here) + 1)
    assert all(one == ALL for one in [*of_threads(os.getpid()), of_a_child()])


@two_processors
def test_a_bench_that_fails_has_all_processors_again(two_threads: int) -> None:
    with pytest.raises(ValueError, match="of the bench"), of_their_own([two_threads]):
        raise ValueError("of the bench")
    assert usable() == ALL
