"""Imports of libraries less what those take along, and nobody here asks for."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Let imports of these packages fail, as if they were not installed; what is imported already stays."""
    hidden = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None: as importlib has it
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
