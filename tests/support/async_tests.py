"""
Tests that are `async def`: each runs on an event loop of its own, fixtures enter what lives on that loop.

With the mark `virtual_time`, the loop's clock jumps ahead wherever it would wait: a sleep of an hour is over
at once, and the loop's time says that an hour has passed. That is for code that waits for timers alone: a
socket or another process takes real time, of which the jumping clock knows nothing.
"""

import asyncio
import inspect
import selectors
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
Enter = Callable[[AbstractAsyncContextManager[T]], T]


class _NoWaiting(selectors.DefaultSelector):  # type: ignore[valid-type,misc]  # a type by platform
    """Does not wait, but adds up how long it should have."""

    waited = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout and timeout > 0:
            self.waited += timeout
        return super().select(0)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps ahead instead of waiting."""

    def __init__(self) -> None:
        self._no_waiting = _NoWaiting()
        super().__init__(self._no_waiting)

    def time(self) -> float:
        return self._no_waiting.waited


def loop_time() -> float:
    """The time of the running loop; with `virtual_time`, that since its start."""
    return asyncio.get_running_loop().time()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "virtual_time: the clock of the event loop jumps ahead")


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> None:
    if inspect.iscoroutinefunction(obj):
        pytest.mark.usefixtures("runner")(obj)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    pyfuncitem.funcargs["runner"].run(pyfuncitem.obj(**arguments))
    return True


@pytest.fixture
def runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    """Runs coroutines on the event loop of the test."""
    is_virtual = request.node.get_closest_marker("virtual_time") is not None
    with asyncio.Runner(loop_factory=VirtualTimeLoop if is_virtual else None) as runner:
        yield runner


@pytest.fixture
def enter(runner: asyncio.Runner) -> Iterator[Enter[Any]]:
    """Enters async context managers on the event loop of the test, and leaves them after it."""
    entered = AsyncExitStack()
    yield lambda context: runner.run(entered.enter_async_context(context))
    runner.run(entered.aclose())
