"""The line with which a command that writes begins: which hub it writes to."""

from collections.abc import Sequence

from click.testing import Result

from tests.support import commands


def run_and_take_hub_line(words: Sequence[str], context: str = "placement-ac-hub") -> Result:
    """Run a command, see that its first line on stderr names the hub, and return its result without it."""
    done = commands.run(*words)
    line, _, rest = done.stderr.partition("\n")
    assert line.startswith("Hub: https://")
    assert line.endswith(f", context {context}")
    assert done.output.startswith(line), "it is not the first"
    done.stderr_bytes = rest.encode()
    done.output_bytes = done.output.removeprefix(f"{line}\n").encode()
    return done
