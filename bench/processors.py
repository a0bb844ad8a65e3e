"""Assigns one processor to the embedded hubs, and the others to the rest of the measurement."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


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
    of_hubs, of_others = shares
    try:
        for pid in pids:
            _tie(pid, of_hubs)
        _tie(os.getpid(), of_others)
        yield
    finally:
        _tie(os.getpid(), before)


def _tie(pid: int, processors: set[int]) -> None:
    """Set the affinity of a process's threads; threads that they start inherit it."""
    for thread in list(Path(f"/proc/{pid}/task").iterdir()):
        with suppress(ProcessLookupError):  # it has ended
            os.sched_setaffinity(int(thread.name), processors)
