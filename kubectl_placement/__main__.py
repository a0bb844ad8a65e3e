"""The entry points of `kubectl placement`, and of its completion."""

import sys
from importlib import import_module

from placement_ac.__main__ import dump_nothing, show_controls


def plugin() -> None:
    """Run the command that is asked of `kubectl placement`."""
    dump_nothing()
    show_controls()
    cli = import_module("kubectl_placement.cli.main")
    cli.plugin(prog_name=cli.PLUGIN)


def complete() -> None:
    """Print the completions of the words after `kubectl placement`."""
    dump_nothing()
    print(import_module("kubectl_placement.cli.completion").complete(sys.argv[1:]))  # noqa: T201  # for the shell


if __name__ == "__main__":
    plugin()
