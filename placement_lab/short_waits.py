"""
Shorter waits of the controllers in this process: nobody watches a demo, or waits for a test, for an hour.

They are constants and no settings, because no hub needs other values.
"""

from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from placement_ac.config import policy


def short_waits(**others: float) -> AbstractContextManager[Any]:
    """Let controllers that run inside delete clusters, and write the order of the list, at once.

    `others`: more constants of `policy`, or other values of these. Unit: seconds.
    """
    constants: dict[str, Any] = {"RETENTION_SECONDS": 0.0, "REORDER_MARGIN": 0, "REORDER_SECONDS": 0.0}
    patched: AbstractContextManager[Any] = patch.multiple(policy, **constants | others)
    return patched
