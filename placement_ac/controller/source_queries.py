"""
Asks workers a question in tasks of their own: each kubeconfig once at a time, for all keys.

There may be thousands of workers, so only some are asked at a time: those whose last answer was a problem
have few places of their own, as they may take long.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import Final, Generic, Protocol, TypeVar

from placement_ac.core.inputs.state import Key
from placement_ac.core.kubeconfig.source import CredentialSource


class Answer(Protocol):
    """The answer of a worker."""

    @property
    def problem(self) -> str:
        """Why it could not be asked; "": it could."""


A = TypeVar("A", bound=Answer)
Ask = Callable[[CredentialSource, datetime], Awaitable[A]]
"""Asks the worker of a CredentialSource, at that time; raises nothing."""

MAX_REMEMBERED: Final = 10_000
"""How many kubeconfigs are remembered."""
TOGETHER_SECONDS: Final = 0.25
"""Answers are taken in together while more are to come: one plan for all workers, not one for each."""
AT_ONCE: Final = {False: 64, True: 16}
"""How many workers are asked at a time: those that answered or are new (False), those with a problem."""


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
        self._asked_by: dict[CredentialSource, set[Key]] = {}
        """Whom to ask, or who is being asked → the keys that wait for the answer."""
        self._awaited: Counter[Key] = Counter()
        """Key → the number of answers that it waits for."""
        self._next: dict[bool, deque[CredentialSource]] = {has_problem: deque() for has_problem in AT_ONCE}
        """Whom to ask, in order; apart from those with a problem."""
        self._running: dict[bool, set[asyncio.Task[None]]] = {has_problem: set() for has_problem in AT_ONCE}

    @property
    def answers(self) -> dict[CredentialSource, A]:
        """The last answer of each worker."""
        return dict(self._answers)

    def start(self, key: Key, sources: Iterable[CredentialSource]) -> None:
        """Ask these workers for a key, unless they are being asked."""
        if self._ask is None:
            return
        for source in sources:
            if source not in self._asked_by:
                last = self._answers.get(source)
                self._next[bool(last and last.problem)].append(source)
            keys = self._asked_by.setdefault(source, set())
            if key not in keys:
                keys.add(key)
                self._awaited[key] += 1
        self._ask_next(self._ask)

    def cancel(self) -> list[asyncio.Task[None]]:
        """Cancel and return the running queries, and forget all answers."""
        tasks = [task for running in self._running.values() for task in running]
        for task in tasks:
            task.cancel()
        for has_problem in AT_ONCE:
            self._running[has_problem].clear()
            self._next[has_problem].clear()
        self._asked_by.clear()
        self._awaited.clear()
        self._answers.clear()
        return tasks

    def _ask_next(self, ask: Ask[A]) -> None:
        for has_problem, waiting in self._next.items():
            running = self._running[has_problem]
            while waiting and len(running) < AT_ONCE[has_problem]:
                query = self._query(waiting.popleft(), ask, running)
                running.add(asyncio.get_running_loop().create_task(query))

    async def _query(self, source: CredentialSource, ask: Ask[A], running: set[asyncio.Task[None]]) -> None:
        answer = await ask(source, self._clock())
        self._answers.pop(source, None)
        self._answers[source] = answer
        if len(self._answers) > MAX_REMEMBERED:
            del self._answers[next(iter(self._answers))]
        keys = self._asked_by.pop(source, set())
        self._awaited.subtract(keys)
        for key in keys:
            awaits_more = self._awaited[key] > 0
            if not awaits_more:
                del self._awaited[key]
            self._add_after(key, TOGETHER_SECONDS if awaits_more else 0.0)
        if task := asyncio.current_task():
            running.discard(task)
        self._ask_next(ask)
