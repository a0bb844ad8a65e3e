"""
The entry points of the command line.

Core dumps are off, since they may contain tokens. The collector is frozen at the end: after `status` on a
large hub, its last run takes 0.2 s.
"""

import gc
import resource
import sys
from importlib import import_module


def main() -> None:
    """Run the command that is asked for."""
    _dump_nothing()
    try:
        import_module("placement_ac.cli.main").main()
    finally:
        gc.freeze()


def plugin() -> None:
    """Run the command that is asked of `kubectl placement`."""
    _dump_nothing()
    cli = import_module("placement_ac.cli.main")
    try:
        cli.plugin(prog_name=cli.PLUGIN)
    finally:
        gc.freeze()


def complete() -> None:
    """Print the completions of the words after `kubectl placement`."""
    _dump_nothing()
    print(import_module("placement_ac.cli.completion").complete(sys.argv[1:]))  # noqa: T201  # for the shell


def _dump_nothing() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
