"""Questions to thousands of workers: how many at a time, and when a key hears of the answers."""

import asyncio
from datetime import datetime
from typing import NamedTuple

import pytest

from placement_ac.controller import source_queries
from placement_ac.controller.source_queries import TOGETHER_SECONDS, SourceQueries
from placement_ac.core.inputs.state import Key
from placement_ac.core.kubeconfig.source import CredentialSource
from tests.support.builders import NOW

ONE, OTHER = Key("placement", "one"), Key("placement", "other")


class Answer(NamedTuple):
    problem: str = ""


class Workers:
    """Answer when they are let; those whose name begins with `dead` with a problem."""

    def __init__(self) -> None:
        self.asked: dict[str, asyncio.Event] = {}
        self.requeued: list[tuple[Key, float]] = []
        self.queries = SourceQueries(
            self._ask, lambda: NOW, lambda key, after: self.requeued.append((key, after))
        )

    async def _ask(self, source: CredentialSource, _: datetime) -> Answer:
        self.asked[source.name] = asyncio.Event()
        await self.asked[source.name].wait()
        return Answer("gone" if source.name.startswith("dead") else "")

    async def start(self, key: Key, *names: str) -> None:
        self.queries.start(key, [CredentialSource("Secret", name) for name in names])
        await self.rest()

    async def answer(self, *names: str) -> None:
        for name in names:
            self.asked.pop(name).set()
            await self.rest()

    async def rest(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_queries, "AT_ONCE", {False: 3, True: 1})


@pytest.mark.usefixtures("few")
def test_workers_that_do_not_answer_delay_no_others() -> None:
    async def play() -> None:
        workers = Workers()
        await workers.start(ONE, *"abcd")
        assert [*workers.asked] == ["a", "b", "c"]
        await workers.answer("a")
        assert [*workers.asked] == ["b", "c", "d"]
        await workers.answer("b", "c", "d")
        dead = ["dead-1", "dead-2", "dead-3"]
        await workers.start(ONE, *dead)
        await workers.answer(*dead)
        await workers.start(ONE, *dead, *"efgh")
        assert {*workers.asked} == {"dead-1", "e", "f", "g"}
        assert len(workers.queries.cancel()) == 4
        await workers.start(ONE, "z")
        assert "z" in workers.asked

    asyncio.run(play())


@pytest.mark.usefixtures("few")
def test_a_key_is_planned_at_once_with_the_last_answer_that_it_waits_for() -> None:
    async def play() -> None:
        workers = Workers()
        await workers.start(ONE, *"abcd")
        await workers.start(OTHER, "a")
        await workers.start(OTHER, "a")
        await workers.answer("a")
        assert sorted(workers.requeued) == [(ONE, TOGETHER_SECONDS), (OTHER, 0.0)]
        workers.requeued.clear()
        await workers.answer("b", "c", "d")
        assert workers.requeued == [(ONE, TOGETHER_SECONDS), (ONE, TOGETHER_SECONDS), (ONE, 0.0)]
        assert {source.name for source in workers.queries.answers} == {*"abcd"}

    asyncio.run(play())
