"""Which processors the embedded hubs work on: one, and all else that is measured on the others."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def usable() -> set[int]:
    """Return the processors this process may use; none where the system does not tell."""
    return os.sched_getaffinity(0) if sys.platform == "linux" else set()


def shared_out(processors: set[int]) -> tuple[set[int], set[int]] | None:
    """Return the hubs' share and that of the rest; None: it takes two processors to share them out."""
    if len(processors) < 2:
        return None
    first = {min(processors)}
    return first, processors - first


@contextmanager
def of_their_own(pids: Iterable[int]) -> Iterator[None]:
    """Give these processes one processor, and this one, with what it starts, the others; back at the end.

    Left to the system, a hub waits for a processor while it is asked for something, the longer the more
    processes there are besides; that would be measured.
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
    """Tie the threads of a process; those that they start take after them."""
    for thread in list(Path(f"/proc/{pid}/task").iterdir()):
        with suppress(ProcessLookupError):  # it has ended
            os.sched_setaffinity(int(thread.name), processors)
