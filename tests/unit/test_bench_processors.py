"""Who works on which processors while the bench measures: the hubs on one, all else on the others."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.measure import Where
from bench.processors import apart, mine, shared_out

THREADS = (
    "import sys, threading; threading.Thread(target=sys.stdin.read).start(); print('up', flush=True); input()"
)
MINE = mine()


@pytest.fixture
def two_threads() -> Iterator[int]:
    """A process that has started a thread: its number."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", THREADS], stdin=pipe, stdout=pipe) as process:
        assert process.stdout
        process.stdout.readline()
        yield process.pid
        process.kill()


def threads(pid: int) -> list[set[int]]:
    return [os.sched_getaffinity(int(task.name)) for task in Path(f"/proc/{pid}/task").iterdir()]


def of_a_child() -> set[int]:
    words = "import os; print(*os.sched_getaffinity(0))"
    printed = subprocess.run([sys.executable, "-c", words], capture_output=True, check=True).stdout
    return {int(word) for word in printed.split()}


@pytest.mark.parametrize(
    ("processors", "shares"),
    [
        pytest.param(set(), None, id="the system does not tell"),
        pytest.param({3}, None, id="one alone"),
        pytest.param({0, 1}, ({0}, {1}), id="one for each"),
        pytest.param({7, 5, 6}, ({5}, {6, 7}), id="never more than one for the hubs"),
    ],
)
def test_how_processors_are_shared_out(
    processors: set[int], shares: tuple[set[int], set[int]] | None
) -> None:
    assert shared_out(processors) == shares


@pytest.mark.skipif(len(MINE) < 2, reason="it takes two processors to share them out")
def test_hubs_and_the_rest_are_apart_until_the_end(two_threads: int) -> None:
    with apart([two_threads]):
        assert threads(two_threads) == [{min(MINE)}] * 2
        assert mine() == of_a_child() == MINE - {min(MINE)}
    assert mine() == of_a_child() == MINE


@pytest.mark.skipif(len(MINE) < 2, reason="it takes two processors to share them out")
def test_a_bench_that_fails_has_all_processors_again(two_threads: int) -> None:
    with pytest.raises(ValueError, match="of the bench"), apart([two_threads]):
        raise ValueError("of the bench")
    assert mine() == MINE


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        pytest.param(Where(), len(MINE) > 1, id="embedded hubs"),
        pytest.param(Where(apart=False), False, id="together, as was asked for"),
        pytest.param(Where([Path("kubeconfig")]), False, id="hubs of others work where they like"),
    ],
)
def test_whether_hubs_have_a_processor_of_their_own(where: Where, expected: bool) -> None:
    assert where.has_own_processor is expected
