"""
The entry point of the command line.

Until `run` has its own handlers, a signal ends
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
    open_standard_streams()
    dump_nothing()
    if sys.argv[1:2] == ["run"]:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _stop_before_start)
    show_controls()
    import_module("placement_ac.cli.main").main()


def _stop_before_start(number: int, _: object) -> None:
    """End the process at once; an exception could be caught by whatever is being imported."""
    with suppress(OSError):  # stderr may be closed
        os.write(
            2, f"placement-ac: {signal.Signals(number).name} before the controller has started\n".encode()
        )
    os._exit(0)


def show_controls() -> None:
    """Show control characters in what this process prints, tracebacks too."""
    import_module("placement_ac.cli.terminal").show_controls()


def open_standard_streams() -> None:
    """Open those that were closed when this process began, on /dev/null.

    Else what it opens next gets their numbers, and Python has no object to write to.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            with suppress(OSError):
                os.fstat(number)
                continue
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def dump_nothing() -> None:
    """Dump no core if this process crashes: there may be tokens in it."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
