"""
Run chosen stand-ins in one thread with an event loop of its own, beside whatever the caller does.

Holds no logic of any stand-in. What ends a stand-in by mistake is raised again by `stop`.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import CancelledError, Future
from pathlib import Path
from types import TracebackType
from typing import Self

from placement_ac.kube.login import Login
from placement_ac.lab.standins.informer import StandIn

OCM_ACCESS_PROVIDER = "open-cluster-management"
"""The access provider that OCM writes into ClusterProfiles, by name."""

StandInFactory = Callable[[Login], StandIn]
"""Makes a stand-in that goes in with a Login; a stand-in's class is one."""


def _ocm(login: Login) -> StandIn:
    from placement_ac.lab.standins.ocm import Scheduler  # noqa: PLC0415  # CEL takes 0.3 s to load

    return Scheduler(login)


def _kueue(login: Login) -> StandIn:
    from placement_ac.lab.standins.kueue import MultiKueue  # noqa: PLC0415  # like its neighbour: only when asked for

    # As the samples' fleet needs it: the ClusterProfile of one of its clusters offers this access provider.
    return MultiKueue(login, cluster_profiles=True, access_providers=(OCM_ACCESS_PROVIDER,))


KNOWN: dict[str, StandInFactory] = {"ocm": _ocm, "kueue": _kueue}
"""The stand-ins by the names that `placement-ac hub --with` takes."""


class StandInThread:
    """The stand-ins that `make` gives, whichever hubs they are for; it is called in their event loop."""

    def __init__(self, make: Callable[[], Iterable[StandIn]]) -> None:
        self._make = make
        self._loop: _LoopThread | None = None
        self._running: Future[None] | None = None
        self._synced: Future[None] = Future()

    def start(self, timeout: float = 10.0) -> None:
        """Start, and return when all have listed what is there, or after `timeout` seconds (they go on).

        Once only: make another one to start again.
        """
        self._loop = _LoopThread()
        self._running = self._loop.submit(self._run())
        self.wait_synced(timeout)

    def wait_synced(self, timeout: float) -> bool:
        """Return whether every stand-in has listed what is there, after `timeout` seconds at most."""
        try:
            self._synced.result(timeout)
        except (TimeoutError, CancelledError):
            return False
        return True

    def stop(self) -> None:
        """Stop them all and wait for it; raises what ended one of them. A second time does nothing."""
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
    """The stand-ins that `which` names (or makes), against one hub.

    `hub` is a kubeconfig's path, or what gives a Login. Raises LoginFailed, and ValueError
    for a name that is not in KNOWN.
    """

    def __init__(self, hub: Path | Callable[[], Login], which: Iterable[str | StandInFactory]) -> None:
        login, makers = _login_of(hub), [_factory_of(one) for one in which]
        super().__init__(lambda: [make(login()) for make in makers])


class _LoopThread:
    """An event loop that runs in a thread of its own until it is closed."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="stand-ins", daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[object, object, None]) -> Future[None]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Wait for what was cancelled to have closed its connections, then end the thread."""
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


def _factory_of(one: str | StandInFactory) -> StandInFactory:
    if not isinstance(one, str):
        return one
    if one not in KNOWN:
        raise ValueError(f"no stand-in is called {one!r}: known are {', '.join(sorted(KNOWN))}")
    return KNOWN[one]
