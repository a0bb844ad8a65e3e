"""
Count what one changed PlacementDecision runs through: files and calls of the controller. `make bench-trace`.

An embedded hub with a scene, and the controller as a process whose threads count their calls of functions in
`placement_ac`, between two signals: from before the PATCH until half a second after the list was right. So a
task that comes by then (a keepalive, a metric) counts as well. Comprehensions and generators that go on are
calls for Python 3.11.

Prints a table of the files, and last a line of JSON: `{"off": {"files": 51, "calls": 1200}, "dispatcher":
{…}}`.
"""

import asyncio
import json
import signal
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final

import click

import placement_ac
from bench.profile import BEGIN, END, play
from bench.report import markdown_table
from bench.scene import Scene

OURS: Final = str(Path(placement_ac.__file__).parent)
SCENE: Final = Scene(checks=2, clusters=40)
OPTIONS: Final = {"off": (), "dispatcher": ("--dispatcher=true", "--unlist-after=0")}
"""With `--unlist-after`, clusters that stand by would stay listed, and the list would not change."""
QUIET_SECONDS: Final = 0.5


def inside(file: Path, words: Sequence[str]) -> None:
    """Run the controller, and count its calls between the two signals."""
    from placement_ac.__main__ import main as controller  # noqa: PLC0415  # nobody else needs it

    calls: Counter[str] = Counter()
    counting = threading.Event()

    def count(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and counting.is_set() and (name := frame.f_code.co_filename).startswith(OURS):
            calls[str(Path(name).relative_to(OURS))] += 1

    def end(*_: object) -> None:
        counting.clear()
        half = file.with_suffix(".half")
        half.write_text(json.dumps(calls))
        half.replace(file)

    signal.signal(BEGIN, lambda *_: counting.set())
    signal.signal(END, end)
    threading.setprofile(count)  # the event loop has a thread of its own
    sys.argv = ["placement-ac", *words]
    controller()


def trace(*options: str) -> dict[str, int]:
    """Return file → calls while one decision changes, with these options of the controller."""
    with tempfile.TemporaryDirectory() as folder:
        found = play(SCENE, 1, Path(folder), module="bench.trace", options=options, quiet=QUIET_SECONDS)
        calls: dict[str, int] = json.loads(asyncio.run(found).read_text())
    return calls


@click.command()
def main() -> None:
    """Print the files and the calls of one change, all options off and with the dispatcher."""
    traces = {name: trace(*options) for name, options in OPTIONS.items()}
    files = sorted(set().union(*traces.values()))
    rows = [[file, *(str(one.get(file, "")) for one in traces.values())] for file in files]
    click.echo("\n".join(markdown_table(["file", *traces], rows)))
    click.echo(
        json.dumps({name: {"files": len(one), "calls": sum(one.values())} for name, one in traces.items()})
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(Path(sys.argv[2]), sys.argv[3:])
    else:
        main()
