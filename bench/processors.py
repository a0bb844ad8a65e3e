"""Which processors the embedded hubs work on: one, and all else that is measured on the others."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


def shared_out(processors: set[int]) -> tuple[set[int], set[int]] | None:
    """Return the hubs' share and that of the rest; None: it takes two processors to share them out."""
    if len(processors) < 2:
        return None
    first = {min(processors)}
    return first, processors - first


def mine() -> set[int]:
    """Return the processors this process may use; none where the system does not tell."""
    return os.sched_getaffinity(0) if sys.platform == "linux" else set()


@contextmanager
def apart(hubs: Iterable[int]) -> Iterator[None]:
    """Give these processes one processor, and this one, with what it starts, the others; back at the end.

    An API server has processors of its own. Left to the system, a hub has to wait for one while it is
    asked for something, the longer the more processes there are besides; that would be measured.
    """
    before = mine()
    if (shares := shared_out(before)) is None:
        yield
        return
    of_hubs, of_others = shares
    for pid in hubs:
        _tie(pid, of_hubs)
    _tie(os.getpid(), of_others)
    try:
        yield
    finally:
        _tie(os.getpid(), before)


def _tie(pid: int, processors: set[int]) -> None:
    for thread in Path(f"/proc/{pid}/task").iterdir():  # those that they start take after them
        os.sched_setaffinity(int(thread.name), processors)
