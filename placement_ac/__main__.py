"""
The entry points of the command line.

No core is dumped if one crashes: there may be tokens in it.
"""

import resource
import sys
from importlib import import_module


def main() -> None:
    """Run the command that is asked for."""
    _dump_nothing()
    import_module("placement_ac.cli.main").main()


def plugin() -> None:
    """Run the command that is asked of `kubectl placement`."""
    _dump_nothing()
    cli = import_module("placement_ac.cli.main")
    cli.plugin(prog_name=cli.PLUGIN)


def complete() -> None:
    """Print the completions of the words after `kubectl placement`."""
    _dump_nothing()
    print(import_module("placement_ac.cli.completion").complete(sys.argv[1:]))  # noqa: T201  # for the shell


def _dump_nothing() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
