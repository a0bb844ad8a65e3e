"""
Run stand-ins in a thread with its own event loop.

An error that ends a stand-in is raised by `stop`.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import CancelledError, Future
from pathlib import Path
from types import TracebackType
from typing import Self

from placement_ac.kube.login import Login
from placement_lab.standins.informer import StandIn

OCM_ACCESS_PROVIDER = "open-cluster-management"
"""The name of the access provider that OCM writes into ClusterProfiles."""

StandInFactory = Callable[[Login], StandIn]
"""Returns a stand-in for a Login, such as a stand-in's class."""


def _ocm(login: Login) -> StandIn:
    from placement_lab.standins.ocm import Scheduler  # noqa: PLC0415  # CEL takes 0.3 s to load

    return Scheduler(login)


def _kueue(login: Login) -> StandIn:
    from placement_lab.standins.kueue import MultiKueue  # noqa: PLC0415  # imported only if used

    # One of the samples' ClusterProfiles offers this access provider.
    return MultiKueue(login, cluster_profiles=True, access_providers=(OCM_ACCESS_PROVIDER,))


KNOWN: dict[str, StandInFactory] = {"ocm": _ocm, "kueue": _kueue}
"""The stand-ins by the names that `placement-ac hub --with` takes."""


class StandInThread:
    """Runs the stand-ins that `make` returns; `make` is called in their event loop."""

    def __init__(self, make: Callable[[], Iterable[StandIn]]) -> None:
        self._make = make
        self._loop: _LoopThread | None = None
        self._running: Future[None] | None = None
        self._synced: Future[None] = Future()

    def start(self, timeout: float = 10.0) -> None:
        """Start, and return when all stand-ins are synced, or after `timeout` seconds at the latest.

        Can be called only once.
        """
        self._loop = _LoopThread()
        self._running = self._loop.submit(self._run())
        self.wait_synced(timeout)

    def wait_synced(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds; return whether all stand-ins are synced."""
        try:
            self._synced.result(timeout)
        except (TimeoutError, CancelledError):
            return False
        return True

    def stop(self) -> None:
        """Stop all stand-ins and wait; raises the error that ended one of them. May be called twice."""
        if self._running is None or self._loop is None:
            return
        ended, self._running = self._running, None
        ended.cancel()
        try:
            ended.result()
        except CancelledError:
            pass
        finally:
            self._loop.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                stand_ins = tuple(self._make())
                for stand_in in stand_ins:
                    tasks.create_task(stand_in.run())
                for stand_in in stand_ins:
                    await stand_in.informer.synced()
                self._synced.set_result(None)
        finally:
            if not self._synced.done():
                self._synced.cancel()


class StandIns(StandInThread):
    """Runs stand-ins, given by name or factory, against one hub.

    `hub`: the path of a kubeconfig, or a function that returns a Login. Raises LoginFailed, and ValueError
    for a name that is not in KNOWN.
    """

    def __init__(self, hub: Path | Callable[[], Login], which: Iterable[str | StandInFactory]) -> None:
        login, makers = _login_of(hub), [_factory_of(stand_in) for stand_in in which]
        super().__init__(lambda: [make(login()) for make in makers])


class _LoopThread:
    """An event loop in its own thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="stand-ins", daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[object, object, None]) -> Future[None]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Wait until cancelled tasks have closed their connections, then end the thread."""
        self.submit(self._settle()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _settle(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_default_executor()


def _login_of(hub: Path | Callable[[], Login]) -> Callable[[], Login]:
    if isinstance(hub, Path):
        login = Login(hub)
        return lambda: login
    return hub


def _factory_of(stand_in: str | StandInFactory) -> StandInFactory:
    if not isinstance(stand_in, str):
        return stand_in
    if stand_in not in KNOWN:
        raise ValueError(f"no stand-in is called {stand_in!r}: known are {', '.join(sorted(KNOWN))}")
    return KNOWN[stand_in]
