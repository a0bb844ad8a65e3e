"""
Asks workers a question in tasks of their own: each kubeconfig once at a time, for all keys.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import Final, Generic, TypeVar

from placement_ac.core.inputs.state import Key
from placement_ac.core.kubeconfig.source import CredentialSource

A = TypeVar("A")
Ask = Callable[[CredentialSource, datetime], Awaitable[A]]
"""Asks the worker of a CredentialSource, at that time; raises nothing."""

MAX_REMEMBERED: Final = 10_000
"""How many kubeconfigs are remembered."""
TOGETHER_SECONDS: Final = 0.25
"""Answers are taken in together while more are to come: one plan for all workers, not one for each."""


class SourceQueries(Generic[A]):
    """The running queries and the last answers; an answer requeues all keys that asked.

    `ask` None: no worker is asked. `clock` returns the time of day (UTC).
    """

    def __init__(
        self,
        ask: Ask[A] | None,
        clock: Callable[[], datetime],
        add_after: Callable[[Key, float], None],
    ) -> None:
        self._ask = ask
        self._clock = clock
        self._add_after = add_after
        self._answers: dict[CredentialSource, A] = {}
        """The oldest first."""
        self._asking: dict[CredentialSource, tuple[asyncio.Task[None], set[Key]]] = {}

    @property
    def answers(self) -> dict[CredentialSource, A]:
        """The last answer of each worker."""
        return dict(self._answers)

    def start(self, key: Key, sources: Iterable[CredentialSource]) -> None:
        """Ask these workers for a key, unless they are being asked."""
        if self._ask is None:
            return
        for source in sources:
            if source in self._asking:
                self._asking[source][1].add(key)
                continue
            task = asyncio.get_running_loop().create_task(self._query(source, self._ask))
            self._asking[source] = task, {key}

    def cancel(self) -> list[asyncio.Task[None]]:
        """Cancel and return the running queries, and forget all answers."""
        tasks = [task for task, _ in self._asking.values()]
        for task in tasks:
            task.cancel()
        self._asking.clear()
        self._answers.clear()
        return tasks

    async def _query(self, source: CredentialSource, ask: Ask[A]) -> None:
        answer = await ask(source, self._clock())
        self._answers.pop(source, None)
        self._answers[source] = answer
        if len(self._answers) > MAX_REMEMBERED:
            del self._answers[next(iter(self._answers))]
        _, keys = self._asking.pop(source, (None, set[Key]()))
        waiting = set[Key]().union(*[others for _, others in self._asking.values()])
        for key in keys:
            self._add_after(key, TOGETHER_SECONDS if key in waiting else 0.0)
