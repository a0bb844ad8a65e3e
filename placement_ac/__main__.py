"""
The entry points of the command line.

No core is dumped if one crashes: there may be tokens in it. Until `run` has its own handlers, a signal ends
the process as it does later: with a line and exit code 0.
"""

import os
import resource
import signal
import sys
from contextlib import suppress
from importlib import import_module


def main() -> None:
    """Run the command that is asked for."""
    _dump_nothing()
    if sys.argv[1:2] == ["run"]:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _stop_before_start)
    _show_controls()
    import_module("placement_ac.cli.main").main()


def plugin() -> None:
    """Run the command that is asked of `kubectl placement`."""
    _dump_nothing()
    _show_controls()
    cli = import_module("placement_ac.cli.main")
    cli.plugin(prog_name=cli.PLUGIN)


def complete() -> None:
    """Print the completions of the words after `kubectl placement`."""
    _dump_nothing()
    print(import_module("placement_ac.cli.completion").complete(sys.argv[1:]))  # noqa: T201  # for the shell


def _stop_before_start(number: int, _: object) -> None:
    """End the process at once; an exception could be caught by whatever is being imported."""
    with suppress(OSError):  # stderr may be closed
        os.write(
            2, f"placement-ac: {signal.Signals(number).name} before the controller has started\n".encode()
        )
    os._exit(0)


def _show_controls() -> None:
    """Show control characters in what this process prints, tracebacks too."""
    import_module("placement_ac.cli.terminal").show_controls()


def _dump_nothing() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
