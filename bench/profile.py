"""
Profile the controller while decisions change. `make bench-profile`: cProfile in the controller's process.

An embedded hub with a scene, and the controller as a process in which signals start and stop the profiler:
its start is excluded. A profiler slows down Python code, but not C code: read the shares, not the times.
"""

import asyncio
import cProfile
import os
import pstats
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from bench.driver import latency, staged
from bench.processes import CONTROLLER, embedded
from bench.scene import CHANGES, Scene, scene_of

BEGIN: Final = signal.SIGUSR1
END: Final = signal.SIGUSR2
SHOWN: Final = 30
"""The number of printed functions."""


async def play(
    scene: Scene,
    changes: int,
    folder: Path,
    *,
    module: str = "bench.profile",
    options: Sequence[str] = (),
    quiet: float = 0.0,
) -> Path:
    """Change decisions, and return the file of the profile, or of what `module` writes between the signals.

    `options`: of the controller; `quiet`: seconds that count after the last change.
    """
    found = folder / "profile"
    words = (module, "--inside", str(found), *CONTROLLER.words[1:])
    side = replace(CONTROLLER, words=words, options=tuple(options))
    with embedded(folder / "kubeconfig", scene) as hub:
        async with staged(side, hub, scene) as stage:
            with stage.running() as process:
                await stage.until_right()
                await stage.change_all(turn=1)
                await stage.rest()
                os.kill(process.pid, BEGIN)
                await latency({side.name: stage}, changes, 2)
                await asyncio.sleep(quiet)
                os.kill(process.pid, END)
                while not found.exists():
                    process.check()
                    await asyncio.sleep(0.1)
    return found


def inside(file: Path, words: Sequence[str]) -> None:
    """Run the controller, with its event loop under the profiler between the two signals."""
    from placement_ac.__main__ import main as controller  # noqa: PLC0415  # nobody else needs it
    from placement_ac.controller.manager import Manager  # noqa: PLC0415

    profiler, whole = cProfile.Profile(), Manager.run
    loops: list[asyncio.AbstractEventLoop] = []

    def end() -> None:
        profiler.disable()
        half = file.with_suffix(".half")
        profiler.dump_stats(half)
        half.replace(file)

    async def run(self: Manager, stop: asyncio.Event) -> None:
        loops.append(asyncio.get_running_loop())  # in its own thread; this one receives the signals
        await whole(self, stop)

    signal.signal(BEGIN, lambda *_: loops[0].call_soon_threadsafe(profiler.enable))
    signal.signal(END, lambda *_: loops[0].call_soon_threadsafe(end))
    Manager.run = run  # type: ignore[method-assign]
    sys.argv = ["placement-ac", *words]
    controller()


@click.command(context_settings={"show_default": True})
@click.option("--checks", type=click.IntRange(1), default=200)
@click.option("--clusters", type=click.IntRange(11), default=40)
@click.option("--changes", type=click.IntRange(2), default=400, help="Single changes.")
@click.option("--kind", type=click.Choice(list(CHANGES)), default="swap", help="The kind of change.")
@click.option("--sort", type=click.Choice(["tottime", "cumtime"]), default="tottime")
def main(checks: int, clusters: int, changes: int, kind: str, sort: str) -> None:
    """Print a profile of the controller while decisions change."""
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(play(scene_of(kind, checks, clusters), changes, Path(folder)))
        pstats.Stats(str(found)).strip_dirs().sort_stats(sort).print_stats(SHOWN)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(Path(sys.argv[2]), sys.argv[3:])
    else:
        main()
