"""What takes too long is ended, as with `asyncio.timeout`, and nothing else is; few timers are set for it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import aiohttp
import pytest
from aiohttp.base_protocol import BaseProtocol

from placement_ac.kube.timeouts import Deadline, Deadlines, Silence
from tests.controller.test_workqueue import now, run

Story = Callable[[Deadlines], Coroutine[Any, Any, None]]


async def hang() -> None:
    await asyncio.Event().wait()


async def within(deadlines: Deadlines, seconds: float, work: Callable[[], Awaitable[object]] = hang) -> str:
    """Return how it ended."""
    try:
        with Deadline(deadlines, seconds):
            await work()
    except TimeoutError as error:
        return str(error)
    return "done"


def timers() -> int:
    """How many are set, or were and are not forgotten yet."""
    return len(asyncio.get_running_loop()._scheduled)  # type: ignore[attr-defined]


def play(story: Story) -> None:
    async def whole() -> None:
        deadlines = Deadlines()
        await asyncio.wait_for(story(deadlines), 5)
        deadlines.close()

    asyncio.run(whole())


def test_what_takes_too_long_is_ended_and_the_task_goes_on() -> None:
    async def story(deadlines: Deadlines) -> None:
        assert await within(deadlines, 0.05) == "no answer in time"
        task = asyncio.current_task()
        assert task
        assert task.cancelling() == 0
        await asyncio.sleep(0)
        assert await within(deadlines, 0.05, lambda: asyncio.sleep(0.01)) == "done"

    play(story)


def test_each_has_its_own_time_whatever_came_first() -> None:
    async def story(deadlines: Deadlines) -> None:
        ended: list[float] = []

        async def one(seconds: float) -> None:
            assert await within(deadlines, seconds) != "done"
            ended.append(seconds)

        await asyncio.gather(*(one(seconds) for seconds in (0.15, 0.05, 0.1, 0.05)))
        assert ended == [0.05, 0.05, 0.1, 0.15]

    play(story)


def test_what_is_done_in_time_sets_no_timer_of_its_own() -> None:
    async def story(deadlines: Deadlines) -> None:
        assert await within(deadlines, 30, lambda: asyncio.sleep(0)) == "done"
        before = timers()
        for _ in range(100):
            assert await within(deadlines, 30, lambda: asyncio.sleep(0)) == "done"
        assert timers() == before

    play(story)


def test_a_timer_that_rings_for_nobody_is_not_set_again() -> None:
    async def story(deadlines: Deadlines) -> None:
        before = timers()
        assert await within(deadlines, 0.05, lambda: asyncio.sleep(0)) == "done"
        await asyncio.sleep(0.1)
        assert timers() == before
        assert await within(deadlines, 0.05) != "done"

    play(story)


def test_what_is_open_keeps_its_time_when_all_is_closed() -> None:
    async def story(deadlines: Deadlines) -> None:
        task = asyncio.create_task(within(deadlines, 0.05))
        await asyncio.sleep(0)
        deadlines.close()
        assert await task != "done"

    play(story)


@pytest.mark.parametrize("its_time_is_over", [False, True])
def test_who_is_cancelled_is_cancelled_even_when_the_time_is_over_as_well(its_time_is_over: bool) -> None:
    async def story(deadlines: Deadlines) -> None:
        deadline = Deadline(deadlines, 30)

        async def work() -> None:
            with deadline:
                await hang()

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        if its_time_is_over:
            deadline.pass_by()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    play(story)


def test_a_failure_of_its_own_is_told_as_it_is() -> None:
    async def story(deadlines: Deadlines) -> None:
        async def fails() -> None:
            try:
                await hang()
            finally:
                raise ValueError("its own")

        with pytest.raises(ValueError, match="its own"):
            await within(deadlines, 0.02, fails)
        task = asyncio.current_task()
        assert task
        assert task.cancelling() == 0

    play(story)


def stream() -> aiohttp.StreamReader:
    loop = asyncio.get_running_loop()
    protocol = BaseProtocol(loop)
    protocol.connection_made(asyncio.Transport())
    return aiohttp.StreamReader(protocol, 2**16, loop=loop)


def test_a_stream_on_which_nothing_comes_is_given_up() -> None:
    async def story(_: Deadlines) -> None:
        silent = stream()
        with (
            Silence(silent, 0.05),
            pytest.raises(TimeoutError, match=r"nothing came for about 0\.05 seconds"),
        ):
            await silent.readany()

    play(story)


@pytest.mark.parametrize("reads", [True, False], ids=["read at once", "read later"])
def test_a_stream_on_which_words_come_is_not_and_leaves_no_timer(reads: bool) -> None:
    async def story(_: Deadlines) -> None:
        talks = stream()
        with Silence(talks, 0.1):
            for _ in range(10):
                await asyncio.sleep(0.03)
                talks.feed_data(b"x")
                assert not reads or await talks.readany() == b"x"
        await asyncio.sleep(0.15)
        talks.feed_data(b"y")
        assert await talks.readany() == (b"y" if reads else b"x" * 10 + b"y")

    play(story)


@pytest.mark.parametrize(("word", "ends"), [(0.2, 50.0), (1.0, 50.0), (12.0, 60.0), (14.9, 60.0)])
def test_a_silence_after_a_word_is_as_long_or_up_to_a_tenth_less(word: float, ends: float) -> None:
    async def story() -> None:
        talks = stream()
        with Silence(talks, 50.0):
            await asyncio.sleep(word)
            talks.feed_data(b"x")
            assert await talks.readany() == b"x"
            with pytest.raises(TimeoutError):
                await talks.readany()
            assert round(now(), 3) == ends
            assert 45.0 <= now() - word <= 50.0

    run(story())
