"""
Writes to Workloads that may hang: one of a team must not keep a Placement's other Workloads waiting.

A write that hangs goes on in its own task, and its Workload is left alone until it has ended.
"""

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Sequence
from functools import partial
from typing import Final

from placement_ac.controller.fair_slots import POSTPONED_SECONDS
from placement_ac.core.api.errors import Postponed
from placement_ac.core.plan.diff import Nominate, SetCheckStates

WorkloadAction = SetCheckStates | Nominate
Write = Callable[[WorkloadAction, Callable[[], None]], Coroutine[object, object, None]]
"""Carries out an action, and calls the function when that hangs."""
OnLateEnd = Callable[[WorkloadAction, BaseException | None], None]
"""Called when a write that hung has ended, with its error."""

HANGS: Final = Postponed("the write to the Workload hangs", retry_after=POSTPONED_SECONDS)


class WorkloadWrites:
    """The writes to Workloads that are under way."""

    def __init__(self) -> None:
        self._hanging: dict[str, tuple[Hashable, asyncio.Task[None]]] = {}
        """Uid of a Workload → the key, and the write."""

    def hang(self, key: Hashable) -> bool:
        """Whether writes of that key hang."""
        return any(of == key for of, _ in self._hanging.values())

    async def run(
        self, key: Hashable, actions: Sequence[WorkloadAction], write: Write, on_late_end: OnLateEnd
    ) -> list[BaseException | None]:
        """Carry out all actions until each has ended or hangs; return the error of each, or None."""
        started = [self._start(key, action, write, on_late_end) for action in actions]
        try:
            return [await outcome for _, outcome in started]
        except asyncio.CancelledError:
            for task, _ in started:
                if task and not self._is_hanging(task):
                    task.cancel()
            raise

    def cancel(self) -> list[asyncio.Task[None]]:
        """Cancel what hangs, and return the tasks."""
        tasks = [task for _, task in self._hanging.values()]
        for task in tasks:
            task.cancel()
        return tasks

    def _is_hanging(self, task: asyncio.Task[None]) -> bool:
        return any(task is hanging for _, hanging in self._hanging.values())

    def _start(
        self, key: Hashable, action: WorkloadAction, write: Write, on_late_end: OnLateEnd
    ) -> tuple[asyncio.Task[None] | None, asyncio.Future[BaseException | None]]:
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[BaseException | None] = loop.create_future()
        uid = action.workload.meta.uid
        if uid in self._hanging:
            outcome.set_result(HANGS)
            return None, outcome

        def hangs() -> None:
            self._hanging[uid] = key, task
            if not outcome.done():
                outcome.set_result(HANGS)

        task: asyncio.Task[None] = loop.create_task(write(action, hangs))
        task.add_done_callback(partial(self._ended, action, outcome, on_late_end))
        return task, outcome

    def _ended(
        self,
        action: WorkloadAction,
        outcome: asyncio.Future[BaseException | None],
        on_late_end: OnLateEnd,
        task: asyncio.Task[None],
    ) -> None:
        late = self._is_hanging(task)
        if late:
            del self._hanging[action.workload.meta.uid]
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if not outcome.done():
            outcome.set_result(error)
        elif late and not task.cancelled():
            on_late_end(action, error)
