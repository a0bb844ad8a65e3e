"""
What a story is played on: the embedded hub, the stand-ins and the controller, each in a thread of its own.

The controller is the real one and speaks to the hub over HTTP, like everybody here.
"""

import asyncio
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from placement_ac.hub import Hub
from placement_ac.operator import Operator
from placement_ac.settings import Settings
from placement_ac.sim.runner import StandIns


class ControllerThread:
    """The controller in a thread of its own; `settings` as for `placement-ac run`."""

    def __init__(self, **settings: Any) -> None:
        self._settings = Settings(**settings)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="controller", daemon=True)
        self.failure: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        self.stop()
        if self.failure and error is None:
            raise self.failure

    def stop(self) -> None:
        """Stop it as SIGTERM would, and wait for it."""
        if self._loop and self._stop and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._operate())
        except BaseException as error:  # carried over to the thread that asked for it
            self.failure = error
        finally:
            self._started.set()

    async def _operate(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        operator = Operator(self._settings)
        self._started.set()
        await operator.run(self._stop)


class Stage:
    """All of it, up as long as the `with` lasts. `kubeconfig` leads to the hub."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self.hub: Hub
        self.kubeconfig: Path

    def __enter__(self) -> Self:
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="placement-ac-"))
        self.kubeconfig = Path(folder) / "kubeconfig"
        self.hub = self._stack.enter_context(Hub())
        self.hub.write_kubeconfig(self.kubeconfig)
        self._stack.enter_context(StandIns(self.kubeconfig, ("ocm", "kueue")))
        self._stack.enter_context(ControllerThread(kubeconfig=self.kubeconfig))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
